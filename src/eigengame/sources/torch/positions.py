"""Positions of the outputs or inputs of torch layers as rows: tokens, pixels, or whole inputs, layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from eigengame.sources._base import DEVICE_BUFFERS, SourceError
from eigengame.sources._layers import Layer, Layers
from eigengame.sources._network_inputs import row_count, slice_rows
from eigengame.sources._positions import Chosen, PositionOptions, refuse_other_mask
from eigengame.sources._row_buffer import FullRows, LayerRows
from eigengame.sources.torch.layer_outputs import run_name
from eigengame.sources.torch.network import TorchNetwork


class TorchPositions:
    """Rows of the positions of the outputs, or inputs, of a torch network's layers.

    Parameters
    ----------
    network : TorchNetwork
    options : PositionOptions
    nonfinite : {"raise", "skip", "zero"}
    """

    def __init__(self, network: TorchNetwork, options: PositionOptions, nonfinite: str) -> None:
        self.network, self.name, self.dtype = network, network.name, network.dtype
        self._options, self._nonfinite = options, nonfinite
        self.layers = Layers()
        self.computed: set[Any] = set()
        self._origins: dict[str, Any] = {}

    def find_layers(self, first: Any) -> tuple[Layers, dict[str, int]]:
        """Return the layers in the order in which they run, with the shape of one row, and their positions.

        They come from a forward pass of the first inputs.
        """
        inputs = slice_rows(first, 0, 2)
        count = row_count(inputs, self.name)
        seen: list[tuple[str, tuple[int, ...], bool]] = []
        lengths: dict[str, int] = {}
        runs, refused = Counter[str](), dict[str, SourceError]()

        def record(name: str, value: Any) -> None:
            runs[name] += 1
            own = run_name(name, runs[name])
            try:
                tensor, features = self._rows_first(own, value, count)
            except SourceError as error:
                # Default blocks are left out: a pooled output has no positions, embeddings of positions no inputs.
                if self.network.by_pattern or self._options.rows == "inputs":
                    raise
                refused[name] = error
                return
            seen.append((own, features, False))
            lengths[own] = tensor.shape[1]
            self.computed.add(tensor.dtype)

        self.network.run(inputs, record)
        self.network.refuse_unless_run(runs)
        if refused and not seen:
            raise next(iter(refused.values()))
        self.network.leave_out(refused)
        kept = [one for one in seen if one[0].partition(":")[0] not in refused]
        self.layers = Layers.of(kept, self.network.choice.side)
        return self.layers, {layer.name: lengths[layer.name] for layer in self.layers}

    def use_layers(self, wanted: Layers) -> Layers:
        """Arrange the layers as in an earlier source."""
        self.layers = wanted
        return wanted

    def gather(
        self, inputs: Any, mask: np.ndarray | None, first: int, origins: dict[str, Any]
    ) -> dict[str, LayerRows]:
        """Run the network once, and return the rows of each layer on the device.

        Parameters
        ----------
        inputs : batch
        mask : bool array of shape (inputs, positions) or None
        first : int
            Number of the first input in the loader.
        origins : dict of arrays (d,)
            Subtracted from the rows of a layer before they are rounded to the dtype of the rows.
        """
        import torch

        count = row_count(inputs, self.name)
        runs, found = Counter[str](), dict[str, LayerRows]()
        expected = {layer.name: layer for layer in self.layers}
        chosen: dict[int, tuple[Chosen, Any]] = {}

        def choose(layer: str, length: int) -> tuple[Chosen, Any]:
            # Once for all layers, on the host, so that no layer waits for the device.
            if length not in chosen:
                refuse_other_mask(self.name, layer, mask, (count, length), self.network.choice.verb)
                one = self._options.choose(mask, (count, length), first)
                flat = None if one.flat is None else torch.from_numpy(one.flat)
                there = None if flat is None else flat.to(self.network.device, non_blocking=True)
                chosen[length] = one, there
            return chosen[length]

        def collect(name: str, value: Any) -> None:
            runs[name] += 1
            layer = expected.get(run_name(name, runs[name]))
            if layer is None:
                raise SourceError(
                    f"{self.name}: layer {name!r} ran {runs[name]} times at input {first}, but fewer times in the "
                    "first batch: choose layers that run equally often for every batch."
                )
            tensor, features = self._rows_first(layer.name, value, count)
            if features != layer.shape:
                raise SourceError(
                    f"{self.name}: layer {layer.name!r} {self.network.choice.verb} rows of shape {features} at "
                    f"input {first}, but {layer.shape} is expected: give inputs with the same number of features, "
                    "or pool."
                )
            one, there = choose(layer.name, tensor.shape[1])
            # Immediately, because layers may change it in place.
            rows = self._rounded(layer, tensor.flatten(0, 1), there, origins.get(layer.name))
            found[layer.name] = LayerRows(rows, one, tensor.dtype)

        self.network.run(inputs, collect)
        missing = next((name for name in expected if name not in found), None)
        if missing is not None:
            raise SourceError(
                f"{self.name}: layer {missing!r} did not run at input {first}, but did in the first batch: choose "
                "layers that run for every batch."
            )
        return found

    def buffer(self, layers: list[Layer], size: int, *, stacked: bool) -> TorchRowBuffer:
        """Return a buffer for the rows of some layers, in blocks of `size` rows."""
        skip = self._nonfinite == "skip"
        return TorchRowBuffer(layers, size, self.network.device, self.dtype, stacked, skip)

    def _rows_first(self, name: str, value: Any, count: int) -> tuple[Any, tuple[int, ...]]:
        """Return an output or input as a tensor (inputs, positions, features), and the shape of one row."""
        tensor, verb = self.network.choice(name, value, first=True), self.network.choice.verb
        shape, kind = tuple(tensor.shape), self._options.rows
        if not shape or shape[0] != count:
            raise SourceError(
                f"{self.name}: layer {name!r} {verb} shape {shape} for {count} inputs: inputs must be its first "
                "axis; choose another layer, or wrap the network."
            )
        if kind == "inputs":
            return tensor.reshape(count, 1, -1), shape[1:]
        if len(shape) < 3:
            raise SourceError(
                f"{self.name}: layer {name!r} {verb} shape {shape}, which has no positions: rows={kind!r} needs "
                f"{'(inputs, positions, features)' if kind == 'tokens' else '(inputs, channels, height, width)'}; "
                "use rows='inputs', or another layer."
            )
        if kind == "tokens":
            return tensor.flatten(2), shape[2:]
        return tensor.flatten(2).transpose(1, 2), shape[1:2]

    def _rounded(self, layer: Layer, flat: Any, chosen: Any, origin: Any) -> Any:
        """Return the chosen rows of (positions, d), about an origin, in the dtype of the rows."""
        import torch

        rows = flat.clone() if chosen is None else flat.index_select(0, chosen)
        if origin is not None:
            kept = self._origins.get(layer.name)
            if kept is None or kept[0] is not origin:
                there = torch.from_numpy(np.asarray(origin, np.float32)).to(self.network.device)
                kept = self._origins[layer.name] = (origin, there)
            rows = rows.float() - kept[1]
        rows = rows.to(getattr(torch, self.dtype.name))
        return torch.nan_to_num(rows, 0.0, 0.0, 0.0) if self._nonfinite == "zero" else rows

    def free_bytes(self) -> int | None:
        """Return the free memory for buffers on a device that torch shares with JAX, else None."""
        return self.network.free_bytes()

    def fingerprint(self) -> dict[str, Any]:
        """Return facts about the network and the positions."""
        return self.network.fingerprint() | self._options.facts()

    def digest(self) -> str | None:
        """Return a digest of the network."""
        return self.network.digest()


class TorchRowBuffer:
    """Rows of layers that are collected until a block is full, in memory that JAX reads without a copy.

    Parameters
    ----------
    layers : list of Layer
    size : int
        Rows of a block.
    device, dtype
    stacked : bool
        Whether a block has shape (layers, size, d); else layers are side by side, shape (size, sum of d).
    skip : bool
        Whether rows that are not finite have weight 0. It costs one wait for the device in each block.

    Attributes
    ----------
    filled : int
        Rows of the block that is being filled.
    """

    def __init__(
        self, layers: list[Layer], size: int, device: Any, dtype: Any, stacked: bool, skip: bool
    ) -> None:
        import torch

        self._layers, self._size, self._skip, self.filled = layers, size, skip, 0
        widths = [layer.end - layer.begin for layer in layers]
        ends = np.cumsum(widths)
        shape = (len(layers), size, widths[0]) if stacked else (size, int(ends[-1]))
        make = partial(torch.zeros, shape, dtype=getattr(torch, dtype.name), device=device)
        self._buffers = [make() for _ in range(DEVICE_BUFFERS)]
        self._number = 0
        self._stacked = stacked
        self._columns = [
            (int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)
        ]

    def append(self, rows: list[LayerRows]) -> Iterator[FullRows]:
        """Add the rows of each layer, and yield the blocks that they complete."""
        count, begin = rows[0].chosen.rows, 0
        while begin < count:
            end = min(begin + self._size - self.filled, count)
            buffer, to = self._buffers[self._number], self.filled + end - begin
            for i, (first, last) in enumerate(self._columns):
                target = buffer[i] if self._stacked else buffer[:, first:last]
                target[self.filled : to].copy_(rows[i].values[begin:end])
            self.filled, begin = to, end
            if self.filled == self._size:
                yield self._emit()

    def rest(self) -> Iterator[FullRows]:
        """Yield the last block if there are rows left. The rows after these are zero."""
        if self.filled:
            buffer = self._buffers[self._number]
            (buffer[:, self.filled :] if self._stacked else buffer[self.filled :]).zero_()
            yield self._emit()

    def _emit(self) -> FullRows:
        import torch

        buffer, count = self._buffers[self._number], self.filled
        self._number, self.filled = (self._number + 1) % DEVICE_BUFFERS, 0
        weights = None
        if self._skip:
            finite = torch.isfinite(buffer).all(-1)
            buffer.masked_fill_(~finite[..., None], 0)
            weights = finite.cpu().numpy().astype(float)
        return FullRows(jax.dlpack.from_dlpack(buffer), count, weights)
