"""Activations of a torch network: hooks write outputs or inputs of its layers into buffers that JAX reads."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import DEVICE_BUFFERS, Block, SourceError
from eigengame.sources._layer_patterns import match_all
from eigengame.sources._layers import SIDES, Layers
from eigengame.sources._network_digest import digest_of_module
from eigengame.sources._network_inputs import map_arrays, row_count, slice_rows
from eigengame.sources.torch.compiled_modules import CompiledModules
from eigengame.sources.torch.cuda_graph import GraphReplay
from eigengame.sources.torch.layer_hooks import LayerHandler, layer_hooks
from eigengame.sources.torch.layer_outputs import BufferWriter, ShapeRecorder
from eigengame.sources.torch.modes import cudnn_benchmark, eager, evaluation_mode
from eigengame.sources.torch.output_choice import OutputChoice, TensorChoice
from eigengame.sources.torch.roles import blocks_of, expand_roles
from eigengame.sources.torch.working_copy import (
    HALVES,
    device_of,
    dtype_name,
    is_in,
    use_channels_last,
    working_copy,
)
from eigengame.sources.torch.wrappers import refuse_compiled_parts, unwrapped

LIST_NAMES = "[name for name, _ in model.named_modules()]"
"""Expression that lists the modules of a network, for messages."""


class TorchNetwork:
    """A torch module whose layers' outputs, or inputs, are the features of its rows.

    Parameters
    ----------
    model : Module
        Never changed: hooks and evaluation mode are active only during a forward pass.
    patterns : sequence of str, or None
        Names or patterns of modules; None for the blocks, see `blocks_of`.
    dtype, device, channels_last, nonfinite, replay, name, output, side, network_dtype, compile
        As in `activations`.

    Attributes
    ----------
    choice : TensorChoice
        Chooses the tensor of an output or of arguments.
    """

    def __init__(
        self,
        model: Any,
        patterns: Any,
        *,
        dtype: Any,
        device: Any,
        channels_last: Any,
        nonfinite: str,
        replay: bool,
        name: str,
        output: OutputChoice = None,
        side: str = SIDES[0],
        network_dtype: Any = "auto",
        compile: bool = False,
    ) -> None:
        self.name, self._nonfinite, self._replay_enabled = name, nonfinite, replay
        self.choice = TensorChoice(name, output, side)
        self._origin: Any = None
        self._given_origin: np.ndarray | None = None
        model, given_compiled = unwrapped(model, name)
        if compile:
            refuse_compiled_parts(model, name)
        # Programs of the user do not call hooks, and are not run.
        self._has_programs = given_compiled or compile
        self.device = device_of(model, device, name)
        precision = dtype_name(dtype, self.device)
        self.dtype = jnp.dtype(precision)
        if not (isinstance(network_dtype, str) and network_dtype == "auto"):
            precision = dtype_name(network_dtype, self.device, "network_dtype")
        # A network whose weights have this precision already runs as it is.
        self._half = precision if precision in HALVES and not is_in(model, precision) else None
        self._channels_last = use_channels_last(channels_last, precision, self.device)
        self._model = working_copy(
            model, name, precision, self.device, self._channels_last, compile
        )
        modules = dict(self._model.named_modules(remove_duplicate=False))
        del modules[""]
        wanted = (
            blocks_of(self._model)
            if patterns is None
            else expand_roles(self._model, patterns, name)
        )
        self._matches = match_all(wanted, list(modules), name, LIST_NAMES)
        self.by_pattern = patterns is not None
        # One hook per module. A module with several names is known by the first one matched.
        self._hooked: dict[Any, str] = {}
        for names in self._matches.values():
            for one in names:
                self._hooked.setdefault(modules[one], one)
        self._compiled = CompiledModules(self._model, self._hooked, name) if compile else None
        self._buffers: list[Any] = []
        self._weight_pointers: tuple[int, ...] = ()
        self._replay = GraphReplay(False)
        self.layers = Layers()
        self.computed: set[Any] = set()

    def find_layers(self, first: Any) -> Layers:
        """Return the layers in the order in which they run, from a forward pass of two rows."""
        if self._compiled is not None:
            self._compiled.expect(first)
        recorder = ShapeRecorder(self.choice, min(2, row_count(first, self.name)))
        self.run(slice_rows(first, 0, 2), recorder)
        self.refuse_unless_run(recorder.runs)
        self.layers = Layers.of(recorder.seen, self.choice.side)
        self.computed = recorder.dtypes
        return self.layers

    def run(self, inputs: Any, handler: LayerHandler) -> None:
        """Run the network on inputs of the loader, and call `handler` on the output or arguments of each layer."""
        self._forward(self._to_device(inputs), handler)

    def refuse_unless_run(self, runs: Counter[str]) -> None:
        """Raise SourceError if layers that were given did not run; `runs` counts the runs of each module."""
        for pattern, names in self._matches.items():
            hooked = {self._hooked[self._model.get_submodule(name)] for name in names}
            # Default blocks may be used in training only, so they need not run.
            if self.by_pattern and not hooked & runs.keys():
                raise SourceError(
                    f"layers: {pattern!r} matches {', '.join(names[:3])}, which did not run in the forward pass: "
                    "give modules that the network calls."
                )
        if not runs:
            raise SourceError(
                f"{self.name}: none of its blocks ran in the forward pass: give layers=."
            )

    def leave_out(self, names: Collection[str]) -> None:
        """Do not call handlers for these modules any more."""
        self._hooked = {one: name for one, name in self._hooked.items() if name not in names}

    def use_layers(self, wanted: Layers) -> Layers:
        """Write the layers to the positions, and in the memory format, of an earlier source."""
        self.layers, self._buffers = wanted, []
        return wanted

    def blocks(
        self, batches: Iterator[Any], size: int, row: int, origin: np.ndarray | None = None
    ) -> Iterator[Block]:
        """Yield the outputs for batches that begin at `row`, in blocks of `size` rows, minus an origin (d,).

        A batch that extends over the end of a block is split and run in parts. Blocks are views of
        `DEVICE_BUFFERS` buffers in turn. Three are enough: a pass requests block n before the update of block
        n - 1 is started, and after that of block n - 3 is complete. So at most two buffers are read while a third
        is written.
        """
        self._use_origin(origin)
        buffers = self._allocate(size)
        flags = self._flags
        number, filled = 0, 0
        for batch in batches:
            count, begin, inputs = row_count(batch, self.name), 0, self._to_device(batch)
            while begin < count:
                end = min(begin + size - filled, count)
                part, valid = (
                    one[filled : filled + end - begin] for one in (buffers[number], flags)
                )
                given = slice_rows(inputs, begin, end)
                compiled = self._compiled is not None and self._compiled.accept(given, size)
                fill = partial(self._fill, part, valid, row, compiled)
                if end - begin == size:
                    self._replay(number, given, fill)
                else:
                    fill(given)
                filled, row, begin = filled + end - begin, row + end - begin, end
                if filled == size:
                    yield self._to_block(buffers[number], flags)
                    number, filled = (number + 1) % DEVICE_BUFFERS, 0
        if filled:
            yield self._to_block(buffers[number][:filled], flags[:filled])

    def _use_origin(self, origin: np.ndarray | None) -> None:
        """Keep an origin on the device. A recorded forward pass subtracts the one that it was recorded with."""
        import torch

        if origin is self._given_origin:
            return
        self._given_origin, self._buffers = origin, []
        self._origin = (
            None
            if origin is None
            else torch.from_numpy(np.asarray(origin, np.float32)).to(self.device)
        )

    def _fill(self, rows: Any, valid: Any, row: int, compiled: bool, inputs: Any) -> None:
        """Write the outputs for some inputs into rows of a buffer; the first is row `row` of the source."""
        writer = BufferWriter(
            self.choice, self.layers, rows, valid, row, self._nonfinite, self._origin
        )
        self._forward(inputs, writer, compiled)
        writer.finish()

    def _to_block(self, rows: Any, flags: Any) -> Block:
        """Pass rows to JAX without a copy. DLPack makes JAX's stream wait for torch's."""
        values = jax.dlpack.from_dlpack(rows)
        if self._nonfinite != "skip":
            return Block(values)
        return Block(values, flags.cpu().numpy().astype(float))

    def _forward(self, inputs: Any, handler: LayerHandler, compiled: bool = False) -> None:
        """Run the network, compiled or not, and call `handler` on the output, or the arguments, of each layer."""
        import torch

        programs = self._compiled if compiled else None
        precision: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self._half is not None:
            precision = torch.autocast(self.device.type, getattr(torch, self._half))
        try:
            with (
                torch.inference_mode(),
                precision,
                programs.enabled() if programs else eager(self._has_programs),
                cudnn_benchmark(),
                evaluation_mode(self._model),
                layer_hooks(self._hooked, handler, self.choice.side),
            ):
                if isinstance(inputs, dict):
                    self._model(**inputs)
                else:
                    self._model(*(inputs if isinstance(inputs, tuple) else (inputs,)))
        except SourceError:
            raise
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{self.name}: the device has no memory for the forward pass ({error}): give smaller batches, or "
                "leave more memory to torch by XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 if not set)."
            ) from None
        except Exception as error:
            if programs:
                programs.refuse_compiler_error(error)
            shapes = map_arrays(inputs, lambda array: f"{tuple(array.shape)} {array.dtype}")
            error.add_note(f"while {self.name} ran on {shapes}")
            raise

    def _to_device(self, batch: Any) -> Any:
        """Return a batch on the network's device, in the precision of its weights."""
        import torch

        dtype = next((p.dtype for p in self._model.parameters() if p.is_floating_point()), None)

        def move(array: Any) -> Any:
            tensor = torch.as_tensor(array).to(self.device, non_blocking=True)
            if tensor.is_floating_point() and dtype is not None:
                tensor = tensor.to(dtype)
            if self._channels_last and tensor.dim() == 4:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            return tensor

        return map_arrays(batch, move)

    def _allocate(self, size: int) -> list[Any]:
        """Return the buffers for blocks of `size` rows, allocated once.

        They are allocated outside inference mode, because DLPack refuses inference tensors.
        """
        import torch

        if not self._buffers or self._buffers[0].shape[0] != size:
            self._buffers, self._replay = [], GraphReplay(False)
            dtype = getattr(torch, self.dtype.name)
            shape = (size, self.layers.width)
            self._flags = torch.ones(size, dtype=torch.bool, device=self.device)
            self._buffers = [
                torch.empty(shape, dtype=dtype, device=self.device) for _ in range(DEVICE_BUFFERS)
            ]
            self._weight_pointers = ()
        # A recording refers to weights by their addresses, which change if the user moves the network.
        pointers = tuple(one.data_ptr() for one in self._model.state_dict().values())
        if pointers != self._weight_pointers:
            self._weight_pointers = pointers
            self._replay = GraphReplay(self._replay_enabled and self.device.type == "cuda")
        return self._buffers

    def free_bytes(self) -> int | None:
        """Return the memory that torch can still use on a device that it shares with JAX, else None."""
        import torch

        if self.device.type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(free + cached + sum(one.nbytes for one in self._buffers))

    def fingerprint(self) -> dict[str, Any]:
        """Return a digest of the first numbers of every weight, the policy for non-finite values, and the choice.

        Without a side rows are outputs, and without `output` they are chosen by convention, as in earlier versions.
        The rows of compiled modules differ by rounding, so that a run without them is not resumed with them.
        """
        digest = hashlib.sha256()
        for name, tensor in self._model.state_dict().items():
            few = tensor.detach().flatten()[:4].double().cpu().numpy()
            digest.update(f"{name} {tuple(tensor.shape)}".encode() + few.tobytes())
        about = {"weights": digest.hexdigest()[:16], "nonfinite": self._nonfinite}
        return about | self.choice.facts() | ({"compile": True} if self._compiled else {})

    def digest(self) -> str | None:
        """Return a digest of the network that runs."""
        return digest_of_module(self._model)
