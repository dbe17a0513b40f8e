"""Prepared sources, and the learnt steps that a model keeps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eigengame.preparation._base import BadValue, PreparationStep
from eigengame.preparation.column_selection import ColumnSelection
from eigengame.preparation.counts import Counts
from eigengame.preparation.feature_weights import FeatureWeights
from eigengame.preparation.genotypes import Genotypes
from eigengame.preparation.grid_cells import GridCells
from eigengame.preparation.missing import Missing
from eigengame.preparation.opening import open_columns
from eigengame.preparation.pearson import PearsonResiduals
from eigengame.preparation.scale import Scale
from eigengame.preparation.step_lists import step_digest, with_selections
from eigengame.preparation.stored_values import canonical, to_float64
from eigengame.sources import Block, Source, SourceError
from eigengame.sources.matched_columns import can_match, match_columns

KINDS: dict[str, type[PreparationStep]] = {
    step.kind: step
    for step in (
        ColumnSelection,
        GridCells,
        Missing,
        Counts,
        PearsonResiduals,
        Scale,
        FeatureWeights,
        Genotypes,
    )
}
"""Steps by their names in a model file."""

LEARNING_VALUES = 2**22
"""Values per block in a pass that learns."""


class PreparedSource(Source):
    """Rows of a source after some steps.

    Parameters
    ----------
    source : Source
    steps : sequence of PreparationStep
        Learnt steps; see `then`.
    float64 : bool
        Whether the steps compute in float64, whatever the dtype of the source; see `in_float64`.
    """

    def __init__(
        self, source: Source, steps: Sequence[PreparationStep] = (), *, float64: bool = False
    ) -> None:
        self.source, self.steps, self._float64 = source, tuple(steps), float64
        self._input = source.in_float64() if float64 else source
        self.name, self.again, self.layer = source.name, source.again, source.layer
        self.sparse = source.sparse and not any(step.dense for step in steps)
        width, names = source.shape[1], source.feature_names
        alleles, positions = source.alleles, source.positions
        dtype = np.dtype(np.float64 if float64 else source.dtype)
        for step in steps:
            width, names = step.width(width), step.names(names)
            alleles, positions = step.names(alleles), step.names(positions)
            dtype = np.result_type(dtype, np.float32) if step.floating else dtype
        self.shape, self.dtype = (source.shape[0], width), dtype
        self.feature_names, self.alleles, self.positions = names, alleles, positions
        if (
            not any(isinstance(step, ColumnSelection) for step in steps)
            and width == source.shape[1]
        ):
            self.image_shape, self.coordinates = source.image_shape, source.coordinates
        if not any(isinstance(step, ColumnSelection | GridCells) for step in steps):
            self.grid = source.grid

    def then(self, step: PreparationStep) -> PreparedSource:
        """Return the rows after one more step, which learns its parameters now.

        It learns from rows in their default precision, so that the parameters do not depend on the
        precision of a later fit.
        """
        learnt = step.learn(PreparedSource(self.source, self.steps))
        return PreparedSource(self.source, (*self.steps, learnt), float64=self._float64)

    def in_float64(self) -> Source:
        """Return the same rows, computed in float64 with the same learnt parameters."""
        same_input = self.source.in_float64() is self.source
        if self._float64 or (same_input and not any(step.rounds for step in self.steps)):
            return self
        return PreparedSource(self.source, self.steps, float64=True)

    def row_ids(self) -> Sequence[str] | None:
        """Return the ids of the source, whose rows are all kept."""
        return self.source.row_ids()

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the id columns of the source, whose rows are all kept."""
        return self.source.id_columns()

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        row = start
        for block in map(canonical, self._input.blocks(start, size)):
            prepared = to_float64(block) if self._float64 else block
            for i, (step, selection) in enumerate(with_selections(self.steps)):
                with self._locate_errors(row, i):
                    if step is not None and selection is not None:
                        prepared = step.apply_and_select(prepared, selection)
                    elif step is not None:
                        prepared = step.apply(prepared)
            row += len(block)
            yield prepared

    def fold(self, add: Callable[[Any, Block], Any], start: Any, why: str) -> Any:
        """Return `add` folded over all blocks in one pass; see `TrainingData`."""
        if not self.again:
            raise SourceError(
                f"{self.name} can be read once, and {why} needs an extra pass: give data that can be read "
                "again, or learn the step on a part of it: prepare(part, ...).preparation.over(stream)."
            )
        carry, row = start, 0
        for block in self.blocks(0, min(max(LEARNING_VALUES // self.shape[1], 1), 4096)):
            with self._locate_errors(row, len(self.steps)):
                carry = add(carry, block)
            row += len(block)
        if not row:
            raise SourceError(f"{self.name} has no rows: {why} has nothing to learn from.")
        return carry

    @contextlib.contextmanager
    def _locate_errors(self, row: int, done: int) -> Iterator[None]:
        """Add row and feature of the source to the error for a bad value after `done` steps."""
        try:
            yield
        except BadValue as bad:
            column, names = bad.column, self.source.feature_names
            for step in reversed(self.steps[:done]):
                column = step.before(column)
            feature = "" if names is None else f" ({names[column]})"
            if self.source.grid is not None:
                feature = f" ({self.source.describe_feature(column)})"
            raise SourceError(
                f"{self.name}: the value in row {row + bad.row}, column {column}{feature} {bad}"
            ) from None

    @property
    def preparation(self) -> Preparation:
        """The learnt steps, which a model keeps."""
        names = self.source.feature_names
        known = None if names is None else tuple(str(one) for one in names)
        return Preparation(self.steps, self.source.shape[1], known)

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of the source, and the steps."""
        return self.source.fingerprint() | {"preparation": list(map(step_digest, self.steps))}

    def digest(self) -> str | None:
        """Return the digest of the source. The steps and their parameters are in the fingerprint."""
        return self.source.digest()

    def most_entries(self, size: int) -> int | None:
        """Return the number of the source, because no step adds entries."""
        return self.source.most_entries(size)


@dataclass(frozen=True, eq=False)
class Preparation:
    """Learnt steps of a prepared source, which can be applied to other data.

    Parameters
    ----------
    steps : tuple of PreparationStep
    width : int
        Number of features before the first step.
    names : tuple of str, optional
        Their names.
    """

    steps: tuple[PreparationStep, ...]
    width: int
    names: tuple[str, ...] | None = None

    def over(self, data: Any) -> PreparedSource:
        """Apply the steps to other data; data that these steps have prepared is returned unchanged.

        Features are found by name if both have names: those that are selected by the first step, else all,
        for example because the total of a row includes all of them; see `match_columns`. Without names the data
        must have as many features as the data of the fit.
        """
        if isinstance(data, PreparedSource):
            if data.preparation.same_as(self):
                return data
            raise SourceError(
                f"{data.name} has other preparation steps than the model: give the unprepared data, which the "
                "model prepares."
            )
        selection, steps = self._name_selection(), list(self.steps)
        source = open_columns(data, selection)
        for step in steps:
            step.check_source(source)
        if selection is not None and source.feature_names is not None:
            steps[0] = selection.learn(PreparedSource(source))
        elif self.names is not None and source.feature_names is not None and can_match(source):
            source = self.match(source)
        elif source.shape[1] != self.width:
            raise SourceError(
                f"{source.name} has {source.shape[1]} features, but the model was fitted on {self.width}, "
                "before preparation: give the same columns, unprepared."
            )
        else:
            steps = _find_by_name(source, steps)
        return PreparedSource(source, steps)

    def match(self, source: Source, *, absent_as_zero: bool = False) -> Source:
        """Return a source with the features of the fit before the first step; see `match_columns`.

        Features that are not selected may be absent if they do not count for the totals of rows.
        """
        assert self.names is not None
        needed: Sequence[int] = range(self.width)
        for step in self.steps:
            if isinstance(step, ColumnSelection):
                assert step.indices is not None
                needed = [needed[i] for i in step.indices]
        optional = absent_as_zero or not self.whole_rows
        return match_columns(source, self.names, needed, absent_as_zero=optional)

    @property
    def whole_rows(self) -> bool:
        """Whether all features of a row are needed, although some columns are selected later."""
        selections = [i for i, step in enumerate(self.steps) if isinstance(step, ColumnSelection)]
        return any(step.whole_rows for step in self.steps[: max(selections, default=0)])

    def _name_selection(self) -> ColumnSelection | None:
        """Return the first step if it selects columns by name."""
        first = self.steps[0] if self.steps else None
        return first if isinstance(first, ColumnSelection) and first.named else None

    def columns_of_table(self, names: Sequence[Any] | None) -> Sequence[Any] | None:
        """Return the columns of a table to open; None if their names are not known.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the features after all steps.
        """
        selection = self._name_selection()
        if selection is not None:
            return selection.wanted
        return None if any(isinstance(step, ColumnSelection) for step in self.steps) else names

    def same_as(self, other: Preparation | None) -> bool:
        """Return whether another preparation has the same steps and parameters."""
        if other is None or self.width != other.width:
            return False
        return list(map(step_digest, self.steps)) == list(map(step_digest, other.steps))

    def facts(self) -> list[dict[str, Any]]:
        """Return the steps as plain JSON, without their arrays."""
        return [step.facts() for step in self.steps]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the steps, by "N.name"."""
        return {
            f"{number}.{name}": array
            for number, step in enumerate(self.steps)
            for name, array in step.arrays().items()
        }

    @classmethod
    def from_facts(
        cls,
        facts: Sequence[Mapping[str, Any]],
        arrays: Mapping[str, np.ndarray],
        width: int,
        names: Sequence[str] | None = None,
    ) -> Preparation:
        """Return a preparation from the results of `facts` and `arrays`."""
        steps = []
        for number, one in enumerate(facts):
            plain = {name: value for name, value in one.items() if name != "kind"}
            own = {
                name.partition(".")[2]: array
                for name, array in arrays.items()
                if name.partition(".")[0] == str(number)
            }
            steps.append(KINDS[one["kind"]](**plain, **own))
        return cls(tuple(steps), width, None if names is None else tuple(names))


def same_preparation(one: Preparation | None, other: Preparation | None) -> bool:
    """Return whether two models have the same preparation, or both have none."""
    return other is None if one is None else one.same_as(other)


def preparation_of(source: Source) -> Preparation | None:
    """Return the preparation of a source; None if it is not prepared."""
    return source.preparation if isinstance(source, PreparedSource) else None


def _find_by_name(source: Source, steps: Sequence[PreparationStep]) -> list[PreparationStep]:
    """Return the steps, with columns that are selected by name located in this source.

    Only selections before the first step with one parameter per feature are changed, because the
    parameters have no names.
    """
    found: list[PreparationStep] = []
    for step in steps:
        if any(one.arrays() for one in found):
            return [*found, *steps[len(found) :]]
        here = PreparedSource(source, found)
        by_name = isinstance(step, ColumnSelection) and step.named
        found.append(step.learn(here) if by_name and here.feature_names is not None else step)
    return found
