"""Inputs of a network: the batches of a loader, starting at any row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from eigengame._system import interrupts
from eigengame.sources._base import SourceError
from eigengame.sources._digest import digest_of_texts, digest_of_tree


class NetworkInputs:
    """Batches of a loader.

    Parameters
    ----------
    loader : iterable of batches
        Arrays or tensors (m, ...), or tuples, lists or dicts of them.
    key : int, str, None or "auto"
        Part of a batch that is the input of the network; None for all. "auto" is 0, or None for dicts if
        `whole_dicts`.
    name : str
        Name of the source, for messages.
    whole_dicts : bool

    Attributes
    ----------
    first_item, first : batch
        The first batch of the loader, and its part that is the input.
    rows : int or None
        Number of rows of the loader, if known.
    batch_rows : int
        Number of rows of the first batch.
    again : bool
        Whether the loader can be read more than once.
    """

    def __init__(
        self, loader: Iterable[Any], key: Any, name: str, *, whole_dicts: bool = False
    ) -> None:
        if hasattr(loader, "shape") or not hasattr(loader, "__iter__"):
            raise SourceError(
                f"{name}: loader is a {type(loader).__name__}: give batches, for example a DataLoader or a "
                "list of arrays of shape (rows, ...)."
            )
        self._loader, self._name = loader, name
        self.again = not isinstance(loader, Iterator)
        iterator = iter(loader)
        try:
            seen = next(iterator)
        except StopIteration:
            raise SourceError(
                f"{name}: the loader is empty: it ended before the first batch; give some rows."
            ) from None
        whole = whole_dicts and (isinstance(seen, dict) or hasattr(seen, "items"))
        self.key = (None if whole else 0) if isinstance(key, str) and key == "auto" else key
        self.first_item, self.first = seen, self._select(seen, 0)
        self.batch_rows = row_count(self.first, name)
        if not self.batch_rows:
            raise SourceError(f"{name}: the first batch of the loader has no rows.")
        self.rows = self._count_rows()
        # An iterator cannot give its first batch again, so it is put back.
        self._remaining: Iterator[Any] | None = (
            None if self.again else itertools.chain([seen], iterator)
        )

    def batches(self, start: int) -> Iterator[Any]:
        """Yield the inputs from row `start` on. Earlier batches are loaded and dropped."""
        if self._remaining is not None:
            batches, self._remaining = self._remaining, iter(())
            return self._skip(batches, start)
        return self._skip(self._loader, start)

    def items(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield for each batch the number of its first input, the batch as the loader gives it, and the input."""
        batches: Iterable[Any] = self._loader
        if self._remaining is not None:
            batches, self._remaining = self._remaining, iter(())
        number = 0
        for item in interrupts.drawn(batches):
            inputs = self._select(item, number)
            yield number, item, inputs
            number += row_count(inputs, self._name)

    def digest(self) -> str | None:
        """Return a digest of all inputs; None if the next pass may give other ones."""
        from eigengame.sources.image_batches import ImageBatches, RowBatches

        if isinstance(self._loader, (ImageBatches, RowBatches)):
            return self._loader.digest()
        if hasattr(self._loader, "batch_sampler"):
            from eigengame.sources.torch.data import is_ordered

            if not is_ordered(self._loader):
                return None
        elif not isinstance(self._loader, (list, tuple)):
            return None
        return digest_of_texts([digest_of_tree(batch) for batch in self._skip(self._loader, 0)])

    def _skip(self, batches: Iterable[Any], start: int) -> Iterator[Any]:
        """Yield the inputs of the batches without the rows before `start`."""
        row = 0
        for item in interrupts.drawn(batches):
            batch = self._select(item, row)
            count = row_count(batch, self._name)
            skip = min(max(start - row, 0), count)
            row += count
            if skip < count:
                yield batch if not skip else slice_rows(batch, skip, count)

    def _select(self, item: Any, row: int) -> Any:
        """Return the part of a batch that is the input of the network."""
        if self.key is None or not isinstance(item, (tuple, list, dict)):
            return item
        try:
            return item[self.key]
        except (KeyError, IndexError, TypeError):
            parts = list(item) if isinstance(item, dict) else f"{len(item)} parts"
            raise SourceError(
                f"{self._name}: the batch at row {row} has {parts}, but key={self.key!r}: give the key of the "
                "network's input, or key=None for all parts."
            ) from None

    def _count_rows(self) -> int | None:
        """Return the number of rows of the loader, if it is known without reading it."""
        if isinstance(self._loader, (list, tuple)):
            parts = (self._select(item, 0) for item in self._loader)
            return sum(row_count(part, self._name) for part in parts)
        if hasattr(self._loader, "batch_sampler"):
            from eigengame.sources.torch.data import loader_length

            return loader_length(self._loader)
        rows = getattr(self._loader, "rows", None)
        return rows if isinstance(rows, int) else None


def map_arrays(batch: Any, function: Callable[[Any], Any]) -> Any:
    """Return a batch with a function applied to each array. Other values are not changed."""
    if isinstance(batch, dict) or hasattr(batch, "items"):
        return {name: map_arrays(part, function) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(map_arrays(part, function) for part in batch)
    return function(batch) if getattr(batch, "shape", ()) else batch


def slice_rows(batch: Any, begin: int, end: int) -> Any:
    """Return rows `begin` to `end` of a batch."""
    return map_arrays(batch, lambda array: array[begin:end])


def arrays_of(batch: Any) -> list[Any]:
    """Return the arrays of a batch."""
    found: list[Any] = []
    map_arrays(batch, found.append)
    return found


def row_count(batch: Any, name: str) -> int:
    """Return the number of rows of a batch; raise if its arrays differ."""
    counts = [int(array.shape[0]) for array in arrays_of(batch)]
    if not counts or len(set(counts)) > 1:
        seen = f"arrays of {counts} rows" if counts else f"a {type(batch).__name__}"
        raise SourceError(
            f"{name}: the loader gives {seen}: give arrays with the same number of rows, shape (rows, ...)."
        )
    return counts[0]
