"""The scikit-learn face of what was found: scores, rows from scores, likelihoods, files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eigengame import model_file
from eigengame.dask.lazy import lazy_rows, lazy_scores
from eigengame.estimator.inputs import checked_array, checked_source, is_lazy, is_other, to_numpy
from eigengame.model import Model
from eigengame.preparation import Preparation


class FittedPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What an estimator does once it is fitted; how that came about is its own."""

    whiten: bool
    center: bool
    components_: np.ndarray
    explained_variance_: np.ndarray
    mean_: np.ndarray
    noise_variance_: float
    n_samples_seen_: int
    _preparation: Preparation | None

    def transform(self, X: Any) -> Any:
        """Return the scores of X on the components, shape (n_samples, n_components_).

        X may be anything that `fit` takes: what is not in memory is read block by block. A model of
        prepared data prepares X first, unless it is so already; a row that is passed over has NaN. Scores
        of a Dask array or data frame are a Dask array: nothing is computed until it is.
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
        """Give the scores of X block by block, for data whose scores are to be written as they come."""
        check_is_fitted(self)
        source = checked_source(self, X, reset=False)
        yield from self._model().score_blocks(source, size, whiten=self.whiten)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows from scores, shape (n_samples, n_features_in_); of a Dask array as one."""
        check_is_fitted(self)
        if is_lazy(X):
            return lazy_rows(X, self._model(), whiten=self.whiten)
        return self._model().restore(np.asarray(to_numpy(X)), whiten=self.whiten)

    def get_covariance(self) -> np.ndarray:
        """Return the model's covariance: components, and noise in every other direction."""
        check_is_fitted(self)
        return self._model().covariance()

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the model's covariance."""
        check_is_fitted(self)
        return self._model().precision()

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under the probabilistic model, shape (n_samples,)."""
        check_is_fitted(self)
        if self._preparation is None and not is_other(X):
            return self._model().log_likelihood(checked_array(self, X, reset=False))
        blocks, model = checked_source(self, X, reset=False).blocks(0, 4096), self._model()
        return np.concatenate([model.log_likelihood(block.values) for block in blocks])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def save(self, path: Any) -> Path:
        """Write the model to a `.safetensors` file, whole or not at all, and return its path."""
        check_is_fitted(self)
        return model_file.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the model of a file: it can transform, certify, merge and go on by `partial_fit`."""
        return model_file.load(cls, path)

    def _model(self) -> Model:
        """Return what was found, without how."""
        if self.n_samples_seen_ < 2 and self.center:
            raise ValueError(
                f"the estimator has seen {self.n_samples_seen_} row: components need at least two. Call "
                "partial_fit with more rows first."
            )
        return Model(self.components_, self.explained_variance_, self.mean_, self.noise_variance_)

    @property
    def _n_features_out(self) -> int:
        """Say how many columns scores have, for scikit-learn's names of them."""
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
