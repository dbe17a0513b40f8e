"""Selection of features by name or number."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from eigengame.preparation._base import PreparationStep, TrainingData
from eigengame.sources import Block, Source, SourceError
from eigengame.sources._base import list_items


@dataclass(frozen=True, eq=False)
class ColumnSelection(PreparationStep):
    """Keep some features.

    Parameters
    ----------
    wanted : sequence of str or int, or bool array of shape (d,)
        Names or numbers of the features. Negative numbers count from the end.
    indices : int array of shape (d',), optional
        Learnt positions of the features.
    """

    kind: ClassVar[str] = "columns"

    wanted: Any
    indices: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "wanted", _to_tuple(self.wanted))

    @property
    def named(self) -> bool:
        """Whether all features are given by name."""
        return bool(self.wanted) and all(isinstance(one, str) for one in self.wanted)

    def learn(self, source: TrainingData) -> ColumnSelection:
        """Return the step with the positions of the features in a source. No rows are read."""
        d, names = source.shape[1], source.feature_names
        wanted = self.wanted
        if wanted and all(isinstance(one, bool) for one in wanted):
            if len(wanted) != d:
                raise SourceError(
                    f"columns is a mask of {len(wanted)} values, but {source.name} has {d} features: give one "
                    "value for each."
                )
            wanted = tuple(int(i) for i in np.flatnonzero(wanted))
        if not wanted:
            raise SourceError(f"columns is empty: name some of the {d} features of {source.name}.")
        known = {} if names is None else {name: i for i, name in enumerate(names)}
        unknown = [
            one for one in wanted if not (one in known if isinstance(one, str) else -d <= one < d)
        ]
        if unknown:
            near = difflib.get_close_matches(str(unknown[0]), list(known), n=1)
            raise SourceError(
                f"{source.name} has no {list_items(unknown)} among its {d} features"
                f"{' (' + list_items(list(known)) + ')' if known else ', which have no names'}: "
                f"{f'did you mean {near[0]!r}? Give' if near else 'give'} existing columns."
            )
        count = Counter(names or ())
        twice = [one for one in wanted if isinstance(one, str) and count[one] > 1]
        if twice:
            raise SourceError(
                f"{source.name} has several columns called {list_items(twice)}: give their numbers."
            )
        indices = [known[one] if isinstance(one, str) else one % d for one in wanted]
        return replace(self, wanted=wanted, indices=np.asarray(indices, np.int64))

    def apply(self, block: Block) -> Block:
        """Return the block with the selected features."""
        assert self.indices is not None
        if np.array_equal(self.indices, np.arange(block.values.shape[1])):
            return block
        return Block(block.values[:, self.indices], block.weights)

    def names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names of the selected features."""
        assert self.indices is not None
        return None if names is None else [names[i] for i in self.indices]

    def width(self, d: int) -> int:
        """Return the number of selected features."""
        return len(self.wanted)

    def before(self, column: int) -> int:
        """Return the position of a feature before the selection."""
        assert self.indices is not None
        return int(self.indices[column])


def all_but(source: Source, drop: Any) -> ColumnSelection:
    """Return the step that keeps all features but some, given by name or number.

    It selects by name if the source has unique names, so that a model finds the features in other data.
    """
    d, names = source.shape[1], list(source.feature_names or ())
    given = [drop] if isinstance(drop, str | int | np.integer) else list(drop)
    if any(isinstance(one, bool | np.bool_) for one in given):
        raise SourceError(f"drop={drop!r}: give names or integers of features to leave out.")
    # Features to drop are found in the same way as features to keep.
    indices = ColumnSelection(given).learn(cast(TrainingData, source)).indices if given else None
    kept = sorted(set(range(d)) - set([] if indices is None else indices.tolist()))
    if not kept:
        raise SourceError(f"{source.name}: no feature is left after drop={drop!r}.")
    unique = len(set(names)) == d
    return ColumnSelection([names[i] if unique else i for i in kept])


def _to_tuple(wanted: Any) -> tuple[str | int | bool, ...]:
    """Return names, integers or bools as a tuple of plain values."""
    if isinstance(wanted, str):
        raise SourceError(f"columns={wanted!r}: give a list of columns.")
    plain = tuple(one.item() if isinstance(one, np.generic) else one for one in wanted)
    invalid = [one for one in plain if not isinstance(one, (str, int))]
    if invalid:
        raise SourceError(f"columns contains {list_items(invalid)}: give names or integers.")
    return plain
