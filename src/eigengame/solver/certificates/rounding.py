r"""Rounding errors of products with $M$: how far a computed $Mv$ can be from the exact one.

A product is computed in two steps from rows $Z$ (about their mean, multiplied by the roots of their weights):
scores $s = Zv$, then the sum $Z^\top s$ over the rows. Let $u$ be the unit roundoff and
$\gamma_m = mu/(1 - mu)$, which bounds the relative error of a sum of $m$ products in any order.

* A score is a sum over $d$ features: $|\delta s_r| \le \gamma_d\|z_r\|$. Together
  $\|\delta s\| \le \gamma_d\sqrt{T}$ with $T = \sum_r\|z_r\|^2$, and through $Z^\top$ that moves the product by at
  most $\gamma_d\sqrt{\theta_1 T}$.
* The sum over rows is made group by group and batch by batch, with at most $c$ additions in a row:
  feature by feature its error is at most $\gamma_c\sum_r|s_r||z_{rf}|$, and in norm
  $\gamma_c\|s\|\sqrt T = \gamma_c\sqrt{\theta_i T}$.

Where rows are not about their mean yet, what is left of it, $\mu$, is subtracted from scores and sums afterwards.
With $C = W\|\mu\|^2$ and $W$ the weight of the rows, that adds $\sqrt{C/T}$ of the first term. In the second, the
scores are those that were summed, $\|s\|^2 = \theta_i + m_i^2$ with $m_i^2 = W\langle v_i, \mu\rangle^2$. The sum
of scores, the mean and their product are rounded as well: $\gamma_c[(\|s\| + m_i)\sqrt T + 2\|s\|\sqrt C]$ in all.

So $\|\delta(Mv_i)\| \le \rho_i = \alpha\sqrt{\theta_1 T} + \beta(\|s_i\| + m_i)\sqrt T$. The constants allow for
the rounding of the rows themselves and of the mean. The error grows with the trace $T$, not with the largest
eigenvalue: where a spectrum is flat, products are less exact than their size suggests.

In float64 the constants are these worst cases, so a bound that includes $\rho$ holds whatever the order of
the additions. In float32 worst cases of long sums say nothing. Within a batch roundings are taken to be independent
with mean zero, as they are observed to be: then $\gamma_m$ may be replaced by $\lambda\sqrt m u$, which each sum
exceeds with a probability of at most $2\exp(-\lambda^2/2)$ (Higham and Mary, 2019): $3 \cdot 10^{-14}$ for
$\lambda = 8$. Over batches that need not be so, for data may repeat itself: there the worst case is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eigengame.linalg.products import CHUNKS, LONG

UNIT = 2.0**-53
"""Unit roundoff of float64."""

OPERATIONS = 8
"""Roundings of a row before it is multiplied, and of a sum after it is made: difference, root, product, mean."""


PARTIAL = 10.0
"""Largest partial sum of the product of a Gaussian probe and a unit vector that is allowed for."""

LAMBDA = 8.0
"""Standard deviations of a rounding error that are allowed for in float32."""


class Summed(NamedTuple):
    """How the products of probes with M were summed over the rows.

    Attributes
    ----------
    rows : int
        Rows of the longest sum.
    mean : array of shape (d,) or None
        Mean of the rows about the origin of the sums, if it was subtracted from these afterwards, or if a matrix
        was summed instead. None if the scores were centred before they were summed, as those of a game are.
    unit : float
        Unit roundoff of the sums.
    """

    rows: int
    mean: np.ndarray | None = None
    unit: float = UNIT


def unit_roundoff(dtype: Any) -> float:
    """Return the unit roundoff of a dtype."""
    return float(np.finfo(np.dtype(dtype)).eps) / 2


def underflow(unit: float, rows: float, d: int, trace: float) -> float:
    """Return what products of unit vectors can be off by because numbers and products underflow to zero.

    Each of them is off by at most the smallest normal number, which counts if the data itself is as small as its
    root. Entries of rows, products of scores, and products of sums over rows are added up.

    Parameters
    ----------
    unit : float
        Unit roundoff, which tells the precision.
    rows : float
        Number of rows.
    d : int
        Features.
    trace : float
        Sum of the squares of all numbers, as computed.
    """
    tiny = float(np.finfo(np.float32 if unit > 2.0**-30 else np.float64).tiny)
    root = math.sqrt((trace + rows * d * tiny) * rows)
    return tiny * (root * (2 * math.sqrt(d) + d) + rows * math.sqrt(d))


def gamma(length: float) -> float:
    r"""Return $\gamma_m$, the relative error of a sum of `length` products in float64."""
    return length * UNIT / max(1 - length * UNIT, UNIT)


def growth_about_mean(weight: float, mean: np.ndarray, squares: float) -> float:
    r"""Return $(1 + \sqrt{C/T})^2$, by which errors grow when the mean is subtracted afterwards."""
    return (1 + math.sqrt(weight * float(np.sum(mean**2)) / squares)) ** 2 if squares > 0 else 1.0


@dataclass(frozen=True)
class Rounding:
    r"""Bounds on the rounding errors of products with $M$.

    Attributes
    ----------
    scores : float
        $\alpha$: relative error of a score.
    sums : float
        $\beta$: relative error of a sum over the rows.
    trace : float
        $T$: sum of the squares of all numbers that were multiplied. At least the trace of $M$; more where
        rows were multiplied before their mean was subtracted.
    underflow : float
        Bound on what is lost by underflow (see `underflow`).
    """

    scores: float
    sums: float
    trace: float
    underflow: float = 0.0

    @classmethod
    def worst(cls, d: int, chain: int, trace: float, mean: float = 0.0) -> Rounding:
        """Return the worst case in float64.

        Parameters
        ----------
        d : int
            Features.
        chain : int
            Additions in a row that a sum over the rows takes.
        trace : float
        mean : float
            $C$: weight of the rows times the square of what is left of their mean; 0 where nothing is subtracted.
        """
        share = math.sqrt(mean / trace) if trace > 0 else 0.0
        scores, sums = gamma(d + OPERATIONS), gamma(chain + OPERATIONS)
        return cls((1 + share) * scores, (1 + 2 * share) * sums, trace)

    @classmethod
    def probable(
        cls,
        dtype: Any,
        d: int,
        size: int,
        batches: float,
        trace: float,
        *,
        entries: int | None = None,
        largest: float | None = None,
        feature: float | None = None,
        rows: float | None = None,
        parts: float = 1,
    ) -> Rounding:
        """Return what products in this precision are off by with near certainty.

        Parameters
        ----------
        dtype : dtype
        d : int
            Features. Where they are many, scores are summed in chunks.
        size : int
            Largest number of additions in a row of a sum over a batch: its rows, or fewer.
        batches : float
            Number of batches.
        trace : float
        entries : int, optional
            Largest number of entries of a sparse row. A score is the sum over these, one after the other.
        largest, feature : float, optional
            Largest sum of squares of a row, and of a feature. If no row or feature has a large share of all
            squares, the norm of many independent errors is close to its expectation (see `probe_errors`).
        rows : float, optional
            Number of rows, if it is not `size` times `batches`.
        parts : float
            Number of sums that a batch may be divided into. A row or a feature may have all its share in one.
        """
        unit = unit_roundoff(dtype)
        width: float = d if d < LONG else d / CHUNKS + CHUNKS
        if entries is not None:
            width = min(entries, d)
        by_row = by_feature = LAMBDA
        sums_of_rows = max(batches * parts, 1)
        if trace > 0 and largest is not None:
            by_row = min(LAMBDA, _excess(sums_of_rows * largest / trace))
        if trace > 0 and feature is not None:
            by_feature = min(LAMBDA, _excess(sums_of_rows * feature / trace))
        scores = by_row * math.sqrt(width + OPERATIONS)
        sums = by_feature * math.sqrt(size + OPERATIONS)
        lost = underflow(unit, size * batches if rows is None else rows, d, trace)
        return cls(scores * unit, (sums + batches) * unit, trace, lost)

    def of_products(
        self, values: np.ndarray, lengths2: np.ndarray | None = None, largest: float = 0.0
    ) -> np.ndarray:
        r"""Return $\rho$, a bound on the error of each product of unit vectors, shape (K,).

        Parameters
        ----------
        values : array of shape (K,)
            $v_i^\top M v_i$.
        lengths2 : array of shape (K,), optional
            $\|s_i\|^2$, squares of the scores that were summed; by default the values, as of rows about their mean.
        largest : float
            $\theta_1$ as far as it is known, if no direction has this value.
        """
        largest = float(np.max(values, initial=largest))
        sums, scores = self.parts(values, lengths2)
        return scores * math.sqrt(largest) + sums

    def parts(
        self, values: np.ndarray, lengths2: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return both parts of the error of each product of unit vectors, shape (K,) each.

        The first bounds the norm of the errors of the sums. The second bounds the norm of the errors of the scores,
        which reach the product through $Z^\top$: along a unit vector $w$ they are at most that times
        $\sqrt{w^\top Mw}$. Parameters as in `of_products`.
        """
        values = np.maximum(values, 0)
        summed = values if lengths2 is None else np.maximum(lengths2, values)
        roots = (np.sqrt(summed) + np.sqrt(summed - values)) * math.sqrt(self.trace)
        scores = np.full(len(values), self.scores * math.sqrt(self.trace))
        return self.sums * roots + self.underflow, scores


