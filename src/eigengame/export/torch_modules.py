"""Components as torch modules: an affine map from rows to scores."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eigengame.model import Model


def affine_module(model: Model, *, whiten: bool, dtype: Any = None, device: Any = None) -> Any:
    """Return a module that computes scores (..., k) of rows (..., d).

    Parameters
    ----------
    model : Model
    whiten : bool
        Whether scores have unit variance.
    dtype : torch dtype or str, optional
        Default: float32.
    device : torch device, optional

    Returns
    -------
    AffineScores
        A module with the buffers `weight` (k, d) and `bias` (k,), which are not trained. Its state dict also fits
        ``torch.nn.Linear(d, k)``.
    """
    torch = _torch()
    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype or torch.float32
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
        raise ValueError(f"dtype={dtype!r}: give a real floating-point dtype, such as float32.")
    weights, biases = model.affine(whiten=whiten)
    # Rounded to the dtype once, from float64.
    return _module_class()(
        torch.from_numpy(weights).to(device=device, dtype=kind),
        torch.from_numpy(np.ascontiguousarray(biases)).to(device=device, dtype=kind),
    )


def state_dict(model: Model, *, whiten: bool) -> dict[str, Any]:
    """Return the state dict of `affine_module`, in float32 on the CPU."""
    found: dict[str, Any] = affine_module(model, whiten=whiten).state_dict()
    return dict(found)


def _torch() -> Any:
    """Return the module torch; raise ModuleNotFoundError with the remedy if it is not installed."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "torch modules and state dicts need PyTorch: pip install torch, or export to .npz."
        ) from None
    return torch


@functools.cache
def _module_class() -> Any:
    """Return the class of modules, defined on first use because torch is optional."""
    import torch

    class AffineScores(torch.nn.Module):
        """Scores of rows: ``x @ weight.T + bias``.

        Parameters
        ----------
        weight : Tensor of shape (k, d)
        bias : Tensor of shape (k,)
        """

        weight: torch.Tensor
        bias: torch.Tensor

        def __init__(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("weight", weight)
            self.register_buffer("bias", bias)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Return the scores (..., k) of rows (..., d)."""
            return torch.nn.functional.linear(x, self.weight, self.bias)

        def extra_repr(self) -> str:
            """Return the numbers of features and components."""
            return f"features={self.weight.shape[1]}, components={self.weight.shape[0]}"

    # Pickles refer to the class by this name, which `__getattr__` resolves.
    AffineScores.__qualname__ = "AffineScores"
    return AffineScores


def __getattr__(name: str) -> Any:
    """Return the class of modules, so that pickled ones can be loaded in another process."""
    if name == "AffineScores":
        return _module_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
