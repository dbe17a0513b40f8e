"""Principal components of AnnData, stored as scanpy stores them.

scanpy itself is not needed. `pca` replaces ``scanpy.pp.pca``: the results have the same places and shapes, so that
``scanpy.pp.neighbors`` and all that follows use them. AnnData that is backed by its file is read in blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eigengame import _check
from eigengame._system.extras import install_command
from eigengame.estimator import EigenGamePCA
from eigengame.preparation import prepare
from eigengame.sources import Source, as_source
from eigengame.sources._base import MAIN_LAYER

HIGHLY_VARIABLE = "highly_variable"
"""Column of `var` that selects genes by default."""

DEFAULT_COUNT = 50
"""Default number of components, as in scanpy."""

OWN = ("n_components", "center", "dtype", "random_state")
"""Parameters of `EigenGamePCA` that have another name or form here."""


def pca(
    adata: Any,
    n_comps: int | None = None,
    *,
    layer: str | None = None,
    zero_center: bool = True,
    random_state: Any = 0,
    mask_var: Any = "auto",
    use_highly_variable: bool | None = None,
    dtype: str = "float32",
    key_added: str | None = None,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Compute principal components of AnnData, and store them as ``scanpy.pp.pca`` does.

    Parameters
    ----------
    adata : AnnData
        Sparse, dense, or backed by its file, which is then read in blocks. Values are used as they are: normalise
        counts first, or fit `EigenGamePCA` on ``prepare(adata, counts="log-normalise")``.
    n_comps : int, optional
        Number of components. Defaults to 50, or to one less than the smaller number of cells and selected genes.
    layer : str, optional
        Layer to use instead of X.
    zero_center : bool
        Whether to subtract the mean of each gene. Without it, variances are mean squares, where scanpy has
        variances of the scores.
    random_state : int, RandomState or None
    mask_var : str, bool array of shape (n_vars,), None or "auto"
        Genes to use: a column of `var`, or a mask; None means all. "auto" is ``var["highly_variable"]`` if there is
        such a column, else all genes.
    use_highly_variable : bool, optional
        Older name for ``mask_var="highly_variable"`` (True) and ``mask_var=None`` (False).
    dtype : {"float32", "float64"}
        Precision of the computation and of the scores. Small data is computed in float64 in any case.
    key_added : str, optional
        Key of all results, instead of "X_pca", "PCs" and "pca".
    copy : bool
        Whether to return a copy with the results, instead of adding them to `adata`.
    **options
        Parameters of `EigenGamePCA`, such as `tol`, `passes` and `algorithm`.

    Returns
    -------
    AnnData or None
        The copy, or None. These are set:

        - ``obsm["X_pca"]``: scores, shape (n_obs, n_comps).
        - ``varm["PCs"]``: loadings, shape (n_vars, n_comps), 0 for genes that are not used.
        - ``uns["pca"]``: "variance" and "variance_ratio" of shape (n_comps,), "params", and "certificate". The
          latter has "angle", the bound on the angle of each component in radians (pi/2 if there is none); "kind",
          "confidence" and "tol", as in `Certificate` and `EigenGamePCA`.

    Notes
    -----
    Each component has its largest loading positive, as in scanpy with scikit-learn 1.5 or later. If two loadings
    have nearly the same size, the signs may still differ.

    Examples
    --------
    >>> import eigengame.scanpy
    >>> eigengame.scanpy.pca(adata, 30, tol=1e-3)  # doctest: +SKIP
    >>> adata.uns["pca"]["certificate"]["angle"].max()  # doctest: +SKIP
    """
    data = _checked(adata, layer, options)
    if copy and data.isbacked:
        raise ValueError(
            "copy=True: data is backed by its file; give copy=False, or adata.to_memory()."
        )
    data = data.copy() if copy else data
    name, mask = _mask(data, mask_var, use_highly_variable)
    source: Source = as_source(data, layer=layer)
    if mask is not None:
        source = prepare(source, columns=mask)
    count = _count(source) if n_comps is None else n_comps
    model = EigenGamePCA(
        count, center=zero_center, dtype=dtype, random_state=random_state, **options
    )
    model.fit(source)
    _store(data, model, source, mask, key_added, dtype)
    params = {
        "zero_center": bool(zero_center),
        "use_highly_variable": isinstance(name, str) and name == HIGHLY_VARIABLE,
        "mask_var": name,
    } | ({} if layer is None else {"layer": layer})
    data.uns["pca" if key_added is None else key_added] = {
        "params": params,
        "variance": np.asarray(model.explained_variance_),
        "variance_ratio": np.asarray(model.explained_variance_ratio_),
        "certificate": {
            "angle": np.asarray(model.certificate_.group_angle, np.float64),
            "kind": model.certificate_.kind,
            "confidence": float(model.certificate_.confidence),
            "tol": math.nan if model.tol_ is None else float(model.tol_),
        },
    }
    return data if copy else None


