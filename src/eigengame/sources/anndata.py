"""AnnData, in `.h5ad` files or in memory: cells are rows, genes are features, layers by name.

Files are read by h5py alone: anndata is not needed for them.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources._base import Source, SourceError
from eigengame.sources._stored_arrays import stamp
from eigengame.sources._stored_csr import StoredCsrSource
from eigengame.sources.arrays import ArraySource
from eigengame.sources.hdf5 import Hdf5Source, opened_at
from eigengame.sources.sparse import SparseSource

RAW = "raw"
"""The layer that stands for `raw.X`, where no layer has that name."""


def open_h5ad(
    path: str | os.PathLike[str], layer: str | None = None, name: str | None = None
) -> Source:
    """Return the source of a matrix in an `.h5ad` file, read in blocks from disk.

    Parameters
    ----------
    path : path or address
    layer : str, optional
        Which of the layers; by default X. "raw" is `raw.X`.
    name : str, optional

    Notes
    -----
    Dense matrices and CSR are never loaded whole. A CSC matrix cannot be read by rows: it is converted
    once, in memory, where it fits twice.
    """
    found = os.fspath(path)
    with opened_at(found) as file:
        key, names = _place(file, layer, found), None
        with contextlib.suppress(KeyError):
            names = names_of(file[f"{RAW}/var" if key.startswith(f"{RAW}/") else "var"])
        source = _from_node(
            file[key], functools.partial(opened_at, found, key), name or f"{found}:{key}", found
        )
    return _named(source, names)


def from_anndata(data: Any, layer: str | None = None, name: str | None = None) -> Source:
    """Return the source of an AnnData object, in memory or backed by its file.

    Parameters
    ----------
    data : AnnData
    layer : str, optional
        Which of the layers; by default X. "raw" is `raw.X`.
    name : str, optional
    """
    name = name or ("AnnData" if layer is None else f"AnnData layer {layer}")
    names = [str(one) for one in data.var_names]
    if layer is None:
        if getattr(data, "isbacked", False):
            return _named(_from_backed(data, name), names)
        values = data.X
    elif layer in data.layers:
        values = data.layers[layer]
    elif layer == RAW and data.raw is not None:
        values, names = data.raw.X, [str(one) for one in data.raw.var_names]
    else:
        raise SourceError(f"{name}: there is no layer {layer!r}: it has {_listed(data.layers)}.")
    if values is None:
        raise SourceError(f"{name} has no X: give layer=, of {_listed(data.layers)}.")
    if not values.shape[0]:
        raise SourceError(f"{name} has no rows: its shape is {values.shape}.")
    if sparse.issparse(values):
        return _named(SparseSource(values, name), names)
    return _named(ArraySource(np.asarray(values), name), names)


def names_of(var: Any) -> list[str]:
    """Return the names of an annotation table of a file: its index, in any of the layouts there were."""
    import h5py

    if isinstance(var, h5py.Dataset):  # one compound dataset, before 2019
        fields = var.dtype.names or ()
        index = next(field for field in ("index", "_index", *fields) if field in fields)
        return _texts(var[index])
    index = var[_text(var.attrs.get("_index", "_index"))]
    if isinstance(index, h5py.Group):  # categories, or strings that may be missing
        if "categories" in index:
            return [str(one) for one in np.asarray(_texts(index["categories"]))[index["codes"][:]]]
        index = index["values"]
    return _texts(index[:])


class ConvertedSource(SparseSource):
    """A sparse matrix of a file that lay by columns, converted to rows in memory.

    Parameters
    ----------
    group : h5py Group
        With `data`, `indices` and `indptr`, open for reading.
    shape : tuple of int
    name : str
    path, key : str, optional
        The file, and where in it the group is, for the fingerprint.
    """

    def __init__(
        self, group: Any, shape: tuple[int, ...], name: str, path: str | None, key: str | None
    ) -> None:
        self.path, self.key = path, key
        parts = [group[part] for part in ("data", "indices", "indptr")]
        _refuse_unless_fits(2 * sum(part.size * part.dtype.itemsize for part in parts), name)
        try:
            by_columns = sparse.csc_array(tuple(part[:] for part in parts), shape=shape)
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{name} cannot be read ({error}): it is damaged, or its codec is missing."
            ) from error
        super().__init__(by_columns, name)

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest, and the file's size and time."""
        return super().fingerprint() | stamp(self.path, self.key)


def _from_backed(data: Any, name: str) -> Source:
    """Return the source of X of an object whose X is still in its file."""
    if data.is_view:
        raise SourceError(
            f"{name} is a view of a file, whose rows do not lie together: give data.to_memory(), or write the "
            "view to a file of its own."
        )
    node = data.file["X"]
    # What was written to an open file may not be on disk yet: only one open for reading stands for its rows.
    path = str(data.filename) if node.file.mode == "r" else None
    return _from_node(node, lambda: contextlib.nullcontext(node), name, path)


def _from_node(
    node: Any, opened: Callable[[], AbstractContextManager[Any]], name: str, path: str | None
) -> Source:
    """Return the source of a matrix of a file: a dataset, or a group that says how it is sparse."""
    import h5py

    if isinstance(node, h5py.Dataset):
        return Hdf5Source(opened, name, path, node.name)
    # Files of before 2020 say so by h5sparse_format and h5sparse_shape.
    kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    if not kind.startswith(("csr", "csc")) or shape is None or len(shape) != 2:
        raise SourceError(
            f"{name} is encoded as {kind or 'nothing known'!r}: a dense array, csr_matrix or csc_matrix is "
            "needed; choose another by layer=."
        )
    rows, features = (int(length) for length in shape)
    if not rows or not features:
        raise SourceError(f"{name} has no {'features' if rows else 'rows'}: its shape is {shape}.")
    if kind.startswith("csr"):
        return StoredCsrSource(opened, (rows, features), name, path=path, key=node.name)
    return ConvertedSource(node, (rows, features), name, path, node.name)


def _place(file: Any, layer: str | None, path: str) -> str:
    """Return where a layer, or X, is in a file."""
    wanted = "X" if layer is None else f"layers/{layer}"
    if wanted in file:
        return wanted
    if layer == RAW and f"{RAW}/X" in file:
        return f"{RAW}/X"
    what = "X" if layer is None else f"layer {layer!r}"
    there = _listed(file.get("layers", []))
    raise SourceError(f"{path} has no {what}: its layers are {there}.")


def _named(source: Source, names: list[str] | None) -> Source:
    """Return the source with the names of its features."""
    if names is not None and len(names) != source.shape[1]:
        raise SourceError(
            f"{source.name} has {source.shape[1]} features, but {len(names)} names for them."
        )
    source.feature_names = names
    return source


def _refuse_unless_fits(needed: int, name: str) -> None:
    """Refuse to hold what does not fit in memory."""
    from eigengame._system.memory import free_memory

    there = free_memory()
    if there is not None and needed > there:
        raise SourceError(
            f"{name} lies by columns (CSC): to turn it to rows takes {needed / 2**30:.1f} GiB, but "
            f"{there / 2**30:.1f} GiB is free: write it as CSR, for example by adata.X = adata.X.tocsr()."
        )


def _listed(layers: Any) -> str:
    return ", ".join(repr(one) for one in layers) or "none"


def _texts(values: Any) -> list[str]:
    return [_text(one) for one in values]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
