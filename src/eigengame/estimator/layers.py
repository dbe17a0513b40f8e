"""Layers of AnnData: a model reads the layer of its fit from other data."""

from __future__ import annotations

import os
from typing import Any

from eigengame.sources import Source, SourceError, as_source, is_paths, library_of
from eigengame.sources._base import MAIN_LAYER


def layer_of_fit(estimator: Any, data: Any) -> str | None:
    """Return the layer of the fit if it is not X, and data is AnnData or the path of such files; else None."""
    layer: str | None = getattr(estimator, "_layer", None)
    if layer in (None, MAIN_LAYER):
        return None
    paths = [data] if isinstance(data, (str, os.PathLike)) else data if is_paths(data) else []
    files = len(paths) > 0 and all(os.fspath(one).lower().endswith(".h5ad") for one in paths)
    return layer if files or library_of(data) == "anndata" else None


def open_layer_of_fit(data: Any, layer: str, **options: Any) -> Source:
    """Open a layer; an error names the way to choose another one."""
    try:
        return as_source(data, layer=layer, **options)
    except SourceError as error:
        if f"layer {layer!r}" not in str(error):
            raise
        raise SourceError(
            f"{error} The model was fitted on that layer: to use another one, give as_source(data, layer=...), or "
            "--layer on the command line; X is the main matrix."
        ) from None
