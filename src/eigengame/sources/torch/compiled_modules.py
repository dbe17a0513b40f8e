"""Modules of a network that are compiled by `torch.compile`: the largest ones without a hooked module inside."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._network_inputs import arrays_of


class CompiledModules:
    """Modules of a network that run compiled for inputs of one shape, and uncompiled for all others.

    A compiled program does not call hooks inside it. A module that is hooked itself can be compiled, because its
    hooks run outside of its `forward`.

    Parameters
    ----------
    model : Module
        A copy of the network of the user, changed in place.
    hooked : collection of Modules
    name : str
        Name of the network, for messages.
    """

    def __init__(self, model: Any, hooked: Collection[Any], name: str) -> None:
        import torch

        self._name, self._rows, self._shapes = name, 0, list[tuple[int, ...]]()
        # A module may occur several times in a network.
        modules = dict.fromkeys(_largest_without_hooks(model, set(hooked)))
        self._count = len(modules)
        if not modules:
            raise SourceError(
                f"compile=True: no module of {name} can be compiled, because each one is a single operation or "
                "contains a chosen layer: choose larger layers, such as blocks, or leave out compile."
            )
        for module in modules:
            module.forward = torch.compile(module.forward, dynamic=False)

    def expect(self, first: Any) -> None:
        """Set the shape of the inputs that are compiled to that of the first batch."""
        self._rows, self._shapes = len(arrays_of(first)[0]), _row_shapes(first)

    def accept(self, inputs: Any, size: int) -> bool:
        """Return whether inputs have the compiled shape, given the number of rows of a block.

        It is the shape of the first batch, or of a block if that is smaller. Each other shape, such as that of a
        shorter last batch, would be compiled too.
        """
        rows = len(arrays_of(inputs)[0])
        return rows == min(size, self._rows) and _row_shapes(inputs) == self._shapes

    @contextlib.contextmanager
    def enabled(self) -> Iterator[None]:
        """Run programs, and allow more of them: blocks of different shapes share the code of their `forward`.

        Beyond the limit, torch runs a function without compiling it. A limit remains, because a module that needs
        another program for every batch would be compiled without end.
        """
        from torch._dynamo import config

        # Two for each module: for the batches of a fit, and for those of another size.
        with config.patch(recompile_limit=config.recompile_limit + 2 * self._count):
            yield

    def refuse_compiler_error(self, error: Exception) -> None:
        """Raise SourceError if an error is one of the compiler rather than of the network."""
        from torch._dynamo.exc import TorchDynamoException

        if isinstance(error, TorchDynamoException):
            # Advice on environment variables of torch follows after an empty line.
            reason = " ".join(str(error).strip().partition("\n\n")[0].split())
            raise SourceError(
                f"compile=True: {self._name} cannot be compiled ({reason}): leave out compile, or install what "
                "torch.compile needs: a C++ compiler on a CPU, Triton and a C compiler on a GPU."
            ) from error


def _largest_without_hooks(module: Any, hooked: set[Any]) -> Iterator[Any]:
    """Yield the largest modules inside a module that have children and no hooked module inside."""
    import torch

    for child in module.children():
        # TorchScript is compiled already.
        if isinstance(child, torch.jit.ScriptModule):
            continue
        inner = [one for one in child.modules() if one is not child]
        # Containers such as ModuleList have no `forward`.
        runs = type(child).forward is not torch.nn.Module.forward
        if inner and runs and hooked.isdisjoint(inner):
            yield child
        else:
            yield from _largest_without_hooks(child, hooked)


def _row_shapes(batch: Any) -> list[tuple[int, ...]]:
    """Return the shapes of one row of the arrays of a batch."""
    return [tuple(array.shape[1:]) for array in arrays_of(batch)]
