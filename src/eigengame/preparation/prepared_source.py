"""A source whose rows are made ready as they are read, and the steps that a model keeps of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.preparation._base import BadValue, Step
from eigengame.preparation.column_selection import Columns, all_but
from eigengame.preparation.counts import Counts
from eigengame.preparation.genotypes import Genotypes
from eigengame.preparation.missing import Missing
from eigengame.preparation.scale import Scale
from eigengame.preparation.stored_values import in_float64, tidy
from eigengame.sources import Block, Source, SourceError, UnknownOption, as_source

KINDS: dict[str, type[Step]] = {
    one.kind: one for one in (Columns, Missing, Counts, Scale, Genotypes)
}
"""The steps that a model may keep."""

SHOWN = 8
"""Columns that a fingerprint shows before it gives a digest of them."""

LEARNT_AT_ONCE = 2**22
"""Numbers in a block that is learnt from."""


class PreparedSource(Source):
    """The rows of a source after some steps.

    Parameters
    ----------
    source : Source
    steps : sequence of Step
        Learnt; see `then`.
    float64 : bool
        Whether the steps compute in float64, whatever the dtype of the source; see `in_float64`.
    """

    def __init__(
        self, source: Source, steps: Sequence[Step] = (), *, float64: bool = False
    ) -> None:
        self.source, self.steps, self._float64 = source, tuple(steps), float64
        self._read = source.in_float64() if float64 else source
        self.name, self.again = source.name, source.again
        self.sparse = source.sparse and not any(step.dense for step in steps)
        width, names, alleles = source.shape[1], source.feature_names, source.alleles
        dtype = np.dtype(np.float64 if float64 else source.dtype)
        for step in steps:
            width, names, alleles = step.width(width), step.names(names), step.names(alleles)
            dtype = np.result_type(dtype, np.float32) if step.floating else dtype
        self.shape, self.dtype = (source.shape[0], width), dtype
        self.feature_names, self.alleles = names, alleles
        if not any(isinstance(step, Columns) for step in steps):
            self.image_shape = source.image_shape

    def then(self, step: Step) -> PreparedSource:
        """Return the rows after one more step, which learns now what it needs to know.

        It learns from the rows as they come by default, so that what it learns does not depend on the
        precision of a later fit.
        """
        learnt = step.learn(PreparedSource(self.source, self.steps))
        return PreparedSource(self.source, (*self.steps, learnt), float64=self._float64)

    def in_float64(self) -> Source:
        """Return the same rows, each step computed in float64; what the steps learnt stays the same."""
        alike = self.source.in_float64() is self.source
        if self._float64 or (alike and not any(step.rounds for step in self.steps)):
            return self
        return PreparedSource(self.source, self.steps, float64=True)

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`."""
        row = start
        for block in map(tidy, self._read.blocks(start, size)):
            made = in_float64(block) if self._float64 else block
            for i, step in enumerate(self.steps):
                with self._located(row, i):
                    made = step.apply(made)
            row += len(block)
            yield made

    def fold(self, add: Callable[[Any, Block], Any], start: Any, why: str) -> Any:
        """Return the carry after one pass for a step to learn from."""
        if not self.again:
            raise SourceError(
                f"{self.name} can be read once, and {why} needs a pass of its own: give data that can be "
                "read again, or learn the step on a part of it: prepare(part, ...).preparation.over(stream)."
            )
        carry, row = start, 0
        for block in self.blocks(0, min(max(LEARNT_AT_ONCE // self.shape[1], 1), 4096)):
            with self._located(row, len(self.steps)):
                carry = add(carry, block)
            row += len(block)
        if not row:
            raise SourceError(f"{self.name} has no rows: {why} has nothing to learn from.")
        return carry

    @contextlib.contextmanager
    def _located(self, row: int, done: int) -> Iterator[None]:
        """Tell of a bad value by its row and its feature in the source, after so many steps."""
        try:
            yield
        except BadValue as bad:
            column, names = bad.column, self.source.feature_names
            for step in reversed(self.steps[:done]):
                column = step.before(column)
            feature = "" if names is None else f" ({names[column]})"
            raise SourceError(
                f"{self.name}: the value in row {row + bad.row}, column {column}{feature} {bad}"
            ) from None

    @property
    def preparation(self) -> Preparation:
        """The learnt steps: what a model keeps."""
        return Preparation(self.steps, self.source.shape[1])

    def fingerprint(self) -> dict[str, Any]:
        """Return that of the source, and the steps."""
        return self.source.fingerprint() | {"preparation": [_digested(one) for one in self.steps]}

    def digest(self) -> str | None:
        """Return that of the source: the steps, with all they have learnt, are in the fingerprint."""
        return self.source.digest()

    def most_entries(self, size: int) -> int | None:
        """Return as many as the source has: no step adds any."""
        return self.source.most_entries(size)


@dataclass(frozen=True, eq=False)
class Preparation:
    """The learnt steps of a prepared source, to be repeated on other data.

    Parameters
    ----------
    steps : tuple of Step
    width : int
        Features before the first of them.
    """

    steps: tuple[Step, ...]
    width: int

    def over(self, data: Any) -> PreparedSource:
        """Return data as it comes, prepared by these steps; data prepared by them is left as it is.

        Columns that were chosen by name are found by name where the data has names. If they are not
        chosen first, the data must have as many features as the data that the steps were learnt on: a
        row's total, for example, is that of all of them.
        """
        if isinstance(data, PreparedSource):
            if data.preparation.same_as(self):
                return data
            raise SourceError(
                f"{data.name} is prepared by steps of its own, not by the model's: give it as it was before, "
                "the model prepares it."
            )
        chosen, steps = self._named(), list(self.steps)
        source = opened(data, chosen)
        if chosen is not None and source.feature_names is not None:
            steps[0] = chosen.learn(PreparedSource(source))
        elif source.shape[1] != self.width:
            raise SourceError(
                f"{source.name} has {source.shape[1]} features, but the model was fitted on {self.width}, "
                "before preparation: give the same columns, unprepared."
            )
        else:
            steps = _found_by_name(source, steps)
        return PreparedSource(source, steps)

    @property
    def whole_rows(self) -> bool:
        """Whether all features of a row are needed, even if some columns are chosen later."""
        chosen = [i for i, step in enumerate(self.steps) if isinstance(step, Columns)]
        return any(step.whole_rows for step in self.steps[: max(chosen, default=0)])

    def _named(self) -> Columns | None:
        """Return the first step where that finds columns by their names."""
        first = self.steps[0] if self.steps else None
        return first if isinstance(first, Columns) and first.named else None

    def columns_of_table(self, names: Sequence[Any] | None) -> Sequence[Any] | None:
        """Return the columns to open of a table; None where they are not known by name.

        Parameters
        ----------
        names : sequence of str, optional
            Of the features after all steps.
        """
        chosen = self._named()
        if chosen is not None:
            return chosen.wanted
        return None if any(isinstance(step, Columns) for step in self.steps) else names

    def same_as(self, other: Preparation | None) -> bool:
        """Say whether another preparation does the same."""
        if other is None or self.width != other.width:
            return False
        return [_digested(one) for one in self.steps] == [_digested(one) for one in other.steps]

    def facts(self) -> list[dict[str, Any]]:
        """Return the steps as plain JSON, less their arrays."""
        return [step.facts() for step in self.steps]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the steps, by "N.name"."""
        return {
            f"{number}.{name}": array
            for number, step in enumerate(self.steps)
            for name, array in step.arrays().items()
        }

    @classmethod
    def rebuilt(
        cls, facts: Sequence[Mapping[str, Any]], arrays: Mapping[str, np.ndarray], width: int
    ) -> Preparation:
        """Return a preparation from its JSON and its arrays."""
        steps = []
        for number, one in enumerate(facts):
            plain = {name: value for name, value in one.items() if name != "kind"}
            own = {
                name.partition(".")[2]: array
                for name, array in arrays.items()
                if name.partition(".")[0] == str(number)
            }
            steps.append(KINDS[one["kind"]](**plain, **own))
        return cls(tuple(steps), width)


def same_preparation(one: Preparation | None, other: Preparation | None) -> bool:
    """Say whether two models keep the same steps, or both none."""
    return other is None if one is None else one.same_as(other)


def preparation_of(source: Source) -> Preparation | None:
    """Return what a model keeps of how a source is prepared."""
    return source.preparation if isinstance(source, PreparedSource) else None


def opened(data: Any, chosen: Columns | None, **options: Any) -> Source:
    """Return a source for the data, which opens only the chosen columns where it is a table.

    So other columns of a table need not be numbers, and are not read.
    """
    if chosen is not None and chosen.named:
        with contextlib.suppress(UnknownOption):
            source = as_source(data, columns=list(chosen.wanted), **options)
            if (
                source.feature_names is not None
            ):  # else names that are numbers were taken for positions
                return source
    return as_source(data, **options)


def without(data: Any, drop: Any, **options: Any) -> tuple[Source, Columns | None]:
    """Return a source for the data, and the step that leaves some of its features out.

    A table leaves them out as it is opened, so that they need not be numbers. The step then names all
    others, for a model to find them again. There is none for a table without names.
    """
    if not isinstance(data, Source):
        with contextlib.suppress(UnknownOption):
            source = as_source(data, drop=drop, **options)
            names = source.feature_names or []
            return source, Columns(names) if len(set(names)) == source.shape[1] else None
    source = as_source(data, **options)
    return source, all_but(source, drop)


def opened_whole(data: Any, **options: Any) -> Source:
    """Return a source for the data with all of its columns, because totals of rows need them."""
    try:
        return as_source(data, **options)
    except UnknownOption:
        raise
    except SourceError as error:
        raise SourceError(
            f"{error} (counts='log-normalise' with columns= reads all columns, for the totals of the rows. Give "
            "the columns that are counts by prepare(as_source(data, columns=[...]), ...).)"
        ) from None


def _found_by_name(source: Source, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with named columns where this source has them.

    Only before the first step that holds one number for each feature: such a step knows no names.
    """
    found: list[Step] = []
    for step in steps:
        if any(one.arrays() for one in found):
            return [*found, *steps[len(found) :]]
        here = PreparedSource(source, found)
        named = isinstance(step, Columns) and step.named and here.feature_names is not None
        found.append(step.learn(here) if named else step)
    return found


def _digested(step: Step) -> dict[str, Any]:
    """Return a step as JSON that is short enough to be shown: arrays and long lists by their digests."""
    long = {
        name: json.dumps(value).encode()
        for name, value in step.facts().items()
        if isinstance(value, list) and len(value) > SHOWN
    }
    held = {name: np.ascontiguousarray(array).tobytes() for name, array in step.arrays().items()}
    return step.facts() | {
        name: hashlib.sha256(content).hexdigest()[:16] for name, content in (long | held).items()
    }
