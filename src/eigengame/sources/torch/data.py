"""Torch tensors, datasets and data loaders as rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eigengame.sources._base import InOrder, RandomAccess, Source, SourceError, Values
from eigengame.sources._digest import digest_of_blocks
from eigengame.sources._stored_arrays import image_shape
from eigengame.sources.arrays import ArraySource
from eigengame.sources.iterators import tensor_to_numpy

PIECE_ROWS = 256
"""Items of an iterable-style dataset that are stacked into one piece."""


def from_torch(data: Any, key: Any = 0, name: str | None = None) -> Source:
    """Return the rows of a torch object.

    Parameters
    ----------
    data : Tensor, Dataset or DataLoader
        A tensor of shape (rows, ...); a map-style dataset, with random access; an iterable-style dataset or
        a loader, read in order.
    key : int or str
        Part of an item or batch that has the rows: 0 for (rows, labels), "image" for {"image": rows}.
    name : str, optional

    Notes
    -----
    A loader that shuffles gives other batches in each pass. This does not affect the components, but a
    checkpoint then needs `Checkpoint(folder, trust_source=True)`, and a resumed run is not identical to the
    last bit.
    """
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

    name = name or f"torch {type(data).__name__}"
    if isinstance(data, torch.Tensor):
        return _from_tensor(data, name)
    if isinstance(data, TensorDataset):
        if not isinstance(key, int) or key >= len(data.tensors):
            raise SourceError(f"{name} has {len(data.tensors)} tensors, but key={key!r}.")
        return _from_tensor(data.tensors[key], name)
    if isinstance(data, DataLoader):
        return LoaderSource(data, key, name)
    if isinstance(data, IterableDataset):
        return IterableDatasetSource(data, key, name)
    if isinstance(data, Dataset):
        return DatasetSource(data, key, name)
    raise SourceError(f"a {name} has no rows: give a Tensor, a Dataset or a DataLoader.")


class DatasetSource(RandomAccess):
    """Rows of a map-style dataset. Each item is flattened to a row. Parameters as in `from_torch`."""

    def __init__(self, data: Any, key: Any, name: str) -> None:
        self.name, self._data, self._key = name, data, key
        try:
            rows = len(data)
        except TypeError:
            raise SourceError(f"{name} has no length: derive it from IterableDataset.") from None
        if not rows:
            raise SourceError(f"{name} has no rows.")
        first = _to_array(data[0], key, name, 0)
        self.shape, self.dtype = (rows, first.size), first.dtype
        self.image_shape = _image_shape((rows, *first.shape))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return items `begin` to `end` as rows."""
        if hasattr(self._data, "__getitems__"):
            items = self._data.__getitems__(list(range(begin, end)))
        else:
            items = [self._data[row] for row in range(begin, end)]
        return _stack(items, self._key, self.name, begin, self.shape[1])

    def digest(self) -> str | None:
        """Return a digest of all items."""
        return digest_of_blocks(self)


class IterableDatasetSource(InOrder):
    """Rows of an iterable-style dataset, flattened items. Parameters as in `from_torch`."""

    def __init__(self, data: Any, key: Any, name: str) -> None:
        self.name, self._data, self._key = name, data, key
        first = _to_array(_first(data, name), key, name, 0)
        self.shape, self.dtype = (None, first.size), first.dtype
        self.image_shape = _image_shape((1, *first.shape))

    def pieces(self) -> Iterator[Values]:
        """Yield the rows in pieces of `PIECE_ROWS`."""
        items, row = iter(self._data), 0
        while some := list(itertools.islice(items, PIECE_ROWS)):
            yield _stack(some, self._key, self.name, row, self.shape[1])
            row += len(some)


