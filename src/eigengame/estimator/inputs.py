"""Checks of the input of an estimator: arrays by scikit-learn, everything else as a source."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from numbers import Real
from typing import Any

import jax
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from eigengame import _check
from eigengame.estimator.features import with_features_of_fit
from eigengame.estimator.genotypes import (
    aligned_genotypes,
    refuse_partial,
    warn_unless_standardised,
)
from eigengame.estimator.layers import layer_of_fit, open_layer_of_fit
from eigengame.preparation import preparation_of, prepare
from eigengame.sources import Source, SourceError, as_source, is_paths, is_table, library_of
from eigengame.sources._alleles import refuse_other_alleles
from eigengame.sources.device_array import DeviceArray, on_device
from eigengame.sources.iterators import tensor_to_numpy
from eigengame.sources.sparse import checked_csr

MOST_WEIGHT = 2.0**80
"""The largest weight must be at most this number, and at least its inverse."""

SMALL = 2**18
"""Largest size of data that is fitted in float64, at negligible cost."""

LAZY = ("dask", "dask_expr")
"""Libraries whose arrays and frames are computed on demand."""


def checked_array(estimator: Any, X: Any, *, finite: bool = True, **options: Any) -> Any:
    """Return an array or CSR matrix, checked by scikit-learn, which also sets the feature attributes.

    NaN and infinity are refused here unless `finite` is False: the message of scikit-learn has no place, and
    recommends other estimators.
    """
    array = validate_data(
        estimator,
        to_numpy(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16],
        ensure_all_finite=False,
        **options,
    )
    if finite:
        refuse_nonfinite("X", array)
    return array


def refuse_nonfinite(name: str, rows: Any, first: int = 0) -> None:
    """Raise ValueError if dense or CSR rows, which begin at row `first`, contain NaN or infinity."""
    if sparse.issparse(rows):
        _check.finite_entries(name, rows, first=first)
    else:
        _check.finite(name, rows, places=range(first, first + len(rows)))


def checked_source(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    streamed: bool = False,
    least: int = 1,
    partial: bool = False,
) -> Source:
    """Return the input as a source, and set the feature attributes of the estimator.

    An estimator of prepared data prepares the input first. Genotypes are aligned with the SNPs of the fit.

    Parameters
    ----------
    estimator : estimator
    X : anything that `as_source` takes
    reset : bool
        Whether to set the feature attributes, or to check against them.
    streamed : bool
        Whether the fit itself detects numbers that are not finite: then large data is not read for this check.
    least : int
        Smallest number of rows.
    partial : bool
        Whether SNPs of the fit may be missing, which `align` allows for.
    """
    if reset:
        estimator._alleles = estimator._positions = estimator._layer = None
    preparation = None if reset else estimator._preparation
    there = on_device(X) if preparation is None and streamed else None
    if there is not None and there.size > SMALL:
        X = DeviceArray(there, "X")
    if preparation is None and not is_other(X):
        X = to_numpy(X)
        large = math.prod(getattr(X, "shape", ())) > SMALL
        array = checked_array(
            estimator,
            X,
            reset=reset,
            ensure_min_samples=least,
            finite=not (streamed and large),
        )
        return as_source(array)
    data = X if is_other(X) else to_numpy(X)
    if not reset:
        data = with_columns_of_fit(estimator, data)
        if estimator._alleles is not None and _may_have_alleles(data):
            data, preparation = aligned_genotypes(estimator, as_source(data))
    source = as_source(data) if preparation is None else preparation.over(data)
    if not reset and preparation is None:
        _refuse_other_numbers(source)
        source = with_features_of_fit(estimator, source)
    if reset and source.grid is not None:
        source = prepare(source)  # leaves out cells without values, such as land
    n, d = source.shape
    if n is not None and n < least:
        raise SourceError(f"{source.name} has {n} rows: at least {least} are needed.")
    if d < 1:
        raise SourceError(f"{source.name} has no features.")
    if source.uncentered and estimator.center:
        raise SourceError(
            f"{source.name}: the Fisher matrix is their second moment about zero, but center=True subtracts the "
            "mean: give EigenGamePCA(..., center=False), or gradients(..., covariance=True) for the covariance."
        )
    if reset:
        estimator.n_features_in_ = d
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        if source.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        estimator._layer = source.layer
        estimator._alleles = None if source.alleles is None else list(source.alleles)
        if source.positions is not None:
            estimator._positions = list(source.positions)
            warn_unless_standardised(source)
    elif d != estimator.n_features_in_:
        raise SourceError(
            f"{source.name} has {d} features, but the fit had {estimator.n_features_in_}: give the same "
            "columns."
        )
    elif source.layers not in (None, getattr(estimator, "layers_", None) or source.layers):
        raise SourceError(f"{source.name}: {source.layers.difference(estimator.layers_)}")
    elif source.feature_names is not None and hasattr(estimator, "feature_names_in_"):
        expected, known = estimator.feature_names_in_, estimator._alleles
        if source.alleles is not None and known is not None:
            names = source.feature_names
            refuse_other_alleles(source.name, names, source.alleles, expected, known)
        refuse_other_names(source, estimator.feature_names_in_)
    if not reset and not partial and estimator._alleles is not None:
        refuse_partial(source)
    return source


def refuse_prepared(estimator: Any, source: Source) -> None:
    """Raise SourceError if the rows are prepared, but those of the fit were not: they must not be mixed."""
    if estimator._preparation is None and preparation_of(source) is not None:
        raise SourceError(
            f"{source.name} is prepared, but the rows of the fit were not: give unprepared rows, or begin with "
            "prepared ones, partial_fit(prepare(first_rows, ...)), and give the rest unprepared."
        )


def _refuse_other_numbers(source: Source) -> None:
    """Raise SourceError if the rows are prepared by steps that compute other numbers, for a fit of unprepared rows.

    Filled missing values and selected columns are not other numbers.
    """
    prepared = preparation_of(source)
    steps = [] if prepared is None else [step.kind for step in prepared.steps if step.floating]
    if steps:
        raise SourceError(
            f"{source.name} is prepared ({', '.join(steps)}), but the rows of the fit were not: give unprepared "
            "rows, or begin with prepared ones, partial_fit(prepare(...)) or fit(prepare(...)): such a model "
            "prepares others by itself."
        )


def _may_have_alleles(data: Any) -> bool:
    """Return whether data is a source, or paths of files that are not tables."""
    paths = [data] if isinstance(data, (str, os.PathLike)) else data if is_paths(data) else []
    return isinstance(data, Source) or (len(paths) > 0 and not any(map(is_table, paths)))


def with_columns_of_fit(estimator: Any, data: Any) -> Any:
    """Return a table opened by the columns of the fit, whatever else it has, in whatever order.

    Anything that is not a path of a table or an Arrow table is returned as it is, and so is everything
    where the preparation of the fit chooses columns by their numbers. A text table without names is opened
    whole: its columns must be those of the fit in their order. AnnData is opened by the layer of the fit.
    """
    layer = layer_of_fit(estimator, data)
    if layer is not None:
        return open_layer_of_fit(data, layer)
    preparation = getattr(estimator, "_preparation", None)
    names = getattr(estimator, "feature_names_in_", None)
    if preparation is not None:
        names = preparation.columns_of_table(names)
    paths = [data] if isinstance(data, (str, os.PathLike)) else data if is_paths(data) else []
    table = all(map(is_table, paths)) if paths else library_of(data) == "pyarrow"
    if names is None or not table:
        return data
    try:
        source = as_source(data, columns=list(map(str, names)))
    except SourceError:
        with contextlib.suppress(SourceError):
            whole = as_source(data)
            if whole.feature_names is None:
                return whole
        raise
    return data if source.feature_names is None else source


def refuse_other_names(source: Source, expected: Sequence[Any]) -> None:
    """Raise SourceError if the features of a source have other names than those of the fit."""
    assert source.feature_names is not None
    for i, (name, wanted) in enumerate(zip(source.feature_names, expected, strict=True)):
        if str(name) != str(wanted):
            raise SourceError(
                f"{source.name}: feature {i} is {str(name)!r}, but was {str(wanted)!r} in the fit: give the "
                "same columns in the same order."
            )


def checked_weights(source: Source, sample_weight: Any) -> np.ndarray | None:
    """Return nonnegative weights (n,), or None."""
    if sample_weight is None:
        return None
    n = source.shape[0]
    if n is None:
        raise SourceError(
            f"the number of rows of {source.name} is unknown: sample_weight cannot be used."
        )
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weights: np.ndarray = check_array(
        sample_weight, dtype=[np.float64, np.float32], ensure_2d=False, input_name="sample_weight"
    )
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but {source.name} has {n} rows: give shape ({n},)."
        )
    if (weights < 0).any():
        first = int((weights < 0).argmax())
        raise ValueError(
            f"sample_weight[{first}] is {weights[first]}: weights must not be negative."
        )
    largest = float(weights.max(initial=0))
    if largest > 0 and not 1 / MOST_WEIGHT <= largest <= MOST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {largest:.1g}, and squares of sums may be out of the range of numbers: "
            f"multiply all weights by {1 / largest:.0g}, which changes no component."
        )
    return weights


def in_precision(source: Source, dtype: Any) -> Source:
    """Return the source in the precision of the fit."""
    return source.in_float64() if np.dtype(dtype) == np.float64 else source


def is_other(X: Any) -> bool:
    """Return whether X is opened by `as_source` instead of checked by scikit-learn."""
    if isinstance(X, (Source, str, os.PathLike)):
        return True
    if isinstance(X, (np.ndarray, jax.Array, list, tuple)) or sparse.issparse(X):
        # A list of matrices is a stream; a list of rows is a matrix.
        matrices = isinstance(X, list) and len(X) > 0 and all(getattr(p, "ndim", 0) == 2 for p in X)
        return matrices or is_paths(X)
    library = library_of(X)
    if library in ("pandas", "polars"):
        return not hasattr(X, "shape")  # a query, or chunks
    if library == "torch":
        return not hasattr(X, "detach")
    return library in ("h5py", "zarr", "anndata", "pyarrow", "xarray", *LAZY) or hasattr(
        X, "__next__"
    )


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask collection."""
    return library_of(X) in LAZY


def to_numpy(X: Any) -> Any:
    """Convert JAX arrays and torch tensors to NumPy arrays; everything else is left to scikit-learn."""
    if isinstance(X, jax.Array):
        return np.asarray(X)
    if hasattr(X, "detach"):
        return tensor_to_numpy(X)
    if sparse.issparse(X):
        rows = checked_csr(X, "X")
        return X if X.format == "csr" else rows
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise SourceError(
            f"X is a masked array with {np.ma.count_masked(X)} masked numbers, which would be read as data: "
            "pass X.filled(np.nan) to prepare(..., missing='mean')."
        )
    if library_of(X) in ("pandas", "polars") and hasattr(X, "columns"):
        from eigengame.sources.frames import without_index

        return without_index(X)
    return X
