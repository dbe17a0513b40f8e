"""Column selection: some features, by name or number, in the order asked for."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from eigengame.preparation._base import Step, TrainingData
from eigengame.sources import Block, Source, SourceError


@dataclass(frozen=True, eq=False)
class Columns(Step):
    """Keep some features.

    Parameters
    ----------
    wanted : sequence of str or int, or bool array of shape (d,)
        Negative numbers count from the end.
    indices : int array of shape (d',), optional
        Where they stand: learnt.
    """

    kind: ClassVar[str] = "columns"

    wanted: Any
    indices: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "wanted", _plain(self.wanted))

    @property
    def named(self) -> bool:
        """Whether all are asked for by name."""
        return bool(self.wanted) and all(isinstance(one, str) for one in self.wanted)

    def learn(self, source: TrainingData) -> Columns:
        """Return the step with the places of the features in this source; nothing is read."""
        d, names = source.shape[1], source.feature_names
        wanted = self.wanted
        if wanted and all(isinstance(one, bool) for one in wanted):
            if len(wanted) != d:
                raise SourceError(
                    f"columns has {len(wanted)} marks, but {source.name} has {d} features: give one each."
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
                f"{source.name} has no {_listed(unknown)} among its {d} features"
                f"{' (' + _listed(list(known)) + ')' if known else ', which have no names'}: "
                f"{f'did you mean {near[0]!r}? Give' if near else 'give'} columns that are there."
            )
        count = Counter(names or ())
        twice = [one for one in wanted if isinstance(one, str) and count[one] > 1]
        if twice:
            raise SourceError(
                f"{source.name} has several columns called {_listed(twice)}: give their numbers."
            )
        indices = [known[one] if isinstance(one, str) else one % d for one in wanted]
        return replace(self, wanted=wanted, indices=np.asarray(indices, np.int64))

    def apply(self, block: Block) -> Block:
        """Return the block with these features alone."""
        assert self.indices is not None
        if np.array_equal(self.indices, np.arange(block.values.shape[1])):
            return block
        return Block(block.values[:, self.indices], block.weights)

    def names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names of these features."""
        assert self.indices is not None
        return None if names is None else [names[i] for i in self.indices]

    def width(self, d: int) -> int:
        """Return how many they are."""
        return len(self.wanted)

    def before(self, column: int) -> int:
        """Return where a feature stood before."""
        assert self.indices is not None
        return int(self.indices[column])


def all_but(source: Source, drop: Any) -> Columns:
    """Return the step that keeps all features but some, given by name or number.

    It names those it keeps where the source has names, so that a model finds them again.
    """
    d, names = source.shape[1], list(source.feature_names or ())
    given = [drop] if isinstance(drop, str | int | np.integer) else list(drop)
    if any(isinstance(one, bool | np.bool_) for one in given):
        raise SourceError(f"drop={drop!r}: give names or whole numbers of features to leave out.")
    # Found as the features to keep are.
    indices = Columns(given).learn(cast(TrainingData, source)).indices if given else None
    left = sorted(set(range(d)) - set([] if indices is None else indices.tolist()))
    if not left:
        raise SourceError(f"{source.name}: no feature is left after drop={drop!r}.")
    unique = len(set(names)) == d
    return Columns([names[i] if unique else i for i in left])


def _plain(wanted: Any) -> tuple[str | int | bool, ...]:
    """Return what was asked for as names, numbers or marks."""
    if isinstance(wanted, str):
        raise SourceError(f"columns={wanted!r}: give a list of columns.")
    listed = tuple(one.item() if isinstance(one, np.generic) else one for one in wanted)
    strange = [one for one in listed if not isinstance(one, (str, int))]
    if strange:
        raise SourceError(f"columns has {_listed(strange)}: give names or whole numbers.")
    return listed


def _listed(items: Sequence[Any], most: int = 10) -> str:
    """Return items as people read them, the first few of many."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(repr(one) for one in items[:most]) + more
