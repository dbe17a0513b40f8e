"""Where a torch network runs, in which precision, and the copy that does so: the user's own stays as it is."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import jax
import numpy as np

from eigengame.sources._base import SourceError

HALVES = ("bfloat16", "float16")


def device_of(model: Any, asked: Any, name: str) -> Any:
    """Return the torch device that a network runs on: its own, or the one asked for; JAX must play there."""
    import torch

    there = {str(one.device) for one in itertools.chain(model.parameters(), model.buffers())}
    if asked is None and len(there) > 1:
        raise SourceError(
            f"{name} is on several devices ({', '.join(sorted(there))}): give device=, and a copy of all of "
            "it goes there."
        )
    if asked is None and there == {"meta"}:
        raise SourceError(f"{name} has no weights: it is on device meta; load some first.")
    device = torch.device(asked if asked is not None else there.pop() if there else played_on())
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    if str(device) != played_on():
        raise SourceError(
            f"{name} runs on {device}, but JAX plays on {played_on()}: give device={played_on()!r}, and a "
            f"copy of the network goes there, or let JAX play on {device} ("
            + ("JAX_PLATFORMS=cpu" if device.type == "cpu" else 'pip install "jax[cuda12]"')
            + ")."
        )
    return device


def played_on() -> str:
    """Return the device that JAX plays on, by torch's name for it."""
    device = next(iter(jax.device_put(np.zeros(())).devices()))
    if device.platform in ("gpu", "cuda", "rocm"):
        return f"cuda:{device.local_hardware_id}"
    return str(device.platform)


def precision_of(dtype: Any, device: Any) -> str:
    """Return the name of the rows' dtype: for "auto" bfloat16 on an accelerator, float32 on the host."""
    name = dtype if isinstance(dtype, str) else str(dtype).rpartition(".")[2].rstrip("'>")
    if name == "auto":
        return "float32" if device.type == "cpu" else "bfloat16"
    if name not in ("float32", *HALVES):
        raise SourceError(f'dtype={dtype!r}: give "auto", "float32", "bfloat16" or "float16".')
    return name


def wants_channels_last(asked: Any, dtype: str, device: Any) -> bool:
    """Return whether pictures have their channels last in memory: "auto" in half precision on a GPU."""
    if asked == "auto":
        return dtype in HALVES and device.type != "cpu"
    if not isinstance(asked, bool):
        raise SourceError(f'channels_last={asked!r}: give True, False or "auto".')
    return asked


def working_copy(model: Any, name: str, dtype: str, device: Any, channels_last: bool) -> Any:
    """Return the network to run: the user's own where nothing has to change, else a copy.

    Convolutions and linear layers are brought to half precision; everything else keeps its own, norms
    above all, and autocast sees to it that they meet.
    """
    import torch

    moved = any(one.device != device for one in model.parameters())
    if not (dtype in HALVES or channels_last or moved):
        return model
    try:
        own = copy.deepcopy(model).to(device).eval()
    except Exception as error:  # a module may hold anything
        raise SourceError(
            f"{name} cannot be copied ({error}), and a copy is what is brought to {dtype} on {device}: give "
            'dtype="float32", channels_last=False and no device to run the network as it is.'
        ) from None
    if dtype in HALVES:
        multiplied = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
        for module in own.modules():
            if isinstance(module, multiplied):
                module.to(getattr(torch, dtype))
    return own.to(memory_format=torch.channels_last) if channels_last else own
