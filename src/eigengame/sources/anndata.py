"""AnnData, in `.h5ad` files or in memory: cells are rows, genes are features.

Files are read by h5py; the anndata package is not needed for them.
"""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any

import numpy as np
from scipy import sparse

from eigengame.sources._base import Source, SourceError, list_items
from eigengame.sources._memory import check_free_memory
from eigengame.sources._stored_csr import StoredCsrSource
from eigengame.sources.arrays import ArraySource
from eigengame.sources.hdf5 import Hdf5Source, Opener, decode_string, decode_strings, open_file
from eigengame.sources.sparse import SparseSource

RAW = "raw"
"""Name of the layer that means `raw.X`, if no layer has that name."""


def open_h5ad(
    path: str | os.PathLike[str], layer: str | None = None, name: str | None = None
) -> Source:
    """Return the rows of a matrix in an `.h5ad` file, read in blocks.

    Parameters
    ----------
    path : path or address
    layer : str, optional
        Name of a layer; "raw" means `raw.X`. Defaults to X.
    name : str, optional

    Notes
    -----
    Dense and CSR matrices are never loaded as a whole. A CSC matrix cannot be read by rows: it is converted
    in memory, which needs twice its size.
    """
    found = os.fspath(path)
    with open_file(found) as file:
        key, names = _layer_key(file, layer, found), None
        with contextlib.suppress(KeyError):
            names = index_names(file[f"{RAW}/var" if key.startswith(f"{RAW}/") else "var"])
        source = _from_node(
            file[key], functools.partial(open_file, found, key), name or f"{found}:{key}", found
        )
        if "obs" in file:
            source.read_row_ids = functools.partial(_cell_names, found)
    return _set_names(source, names)


def from_anndata(data: Any, layer: str | None = None, name: str | None = None) -> Source:
    """Return the rows of an AnnData object, in memory or backed by its file.

    Parameters
    ----------
    data : AnnData
    layer : str, optional
        Name of a layer; "raw" means `raw.X`. Defaults to X.
    name : str, optional
    """
    source = _from_object(data, layer, name)
    source.read_row_ids = functools.partial(_as_texts, data.obs_names)
    return source


def _from_object(data: Any, layer: str | None, name: str | None) -> Source:
    """Return the rows of a matrix of an AnnData object."""
    name = name or ("AnnData" if layer is None else f"AnnData layer {layer}")
    names = [str(one) for one in data.var_names]
    if layer is None:
        if getattr(data, "isbacked", False):
            return _set_names(_from_backed(data, name), names)
        values = data.X
    elif layer in data.layers:
        values = data.layers[layer]
    elif layer == RAW and data.raw is not None:
        values, names = data.raw.X, [str(one) for one in data.raw.var_names]
    else:
        raise SourceError(
            f"{name}: there is no layer {layer!r}: its layers are {list_items(data.layers) or 'none'}."
        )
    if values is None:
        raise SourceError(
            f"{name} has no X: give layer=, one of {list_items(data.layers) or 'none'}."
        )
    if not values.shape[0]:
        raise SourceError(f"{name} has no rows: its shape is {values.shape}.")
    if sparse.issparse(values):
        return _set_names(SparseSource(values, name), names)
    return _set_names(ArraySource(np.asarray(values), name), names)


def _as_texts(names: Any) -> list[str]:
    """Return names as texts."""
    return [str(one) for one in names]


def _cell_names(path: str) -> list[str] | None:
    """Return the names of the cells in a file, if it has any."""
    with open_file(path) as file, contextlib.suppress(KeyError, StopIteration):
        return index_names(file["obs"])
    return None


def index_names(var: Any) -> list[str]:
    """Return the index of an annotation table in a file, in any version of the format."""
    import h5py

    if isinstance(var, h5py.Dataset):  # one compound dataset, before 2019
        fields = var.dtype.names or ()
        index = next(field for field in ("index", "_index", *fields) if field in fields)
        return decode_strings(var[index])
    index = var[decode_string(var.attrs.get("_index", "_index"))]
    if isinstance(index, h5py.Group):  # categories, or strings with missing values
        if "categories" in index:
            categories = np.asarray(decode_strings(index["categories"]))
            return [str(one) for one in categories[index["codes"][:]]]
        index = index["values"]
    return decode_strings(index[:])


def _from_backed(data: Any, name: str) -> Source:
    """Return the source of an AnnData object whose X is still in its file."""
    if data.is_view:
        raise SourceError(
            f"{name} is a view of a file, and its rows are not contiguous: give data.to_memory(), or write "
            "the view to a file."
        )
    node = data.file["X"]
    # A file that is open for writing may differ from the file on disk.
    path = str(data.filename) if node.file.mode == "r" else None
    return _from_node(node, lambda: contextlib.nullcontext(node), name, path)


def _from_node(node: Any, open_node: Opener, name: str, path: str | None) -> Source:
    """Return the source of a matrix in a file: a dataset, or a group with a sparse encoding."""
    import h5py

    if isinstance(node, h5py.Dataset):
        return Hdf5Source(open_node, name, path, node.name)
    # Files from before 2020 have h5sparse_format and h5sparse_shape.
    encoding = decode_string(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    if not encoding.startswith(("csr", "csc")) or shape is None or len(shape) != 2:
        raise SourceError(
            f"{name} has the encoding {encoding or 'unknown'!r}: a dense array, csr_matrix or csc_matrix is "
            "needed; choose another layer by layer=."
        )
    rows, features = (int(length) for length in shape)
    if not rows or not features:
        raise SourceError(f"{name} has no {'features' if rows else 'rows'}: its shape is {shape}.")
    if encoding.startswith("csr"):
        return StoredCsrSource(open_node, (rows, features), name, path=path, key=node.name)
    return _convert_csc(node, (rows, features), name, path)


def _convert_csc(group: Any, shape: tuple[int, int], name: str, path: str | None) -> SparseSource:
    """Return the source of a CSC matrix of a file, converted to CSR in memory."""
    parts = [group[part] for part in ("data", "indices", "indptr")]
    check_free_memory(
        2 * sum(part.size * part.dtype.itemsize for part in parts),
        f"{name} is stored by columns (CSC): converting it to rows",
        "write it as CSR, for example by adata.X = adata.X.tocsr()",
    )
    try:
        by_columns = sparse.csc_array(tuple(part[:] for part in parts), shape=shape)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{name} cannot be read ({error}): it is damaged, or its codec is missing."
        ) from error
    source = SparseSource(by_columns, name)
    source.path, source.key = path, group.name
    return source


def _layer_key(file: Any, layer: str | None, path: str) -> str:
    """Return the key of a layer, or of X, in a file."""
    wanted = "X" if layer is None else f"layers/{layer}"
    if wanted in file:
        return wanted
    if layer == RAW and f"{RAW}/X" in file:
        return f"{RAW}/X"
    missing = "X" if layer is None else f"layer {layer!r}"
    raise SourceError(
        f"{path} has no {missing}: its layers are {list_items(file.get('layers', [])) or 'none'}."
    )


def _set_names(source: Source, names: list[str] | None) -> Source:
    """Return the source with feature names."""
    if names is not None and len(names) != source.shape[1]:
        raise SourceError(
            f"{source.name} has {source.shape[1]} features, but {len(names)} feature names."
        )
    source.feature_names = names
    return source
