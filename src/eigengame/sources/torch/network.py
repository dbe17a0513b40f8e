"""A torch network seen through hooks: what its layers give is written into buffers that JAX reads."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from eigengame.sources._base import DEVICE_BUFFERS, Block, SourceError
from eigengame.sources._layer_patterns import chosen
from eigengame.sources._layers import Layers
from eigengame.sources._network_digest import digest_of_module
from eigengame.sources._network_inputs import mapped, rows_of, sliced
from eigengame.sources.torch.cuda_graph import Replay
from eigengame.sources.torch.layer_outputs import BufferWriter, ShapeRecorder, Take
from eigengame.sources.torch.working_copy import (
    HALVES,
    device_of,
    precision_of,
    wants_channels_last,
    working_copy,
)

LIST = "[name for name, _ in model.named_modules()]"


class TorchNetwork:
    """A torch module whose layers' outputs are rows.

    Parameters
    ----------
    model : Module
        Never changed: hooks are there during a forward only, and so is evaluation mode.
    layers : sequence of str, or None
        Names or patterns of modules; None for the blocks, see `blocks_of`.
    dtype, device, channels_last, nonfinite, replay, name
        As for `activations`.
    """

    def __init__(
        self,
        model: Any,
        layers: Any,
        *,
        dtype: Any,
        device: Any,
        channels_last: Any,
        nonfinite: str,
        replay: bool,
        name: str,
    ) -> None:
        self.name, self._nonfinite, self._replays = name, nonfinite, replay
        self.device = device_of(model, device, name)
        precision = precision_of(dtype, self.device)
        self.dtype = jnp.dtype(precision)
        self._half = precision if precision in HALVES else None
        self._channels_last = wants_channels_last(channels_last, precision, self.device)
        self._model = working_copy(model, name, precision, self.device, self._channels_last)
        modules = dict(self._model.named_modules(remove_duplicate=False))
        del modules[""]
        patterns = blocks_of(self._model) if layers is None else layers
        self._asked, self._named = chosen(patterns, list(modules), name, LIST), layers is not None
        # One hook for each module: under whichever of its names was asked for first.
        self._hooked: dict[Any, str] = {}
        for names in self._asked.values():
            for one in names:
                self._hooked.setdefault(modules[one], one)
        self._buffers: list[Any] = []
        self._weights: tuple[int, ...] = ()
        self._replay = Replay(False)
        self.layers = Layers()

    def look(self, first: Any) -> Layers:
        """Return the layers, in the order in which they run, from a forward of two rows."""
        looking = ShapeRecorder(self.name, min(2, rows_of(first, self.name)))
        self._forward(self._moved(sliced(first, 0, 2)), looking)
        for pattern, names in self._asked.items():
            hooked = {self._hooked[self._model.get_submodule(name)] for name in names}
            # Blocks that nobody asked for by name may be for training alone.
            if self._named and not hooked & looking.runs.keys():
                raise SourceError(
                    f"layers: {pattern!r} matches {', '.join(names[:3])}, which did not run in the forward: "
                    "give modules that the network calls."
                )
        if not looking.seen:
            raise SourceError(f"{self.name}: none of its blocks ran in the forward: give layers=.")
        self.layers = Layers.of(looking.seen)
        return self.layers

    def lie_as(self, wanted: Layers) -> Layers:
        """Write layers where an earlier source had them, in the same memory format."""
        self.layers, self._buffers = wanted, []
        return wanted

    def blocks(self, batches: Iterator[Any], size: int, row: int) -> Iterator[Block]:
        """Give what the network makes of the batches, in blocks of `size` rows, the last one shorter.

        A batch is cut where a block ends, and so run in parts. Blocks are views of `DEVICE_BUFFERS` buffers in
        turn. Three are enough: a pass asks for the next block when the update of this one is on its way,
        and has by then waited for the update before the last. So at most two buffers are being read while
        a third is filled.
        """
        buffers = self._room_for(size)
        flags = self._flags
        number, filled = 0, 0
        for batch in batches:
            count, begin, moved = rows_of(batch, self.name), 0, self._moved(batch)
            while begin < count:
                end = min(begin + size - filled, count)
                part, good = (
                    one[filled : filled + end - begin] for one in (buffers[number], flags)
                )
                fill = partial(self._fill, part, good, row)
                if end - begin == size:
                    self._replay(number, sliced(moved, begin, end), fill)
                else:
                    fill(sliced(moved, begin, end))
                filled, row, begin = filled + end - begin, row + end - begin, end
                if filled == size:
                    yield self._block(buffers[number], flags)
                    number, filled = (number + 1) % DEVICE_BUFFERS, 0
        if filled:
            yield self._block(buffers[number][:filled], flags[:filled])

    def _fill(self, rows: Any, good: Any, row: int, inputs: Any) -> None:
        """Write what the network makes of some inputs into rows of a buffer, the first of which is row `row`."""
        filling = BufferWriter(self.name, self.layers, rows, good, row, self._nonfinite)
        self._forward(inputs, filling)
        filling.finish()

    def _block(self, rows: Any, flags: Any) -> Block:
        """Hand rows to JAX without a copy; DLPack lets its stream wait for torch's."""
        values = jax.dlpack.from_dlpack(rows)
        if self._nonfinite != "skip":
            return Block(values)
        return Block(values, flags.cpu().numpy().astype(float))

    def _forward(self, inputs: Any, take: Take) -> None:
        """Run the network, with what its layers give going to `take` while it runs."""
        import torch

        half = contextlib.nullcontext()
        if self._half is not None:
            half = torch.autocast(self.device.type, getattr(torch, self._half))
        try:
            with (
                torch.inference_mode(),
                half,
                _trying(),
                _evaluating(self._model),
                self._hooks(take),
            ):
                if isinstance(inputs, dict):
                    self._model(**inputs)
                else:
                    self._model(*(inputs if isinstance(inputs, tuple) else (inputs,)))
        except SourceError:
            raise
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{self.name}: the device has no room for the network's own forward ({error}): give smaller "
                "batches, or leave torch more by XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if not set)."
            ) from None
        except Exception as error:
            shapes = mapped(inputs, lambda array: f"{tuple(array.shape)} {array.dtype}")
            error.add_note(f"while {self.name} ran on {shapes}")
            raise

    @contextlib.contextmanager
    def _hooks(self, take: Take) -> Iterator[None]:
        """Put hooks on the layers for a while."""

        def hook(name: str) -> Callable[..., None]:
            return lambda module, given, output: take(name, output)

        handles = [one.register_forward_hook(hook(name)) for one, name in self._hooked.items()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _moved(self, batch: Any) -> Any:
        """Return a batch on the network's device, in the precision of its weights."""
        import torch

        wide = next((p.dtype for p in self._model.parameters() if p.is_floating_point()), None)

        def move(array: Any) -> Any:
            tensor = torch.as_tensor(array).to(self.device, non_blocking=True)
            if tensor.is_floating_point() and wide is not None:
                tensor = tensor.to(wide)
            if self._channels_last and tensor.dim() == 4:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            return tensor

        return mapped(batch, move)

    def _room_for(self, size: int) -> list[Any]:
        """Return the buffers, made once for each size: outside of inference mode, or DLPack refuses them."""
        import torch

        if not self._buffers or self._buffers[0].shape[0] != size:
            self._buffers, self._replay = [], Replay(False)
            dtype = getattr(torch, self.dtype.name)
            shape = (size, self.layers.width)
            self._flags = torch.ones(size, dtype=torch.bool, device=self.device)
            self._buffers = [
                torch.empty(shape, dtype=dtype, device=self.device) for _ in range(DEVICE_BUFFERS)
            ]
            self._weights = ()
        # A recording knows weights by where they are: the user's own may have been moved since.
        weights = tuple(one.data_ptr() for one in self._model.state_dict().values())
        if weights != self._weights:
            self._weights = weights
            self._replay = Replay(self._replays and self.device.type == "cuda")
        return self._buffers

    def room(self) -> int | None:
        """Return the bytes that torch can still take where it shares a device with JAX."""
        import torch

        if self.device.type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(free + kept + sum(one.nbytes for one in self._buffers))

    def fingerprint(self) -> dict[str, Any]:
        """Return a digest of the first numbers of every weight."""
        seen = hashlib.sha256()
        for name, tensor in self._model.state_dict().items():
            few = tensor.detach().flatten()[:4].double().cpu().numpy()
            seen.update(f"{name} {tuple(tensor.shape)}".encode() + few.tobytes())
        return {"weights": seen.hexdigest()[:16], "nonfinite": self._nonfinite}

    def digest(self) -> str | None:
        """Return a digest of the network that runs."""
        return digest_of_module(self._model)


def blocks_of(model: Any) -> list[str]:
    """Return the names of a network's blocks: its children with weights, those of containers in their place.

    For a ResNet these are `conv1`, `bn1`, every residual block and `fc`.
    """
    import torch

    containers = (torch.nn.Sequential, torch.nn.ModuleList)

    def within(module: Any, prefix: str) -> Iterator[str]:
        for name, child in module.named_children():
            if isinstance(child, containers):
                yield from within(child, f"{prefix}{name}.")
            elif next(child.parameters(), None) is not None:
                yield f"{prefix}{name}"

    names = list(within(model, ""))
    if not names:
        raise SourceError(
            f"{type(model).__name__} has no parts with weights: wrap it in torch.nn.Sequential."
        )
    return names


@contextlib.contextmanager
def _trying() -> Iterator[None]:
    """Let cuDNN try for a while which convolutions are fastest: batches have one shape, so once will do."""
    from torch.backends import cudnn

    before = cudnn.benchmark
    cudnn.benchmark = True
    try:
        yield
    finally:
        cudnn.benchmark = before


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put a network into evaluation mode for a while, and every part of it back into its own after."""
    training = [module for module in model.modules() if module.training]
    if not training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
