"""Options of a fit: what the user asked for, beside the data and the number of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from eigengame.algorithms import Remembered

MAX_PASSES = 30
"""Passes that a fit with `tol` may take if no number is given."""


@dataclass(frozen=True)
class Options:
    """Options of a fit; `EigenGamePCA` documents each of them.

    `rounds` is a number here, `dtype` the precision of the updates, and `seed` the seed that was drawn from
    `random_state`.
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

    @property
    def max_passes(self) -> int:
        """Largest number of passes over the data: with `tol` and no `passes`, `MAX_PASSES`."""
        return MAX_PASSES if self.tol is not None and self.passes == 1 else self.passes

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
