"""At which sizes of a Krylov space its convergence is checked: a check takes as long as several products."""

from __future__ import annotations

import math
from typing import NamedTuple

FASTEST = 20.0
"""Largest number of times that residuals become ten times smaller while the basis doubles."""


class Checks(NamedTuple):
    """The next check, as foreseen by those before it.

    Residuals hardly fall at first. Then each vector of the basis reduces them by about the same factor.

    Attributes
    ----------
    following : int
        Size of the basis at the next check.
    longest : float
        Largest ratio of the sizes at two checks.
    size : int
        Size at the last check.
    excess : float
        How many times too large the residuals were then.
    rate : float
        Logarithm of the factor by which each vector reduces the residuals; 0 if it is not known.
    """

    following: int
    longest: float
    size: int = 0
    excess: float = math.inf
    rate: float = 0.0

    def after(self, m: int, excess: float) -> Checks:
        """Return the checks after one of m vectors. It may be called again with another `excess` for the same m."""
        rate = self.rate
        if m > self.size:
            falls = math.isfinite(self.excess) and 0 < excess < self.excess
            rate = math.log(self.excess / excess) / (m - self.size) if falls else 0.0
        left = math.log(max(excess, 10.0)) if excess < math.inf else math.inf
        foreseen = m + left / rate if rate > 0 else m * (1 + left / math.log(10) / FASTEST)
        following = int(min(foreseen, self.longest * m)) + 1
        return Checks(following, self.longest, m, excess if m > self.size else self.excess, rate)
