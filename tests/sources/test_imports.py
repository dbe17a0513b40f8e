"""Opening files does not import JAX, which takes a second."""

import subprocess
import sys

import numpy as np
import pytest


@pytest.mark.parametrize("name", ["rows.npy", "rows.csv"])
def test_opening_a_file_does_not_import_jax(tmp_path, name):
    if name.endswith(".csv"):
        pytest.importorskip("pyarrow")
        np.savetxt(tmp_path / name, np.eye(3), delimiter=",", fmt="%.1f")
    else:
        np.save(tmp_path / name, np.eye(3))
    code = f"""
import sys
from eigengame.sources import as_source
block = next(as_source({str(tmp_path / name)!r}, name="rows").blocks(0, 2))
assert block.values.shape == (2, 3)
assert "jax" not in sys.modules, "JAX was imported"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
