"""Optional libraries: which extra of this package installs each, for messages about a missing one."""

from __future__ import annotations

EXTRAS = {
    "PIL": "images",
    "anndata": "cells",
    "bed_reader": "genotypes",
    "dask": "dask",
    "distributed": "dask",
    "fsspec": "remote",
    "h5netcdf": "xarray",
    "h5py": "hdf5",
    "matplotlib": "plots",
    "pgenlib": "pgen",
    "pyarrow": "tables",
    "rich": "cli",
    "typer": "cli",
    "xarray": "xarray",
    "zarr": "zarr",
}
"""Extra of each optional library, by the name under which Python imports it."""

PACKAGES = {"PIL": "pillow", "bed_reader": "bed-reader", "pgenlib": "Pgenlib"}
"""Libraries whose package has another name."""


def package_of(module: str) -> str:
    """Return the name of the package that provides a module such as ``PIL.Image``."""
    library = module.partition(".")[0]
    return PACKAGES.get(library, library)


def install_command(module: str) -> str:
    """Return the pip command that installs the library of a module: by its extra, if it has one."""
    library = module.partition(".")[0]
    if library in EXTRAS:
        return f'pip install "eigengame[{EXTRAS[library]}]"'
    return f"pip install {package_of(library)}"
