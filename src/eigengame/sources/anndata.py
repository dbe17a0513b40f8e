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

from eigengame.sources._anndata_tables import index_names
from eigengame.sources._base import MAIN_LAYER, Source, SourceError, list_items, one_line
from eigengame.sources._hdf5_file import (
    SPARSE,
    decode_string,
    explain_damage,
    open_file,
)
from eigengame.sources._hdf5_links import find
from eigengame.sources._memory import check_memory
from eigengame.sources._stored_csr import StoredCsrSource, check_members, read_member
from eigengame.sources.arrays import ArraySource
from eigengame.sources.hdf5 import Hdf5Source, Opener
from eigengame.sources.sparse import SparseSource

RAW = "raw"
"""Name of the layer that means `raw.X`, if no layer has that name."""

VAR = {"raw/X": "raw/var", "raw.X": "raw.var"}
"""Tables of genes of the places of `raw.X`, the second of files from before 2019."""


def open_h5ad(
    path: str | os.PathLike[str],
    layer: str | None = None,
    name: str | None = None,
    external: bool = False,
    max_bytes: int | None = None,
) -> Source:
    """Return the rows of a matrix in an `.h5ad` file, read in blocks.

    Parameters
    ----------
    path : path or address
    layer : str, optional
        Name of a layer; "raw" means `raw.X`, and "X" means X, the default.
    name : str, optional
    external, max_bytes
        As in `open_hdf5`. `max_bytes` also limits a matrix that is stored by columns.

    Notes
    -----
    Dense and CSR matrices are never loaded as a whole. A CSC matrix cannot be read by rows: it is converted
    in memory, which needs twice its size.
    """
    found = os.fspath(path)
    with open_file(found) as file, explain_damage(found):
        key, names = _layer_key(file, layer, found, external), None
        node = find(file, key, external=external, members=SPARSE)
        table = VAR.get(key, "var")
        if find(file, table, external=external) is not None:
            names = index_names(file, table, external)
        opener = functools.partial(open_file, found, key, external=external)
        source = _from_node(node, opener, name or f"{found}:{key}", found, max_bytes)
        if find(file, "obs", external=external) is not None:
            source.read_row_ids = functools.partial(_cell_names, found, external)
    source.layer = MAIN_LAYER if layer is None else layer
    return _set_names(source, names)


def from_anndata(data: Any, layer: str | None = None, name: str | None = None) -> Source:
    """Return the rows of an AnnData object, in memory or backed by its file.

    Parameters
    ----------
    data : AnnData
    layer : str, optional
        Name of a layer; "raw" means `raw.X`, and "X" means X, the default.
    name : str, optional
    """
    source = _from_object(data, layer, name)
    source.read_row_ids = functools.partial(_as_texts, data.obs_names)
    source.layer = MAIN_LAYER if layer is None else layer
    return source


def _from_object(data: Any, layer: str | None, name: str | None) -> Source:
    """Return the rows of a matrix of an AnnData object."""
    name = name or ("AnnData" if layer is None else f"AnnData layer {layer}")
    names = [str(one) for one in data.var_names]
    backed = bool(getattr(data, "isbacked", False))
    if layer is not None and layer in data.layers:
        values = data.layers[layer]
    elif layer in (None, MAIN_LAYER):
        if backed:
            return _set_names(_from_backed(data, "X", name), names)
        values = data.X
    elif layer == RAW and data.raw is not None:
        names = [str(one) for one in data.raw.var_names]
        if backed:
            return _set_names(_from_backed(data, "raw/X", name), names)
        values = data.raw.X
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


def _cell_names(path: str, external: bool = False) -> list[str] | None:
    """Return the names of the cells in a file, if it has any."""
    with open_file(path) as file, explain_damage(path):
        return index_names(file, "obs", external)


def _from_backed(data: Any, key: str, name: str) -> Source:
    """Return the source of X or `raw.X` of an AnnData object, which is still in its file."""
    if data.is_view:
        raise SourceError(
            f"{name} is a view of a file, and its rows are not contiguous: give data.to_memory(), or write "
            "the view to a file."
        )
    node = data.file[key]
    # A file that is open for writing may differ from the file on disk.
    path = str(data.filename) if node.file.mode == "r" else None
    return _from_node(node, lambda: contextlib.nullcontext(node), name, path)


def _from_node(
    node: Any, open_node: Opener, name: str, path: str | None, max_bytes: int | None = None
) -> Source:
    """Return the source of a matrix in a file: a dataset, or a group with a sparse encoding."""
    import h5py

    if isinstance(node, h5py.Dataset):
        return Hdf5Source(open_node, name, path, node.name, max_bytes)
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
        return StoredCsrSource(
            open_node, (rows, features), name, path=path, key=node.name, max_bytes=max_bytes
        )
    return _convert_csc(node, (rows, features), name, path, max_bytes)


def _convert_csc(
    group: Any, shape: tuple[int, int], name: str, path: str | None, max_bytes: int | None
) -> SparseSource:
    """Return the source of a CSC matrix of a file, converted to CSR in memory."""
    check_members(group, name, max_bytes)
    parts = [group[part] for part in SPARSE]
    check_memory(
        2 * sum(part.size * part.dtype.itemsize for part in parts) + 16 * shape[0],
        f"{name} is stored by columns (CSC): converting it to rows",
        "write it as CSR, for example by adata.X = adata.X.tocsr()",
        max_bytes,
    )
    arrays = tuple(read_member(part, name) for part in parts)
    try:
        by_columns = sparse.csc_array(arrays, shape=shape)
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"{name} is not a sparse matrix of shape {shape} ({one_line(error)}): it is damaged; write it again."
        ) from error
    source = SparseSource(by_columns, name)
    source.path, source.key = path, group.name
    return source


def _layer_key(file: Any, layer: str | None, path: str, external: bool) -> str:
    """Return the key of a layer, or of X, in a file."""
    wanted = [MAIN_LAYER] if layer is None else [f"layers/{layer}"]
    wanted += [MAIN_LAYER] if layer == MAIN_LAYER else list(VAR) if layer == RAW else []
    for key in wanted:
        if find(file, key, external=external) is not None:
            return key
    missing = "X" if layer is None else f"layer {layer!r}"
    layers = find(file, "layers", external=external)
    listed = "none" if layers is None else list_items(layers) or "none"
    raise SourceError(f"{path} has no {missing}: its layers are {listed}.")


def _set_names(source: Source, names: list[str] | None) -> Source:
    """Return the source with feature names."""
    if names is not None and len(names) != source.shape[1]:
        raise SourceError(
            f"{source.name} has {source.shape[1]} features, but {len(names)} feature names."
        )
    source.feature_names = names
    return source
