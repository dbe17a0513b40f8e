"""A fitted estimator: its attributes, scores, inverse transform, likelihoods and model files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eigengame import model_file
from eigengame.dask.lazy import lazy_rows, lazy_scores
from eigengame.estimator.inputs import checked_array, checked_source, is_lazy, is_other, to_numpy
from eigengame.model import Model, refuse_nonfinite
from eigengame.preparation import Preparation
from eigengame.solver.result import Result
from eigengame.sources import Layers


def attributes_of(result: Result) -> dict[str, Any]:
    """Return the attributes of an estimator with this result."""
    return {
        "_result": result,
        "components_": result.components,
        "explained_variance_": result.explained_variance,
        "explained_variance_ratio_": result.explained_variance_ratio,
        "singular_values_": result.singular_values,
        "mean_": result.mean,
        "var_": result.var,
        "noise_variance_": result.noise_variance,
        "n_components_": len(result.components),
        "n_samples_seen_": result.rows,
        "n_players_": len(result.players),
        "n_passes_": result.outcome.passes,
        "certificate_": result.certificate,
        "outcome_": result.outcome,
        "tol_": result.options.tol,
        "_provenance": None,  # only of a model that was loaded and not changed
    }


class FittedPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Methods of a fitted estimator."""

    whiten: bool
    center: bool
    layers_: Layers | None
    tol_: float | None
    _result: Result | None = None
    _began: Mapping[str, Any]
    _preparation: Preparation | None = None
    _alleles: list[str] | None = None
    _source: Mapping[str, Any] | None = None
    _folders: Sequence[str] = ()
    _provenance: Mapping[str, Any] | None = None

    def _set_result(self, result: Result) -> None:
        """Store a result, and set the public attributes."""
        self.__dict__.update(attributes_of(result))

    def transform(self, X: Any) -> Any:
        """Return the scores of X on the components, shape (n_samples, n_components_).

        X may be anything that `fit` takes. Data that is not in memory is read block by block. A model of prepared
        data prepares X first, unless it is prepared already; rows that the preparation skips have NaN. Scores of a
        Dask array or data frame are a Dask array, computed on demand.
        """
        check_is_fitted(self)
        if is_lazy(X):
            source = checked_source(self, X, reset=False)
            return lazy_scores(source, self._model(), whiten=self.whiten)
        if self._preparation is None and not is_other(X):
            rows = checked_array(self, X, reset=False)
            return self._model().project(rows, whiten=self.whiten)
        return np.concatenate(list(self.transform_blocks(X)))

    def transform_blocks(self, X: Any, size: int = 4096) -> Iterator[np.ndarray]:
        """Iterate over the scores of X block by block."""
        check_is_fitted(self)
        source = checked_source(self, X, reset=False)
        yield from self._model().score_blocks(source, size, whiten=self.whiten)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows from scores, shape (n_samples, n_features_in_); for a Dask array, a Dask array."""
        check_is_fitted(self)
        if is_lazy(X):
            return lazy_rows(X, self._model(), whiten=self.whiten)
        return self._model().restore(np.asarray(to_numpy(X)), whiten=self.whiten)

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model: components, and noise in all other directions."""
        check_is_fitted(self)
        return self._model().covariance()

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance of the model."""
        check_is_fitted(self)
        return self._model().precision()

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under the probabilistic model, shape (n_samples,)."""
        check_is_fitted(self)
        if self._preparation is None and not is_other(X):
            return self._model().log_likelihood(checked_array(self, X, reset=False))
        source, model = checked_source(self, X, reset=False), self._model()
        found: list[np.ndarray] = []
        for number, block in enumerate(source.blocks(0, 4096)):
            found.append(model.log_likelihood(block.values))
            refuse_nonfinite(source.name, found[-1], block.values, 4096 * number)
        return np.concatenate(found)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def save(self, path: Any, *, full_paths: bool = False) -> Path:
        """Write the model to a `.safetensors` file and return its path. An existing file is replaced atomically.

        Parameters
        ----------
        path : path
        full_paths : bool
            Whether the file contains the paths of the data. By default it contains their names without folders.
        """
        check_is_fitted(self)
        # A copy of one moment: another thread may be in `partial_fit`.
        return model_file.save(copy.copy(self), path, full_paths=full_paths)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Load a model from a file. It can transform, certify, merge and continue with `partial_fit`."""
        return model_file.load(cls, path)

    def _model(self) -> Model:
        """Return the components with their variances, mean and noise."""
        now = dict(vars(self))  # of one moment: another thread may be in `partial_fit`
        if now["n_samples_seen_"] < 2 and self.center:
            raise ValueError(
                f"the estimator has seen {now['n_samples_seen_']} row: components need at least two. Call "
                "partial_fit with more rows first."
            )
        names = ("components_", "explained_variance_", "mean_", "noise_variance_")
        return Model(*(now[name] for name in names))

    @property
    def _n_features_out(self) -> int:
        """Number of columns of the scores, for their names in scikit-learn."""
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
