"""A fitted model: projection of rows, and the probabilistic model of PCA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from eigengame import _check
from eigengame.linalg.products import full_product
from eigengame.solver.rows.device_rows import refuse_nonfinite_rows
from eigengame.sources import Source


def refuse_nonfinite(name: str, results: np.ndarray, rows: Any, first: int) -> None:
    """Raise ValueError if rows, which begin at row `first`, contain NaN or infinity.

    They are examined only if their results are not finite, which such a value always causes.
    """
    if np.isfinite(results).all():
        return
    if issparse(rows):
        _check.finite_entries(name, rows, first=first)
    else:
        _check.finite(name, rows, places=range(first, first + len(rows)))


class Model(NamedTuple):
    """Components with their variances, about a mean, in isotropic noise (probabilistic PCA).

    Attributes
    ----------
    components : array of shape (k, d)
        Orthonormal.
    variance : array of shape (k,)
    mean : array of shape (d,)
    noise : float
        Variance in all other directions.
    mixing : array of shape (k, k), optional
        Matrix by which scores are multiplied, for rows of which some features are not known.
    """

    components: np.ndarray
    variance: np.ndarray
    mean: np.ndarray
    noise: float
    mixing: np.ndarray | None = None

    def project(self, rows: Any, *, whiten: bool) -> np.ndarray:
        """Return scores (n, k) in the precision of the rows.

        The projected mean is subtracted from the scores, so rows are not copied.
        """
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        return self._centred(rows @ self.components.T.astype(dtype), whiten)

    def score_blocks(self, source: Source, size: int, *, whiten: bool) -> Iterator[np.ndarray]:
        """Iterate over the scores of a source block by block; rows that its preparation skips have NaN.

        Rows on a device stay there: only components and scores are transferred.
        """
        if source.shifts:
            # Rows in half precision keep more digits about the mean.
            centred = self._replace(mean=np.zeros_like(self.mean))
            yield from centred._score_blocks(source.about(self.mean), size, whiten=whiten)
        else:
            yield from self._score_blocks(source, size, whiten=whiten)

    def _score_blocks(self, source: Source, size: int, *, whiten: bool) -> Iterator[np.ndarray]:
        there = jax.device_put(self.components) if source.on_device else None
        size = min(size, source.block_rows or size)
        begin = 0
        for block in source.blocks(0, size):
            if there is None:
                scores = self.project(block.values, whiten=whiten)
                refuse_nonfinite(source.name, scores, block.values, begin)
            else:
                scores = self._centred(np.asarray(full_product(block.values, there.T)), whiten)
                if source.views and not np.isfinite(scores).all():
                    refuse_nonfinite_rows(source, block.values, begin)
            if block.weights is not None:
                scores[block.weights == 0] = np.nan
            yield scores
            begin += len(block)

    def _centred(self, scores: np.ndarray, whiten: bool) -> np.ndarray:
        """Return the scores of centred rows from those of plain rows."""
        centre = self.mean @ self.components.T.astype(np.float64)
        scores = scores - centre.astype(scores.dtype)
        if self.mixing is not None:
            scores = scores @ self.mixing.astype(scores.dtype)
        return scores / self._deviations().astype(scores.dtype) if whiten else scores

    def affine(self, *, whiten: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (k, d) and biases (k,) in float64, for which scores are ``rows @ weights.T + biases``."""
        weights = self.components.astype(np.float64)
        biases = -(weights @ self.mean.astype(np.float64))
        if whiten:
            deviations = self._deviations()
            weights, biases = weights / deviations[:, None], biases / deviations
        return weights, biases

    def restore(self, scores: np.ndarray, *, whiten: bool) -> np.ndarray:
        """Return rows (n, d) from scores."""
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        if whiten:
            scores = scores * self._deviations().astype(dtype)
        return scores @ self.components.astype(dtype) + self.mean.astype(dtype)

    def covariance(self) -> np.ndarray:
        """Return the covariance of the model, shape (d, d)."""
        components = self.components.astype(np.float64)
        covariance = (components.T * self._excess()) @ components
        covariance[np.diag_indices_from(covariance)] += self.noise
        return covariance

    def precision(self) -> np.ndarray:
        """Return the inverse of the covariance, by the matrix inversion lemma if there is noise."""
        if self.noise <= 0:
            return linalg.pinvh(self.covariance())
        components, excess = self.components.astype(np.float64), self._excess()
        share = excess / (self.noise * (self.noise + excess))
        precision = -(components.T * share) @ components
        precision[np.diag_indices_from(precision)] += 1 / self.noise
        return precision

    def log_likelihood(self, rows: Any) -> np.ndarray:
        """Return the log-likelihood of each row, shape (n,)."""
        precision = self.precision()
        away = (rows.toarray() if issparse(rows) else rows) - self.mean
        _, log_det = np.linalg.slogdet(precision)
        norm = log_det - len(self.mean) * np.log(2 * np.pi)
        return 0.5 * (norm - np.sum(away * (away @ precision), axis=1))

    def _excess(self) -> np.ndarray:
        """Return the variance of each component beyond the noise."""
        return np.maximum(self.variance - self.noise, 0)

    def _deviations(self) -> np.ndarray:
        """Return standard deviations to divide by; zeros are replaced by 1."""
        deviations = np.sqrt(self.variance)
        return np.where(deviations > np.finfo(np.float64).tiny, deviations, 1)
