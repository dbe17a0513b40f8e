"""Memory maps whose files were truncated are refused: reading their end would kill the process."""

import os

import numpy as np
import pytest

from eigengame import SourceError, as_source


@pytest.mark.parametrize("kind", [lambda map: map, np.asarray, lambda map: map[:, ::2]])
def test_a_map_that_was_truncated_is_refused_and_so_are_views_of_it(tmp_path, kind):
    np.save(tmp_path / "rows.npy", np.ones((400, 100)))
    data = kind(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    source = as_source(data)
    source.read(0, 1)
    os.truncate(tmp_path / "rows.npy", 160_000)
    with pytest.raises(SourceError, match="truncated after it was mapped"):
        source.read(0, 1)
