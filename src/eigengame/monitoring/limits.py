r"""Control limits of T2 and of the squared prediction error (SPE).

For rows that are not part of the fit, normally distributed as those of the fit, with $k$ components from $n$ rows:

* $T^2$ is at most $\frac{k(n^2 - 1)}{n(n - k)}F_{k, n-k}$ (Tracy, Young and Mason, 1992).
* SPE is at most $g\chi^2_h$ with $g = \theta_2/\theta_1$ and $h = \theta_1^2/\theta_2$ (Box, 1954), for the moments
  $\theta_1$ and $\theta_2$ of the spectrum outside the components (`eigengame.monitoring.remainder`).

With a forgetting factor $f$ the weights $w$ of the rows are unequal, and $n$ is the number of equally weighted rows
whose mean has the same variance: $(\sum w)^2 / \sum w^2$, which tends to $(1 + f)/(1 - f)$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from eigengame.monitoring.remainder import Remainder

KNOWN = {
    "probes": "the products of random probes with the covariance matrix",
    "players": "the extra players, and equal variances in all other directions",
    "equal": "equal variances in all directions without a component",
}
"""How the spread of the spectrum outside the components is known."""


@dataclass(frozen=True)
class ControlLimits:
    """Control limits of the two statistics.

    Attributes
    ----------
    t2, spe : float
        A statistic above its limit is an alarm.
    confidence : float
        Probability that one statistic of a normal row is within its limit. With two statistics, up to twice as many
        rows are false alarms.
    method : {"theory", "reference"}
        By distributions, or by the statistics of reference rows.
    rows : float
        Number of rows on which the limits are based; with forgetting, the effective number.
    explained : str
        How the limits were found, in one sentence.
    """

    t2: float
    spe: float
    confidence: float
    method: Literal["theory", "reference"]
    rows: float
    explained: str

    def __str__(self) -> str:
        return f"T2 {self.t2:.4g}, SPE {self.spe:.4g} ({self.confidence:.4g}; {self.explained})"


def theoretical_limits(
    k: int, rows: float, remainder: Remainder, confidence: float
) -> ControlLimits:
    """Return the limits of normally distributed rows.

    Parameters
    ----------
    k : int
        Number of components in T2.
    rows : float
        Effective number of rows of the fit.
    remainder : Remainder
        Spectrum outside the components.
    confidence : float
        In (0, 1).
    """
    if rows <= k + 1:
        raise ValueError(
            f"the limit of T2 needs more rows than components, but the model has {k} components from "
            f"{rows:.4g} rows (weighted by forget): give more rows, fewer components or a larger forget; or "
            "limits=None for statistics without limits."
        )
    quantile = float(stats.f.ppf(confidence, k, rows - k))
    t2 = k * (rows**2 - 1) / (rows * (rows - k)) * quantile
    if remainder.total > 0:
        freedom = remainder.total**2 / remainder.square
        box = remainder.total / freedom * float(stats.chi2.ppf(confidence, freedom))
        spe, known = max(box, remainder.floor), KNOWN[remainder.known]
    else:
        spe, known = remainder.floor, "rounding only: the components explain all variance"
    return ControlLimits(
        t2,
        spe,
        confidence,
        "theory",
        rows,
        f"F distribution for {rows:.6g} rows, Box's approximation by {known}",
    )


def reference_limits(t2: np.ndarray, spe: np.ndarray, confidence: float) -> ControlLimits:
    """Return the limits that a new row from the distribution of the reference rows keeps with the confidence.

    Each limit is the order statistic number ``ceil(confidence * (n + 1))`` of n reference rows.
    """
    n = len(t2)
    place = math.ceil(confidence * (n + 1) - 1e-9)
    if place > n:
        least = math.ceil(confidence / (1 - confidence) - 1e-9)
        raise ValueError(
            f"limits for a confidence of {confidence:g} need at least {least} reference rows, but there are {n}: "
            "give more rows or a smaller confidence."
        )
    highest = [float(np.partition(one, place - 1)[place - 1]) for one in (t2, spe)]
    explained = f"order statistic {place} of {n:,} reference rows"
    return ControlLimits(highest[0], highest[1], confidence, "reference", n, explained)


def effective_rows(rows: int, total: float, forget: float) -> float:
    """Return the number of equally weighted rows that determine a covariance as well.

    Parameters
    ----------
    rows : int
        Rows with a weight above 0.
    total : float
        Number of rows if weights are counts.
    forget : float
        Forgetting factor in (0, 1]. Sample weights are not considered if it is below 1.
    """
    if forget == 1:
        return max(float(rows), total)
    faded = -math.expm1(rows * math.log(forget)) / (1 - forget)
    squares = -math.expm1(2 * rows * math.log(forget)) / (1 - forget**2)
    return faded**2 / squares