class LoaderSource(InOrder):
    """Rows of the batches of a loader. Parameters as in `from_torch`."""

    def __init__(self, data: Any, key: Any, name: str) -> None:
        self.name, self._data, self._key = name, data, key
        first = self._rows(_first(data, name), 0)
        self.shape = (loader_length(data), first.size // max(len(first), 1))
        self.dtype = first.dtype
        self.image_shape = _image_shape(first.shape)

    def pieces(self) -> Iterator[Values]:
        """Yield the batches, flattened to rows."""
        row = 0
        for batch in self._data:
            rows = self._rows(batch, row)
            yield rows.reshape(len(rows), -1)
            row += len(rows)

    def _rows(self, batch: Any, row: int) -> np.ndarray:
        array = _to_array(batch, self._key, self.name, row)
        # A loader with batch_size=None yields single items.
        return array if self._data.batch_size is not None or array.ndim > 1 else array[None]

    def digest(self) -> str | None:
        """Return a digest of all batches; None if the next pass may give other ones."""
        return digest_of_blocks(self) if is_ordered(self._data) else None


def _from_tensor(tensor: Any, name: str) -> ArraySource:
    """Return the source of a tensor. Memory on the host is shared."""
    array = tensor_to_numpy(tensor)
    if array.ndim < 2 or not array.size:
        raise SourceError(f"{name} has shape {array.shape}: give one of shape (rows, features).")
    source = ArraySource(array.reshape(len(array), -1), name)
    source.image_shape = _image_shape(array.shape)
    return source


def _first(data: Any, name: str) -> Any:
    for item in data:
        return item
    raise SourceError(f"{name} has no rows: it ended before the first.")


def _to_array(item: Any, key: Any, name: str, row: int) -> np.ndarray:
    """Return the rows of an item or batch as an array of numbers."""
    if isinstance(item, (tuple, list, dict)):
        try:
            item = item[key]
        except (KeyError, IndexError, TypeError):
            parts = list(item) if isinstance(item, dict) else f"{len(item)} parts"
            raise SourceError(
                f"{name} gives {parts} at row {row}, but key={key!r}: give the key of the rows."
            ) from None
    array = tensor_to_numpy(item) if hasattr(item, "detach") else np.asarray(item)
    if array.dtype.kind not in "fiub":
        raise SourceError(f"{name} gives {array.dtype} at row {row}: numbers are needed.")
    if not array.ndim:
        raise SourceError(f"{name} gives a single number at row {row}: give rows.")
    return array


def _stack(items: Sequence[Any], key: Any, name: str, row: int, width: int) -> np.ndarray:
    """Return items as the rows of one array."""
    rows = []
    for number, item in enumerate(items, start=row):
        array = _to_array(item, key, name, number)
        if array.size != width:
            raise SourceError(
                f"{name}: the first rows have {width} features, but row {number} has shape {array.shape}: "
                "give items of one shape."
            )
        rows.append(array.reshape(-1))
    return np.stack(rows)


def loader_length(loader: Any) -> int | None:
    """Return the number of rows of a loader, if its sampler has a length."""
    from torch.utils.data import BatchSampler, IterableDataset

    batches = loader.batch_sampler
    if isinstance(loader.dataset, IterableDataset) or type(batches) is not BatchSampler:
        return None
    try:
        sampler: Any = batches.sampler
        rows = len(sampler)
    except TypeError:
        return None
    return rows // batches.batch_size * batches.batch_size if batches.drop_last else rows


def is_ordered(loader: Any) -> bool:
    """Return whether a loader gives the items of a map-style dataset in order in each pass."""
    from torch.utils.data import BatchSampler, IterableDataset, SequentialSampler

    if isinstance(loader.dataset, IterableDataset):
        return False
    plain = loader.batch_sampler is None or type(loader.batch_sampler) is BatchSampler
    return plain and isinstance(loader.sampler, SequentialSampler)


def _image_shape(shape: Sequence[int]) -> tuple[int, int, int] | None:
    """Return height, width and channels if rows are images. Torch puts a single channel first."""
    if len(shape) == 4 and shape[1] == 1:
        return int(shape[2]), int(shape[3]), 1
    return image_shape(shape)