def _checked(adata: Any, layer: str | None, options: dict[str, Any]) -> Any:
    """Return the data if it is AnnData; raise if an option cannot be used."""
    try:
        from anndata import AnnData
    except ModuleNotFoundError:
        raise ImportError(
            f"anndata is needed for eigengame.scanpy: {install_command('anndata')}. Files can be fitted without "
            "it: EigenGamePCA(50).fit('cells.h5ad')."
        ) from None
    if not isinstance(adata, AnnData):
        raise TypeError(
            f"adata is {type(adata).__name__}: give AnnData, or fit other data by EigenGamePCA."
        )
    own = [name for name in OWN if name in options]
    if own:
        raise TypeError(f"{own[0]} has another name here: give n_comps, zero_center or dtype.")
    if layer is not None and layer != MAIN_LAYER and layer not in adata.layers:
        raise ValueError(
            f"layer={layer!r}: its layers are {', '.join(adata.layers) or 'none'}; raw has other genes than varm: "
            "give adata.raw.to_adata()."
        )
    return adata


def _mask(data: Any, mask_var: Any, use_highly_variable: bool | None) -> tuple[Any, Any]:
    """Return what selects the genes, for the parameters in `uns`, and the mask (n_vars,), or None twice."""
    automatic = isinstance(mask_var, str) and mask_var == "auto"
    if use_highly_variable is not None:
        if not automatic:
            raise ValueError("use_highly_variable and mask_var were both given: give mask_var.")
        mask_var, automatic = HIGHLY_VARIABLE if use_highly_variable else None, False
    if automatic:
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in data.var else None
    if mask_var is None:
        return None, None
    if isinstance(mask_var, str):
        if mask_var not in data.var:
            raise ValueError(
                f"mask_var={mask_var!r}: var has no such column; its columns are {', '.join(data.var) or 'none'}."
            )
        mask = data.var[mask_var].to_numpy()
    else:
        mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (data.n_vars,):
        raise ValueError(
            f"mask_var has dtype {mask.dtype} and shape {mask.shape}: give {data.n_vars} values of True or False."
        )
    if not mask.any():
        raise ValueError("mask_var selects no gene: give a mask with some genes.")
    return mask_var, mask


def _count(source: Source) -> int:
    """Return the default number of components."""
    rows, genes = source.shape
    assert rows is not None
    least = min(rows, genes)
    return _check.whole("n_comps", least - 1 if least <= DEFAULT_COUNT else DEFAULT_COUNT)


def _store(
    data: Any, model: EigenGamePCA, source: Source, mask: Any, key: str | None, dtype: str
) -> None:
    """Store scores and loadings."""
    scores = np.concatenate(list(model.transform_blocks(source)))
    loadings = np.asarray(model.components_).T
    if mask is not None:
        whole = np.zeros((data.n_vars, loadings.shape[1]))
        whole[mask] = loadings
        loadings = whole
    data.obsm["X_pca" if key is None else key] = scores.astype(dtype, copy=False)
    data.varm["PCs" if key is None else key] = loadings
