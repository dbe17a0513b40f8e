"""Several files as one: the rows of the first, then those of the second, and so on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eigengame import sources
from eigengame.sources._alleles import refuse_other_alleles
from eigengame.sources._base import Block, Source, SourceError, recut
from eigengame.sources._digest import combined


def open_all(paths: Sequence[str | os.PathLike[str]], **options: Any) -> ConcatenatedSource:
    """Return the rows of several files; options are those of each."""
    return ConcatenatedSource([sources.as_source(path, **options) for path in paths])


class ConcatenatedSource(Source):
    """Rows of several sources, one after the other.

    Parameters
    ----------
    members : sequence of Source
        With the same features.
    """

    def __init__(self, members: Sequence[Source]) -> None:
        first = members[0]
        for one in members[1:]:
            if one.shape[1] != first.shape[1] or one.sparse != first.sparse:
                raise SourceError(
                    f"{one.name} has {_described(one)}, but {first.name} has {_described(first)}: give "
                    "files of one kind with the same columns."
                )
            _refuse_other_features(one, first)
        self.members = list(members)
        self.name = first.name if len(members) == 1 else f"{first.name} and {len(members) - 1} more"
        counts = [one.shape[0] for one in members]
        rows = None if None in counts else sum(count or 0 for count in counts)
        self.shape = (rows, first.shape[1])
        self.dtype = np.result_type(*(one.dtype for one in members))
        self.sparse, self.again = first.sparse, all(one.again for one in members)
        self.feature_names, self.image_shape = first.feature_names, first.image_shape
        self.alleles = first.alleles

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`; files that lie before are not opened."""
        waiting = list(self.members)
        while waiting and (rows := waiting[0].shape[0]) is not None and rows <= start:
            start -= rows
            waiting.pop(0)
        if waiting and waiting[0].shape[0] is not None:
            pieces = (
                block
                for i, one in enumerate(waiting)
                for block in one.blocks(0 if i else start, size)
            )
            return recut(pieces, 0, size)
        return recut((block for one in waiting for block in one.blocks(0, size)), start, size)

    def in_float64(self) -> Source:
        """Return the same rows, computed in float64 by each member."""
        members = [one.in_float64() for one in self.members]
        alike = all(one is other for one, other in zip(members, self.members, strict=True))
        return self if alike else ConcatenatedSource(members)

    def fingerprint(self) -> dict[str, Any]:
        """Return those of all files."""
        return super().fingerprint() | {"files": [one.fingerprint() for one in self.members]}

    def digest(self) -> str | None:
        """Return one digest for those of all files."""
        return combined([one.digest() for one in self.members])


def _refuse_other_features(one: Source, first: Source) -> None:
    """Raise if two files name their features, and the names or alleles differ."""
    if one.feature_names is None or first.feature_names is None:
        return
    if one.alleles is not None and first.alleles is not None:
        where = f"of {first.name}"
        refuse_other_alleles(
            one.name, one.feature_names, one.alleles, first.feature_names, first.alleles, where
        )
    for i, (name, wanted) in enumerate(zip(one.feature_names, first.feature_names, strict=True)):
        if str(name) != str(wanted):
            raise SourceError(
                f"{one.name}: feature {i} is {str(name)!r}, but {str(wanted)!r} in {first.name}: give files "
                "with the same columns in the same order, or name the columns by columns=."
            )


def _described(source: Source) -> str:
    return f"{source.shape[1]} {'sparse' if source.sparse else 'dense'} features"
