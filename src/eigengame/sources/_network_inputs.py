"""What a loader hands to a network: batches by key, cut to rows, from any row on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._digest import digest_of_texts, digest_of_tree


class Inputs:
    """The batches of a loader.

    Parameters
    ----------
    loader : iterable of batches
        Arrays or tensors (m, ...), or tuples, lists or dicts of them.
    key : int, str or None
        Which part of a batch the network takes; None for all.
    name : str

    Attributes
    ----------
    first : batch
        As the network would take it.
    rows : int or None
        Of the whole loader, where that is known.
    batch_rows : int
        Of the first batch.
    again : bool
        Whether the loader can be read more than once.
    """

    def __init__(self, loader: Iterable[Any], key: Any, name: str) -> None:
        if hasattr(loader, "shape") or not hasattr(loader, "__iter__"):
            raise SourceError(
                f"{name}: loader is a {type(loader).__name__}: give batches, by a DataLoader or a list of "
                "arrays of shape (rows, ...)."
            )
        self._loader, self._key, self._name = loader, key, name
        self.again = not isinstance(loader, Iterator)
        given = iter(loader)
        try:
            seen = next(given)
        except StopIteration:
            raise SourceError(
                f"{name}: the loader is empty: it ended before the first batch; give some rows."
            ) from None
        self.first = self._chosen(seen, 0)
        self.batch_rows = rows_of(self.first, name)
        if not self.batch_rows:
            raise SourceError(f"{name}: the first batch of the loader has no rows.")
        self.rows = self._count()
        # What was looked at is not lost: a loader that can be read once begins with it.
        self._given: Iterator[Any] | None = None if self.again else itertools.chain([seen], given)

    def batches(self, start: int) -> Iterator[Any]:
        """Give the batches from row `start` on: those before it are drawn and dropped."""
        if self._given is not None:
            given, self._given = self._given, iter(())
            return self._cut(given, start)
        return self._cut(self._loader, start)

    def digest(self) -> str | None:
        """Return a digest of all batches; None where the loader may give other ones in the next pass."""
        from eigengame.sources.image_batches import ImageBatches, RowBatches

        if isinstance(self._loader, (ImageBatches, RowBatches)):
            return self._loader.digest()
        if hasattr(self._loader, "batch_sampler"):
            from eigengame.sources.torch.data import in_order

            if not in_order(self._loader):
                return None
        elif not isinstance(self._loader, (list, tuple)):
            return None
        return digest_of_texts([digest_of_tree(batch) for batch in self._cut(self._loader, 0)])

    def _cut(self, given: Iterable[Any], start: int) -> Iterator[Any]:
        row = 0
        for item in given:
            batch = self._chosen(item, row)
            count = rows_of(batch, self._name)
            skip = min(max(start - row, 0), count)
            row += count
            if skip < count:
                yield batch if not skip else sliced(batch, skip, count)

    def _chosen(self, item: Any, row: int) -> Any:
        """Return the part of a batch that the network takes."""
        if self._key is None or not isinstance(item, (tuple, list, dict)):
            return item
        try:
            return item[self._key]
        except (KeyError, IndexError, TypeError):
            parts = list(item) if isinstance(item, dict) else f"{len(item)} parts"
            raise SourceError(
                f"{self._name}: the loader gives {parts} at row {row}: say by key= which of them goes into "
                "the network, or give key=None for all."
            ) from None

    def _count(self) -> int | None:
        """Return how many rows the loader has, where it says so without being read."""
        if isinstance(self._loader, (list, tuple)):
            parts = (self._chosen(item, 0) for item in self._loader)
            return sum(rows_of(part, self._name) for part in parts)
        if hasattr(self._loader, "batch_sampler"):
            from eigengame.sources.torch.data import loader_length

            return loader_length(self._loader)
        rows = getattr(self._loader, "rows", None)
        return rows if isinstance(rows, int) else None


def mapped(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with a change made to each array in it; what has no rows stays as it is."""
    if isinstance(batch, dict) or hasattr(batch, "items"):
        return {name: mapped(part, change) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(mapped(part, change) for part in batch)
    return change(batch) if getattr(batch, "shape", ()) else batch


def sliced(batch: Any, begin: int, end: int) -> Any:
    """Return some rows of a batch."""
    return mapped(batch, lambda array: array[begin:end])


def arrays_of(batch: Any) -> list[Any]:
    """Return the arrays of a batch."""
    found: list[Any] = []
    mapped(batch, found.append)
    return found


def rows_of(batch: Any, name: str) -> int:
    """Return how many rows a batch has, in all of its arrays."""
    counts = [int(array.shape[0]) for array in arrays_of(batch)]
    if not counts or len(set(counts)) > 1:
        seen = f"arrays of {counts} rows" if counts else f"a {type(batch).__name__}"
        raise SourceError(
            f"{name}: the loader gives {seen}: give arrays of one number of rows, shape (rows, ...)."
        )
    return counts[0]
