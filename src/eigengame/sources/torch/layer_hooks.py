"""Hooks on the layers of a torch network during a forward pass: on their outputs, or on their arguments."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LayerHandler = Callable[[str, Any], None]
"""Function of a layer's name, and of its output or its `Arguments`."""


class Arguments(Mapping[str, Any]):
    """Arguments of a call of a module, by name and in the order of the parameters of its `forward`.

    ``arguments["mask"]`` and ``arguments[1]`` are the same for ``layer(x, mask)``, ``layer(x, mask=mask)`` and
    ``layer(mask=mask, x=x)``.

    Parameters
    ----------
    module : Module
    args : tuple
    kwargs : mapping
    """

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        known = _parameters(module)
        positional = [one.name for one in known if one.kind <= one.POSITIONAL_OR_KEYWORD]
        # More arguments than names: those of a parameter *args.
        names = [*positional[: len(args)], *map(str, range(len(positional), len(args)))]
        order = {one.name: i for i, one in enumerate(known)}
        later = sorted(kwargs, key=lambda name: order.get(name, len(order)))
        self._values = dict(zip(names, args, strict=True)) | {one: kwargs[one] for one in later}

    def __getitem__(self, key: str | int) -> Any:
        return list(self._values.values())[key] if isinstance(key, int) else self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _parameters(module: Any) -> list[inspect.Parameter]:
    """Return the parameters of a module's `forward`; none if they are unknown, as for compiled code."""
    try:
        return list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []


@contextlib.contextmanager
def layer_hooks(hooked: Mapping[Any, str], handler: LayerHandler, side: str) -> Iterator[None]:
    """Call a handler for each layer that runs, for the duration of the context.

    Parameters
    ----------
    hooked : mapping of str
        Names of the modules.
    handler : callable
    side : {"outputs", "inputs"}
        Whether the handler gets the output of a layer, after it has run, or its arguments, before.
    """

    def after(name: str) -> Callable[..., None]:
        return lambda module, given, output: handler(name, output)

    def before(name: str) -> Callable[..., None]:
        return lambda module, args, kwargs: handler(name, Arguments(module, args, kwargs))

    handles = [
        module.register_forward_pre_hook(before(name), with_kwargs=True)
        if side == "inputs"
        else module.register_forward_hook(after(name))
        for module, name in hooked.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
