"""Flat spectra: how many players they take, seen from the strengths of the players after one pass.

Variances just below those of the components keep a refinement from converging: it separates the last component from
what the players leave out. With players down to half of the variance of the last component, few passes are enough.
"""

from __future__ import annotations

import math

import numpy as np

from eigengame._system.memory import free_memory

FLAT = 0.7
"""Variance of the last player, as a share of that of the last component, above which a spectrum is flat."""

AIM = 0.5
"""The share that the last player should have."""

MOST = 8
"""Largest number of players for each component."""

HOPELESS = 0.85
"""The share that the last of so many players must have at most: with noise alone more players do not help."""


def is_flat(strengths: np.ndarray, k: int) -> bool:
    """Return whether the last of the players (K,) has nearly as much variance as the last of k components."""
    return len(strengths) > k and bool(strengths[-1] > FLAT * strengths[k - 1] > 0)


def players_for_flat(strengths: np.ndarray, k: int, d: int, most: int) -> int:
    """Return the number of players for a flat spectrum: as many as there are, or more.

    The spectrum is continued as a power of the rank.

    Parameters
    ----------
    strengths : array of shape (K,)
        Variances of the players, in any unit.
    k, d : int
        Numbers of components and of features.
    most : int
        Largest size K d of players.
    """
    count = len(strengths)
    slope = math.log(strengths[k - 1] / strengths[-1]) / math.log(count / k)
    if MOST**-slope > HOPELESS:
        return count
    found = int(min(k * AIM ** (-1 / slope), MOST * k, d // 2, most // d))
    free = free_memory()
    # Players, the directions of a few passes and their products, in float64.
    if free is not None:
        found = min(found, free // (2 * 8 * 10 * d))
    return max(found, count)
