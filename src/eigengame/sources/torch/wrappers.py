"""Networks that are compiled, replicated or sharded: what can be unwrapped runs, the rest is refused."""

from __future__ import annotations

from typing import Any

from eigengame.sources._base import SourceError

REPLICATED = ("DataParallel", "DistributedDataParallel")
"""Wrappers of torch with a whole network inside, as `module`."""


def unwrapped(model: Any, name: str) -> tuple[Any, bool]:
    """Return the network inside its wrappers, and whether a part of it is compiled.

    Raise SourceError for a network whose weights are sharded, or kept outside the device and loaded on demand.
    """
    compiled = False
    while True:
        kind = type(model).__name__
        if kind == "OptimizedModule" and hasattr(model, "_orig_mod"):
            model, compiled = model._orig_mod, True
        elif kind in REPLICATED and type(model).__module__.startswith("torch."):
            model = model.module
        else:
            break
    _refuse_sharded(model, name)
    return model, compiled or any(
        type(one).__name__ == "OptimizedModule"
        or getattr(one, "_compiled_call_impl", None) is not None
        for one in model.modules()
    )


def refuse_compiled_parts(model: Any, name: str) -> None:
    """Raise SourceError if modules of a network are compiled, and are to be compiled again in a copy.

    Modules compiled by their method `compile` are not refused, because a copy of them is not compiled.
    """
    for part, module in model.named_modules():
        compiled = hasattr(module.forward, "get_compiler_config")
        compiled = compiled and next(module.children(), None) is not None
        if compiled or type(module).__name__ == "OptimizedModule":
            raise SourceError(
                f"compile=True: {f'module {part!r} of ' if part else ''}{name} is compiled already: give the "
                "network without torch.compile on its modules, or leave out compile."
            )


def _refuse_sharded(model: Any, name: str) -> None:
    """Raise SourceError if no process has all weights of a network."""
    sharded = any(type(one).__name__ == "FullyShardedDataParallel" for one in model.modules())
    sharded = sharded or any(hasattr(one, "device_mesh") for one in model.parameters())
    if sharded:
        raise SourceError(
            f"{name} is sharded over processes (FSDP or tensor parallelism), and no process has all of its "
            "weights: gather them into a network on one device (get_model_state_dict with full_state_dict=True), "
            "or fit a network on a part of the data in each process and merge the models."
        )
    placed = getattr(model, "hf_device_map", None)
    if placed is not None and len(set(map(str, placed.values()))) > 1:
        devices = ", ".join(sorted(set(map(str, placed.values()))))
        raise SourceError(
            f"{name} is placed on several devices by a device map ({devices}): load it without device_map on one "
            "device, in half precision if it is too large."
        )
