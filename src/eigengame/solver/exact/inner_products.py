"""Inner products of all rows, with bounds on their errors: in float64, or in float32 with a measured error."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.products import full_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.solver.certificates.probes import draw_probes, least_norm
from eigengame.solver.certificates.risk import EXACT_RISK
from eigengame.solver.certificates.rounding import OPERATIONS, gamma
from eigengame.solver.lanczos.centred_rows import CentredRows, centred_rows
from eigengame.solver.passes.held_rows import HeldRows
from eigengame.solver.results.result import total_scatter
from eigengame.solver.rows.moments import Moments

COUNT = 8
"""Number of random vectors that measure the error of inner products in float32."""


class RowGram(NamedTuple):
    r"""Inner products of all rows.

    Attributes
    ----------
    matrix : array of shape (n, n)
        $\hat K$, symmetric.
    moments : Moments
        Of each feature, in float64.
    squares : float
        $T$, the sum of all squares.
    rows_error : float
        $\varepsilon$.
    error : float
        $\delta$.
    scores : array of shape (r, n)
        Scores of the rows on given probes.
    sparse : CentredRows or None
        The rows, if they are sparse.
    measured : bool
        Whether the inner products are in float32 with a measured error, which holds but for EXACT_RISK.
    """

    matrix: np.ndarray
    moments: Moments
    squares: float
    rows_error: float
    error: float
    scores: np.ndarray
    sparse: CentredRows | None = None
    measured: bool = False


def row_gram(
    held: HeldRows,
    *,
    center: bool,
    probes: np.ndarray | None = None,
    measured: int | None = None,
) -> RowGram:
    """Return the inner products of all rows, about the mean if `center`. Needs ``jax.enable_x64(True)``.

    `probes` (r, d) are multiplied by the rows as well. With a seed for `measured`, the inner products are computed
    in float32, and their error is measured.
    """
    probes = np.zeros((0, held.width)) if probes is None else probes
    if held.scattered:
        rows, of_features = centred_rows(held, center=center)
        inner = rows.inner_products()
        squares, along = total_scatter(of_features, center=center), rows.scores(probes).T
        return RowGram(
            inner.matrix, of_features, squares, inner.rows_error, inner.error, along, rows
        )
    total: Any = 0.0
    scores: Any = 0.0
    mean, scatter, left = (np.zeros(held.width) for _ in range(3))
    longest, count = 0, 0
    random = np.zeros((len(held.roots), 0))
    if measured is not None:
        random = draw_probes(measured, COUNT, len(held.roots)).T
    for panel in held.panels(center=center):
        values, own = panel.values, panel.columns
        along = held.there(probes[:, own])
        if measured is None:
            total = total + product(values, values.T)
        else:
            narrow = values.astype(np.float32)
            total = total + narrow @ narrow.T
            along = np.concatenate([along, random.T @ values])
        scores = scores + product(along, values.T)
        squared = np.einsum if isinstance(values, np.ndarray) else jnp.einsum
        mean[own], scatter[own] = panel.mean, np.asarray(squared("ij,ij->j", values, values))
        left[own] = np.asarray(held.roots @ values) if center else 0.0
        longest, count = max(longest, values.shape[1]), count + 1
    scores, seen = np.asarray(scores)[: len(probes)], np.asarray(scores)[len(probes) :].T
    weight, squares = max(held.weight, np.finfo(float).tiny), float(scatter.sum())
    rows_error = gamma(OPERATIONS) * math.sqrt(squares)
    if center:
        # What rows were before their mean was subtracted was rounded too, and something of the mean is left.
        rows_error += gamma(OPERATIONS) * math.sqrt(weight * float(np.sum(mean**2)))
        rows_error += float(np.linalg.norm(left)) / math.sqrt(weight)
        rows_error += gamma(len(held.roots) + OPERATIONS) * math.sqrt(squares)
    matrix = np.asarray(total, np.float64)
    matrix = (matrix + matrix.T) / 2
    # The norm of all rows is at most the root of the trace, and of the largest sum of absolute values.
    norm = math.sqrt(min(squares, float(np.abs(matrix).sum(axis=1).max(initial=0))))
    error = gamma(longest + count + OPERATIONS) * squares + 2 * norm * rows_error + rows_error**2
    if measured is not None:
        off = matrix @ random - seen
        known = float(np.linalg.norm(off, 2)) if np.isfinite(off).all() else math.inf
        # Both products are rounded: over features and over rows.
        rounding = gamma(longest + count + 2 * len(matrix) + OPERATIONS) * squares
        known += 2 * rounding * float(np.linalg.norm(random))
        error += known / least_norm(EXACT_RISK, COUNT)
    if not center:
        scatter = np.maximum(scatter - weight * mean**2, 0)
    moments = Moments(*map(jax.device_put, (np.float64(weight), mean, scatter)))
    return RowGram(
        matrix,
        moments,
        squares,
        rows_error,
        error,
        scores,
        measured=measured is not None,
    )


def product(left: Any, right: Any) -> Any:
    """Return a product in float64. For a matrix and its transpose NumPy computes one half only."""
    return left @ right if isinstance(left, np.ndarray) else _product_there(left, right)


_product_there = quick_jit(full_product)
