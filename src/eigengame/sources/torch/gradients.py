"""Gradients of single examples in torch: `torch.func.vmap(grad)` over chunks, into buffers that JAX reads."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from eigengame.sources._base import DEVICE_BUFFERS, Block, SourceError, list_items
from eigengame.sources._layers import Layers
from eigengame.sources._likelihoods import ExampleLoss
from eigengame.sources._network_digest import digest_of_module
from eigengame.sources._network_inputs import arrays_of, map_arrays, row_count, slice_rows
from eigengame.sources.torch.example_losses import (
    chosen_parameters,
    refuse_batch_statistics,
    with_loss,
)
from eigengame.sources.torch.modes import evaluation_mode
from eigengame.sources.torch.working_copy import device_of, dtype_name


class TorchGradients:
    """Gradients of the loss of each example with respect to the parameters of a module.

    Parameters
    ----------
    loss : ExampleLoss
    model : Module
        Never changed. A copy runs if `device` is another one.
    names : sequence of str, or None
        Names or patterns of parameters; None for those that require a gradient.
    chunk : callable
        Number of examples that are differentiated at once, as a function of the number of parameters.
    dtype, device, nonfinite, name
        As in `gradients`.
    """

    def __init__(
        self,
        loss: ExampleLoss,
        model: Any,
        names: Any,
        *,
        chunk: Callable[[int], int],
        dtype: Any,
        device: Any,
        nonfinite: str,
        name: str,
    ) -> None:
        self.name, self._loss, self._nonfinite = name, loss, nonfinite
        refuse_batch_statistics(model, name)
        self.device = device_of(model, device, name)
        self.dtype = jnp.dtype(dtype_name(dtype, self.device))
        moved = any(one.device != self.device for one in model.parameters())
        self._model = copy.deepcopy(model).to(self.device) if moved else model
        self._names = chosen_parameters(self._model, names, name)
        every = dict(self._model.named_parameters())
        self.layers = Layers.of((one, every[one].shape, False) for one in self._names)
        self.chunk = int(chunk(self.layers.width))
        self._wrapped = with_loss(self._model, loss)
        self._buffers: list[Any] = []
        self._flags: Any = None
        self.outputs: tuple[int, ...] = (1,)

    def find_layers(self, first: Any) -> Layers:
        """Return the parameters in the order of the module, checked by the loss of the first example."""
        import torch

        one = self._to_device(slice_rows(first, 0, 1))
        with evaluation_mode(self._model):
            if isinstance(self._loss.loss, str):
                with torch.no_grad():
                    self.outputs = tuple(self._wrapped.outputs(one).shape)
                if self._loss.labelled:
                    # Indexing in torch raises an error without the example, or, on a GPU, ends all use of it.
                    self._loss.check_labels(one, 0, self.outputs[-1])
            uniform = torch.from_numpy(self._loss.uniforms(0, 1, self.outputs)).to(self.device)
            self._one_by_one(self._parameters(), one, uniform, check=True)
        return self.layers

    def use_layers(self, wanted: Layers) -> Layers:
        """Return the parameters; raise if they differ from the wanted ones, because a module has one order."""
        if wanted != self.layers:
            raise SourceError(
                f"{self.name}: the parameters are not those of the fit, or in another order: give the network of "
                "the fit."
            )
        return self.layers

    def unflatten(self, vector: Any) -> dict[str, Any]:
        """Return a vector (d,) as a dict of arrays, by the names of the parameters."""
        return self.layers.cut(vector)

    def blocks(self, batches: Iterator[Any], size: int, row: int) -> Iterator[Block]:
        """Yield the gradients for batches that begin at `row`, in blocks of `size` rows.

        Blocks are views of `DEVICE_BUFFERS` buffers in turn, as in `TorchNetwork.blocks`.
        """
        import torch

        buffers, flags = self._allocate(size)
        number, filled = 0, 0
        for batch, uniform in self._loss.with_uniforms(batches, row, self.outputs):
            count, begin = row_count(batch, self.name), 0
            inputs = self._to_device(batch), torch.from_numpy(uniform).to(self.device)
            while begin < count:
                end = min(begin + size - filled, count, begin + self.chunk)
                part = slice(filled, filled + end - begin)
                given, drawn = slice_rows(inputs, begin, end)
                self._fill(buffers[number][part], flags[part], given, drawn, row + begin)
                filled, begin = part.stop, end
                if filled == size:
                    yield self._to_block(buffers[number], flags)
                    number, filled = (number + 1) % DEVICE_BUFFERS, 0
            row += count
        if filled:
            yield self._to_block(buffers[number][:filled], flags[:filled])

    def _fill(self, rows: Any, valid: Any, batch: Any, uniform: Any, row: int) -> None:
        """Write the gradients of a chunk of examples into rows of a buffer; the first is row `row`."""
        import torch

        params = self._parameters()
        compute = self._one_by_one if self.chunk == 1 else self._mapped
        with evaluation_mode(self._model):
            try:
                found = compute(params, batch, uniform)
            except torch.OutOfMemoryError as error:
                raise MemoryError(
                    f"{self.name}: the device has no memory for {len(rows)} gradients at once ({error}): give "
                    "chunk= a smaller number, or leave more memory to torch by XLA_PYTHON_CLIENT_MEM_FRACTION "
                    "(0.75 if not set)."
                ) from None
            except SourceError:
                raise
            except Exception as error:
                error.add_note(
                    f"while {self.name} differentiated {len(rows)} examples from row {row} on: chunk=1 does it "
                    "without torch.func.vmap, which does not run every network"
                )
                raise
        for layer, gradient in zip(self.layers, found, strict=True):
            rows[:, layer.begin : layer.end].copy_(gradient.reshape(len(rows), -1))
        if self._nonfinite == "skip":
            valid.copy_(torch.isfinite(rows).all(1))
            rows.masked_fill_(~valid[:, None], 0)

    def _mapped(self, params: dict[str, Any], batch: Any, uniform: Any) -> list[Any]:
        """Return the gradients of a chunk of examples by `vmap`, each of shape (m, *shape)."""
        import torch
        from torch.func import functional_call, grad, vmap

        arrays = arrays_of(batch)

        def value(own: dict[str, Any], uniform: Any, *examples: Any) -> Any:
            given = iter(examples)
            one = map_arrays(batch, lambda _: next(given).unsqueeze(0))
            return functional_call(self._wrapped, own, (one, uniform.unsqueeze(0)))

        places = (None, *[0] * (1 + len(arrays)))
        # `grad` ignores no_grad outside it. Without it, torch records a graph for parameters that are not chosen.
        with torch.no_grad():
            found = vmap(grad(value), in_dims=places)(params, uniform, *arrays)
        return [found[name] for name in params]

    def _one_by_one(
        self, params: dict[str, Any], batch: Any, uniform: Any, *, check: bool = False
    ) -> list[Any]:
        """Return the gradients of examples by plain differentiation, each of shape (m, *shape)."""
        import torch
        from torch.func import functional_call

        own = {name: one.detach().requires_grad_() for name, one in params.items()}
        found: list[list[Any]] = []
        for row in range(len(uniform)):
            example = slice_rows(batch, row, row + 1)
            with torch.enable_grad():
                value = functional_call(self._wrapped, own, (example, uniform[row : row + 1]))
            if check:
                self._check_value(value)
            given = torch.autograd.grad(value, list(own.values()), allow_unused=True)
            if check and all(one is None for one in given):
                raise self._independent()
            pairs = zip(given, own.values(), strict=True)
            found.append([torch.zeros_like(p) if one is None else one for one, p in pairs])
        return [torch.stack(parts) for parts in zip(*found, strict=True)]

    def _check_value(self, value: Any) -> None:
        """Raise SourceError if the loss of one example is not one number that depends on the parameters."""
        import torch

        if not isinstance(value, torch.Tensor) or value.dim() or not value.is_floating_point():
            found = (
                f"has shape {tuple(value.shape)} and dtype {value.dtype}"
                if isinstance(value, torch.Tensor)
                else f"is a {type(value).__name__}"
            )
            raise SourceError(
                f"{self.name}: the loss of one example {found}: return one real number as a tensor, by .mean() or "
                ".sum()."
            )
        if not value.requires_grad:
            raise self._independent()

    def _independent(self) -> SourceError:
        return SourceError(
            f"{self.name}: the loss does not depend on {list_items(self._names, 3)}: compute it from the network "
            "that is the first argument of the function, without detach, no_grad or .item()."
        )

    def _parameters(self) -> dict[str, Any]:
        """Return the chosen parameters as they are now, by their names in the wrapped module."""
        every = dict(self._model.named_parameters())
        return {f"model.{name}": every[name].detach() for name in self._names}

    def _to_device(self, batch: Any) -> Any:
        """Return a batch on the network's device, in the precision of its weights."""
        import torch

        kind = next((p.dtype for p in self._model.parameters() if p.is_floating_point()), None)

        def move(array: Any) -> Any:
            tensor = torch.as_tensor(array).to(self.device, non_blocking=True)
            return tensor.to(kind) if tensor.is_floating_point() and kind is not None else tensor

        return map_arrays(batch, move)

    def _allocate(self, size: int) -> tuple[list[Any], Any]:
        """Return the buffers for blocks of `size` rows, allocated once, and the flags of valid rows."""
        import torch

        if not self._buffers or self._buffers[0].shape[0] != size:
            self._buffers = []
            kind, shape = getattr(torch, self.dtype.name), (size, self.layers.width)
            self._buffers = [
                torch.empty(shape, dtype=kind, device=self.device) for _ in range(DEVICE_BUFFERS)
            ]
            self._flags = torch.ones(size, dtype=torch.bool, device=self.device)
        return self._buffers, self._flags

    def _to_block(self, rows: Any, flags: Any) -> Block:
        """Pass rows to JAX without a copy. DLPack makes JAX's stream wait for torch's."""
        values = jax.dlpack.from_dlpack(rows)
        if self._nonfinite != "skip":
            return Block(values)
        return Block(values, flags.cpu().numpy().astype(float))

    def free_bytes(self) -> int | None:
        """Return the memory that torch can still use for buffers on a device that it shares with JAX, else None.

        The gradients of a chunk, in the precision of the network, are subtracted.
        """
        import torch

        if self.device.type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        chunk = 4 * self.chunk * self.layers.width
        return max(int(free + cached + sum(one.nbytes for one in self._buffers)) - chunk, 0)

    def fingerprint(self) -> dict[str, Any]:
        """Return a digest of the first numbers of every weight, and the policy for non-finite values."""
        digest = hashlib.sha256()
        for name, tensor in self._model.state_dict().items():
            few = tensor.detach().flatten()[:4].double().cpu().numpy()
            digest.update(f"{name} {tuple(tensor.shape)}".encode() + few.tobytes())
        return {"weights": digest.hexdigest()[:16], "nonfinite": self._nonfinite}

    def digest(self) -> str | None:
        """Return a digest of the network; None for a loss of the user's own, whose code is not covered."""
        named = isinstance(self._loss.loss, str) and self._loss.default_outputs
        return digest_of_module(self._model) if named else None
