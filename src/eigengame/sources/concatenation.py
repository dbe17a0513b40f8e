"""Several files as one source: their rows follow one another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eigengame import sources
from eigengame.sources._alleles import refuse_other_alleles
from eigengame.sources._base import Block, Source, SourceError, rechunk
from eigengame.sources._digest import combine_digests


def open_all(paths: Sequence[str | os.PathLike[str]], **options: Any) -> ConcatenatedSource:
    """Return the rows of several files, each opened with the same options."""
    return ConcatenatedSource([sources.as_source(path, **options) for path in paths])


class ConcatenatedSource(Source):
    """Rows of several sources, one after the other.

    Parameters
    ----------
    members : sequence of Source
        Sources with the same features.
    """

    def __init__(self, members: Sequence[Source]) -> None:
        first = members[0]
        for member in members[1:]:
            if member.shape[1] != first.shape[1] or member.sparse != first.sparse:
                raise SourceError(
                    f"{member.name} has {_described(member)}, but {first.name} has {_described(first)}: give "
                    "files of one kind with the same columns."
                )
            _refuse_other_features(member, first)
        self.members = list(members)
        self.name = first.name if len(members) == 1 else f"{first.name} and {len(members) - 1} more"
        counts = [member.shape[0] for member in members]
        rows = None if None in counts else sum(count or 0 for count in counts)
        self.shape = (rows, first.shape[1])
        self.dtype = np.result_type(*(member.dtype for member in members))
        self.sparse, self.again = first.sparse, all(member.again for member in members)
        self.feature_names, self.image_shape = first.feature_names, first.image_shape
        self.alleles, self.positions = first.alleles, first.positions
        self.layer = first.layer if len({member.layer for member in members}) == 1 else None
        self.grid, self.coordinates = first.grid, first.coordinates

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Files before `start` are not read."""
        waiting = list(self.members)
        while waiting and (rows := waiting[0].shape[0]) is not None and rows <= start:
            start -= rows
            waiting.pop(0)
        if waiting and waiting[0].shape[0] is not None:
            pieces = (
                block
                for i, member in enumerate(waiting)
                for block in member.blocks(0 if i else start, size)
            )
            return rechunk(pieces, 0, size)
        return rechunk((block for one in waiting for block in one.blocks(0, size)), start, size)

    def row_ids(self) -> Sequence[str] | None:
        """Return the ids of all members, if each has ids of its rows."""
        found = [member.row_ids() for member in self.members]
        known = [ids for ids in found if ids is not None]
        return [one for ids in known for one in ids] if len(known) == len(found) else None

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the id columns of all members, if they have the same."""
        found = [member.id_columns() for member in self.members]
        if any(one.keys() != found[0].keys() for one in found):
            return {}
        return {name: [one for ids in found for one in ids[name]] for name in found[0]}

    def cell_weights(self, weights: Any) -> np.ndarray | None:
        """Return the weights of the features of the first member, whose grid all have."""
        return self.members[0].cell_weights(weights)

    def describe_feature(self, column: int) -> str:
        """Return the description of the first member."""
        return self.members[0].describe_feature(column)

    def in_float64(self) -> Source:
        """Return the same rows, computed in float64 by each member."""
        members = [member.in_float64() for member in self.members]
        same = all(one is other for one, other in zip(members, self.members, strict=True))
        return self if same else ConcatenatedSource(members)

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprints of all members."""
        return super().fingerprint() | {"files": [one.fingerprint() for one in self.members]}

    def digest(self) -> str | None:
        """Return one digest of the members' digests."""
        return combine_digests([member.digest() for member in self.members])


def _refuse_other_features(member: Source, first: Source) -> None:
    """Raise if the grids, feature names or alleles of two sources differ."""
    if first.grid is not None and member.grid is not None:
        difference = first.grid.difference(member.grid)
        if difference is not None:
            raise SourceError(
                f"{member.name} has {difference} (as in {first.name}): give files on one grid."
            )
    if member.feature_names is None or first.feature_names is None:
        return
    if member.alleles is not None and first.alleles is not None:
        refuse_other_alleles(
            member.name,
            member.feature_names,
            member.alleles,
            first.feature_names,
            first.alleles,
            f"of {first.name}",
        )
    pairs = zip(member.feature_names, first.feature_names, strict=True)
    for i, (name, expected) in enumerate(pairs):
        if str(name) != str(expected):
            raise SourceError(
                f"{member.name}: feature {i} is {str(name)!r}, but {str(expected)!r} in {first.name}: give "
                "files with the same columns in the same order, or name the columns by columns=."
            )


def _described(source: Source) -> str:
    return f"{source.shape[1]} {'sparse' if source.sparse else 'dense'} features"
