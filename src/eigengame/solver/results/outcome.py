"""How a run ended, as a value to read: what happened, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigengame.solver.certificates.certificate import Certificate


class Status(Enum):
    """How a run ended; `str(status)` is a sentence and `status.advice` says what to change."""

    ROUNDS_PLAYED = (
        "all rounds were played",
        "Play more rounds if the angles are not small enough.",
    )
    STREAM_ENDED = (
        "all rows were read, as often as requested",
        "Read them again (passes, tol), or give more extra players (extra) or more rows, if the angles are not "
        "small enough.",
    )
    CONVERGED = (
        "every component is within tol by its certificate",
        "Nothing to do.",
    )
    CONVERGED_IN_CLUSTERS = (
        "every component, or the span of the cluster that contains it, is within tol by its certificate",
        'Use the components of a cluster together (certificate_.clusters names them), or give dtype="float64" to '
        "separate them.",
    )
    PASSES_MADE = (
        "all passes were made",
        "Give tol to have every component certified, or more passes if the angles are not small enough.",
    )
    PASSES_SPENT = (
        "the passes were spent before every component was within tol",
        "Give more passes, more extra players, or a larger tol; certificate_ says which are near.",
    )
    UNPROVEN = (
        "the components are within tol, unless the probes missed a larger direction",
        "Give more extra players: the last components are too close to what lies beyond all players.",
    )
    FLOOR_REACHED = (
        "the precision of the dtype was reached before every component was within tol",
        'Give dtype="float64", or a larger tol; components of equal variance cannot be separated.',
    )
    STOPPED = (
        "a watcher ended the run",
        "Nothing to do, if that was meant: the components are the best so far.",
    )
    TURNS_LEFT = (
        "not every player has had its turn",
        "Play more rounds, or give a smaller cap (sequential) or turn (hebb_deflation).",
    )
    DIVERGED = (
        "the players are no longer finite numbers",
        "Give a step size ten times smaller: it must be well below one over the largest eigenvalue.",
    )

    def __init__(self, happened: str, advice: str) -> None:
        self.happened = happened
        self.advice = advice

    def __str__(self) -> str:
        return self.happened


@dataclass(frozen=True)
class Outcome:
    """How a run ended, by which route, in how many passes.

    Attributes
    ----------
    status : Status
        What happened, for example ``Status.CONVERGED``.
    route : str
        The algorithm that ran.
    passes : int
        Times that the data was read: passes of a fit, rounds of `play`.
    rounding : str or None
        How numbers of the data were rounded to half precision, for example "bfloat16, centred first": an origin
        near the mean was subtracted before. "bfloat16 by the network" were computed in half precision. None for
        data that was not rounded.
    """

    status: Status
    route: str
    passes: int
    rounding: str | None = None

    @property
    def advice(self) -> str:
        """What to change."""
        return self.status.advice

    @property
    def converged(self) -> bool:
        """Whether every component, or its cluster, is within `tol` by its certificate."""
        return self.status in (Status.CONVERGED, Status.CONVERGED_IN_CLUSTERS)

    def __str__(self) -> str:
        plural = "pass" if self.passes == 1 else "passes"
        rounding = "" if self.rounding is None else f", {self.rounding}"
        return f"{self.status} ({self.route}, {self.passes} {plural}{rounding})"


def converged_status(
    found: Certificate, tol: float | None, determined: int | None = None
) -> Status | None:
    """Return the status of a certificate that meets the tolerance, by components or by clusters; else None."""
    if found.kind != "certified" or tol is None or not found.within(tol, determined):
        return None
    return (
        Status.CONVERGED
        if (found.angle[:determined] <= tol).all()
        else Status.CONVERGED_IN_CLUSTERS
    )
