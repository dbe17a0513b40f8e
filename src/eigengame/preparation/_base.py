"""The interface of preparation steps: learnt once, applied to any block, stored as JSON and arrays."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from eigengame.preparation.stored_values import first_position, stored
from eigengame.sources import Block, Source

if TYPE_CHECKING:
    from eigengame.preparation.column_selection import ColumnSelection


class BadValue(ValueError):
    """A refused value, with its row and column in the block. `PreparedSource` completes the message."""

    def __init__(self, block: Block, bad: np.ndarray, problem: str) -> None:
        self.row, self.column = first_position(block.values, bad)
        value = stored(block.values).ravel()[np.flatnonzero(bad)[0]]
        super().__init__(f"is {value}, {problem}")


class TrainingData(Protocol):
    """Rows from which a step learns: the output of the previous steps."""

    name: str
    shape: tuple[int | None, int]
    feature_names: Sequence[str] | None

    def fold(self, add: Callable[[Any, Block], Any], start: Any, why: str) -> Any:
        """Return `add` folded over all blocks in one pass, beginning with `start`.

        `why` names the option that needs the pass, for the error if a second pass is not possible.
        """
        ...

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        ...


@dataclass(frozen=True, eq=False)
class PreparationStep(abc.ABC):
    """One immutable step of a preparation.

    Attributes
    ----------
    kind : str
        Name of the step in a model file.
    floating : bool
        Whether integers become floats.
    dense : bool
        Whether sparse blocks become dense.
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

    def learn(self, source: TrainingData) -> PreparationStep:
        """Return the step with its learnt parameters. Most steps have none."""
        return self

    @abc.abstractmethod
    def apply(self, block: Block) -> Block:
        """Return the transformed block. Neither the block nor the step is changed."""

    def apply_and_select(self, block: Block, selection: ColumnSelection) -> Block:
        """Return the block after this step and the selection of some features that follows it.

        Override it to compute the selected features only.
        """
        return selection.apply(self.apply(block))

    def check_source(self, source: Source) -> None:  # noqa: B027
        """Raise if the step cannot be applied to the rows of another source."""

    def names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names of the features after the step."""
        return names

    def width(self, d: int) -> int:
        """Return the number of features after the step."""
        return d

    def before(self, column: int) -> int:
        """Return the position of a feature before the step."""
        return column

    def facts(self) -> dict[str, Any]:
        """Return the step as plain JSON, without its arrays."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if not isinstance(value, np.ndarray)
        }
        return {"kind": self.kind} | plain

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the step by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
