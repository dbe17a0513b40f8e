"""Without an optional library the error names the extra that installs it, for every extra."""

import sys

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame._system import extras
from eigengame.cli import main
from tests.project.files import EXTRAS, PROJECT, script

X = np.arange(12.0).reshape(4, 3)


def of_file(name):
    """Return a function that opens a file of this name, which contains one byte."""

    def open_file(folder):
        (folder / name).write_bytes(b"x")
        as_source(folder / name)

    return open_file


def of_folder(name):
    """Return a function that opens a folder with one file."""

    def open_folder(folder):
        path = folder / "data.zarr" if name.startswith(".z") else folder / "data"
        path.mkdir()
        (path / name).write_bytes(b"x")
        as_source(path)

    return open_folder


def scanpy(folder):
    import eigengame.scanpy

    eigengame.scanpy.pca(X, 2)


def figures(folder):
    from reproduction.__main__ import main as reproduce

    sys.exit(reproduce(["dag", "--out", str(folder)]))


USES = {
    "cli": ("typer", lambda folder: main(["--help"])),
    "plots": ("matplotlib", figures),
    "hdf5": ("h5py", of_file("x.h5")),
    "zarr": ("zarr", of_folder(".zattrs")),
    "images": ("PIL", of_folder("x.png")),
    "remote": ("fsspec", lambda folder: as_source("memory://x.npy")),
    "tables": ("pyarrow", of_file("x.parquet")),
    "genotypes": ("bed_reader", of_file("x.bed")),
    "pgen": ("pgenlib", of_file("x.pgen")),
    "cells": ("anndata", scanpy),
    "dask": ("dask", lambda folder: EigenGamePCA(2).fit(X, engine="dask")),
    "xarray": ("xarray", of_file("x.nc")),
}
"""A library of each extra, and something that needs it."""


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_without_its_library_the_error_names_the_extra(extra, tmp_path, monkeypatch, capsys):
    library, use = USES[extra]
    for name in [one for one in sys.modules if one.startswith("eigengame.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [one for one in sys.modules if one.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises((ImportError, ValueError, SystemExit)) as caught:
        use(tmp_path)
    message = f"{caught.value} {capsys.readouterr().err}"
    assert f"eigengame[{extra}]" in message
    assert "pip install" in message


def test_the_table_of_extras_is_that_of_the_project():
    oldest = script("oldest")
    for library, extra in extras.EXTRAS.items():
        listed = PROJECT["optional-dependencies"][extra]
        assert oldest.normal(extras.package_of(library)) in oldest.minimum_versions(listed)
    every = oldest.requirements(PROJECT | {"dependencies": []}, EXTRAS)
    known = {oldest.normal(extras.package_of(one)) for one in extras.EXTRAS}
    assert known == set(oldest.minimum_versions(every))


def test_a_library_without_an_extra_is_installed_by_its_name():
    assert extras.install_command("tensorboardX.writer") == "pip install tensorboardX"
    assert extras.install_command("PIL.Image") == 'pip install "eigengame[images]"'
