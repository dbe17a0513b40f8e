"""Device, precision and memory format of a torch network, and the copy that has them."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import jax
import numpy as np

from eigengame.sources._base import SourceError

HALVES = ("bfloat16", "float16")


def device_of(model: Any, device: Any, name: str) -> Any:
    """Return the torch device to run on: the given one, or that of the network.

    Raise if it is not the device that JAX uses.
    """
    import torch

    current = {str(one.device) for one in itertools.chain(model.parameters(), model.buffers())}
    if device is None and len(current) > 1:
        raise SourceError(
            f"{name} is on several devices ({', '.join(sorted(current))}): give device= to run a copy on one."
        )
    if device is None and current == {"meta"}:
        raise SourceError(f"{name} has no weights: it is on device meta; load some first.")
    found = torch.device(
        device if device is not None else current.pop() if current else jax_device()
    )
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())
    if str(found) != jax_device():
        fix = "JAX_PLATFORMS=cpu" if found.type == "cpu" else 'pip install "jax[cuda12]"'
        raise SourceError(
            f"{name} runs on {found}, but JAX uses {jax_device()}: give device={jax_device()!r} to run a copy "
            f"of the network there, or let JAX use {found} ({fix})."
        )
    return found


def jax_device() -> str:
    """Return torch's name of the device that JAX uses."""
    device = next(iter(jax.device_put(np.zeros(())).devices()))
    if device.platform in ("gpu", "cuda", "rocm"):
        return f"cuda:{device.local_hardware_id}"
    return str(device.platform)


def dtype_name(dtype: Any, device: Any, option: str = "dtype") -> str:
    """Return the name of a dtype; "auto" is float32 on a CPU and bfloat16 on an accelerator."""
    name = dtype if isinstance(dtype, str) else str(dtype).rpartition(".")[2].rstrip("'>")
    if name == "auto":
        return "float32" if device.type == "cpu" else "bfloat16"
    if name not in ("float32", *HALVES):
        raise SourceError(f'{option}={dtype!r}: give "auto", "float32", "bfloat16" or "float16".')
    return name


def use_channels_last(option: Any, dtype: str, device: Any) -> bool:
    """Return whether images have channels last in memory; "auto" means half precision on a GPU."""
    if option == "auto":
        return dtype in HALVES and device.type != "cpu"
    if not isinstance(option, bool):
        raise SourceError(f'channels_last={option!r}: give True, False or "auto".')
    return option


def working_copy(
    model: Any, name: str, dtype: str, device: Any, channels_last: bool, compiled: bool = False
) -> Any:
    """Return the network to run: the given one if nothing has to change, else a copy.

    In half precision only convolutions and linear layers are converted. Autocast converts between them and
    the other layers, for example norms, which keep their precision. A network that will be `compiled` is copied.
    """
    import torch

    moved = any(one.device != device for one in model.parameters())
    half = dtype in HALVES and not is_in(model, dtype)
    channels_last = channels_last and any(one.dim() == 4 for one in model.parameters())
    if not (half or channels_last or moved or compiled):
        return model
    try:
        own = copy.deepcopy(model).to(device).eval()
    except Exception as error:  # a module may contain anything
        raise SourceError(
            f"{name} cannot be copied ({error}), and only a copy can be converted to {dtype} on {device}"
            f'{", or compiled" if compiled else ""}: give dtype="float32", channels_last=False and no device'
            f"{' or compile' if compiled else ''} to run the network without a copy."
        ) from None
    if half:
        converted = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
        for module in own.modules():
            if isinstance(module, converted):
                module.to(getattr(torch, dtype))
    return own.to(memory_format=torch.channels_last) if channels_last else own


def is_in(model: Any, dtype: str) -> bool:
    """Return whether all floating-point weights of a network have this precision."""
    import torch

    kinds = {one.dtype for one in model.parameters() if one.is_floating_point()}
    return kinds == {getattr(torch, dtype)}