def probe_errors(
    strengths: np.ndarray,
    means: np.ndarray,
    columns: np.ndarray,
    lengths: np.ndarray,
    values: np.ndarray,
    *,
    rows: int,
    width: int,
    trace: float,
    feature: float,
    largest: float,
    longest: int,
    batches: int,
    chain: int,
    unit: float,
) -> tuple[np.ndarray, float]:
    r"""Return bounds on the errors of products of probes that were accumulated in a pass.

    Within a batch roundings are taken to be independent with mean zero, as in `Rounding.probable`; over batches the
    worst case is taken. Two consequences are used. A sum of independent errors, such as that along one player, is
    within $\lambda$ standard deviations. The norm of many errors is close to its expectation: with probability
    $1 - e^{-x}$ its square exceeds that by a factor of at most $1 + 2\sqrt{x\rho} + 2x\rho$, where $\rho$ is the
    largest share of one row, or of one feature (Laurent and Massart, 2000). It may be another row or feature in
    each batch, so the share is multiplied by the number of batches.

    A rounding of a score is relative to a partial sum, over some of the features. Probes are Gaussian and
    independent of the rows, so a partial sum is Gaussian too, and far smaller than the product of both lengths: it
    exceeds `PARTIAL` times the length of the row with a probability of $10^{-22}$.

    Parameters
    ----------
    strengths, means, columns : arrays of shape (K,)
        Of each player: its variance, that of the mean along it, and its squares times the sums of squares of the
        features.
    lengths, values : arrays of shape (r,)
        Of each probe $g$: $\|g\|$ and $g^\top Mg$.
    rows, width : int
        Number of rows and of features.
    trace, feature, largest : float
        Sum of all squares, and its largest share of a feature and of a row.
    longest, batches : int
        Largest number of additions in a row of a sum over a batch, and number of batches.
    chain : int
        Largest number of additions of sums over batches in a row: fewer than batches in a tree of merges. There the
        sums of one level are those of different rows, so together they are no larger than the sum of all.
    unit : float
        Unit roundoff of the products.

    Returns
    -------
    along : array of shape (K,)
        Bound on the norm of the errors of all probes along each player.
    whole : float
        Bound on the Frobenius norm of all errors.
    """
    if trace <= 0:
        lost = float(np.linalg.norm(underflow(unit, rows, width, 0.0) * (1 + lengths)))
        return np.full(len(strengths), lost), lost
    batches = max(batches, 1)
    by_row = _excess(batches * largest / trace)
    by_feature = _excess(batches * feature / trace)
    # One score, relative to the length of its row; one sum over the rows of a batch; sums over batches.
    score = math.sqrt(width + OPERATIONS) * unit * np.minimum(lengths, PARTIAL)
    sums = math.sqrt(longest + OPERATIONS) * unit * np.sqrt(np.maximum(values, 0))
    # What a player shares with the rows: its variance, half as much again for what was forgotten, and the mean.
    shared = np.sqrt(1.5 * np.maximum(strengths, 0) + means)
    added = (chain + OPERATIONS) * unit * np.sqrt(np.maximum(values, 0)) * shared.max()
    rows_along = min(by_row * math.sqrt(trace), LAMBDA * math.sqrt(batches * largest))
    features_along = np.minimum(by_feature * math.sqrt(trace), LAMBDA * np.sqrt(columns))
    along = score[:, None] * rows_along * shared[None, :] + sums[:, None] * features_along[None, :]
    whole = (score * by_row * shared.max() + sums * by_feature) * math.sqrt(trace)
    added = added + underflow(unit, rows, width, trace) * (1 + lengths)
    return np.linalg.norm(along + added[:, None], axis=0), float(np.linalg.norm(whole + added))


def _excess(share: float) -> float:
    """Return the factor by which the norm of independent errors exceeds its expectation at most."""
    x = LAMBDA**2 / 2
    share = min(share, 1.0)
    return math.sqrt(1 + 2 * math.sqrt(x * share) + 2 * x * share)
