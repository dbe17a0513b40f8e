"""Features of other data in the order of a fit, found by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from eigengame.sources._base import Block, Source, SourceError, list_items
from eigengame.sources._digest import combine_digests
from eigengame.sources.dask_blocks import DaskSource

ABSENT = -1
"""Column of a feature that the data does not have."""


class MatchedColumns(Source):
    """Rows of a source with the features of a fit, in their order. Features that it does not have are 0.

    Parameters
    ----------
    source : Source
        Rows with names of features.
    columns : int array of shape (d,)
        Position of each feature in the source; `ABSENT` if it has none.
    names : sequence of str
        Names of the features of the fit.
    """

    def __init__(self, source: Source, columns: np.ndarray, names: Sequence[str]) -> None:
        self.source, self.columns = source, columns
        self.name, self.again, self.sparse = source.name, source.again, source.sparse
        self.shape, self.dtype = (source.shape[0], len(names)), source.dtype
        self.feature_names = list(names)
        self.slow, self.layer = source.slow, source.layer

    @property
    def unused(self) -> int:
        """Number of features of the source that the fit does not have."""
        return self.source.shape[1] - int((self.columns != ABSENT).sum())

    @property
    def absent(self) -> int:
        """Number of features of the fit that the source does not have."""
        return int((self.columns == ABSENT).sum())

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        for block in self.source.blocks(start, size):
            yield Block(self._matched(block.values), block.weights)

    def _matched(self, values: Any) -> Any:
        present = self.columns != ABSENT
        if not issparse(values):
            matched = np.zeros((len(values), len(self.columns)), values.dtype)
            matched[:, present] = values[:, self.columns[present]]
            return matched
        found = csr_array(values)[:, self.columns[present]]
        # Entries of the features that are present, at their positions among all features.
        positions = np.flatnonzero(present).astype(found.indices.dtype)[found.indices]
        return csr_array(
            (found.data, positions, found.indptr), shape=(values.shape[0], len(present))
        )

    def in_float64(self) -> Source:
        """Return the same rows, computed in float64 if the source computes them."""
        source = self.source.in_float64()
        if source is self.source:
            return self
        assert self.feature_names is not None
        return MatchedColumns(source, self.columns, self.feature_names)

    def row_ids(self) -> Sequence[str] | None:
        """Return the ids of the source."""
        return self.source.row_ids()

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the id columns of the source."""
        return self.source.id_columns()

    def most_entries(self, size: int) -> int | None:
        """Return the number of the source, because no entries are added."""
        return self.source.most_entries(size)

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of the source, with the shape after matching."""
        return self.source.fingerprint() | {"shape": list(self.shape)}

    def digest(self) -> str | None:
        """Return the digest of the source and of the positions."""
        return combine_digests([self.source.digest(), str(self.columns.tolist())])


def can_match(source: Source) -> bool:
    """Return whether features of a source may be matched by name.

    Those of genotypes have alleles, those of a network have layers, and blocks of Dask are computed elsewhere.
    """
    return not (
        source.alleles or source.layers or source.on_device or isinstance(source, DaskSource)
    )


def match_columns(
    source: Source,
    names: Sequence[str],
    needed: Collection[int] | None = None,
    *,
    absent_as_zero: bool = False,
) -> Source:
    """Return the rows of a source with the features of a fit, found by name.

    A source whose features have the same names in the same order is returned unchanged, also if names are not
    unique. Of a name that occurs several times, the first feature is matched with the first, and so on.

    Parameters
    ----------
    source : Source
        With feature names.
    names : sequence of str
        Names of the features of the fit.
    needed : collection of int, optional
        Positions of the features on which components have loadings, which must be found under a name that is
        unique. The others count for the totals of rows only. Defaults to all.
    absent_as_zero : bool
        Whether features that are not needed may be absent, which means a value of 0.
    """
    assert source.feature_names is not None
    own, wanted = [str(one) for one in source.feature_names], [str(one) for one in names]
    if own == wanted:
        return source
    required = set(range(len(wanted))) if needed is None else set(needed)
    places: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(own):
        places[name].append(i)
    seen: Counter[str] = Counter()
    columns = np.full(len(wanted), ABSENT, np.int64)
    for i, name in enumerate(wanted):
        if seen[name] < len(places[name]):
            columns[i] = places[name][seen[name]]
        seen[name] += 1
    twice = [
        wanted[i] for i in sorted(required) if seen[wanted[i]] > 1 or len(places[wanted[i]]) > 1
    ]
    if twice:
        raise SourceError(
            f"{source.name} has other features than the fit, or another order, and {list_items(twice[:1])} is the "
            "name of several: give data with the same features in the same order, or unique names in both, for "
            "example by adata.var_names_make_unique()."
        )
    absent = np.flatnonzero(columns == ABSENT)
    lacking = [wanted[i] for i in absent if i in required]
    if lacking:
        raise SourceError(
            f"{source.name} lacks {len(lacking)} features of the model ({list_items(lacking)}): give data with all "
            "of them, or fit on the features that both have, by prepare(data, columns=[...])."
        )
    if len(absent) and not absent_as_zero:
        raise SourceError(
            f"{source.name} lacks {len(absent)} features of the fit ({list_items(wanted[i] for i in absent)}), "
            "which count for the totals of the rows: give data with all of them. If their values are 0, for "
            "example because genes without counts were removed, pass pca.align(data, intersect=True), or "
            "--intersect."
        )
    return MatchedColumns(source, columns, wanted)
