"""What every step of a preparation is: learnt once, applied to any block, kept as JSON and arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from eigengame.preparation.stored_values import cells, first_place
from eigengame.sources import Block


class BadValue(ValueError):
    """A value that a step refuses, by its place in the block; who reads the source knows the rest."""

    def __init__(self, block: Block, chosen: np.ndarray, problem: str) -> None:
        self.row, self.column = first_place(block.values, chosen)
        value = cells(block.values).ravel()[np.flatnonzero(chosen)[0]]
        super().__init__(f"is {value}, {problem}")


class TrainingData(Protocol):
    """Rows that a step may learn from: those that the steps before it give."""

    name: str
    shape: tuple[int | None, int]
    feature_names: Sequence[str] | None

    def fold(self, add: Callable[[Any, Block], Any], start: Any, why: str) -> Any:
        """Return the carry after one pass, or raise where none is to be had; `why` says what for."""
        ...


@dataclass(frozen=True, eq=False)
class Step(abc.ABC):
    """One step of a preparation: an immutable value, learnt or not.

    Attributes
    ----------
    kind : str
        Its name in a model file.
    floating : bool
        Whether whole numbers become fractions.
    dense : bool
        Whether sparse blocks become dense ones.
    """

    kind: ClassVar[str]
    floating: ClassVar[bool] = False
    dense: ClassVar[bool] = False

    @property
    def whole_rows(self) -> bool:
        """Whether a value depends on all features of its row."""
        return False

    @property
    def rounds(self) -> bool:
        """Whether the step computes new numbers, which depend on the precision of the block."""
        return self.floating

    def learn(self, source: TrainingData) -> Step:
        """Return the step with what it needs to know of the data; most need nothing."""
        return self

    @abc.abstractmethod
    def apply(self, block: Block) -> Block:
        """Return the block made ready. Neither the block nor the step is changed."""

    def names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names of the features after it."""
        return names

    def width(self, d: int) -> int:
        """Return the number of features after it."""
        return d

    def before(self, column: int) -> int:
        """Return where a feature stood before it."""
        return column

    def facts(self) -> dict[str, Any]:
        """Return the step as plain JSON, less its arrays."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in held.items()
            if not isinstance(value, np.ndarray)
        }
        return {"kind": self.kind} | plain

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the step by name."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in held.items() if isinstance(value, np.ndarray)}
