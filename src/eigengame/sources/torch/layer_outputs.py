"""What a layer of a torch network gives, during a forward: looked at once, then written into a buffer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._layers import Layers

Take = Callable[[str, Any], None]
"""Takes the output of the layer of that name. A module that runs again is called name:2, name:3, ..."""


class ShapeRecorder:
    """Notes names and shapes in the order in which layers run.

    Parameters
    ----------
    owner : str
        Whose layers they are.
    rows : int
        Rows that went in.

    Attributes
    ----------
    seen : list of (str, tuple of int, bool)
        Names, shapes and whether channels are last.
    runs : Counter
        How often each module ran.
    """

    def __init__(self, owner: str, rows: int) -> None:
        self.seen: list[tuple[str, tuple[int, ...], bool]] = []
        self.runs = Counter[str]()
        self._owner, self._rows = owner, rows

    def __call__(self, name: str, output: Any) -> None:
        """Note one output."""
        import torch

        tensor = tensor_of(self._owner, name, output)
        shape = tuple(tensor.shape)
        if not shape or shape[0] != self._rows:
            raise SourceError(
                f"{self._owner}: layer {name!r} gives shape {shape} for {self._rows} rows: rows must be its "
                "first axis; take another layer, or wrap the network so that they are."
            )
        self.runs[name] += 1
        last = (
            tensor.dim() == 4
            and tensor.is_contiguous(memory_format=torch.channels_last)
            and not tensor.is_contiguous()
        )
        self.seen.append((again(name, self.runs[name]), shape[1:], last))


class BufferWriter:
    """Writes outputs into rows of a buffer, each to its place, as they lie in memory.

    Parameters
    ----------
    owner : str
    layers : Layers
        What is expected.
    rows : Tensor of shape (m, d)
        Where it goes.
    good : Tensor of shape (m,)
        Becomes False where a row is left out.
    row : int
        Of the source, that these begin at.
    nonfinite : {"raise", "skip", "zero"}
    """

    def __init__(
        self, owner: str, layers: Layers, rows: Any, good: Any, row: int, nonfinite: str
    ) -> None:
        self._owner, self._rows, self._good, self._row = owner, rows, good, row
        self._nonfinite, self._runs = nonfinite, Counter[str]()
        self._missing = {layer.name: layer for layer in layers}
        if nonfinite == "skip":
            good.fill_(True)

    def __call__(self, name: str, output: Any) -> None:
        """Write one output: at once, for what comes after may change it in place."""
        import torch

        tensor = tensor_of(self._owner, name, output)
        self._runs[name] += 1
        layer = self._missing.pop(again(name, self._runs[name]), None)
        if layer is None:
            raise SourceError(
                f"{self._owner}: layer {name!r} ran {self._runs[name]} times at row {self._row}, but fewer "
                "at first: give layers that run alike for every batch."
            )
        shape = (len(self._rows), *layer.shape)
        if tuple(tensor.shape) != shape:
            raise SourceError(
                f"{self._owner}: layer {layer.name!r} gives shape {tuple(tensor.shape)} at row {self._row}, "
                f"but {shape} at first: bring all inputs to one shape, or pool."
            )
        part = self._rows[:, layer.begin : layer.end].view(len(self._rows), *layer.stored)
        _copy(part, tensor.movedim(1, -1) if layer.channels_last else tensor)
        if self._nonfinite == "zero":
            torch.nan_to_num(part, 0.0, 0.0, 0.0, out=part)
        elif self._nonfinite == "skip":
            self._good.logical_and_(torch.isfinite(part).flatten(1).all(1))

    def finish(self) -> None:
        """Refuse a forward in which a layer did not run, and empty rows that are left out."""
        if self._missing:
            raise SourceError(
                f"{self._owner}: layer {next(iter(self._missing))!r} did not run at row {self._row}, but did "
                "at first: give layers that run for every batch."
            )
        if self._nonfinite == "skip":
            self._rows.masked_fill_(~self._good[:, None], 0)


def _copy(place: Any, tensor: Any) -> None:
    """Copy rows of numbers to where they belong: 16 bytes at a time where they allow it, twice as fast as 2."""
    import torch

    if tensor.is_contiguous() and tensor.dtype == place.dtype:
        shape, size = (len(tensor), tensor.numel() // len(tensor)), tensor.element_size()
        place, tensor = place.view(shape), tensor.view(shape)
        both = (place, tensor)
        steps = [size * step for one in both for step in (one.storage_offset(), one.stride(0))]
        begins = [one.data_ptr() for one in both]
        if all(step % 16 == 0 for step in (*steps, *begins, size * shape[1])):
            place, tensor = (one.view(torch.complex128) for one in both)
    place.copy_(tensor)


def again(name: str, runs: int) -> str:
    """Return what a layer is called when its module runs for this time in one forward."""
    return name if runs == 1 else f"{name}:{runs}"


def tensor_of(owner: str, name: str, output: Any) -> Any:
    """Return the one tensor of numbers that a layer gives."""
    found = list(_tensors(output))
    if len(found) != 1:
        raise SourceError(
            f"{owner}: layer {name!r} gives a {type(output).__name__} with {len(found)} tensors: take a layer "
            "within it that gives one, or wrap the network."
        )
    if found[0].is_complex():
        raise SourceError(f"{owner}: layer {name!r} gives complex numbers: take another layer.")
    return found[0]


def _tensors(output: Any) -> Any:
    if isinstance(output, Mapping):
        output = tuple(output.values())
    if isinstance(output, (tuple, list)):
        for part in output:
            yield from _tensors(part)
    elif hasattr(output, "is_complex"):
        yield output
