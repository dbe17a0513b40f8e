r"""Initial values of a low-rank adapter (LoRA) from the components of a layer's inputs.

An adapter adds $\frac{\alpha}{r} B A x$ to the output of a layer. $B$ begins at zero, so that the output does not
change at first, and the gradient of $B$ is the outer product of the output's gradient with $A x$. $A$ therefore
decides which directions of the inputs the first steps use. Principal components capture the most of their variance;
PEFT calls this choice EVA.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from eigengame import _check
from eigengame.model import Model

ROUNDING = 1e-12
"""Share of the largest variance up to which another may be due to rounding of data in float32."""

SCALES = ("orthonormal", "uniform", "whiten")


class LoraInit(NamedTuple):
    """Initial values of an adapter.

    Attributes
    ----------
    a : array of shape (rank, d_in)
        For ``lora_A.weight``.
    b : array of shape (d_out, rank)
        Zeros, for ``lora_B.weight``.
    """

    a: np.ndarray
    b: np.ndarray


def lora_init(
    model: Model,
    rank: int,
    d_out: int | None = None,
    *,
    scale: Literal["orthonormal", "uniform", "whiten"] | float = "orthonormal",
) -> LoraInit:
    """Return initial values in float32; parameters as in `EigenGamePCA.lora_init`."""
    k, d = model.components.shape
    rank = _check.whole("rank", rank)
    if rank > k:
        raise ValueError(
            f"rank={rank} is more than the {k} components of this model: fit more, or give a lower rank."
        )
    d_out = d if d_out is None else _check.whole("d_out", d_out)
    a = model.components[:rank].astype(np.float64)
    least = ROUNDING * model.variance[0]
    empty = int(np.count_nonzero(model.variance[:rank] <= least))
    if empty:
        raise ValueError(
            f"{empty} of the first {rank} components have no variance beyond rounding: their directions are "
            "arbitrary, so give a lower rank, or fit more rows."
        )
    if isinstance(scale, str):
        _check.one_of("scale", scale, SCALES)
        if scale == "uniform":
            a = a / np.sqrt(3)
        elif scale == "whiten":
            a = model.affine(whiten=True)[0][:rank]
    elif not np.isfinite(scale) or scale <= 0:
        raise ValueError(f"scale={scale!r}: give a positive number, or {', '.join(SCALES)}.")
    else:
        a = a * float(scale)
    return LoraInit(a.astype(np.float32), np.zeros((d_out, rank), np.float32))
