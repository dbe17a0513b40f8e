"""Options of a fit: what the user asked for, beside the data and the number of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from eigengame.algorithms import Remembered

PROBES = 48
"""Number of probes of a fit with one pass if `probes` is "auto"."""

REFINED_PROBES = 32
"""Number of probes of a fit with several passes if `probes` is "auto": these need fewer for the same bounds."""

LEAST_PROBES = 16
"""The same for few components of dense rows in host memory (`probes_in_memory`)."""

CARRIED_PROBES = 16
"""The same for one pass over rows so wide that kernels apply. There a probe costs as much as a player."""


def probes_in_memory(k: int) -> int:
    """Return the number of probes of several passes over dense rows in host memory, for k components.

    Products take most of the time of such passes. With fewer probes the second pass often certifies less.
    """
    return min(max(LEAST_PROBES, 3 * k // 4), REFINED_PROBES)


@dataclass(frozen=True)
class Options:
    """Options of a fit; `EigenGamePCA` documents each of them.

    `rounds` is a number here, `dtype` the precision of the updates, and `seed` the seed that was drawn from
    `random_state`. `passes` is the largest number of passes and `tol` the tolerance in radians
    (`passes/limits.py`). `automatic` is whether `passes` is "auto": the fit may then make fewer passes if memory is
    short, and one more for an exact solution.
    """

    extra: int | Literal["auto"] = "auto"
    rounds: int = 1
    passes: int = 1
    tol: float | None = None
    center: bool = True
    forget: float = 1.0
    step_size: float | None = None
    dtype: Any = np.float32
    seed: int = 0
    probes: int | Literal["auto"] = "auto"
    automatic: bool = False

    def game(self, space: Literal["auto", "score", "gram"] = "auto") -> Remembered:
        """Return the remembered game with these options. It is equal for all seeds, so it is compiled once."""
        return Remembered(
            extra=self.extra,
            rounds=self.rounds,
            center=self.center,
            forget=self.forget,
            space=space,
        )

    def players(self, k: int, d: int) -> int:
        """Return the number of players K for k components of d features."""
        return self.game().players_for(k, d)
