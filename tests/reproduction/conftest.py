"""Quick runs, each made once and shared by all workers: playing is what takes the time."""

import fcntl
import os

import pytest
from reproduction.record import read_results, reproduce

from reproduction import Run


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Return the folder of an experiment's quick run."""
    pytest.importorskip("matplotlib")
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def folder_of(name):
        folder = root / "experiments" / name
        folder.parent.mkdir(exist_ok=True)
        with open(root / "experiments" / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "results.json").exists():
                reproduce(name, folder, Run(quick=True, say=lambda line: None))
        return folder

    return folder_of


@pytest.fixture(scope="session")
def results(quick):
    """Return what the quick run of an experiment measured."""
    return lambda name: read_results(quick(name))
