"""Commands run in this process, and data of one shape, so that the algorithm is compiled once."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("typer")

from eigengame import EigenGamePCA
from eigengame.cli import main

ROWS, FEATURES, K = 400, 12, 3
SOURCE = Path(__file__).parents[2] / "src"


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder and return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    # The cache setting would affect the other tests of this process.
    monkeypatch.setattr("eigengame._system.compilation_cache.keep_compilations", lambda: None)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
        return Result(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def program(tmp_path, tmp_path_factory):
    """Start the program in a separate process."""
    cache = str(tmp_path_factory.getbasetemp() / "compiled")

    def start(*arguments, stdout=subprocess.PIPE, **environment):
        return subprocess.Popen(
            [sys.executable, "-m", "eigengame", *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "EIGENGAME_CACHE": cache} | environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture(scope="session")
def x():
    rng = np.random.default_rng(0)
    scales = 2.0 ** -np.arange(FEATURES)
    return (rng.normal(size=(ROWS, FEATURES)) * scales + 1).astype(np.float32)


@pytest.fixture(scope="session")
def files(tmp_path_factory, x):
    """A folder with data.npy, and data.csv with the same numbers and a text column."""
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "data.npy", x)
    names = [f"f{i}" for i in range(FEATURES)]
    lines = [",".join([*names, "kind"])]
    lines += [",".join([*map(repr, map(float, row)), "ab"[i % 2]]) for i, row in enumerate(x)]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def data(files):
    return files / "data.npy"


@pytest.fixture(scope="session")
def pca(data):
    return EigenGamePCA(K, random_state=0).fit(data)


@pytest.fixture(scope="session")
def model(pca, files):
    return pca.save(files / "model.safetensors")
