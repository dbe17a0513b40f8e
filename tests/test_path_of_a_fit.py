"""The path of a fit in CONTRIBUTING.md: the files that a fit really uses."""

import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import eigengame
from eigengame import EigenGamePCA

ROOT = Path(__file__).parents[1]
PACKAGE = Path(eigengame.__file__).parent


def section():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    path, helpers = text.split("<!-- path: begin -->")[1].split("<!-- path: end -->")
    helpers = helpers.split("\n## ")[0]
    found = [re.search(r"`([\w/]+\.py)`", line)[1] for line in path.strip().splitlines()]
    return found, re.findall(r"`([\w/]+\.py)`", helpers)


def test_the_path_of_a_fit_is_the_one_that_is_written_down(tmp_path):
    zarr = pytest.importorskip("zarr")
    rows = np.random.default_rng(0).standard_normal((3000, 200)).astype("float32")
    array = zarr.create_array(
        tmp_path / "file.zarr", shape=rows.shape, dtype="f4", chunks=(500, 200)
    )
    array[:] = rows
    used = {}

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            used.setdefault(file.relative_to(PACKAGE).as_posix(), None)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        EigenGamePCA(16, algorithm="remembered", random_state=0).fit(tmp_path / "file.zarr")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    path, helpers = section()
    assert len(path) < 20
    assert sorted(set(used)) == sorted({*path, *helpers})
