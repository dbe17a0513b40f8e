"""Handlers of layers' outputs or inputs in a forward pass: one records shapes, one writes into a buffer."""

from __future__ import annotations

from collections import Counter
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._layers import Layers
from eigengame.sources.torch.output_choice import TensorChoice


class ShapeRecorder:
    """Records names and shapes in the order in which layers run.

    Parameters
    ----------
    choice : TensorChoice
        Chooses the tensor of an output or of arguments.
    rows : int
        Rows of the input.

    Attributes
    ----------
    seen : list of (str, tuple of int, bool)
        Name, shape, and whether channels are last in memory.
    runs : Counter
        Number of runs of each module.
    dtypes : set of dtypes
        Of all tensors.
    """

    def __init__(self, choice: TensorChoice, rows: int) -> None:
        self.seen: list[tuple[str, tuple[int, ...], bool]] = []
        self.runs = Counter[str]()
        self.dtypes: set[Any] = set()
        self._choice, self._rows = choice, rows

    def __call__(self, name: str, value: Any) -> None:
        """Record one output, or one call."""
        import torch

        tensor = self._choice(name, value)
        shape = tuple(tensor.shape)
        if not shape or shape[0] != self._rows:
            raise SourceError(
                f"{self._choice.owner}: layer {name!r} {self._choice.verb} shape {shape} for {self._rows} rows: "
                "rows must be its first axis; choose another layer, or wrap the network."
            )
        self.runs[name] += 1
        self.dtypes.add(tensor.dtype)
        channels_last = (
            tensor.dim() == 4
            and tensor.is_contiguous(memory_format=torch.channels_last)
            and not tensor.is_contiguous()
        )
        self.seen.append((run_name(name, self.runs[name]), shape[1:], channels_last))


class BufferWriter:
    """Writes outputs or inputs of layers into the rows of a buffer, in their memory format.

    Parameters
    ----------
    choice : TensorChoice
        Chooses the tensor of an output or of arguments.
    layers : Layers
        Expected layers.
    rows : Tensor of shape (m, d)
        Buffer.
    valid : Tensor of bool of shape (m,)
        Set to False for rows that are skipped.
    row : int
        First row of the source in the buffer, for messages.
    nonfinite : {"raise", "skip", "zero"}
    origin : Tensor of shape (d,), optional
        Subtracted before numbers are rounded to the dtype of the buffer.
    """

    def __init__(
        self,
        choice: TensorChoice,
        layers: Layers,
        rows: Any,
        valid: Any,
        row: int,
        nonfinite: str,
        origin: Any = None,
    ) -> None:
        self._choice, self._origin = choice, origin
        self._owner, self._rows, self._valid, self._row = choice.owner, rows, valid, row
        self._nonfinite, self._runs = nonfinite, Counter[str]()
        self._missing = {layer.name: layer for layer in layers}
        if nonfinite == "skip":
            valid.fill_(True)

    def __call__(self, name: str, value: Any) -> None:
        """Write one output or input immediately, because layers may change it in place."""
        import torch

        tensor = self._choice(name, value)
        self._runs[name] += 1
        layer = self._missing.pop(run_name(name, self._runs[name]), None)
        if layer is None:
            raise SourceError(
                f"{self._owner}: layer {name!r} ran {self._runs[name]} times at row {self._row}, but fewer "
                "times in the first batch: choose layers that run equally often for every batch."
            )
        shape = (len(self._rows), *layer.shape)
        if tuple(tensor.shape) != shape:
            raise SourceError(
                f"{self._owner}: layer {layer.name!r} {self._choice.verb} shape {tuple(tensor.shape)} at row "
                f"{self._row}, but {shape} is expected: give inputs of one shape, or pool."
            )
        part = self._rows[:, layer.begin : layer.end].view(len(self._rows), *layer.stored)
        tensor = tensor.movedim(1, -1) if layer.channels_last else tensor
        if self._origin is None:
            _copy(part, tensor)
        else:
            # In float32, and rounded once where it is written.
            origin = self._origin[layer.begin : layer.end].view(layer.stored)
            torch.sub(tensor, origin, out=part)
        if self._nonfinite == "zero":
            torch.nan_to_num(part, 0.0, 0.0, 0.0, out=part)
        elif self._nonfinite == "skip":
            self._valid.logical_and_(torch.isfinite(part).flatten(1).all(1))

    def finish(self) -> None:
        """Raise if a layer did not run; set skipped rows to zero."""
        if self._missing:
            raise SourceError(
                f"{self._owner}: layer {next(iter(self._missing))!r} did not run at row {self._row}, but did "
                "in the first batch: choose layers that run for every batch."
            )
        if self._nonfinite == "skip":
            self._rows.masked_fill_(~self._valid[:, None], 0)


def _copy(target: Any, tensor: Any) -> None:
    """Copy rows, 16 bytes at a time if their alignment allows it: twice as fast as 2 bytes."""
    import torch

    if tensor.is_contiguous() and tensor.dtype == target.dtype:
        shape, size = (len(tensor), tensor.numel() // len(tensor)), tensor.element_size()
        target, tensor = target.view(shape), tensor.view(shape)
        both = (target, tensor)
        steps = [size * step for one in both for step in (one.storage_offset(), one.stride(0))]
        begins = [one.data_ptr() for one in both]
        if all(step % 16 == 0 for step in (*steps, *begins, size * shape[1])):
            target, tensor = (one.view(torch.complex128) for one in both)
    target.copy_(tensor)


def run_name(name: str, run: int) -> str:
    """Return the layer name of a module's n-th run in one forward pass: name, name:2, name:3, ..."""
    return name if run == 1 else f"{name}:{run}"
