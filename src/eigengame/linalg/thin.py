"""Singular vectors of a few wide rows, by QR factorisations of chunks of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from eigengame.linalg.products import full_product

HOST_CHUNK = 2**12
"""Features that are factorised at a time on the host: they stay in its cache, twice as fast for wide rows."""

DEVICE_CHUNK = 2**20
"""Features that are factorised at a time on a device: libraries count entries with 32 bits."""


def top_singular_vectors(
    rows: Sequence[Any], sizes: Any, count: int, xp: Any = jnp, chunk: int | None = None
) -> tuple[Any, Any]:
    r"""Return the first right singular vectors of $\mathrm{diag}(w)A$, and its singular values.

    With $A^\top = QR$, they are those of $\mathrm{diag}(w)R^\top$, times $Q^\top$. A product $AA^\top$ would lose
    half of the digits where rows are nearly parallel. The weights are applied after the factorisation, so the error
    of each row is relative to its own size, however small its weight is.

    Parameters
    ----------
    rows : sequence of arrays of shape (s_i, d)
        The parts of $A$, with s rows together. The result is in the widest of their dtypes, and chunks are
        converted to it one at a time.
    sizes : array of shape (s,)
        $w$.
    count : int
        Number of singular vectors, at most the smaller of s and d.
    xp : module
        `jax.numpy`, or `numpy` for arrays of the host.
    chunk : int, optional
        Features that are factorised at a time. By default `DEVICE_CHUNK` or `HOST_CHUNK`.

    Returns
    -------
    vectors : array of shape (count, d)
        Orthonormal, also where singular values are 0.
    values : array of shape (count,)
        Largest first.
    """
    product, usual = (full_product, DEVICE_CHUNK) if xp is jnp else (np.matmul, HOST_CHUNK)
    d, chunk = rows[0].shape[1], chunk or usual
    pieces = [
        xp.linalg.qr(xp.concatenate([part[:, begin : begin + chunk] for part in rows]).T)
        for begin in range(0, d, chunk)
    ]
    turn, factor = xp.linalg.qr(xp.concatenate([own for _, own in pieces]))
    _, values, axes = xp.linalg.svd(sizes[:, None] * factor.T, full_matrices=False)
    coordinates, vectors, begin = product(axes[:count], turn.T), [], 0
    for basis, own in pieces:
        vectors.append(product(coordinates[:, begin : begin + len(own)], basis.T))
        begin += len(own)
    return xp.concatenate(vectors, axis=1), values[:count]
