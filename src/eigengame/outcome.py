"""How a run ended, as a value to read: what happened, and what to change."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """The ending of a run; `str(outcome)` is a sentence and `outcome.advice` says what to do."""

    ROUNDS_PLAYED = (
        "all rounds were played",
        "Play more rounds if the angles are not small enough.",
    )
    STREAM_ENDED = (
        "the stream ended",
        "Give more rows, or read them again, if the angles are not small enough.",
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
