"""Results of quick runs, each made once and shared by all workers, and the stored results of full runs."""

import copy
import fcntl
import functools
import os
from pathlib import Path

import pytest

from reproduction.base import Run
from reproduction.experiments.resnet.photographs import PHOTOGRAPHS, WEIGHTS
from reproduction.record import RESULTS, read_results, reproduce
from tests.sources.same_rows import real

DOCS = Path(__file__).parents[2] / "docs"


def need_data(name):
    """Skip a test of an experiment whose data are not on this machine."""
    if name in ("mnist", "scree"):
        real("mnist/train-images-idx3-ubyte.gz")
    if name in ("resnet", "small-resnet"):
        pytest.importorskip("torch", reason="torch is not installed")
        for part in (PHOTOGRAPHS, WEIGHTS):
            real(part)


def assert_curves_are_inside(figure):
    """Check that no curve leaves its panel, and that texts on panels are in the margin to the right."""
    for axes in figure.axes:
        low, high = axes.get_ylim()
        for line in axes.lines:
            values = line.get_ydata()
            assert low < min(values)
            assert max(values) < high
        for text in axes.texts:
            assert text.xy[0] > 1


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Return a function from the name of an experiment to the folder of its quick run."""
    pytest.importorskip("matplotlib")
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def folder_of(name):
        need_data(name)
        folder = root / "experiments" / name
        folder.parent.mkdir(exist_ok=True)
        with open(root / "experiments" / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "results.json").exists():
                reproduce(name, folder, Run(quick=True, progress=lambda line: None))
        return folder

    return folder_of


@pytest.fixture(scope="session")
def results(quick):
    """Return a function from the name of an experiment to the results of its quick run."""
    return lambda name: read_results(quick(name))


@pytest.fixture
def stored():
    """Return a function from the name of an experiment to its stored full results, free to be changed."""
    return lambda name: copy.deepcopy(_stored(name))


@functools.cache
def _stored(name):
    if not (DOCS / "reproduction" / name / RESULTS).exists():
        pytest.skip(f"no full run of {name} is stored")
    return read_results(DOCS / "reproduction" / name)
