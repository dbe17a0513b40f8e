r"""The two touches of width $d$ that an update in Gram space takes.

Let $W$ be vectors that an update starts from, players and perhaps a mean, and $X$ a batch of rows. All an
update needs to know of them are inner products, $XX^\top$ and $XW^\top$ (the first touch); all it may make
are combinations, $W' = PW + QX$ (the second). Both read $X$ and $W$ once. On a GPU they are kernels that
tile $d$; elsewhere, and for shapes the kernels do not take, plain products. Passes that only measure take the
same rows in two halves: scores, and directions added to a total.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.linalg.products import full_product, long_product


def inner_products(wide: Sequence[jax.Array], rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    r"""Return $XX^\top$, shape (m, m), and $XW^\top$, shape (m, K).

    Parameters
    ----------
    wide : sequence of arrays of shape (K_i, d)
        $W$ in parts, K rows in all.
    rows : array of shape (m, d)
        $X$; in bfloat16 it is read as it is, and multiplied exactly.
    """
    if kernels_fit(wide, rows):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.inner_products(wide, rows)
    rows = rows.astype(jnp.promote_types(rows.dtype, wide[0].dtype))
    across = [full_product(rows, part.T) for part in wide]
    return full_product(rows, rows.T), jnp.concatenate(across, axis=1)


def overlaps_of(wide: Sequence[jax.Array]) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K)."""
    count = range(len(wide))
    half = {(i, j): long_product(wide[i], wide[j]) for i in count for j in count[i:]}
    return jnp.block([[half[i, j] if i <= j else half[j, i].T for j in count] for i in count])


def overlaps_again(wide: Sequence[jax.Array], known: jax.Array) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K), of vectors that kernels take and of which it is nearly known."""
    from eigengame.linalg.kernels import gram_space as kernels

    return kernels.overlaps(wide, lengths_of(known))


def lengths_of(overlaps: jax.Array) -> jax.Array:
    """Return the lengths (K,) of vectors from their overlaps (K, K)."""
    return jnp.sqrt(jnp.maximum(jnp.diag(overlaps), 0))


def combined(
    coefficients: jax.Array, lengths: jax.Array, wide: Sequence[jax.Array], rows: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    r"""Return $W' = PW + QX$ in the parts that $W$ has, and the coefficients as they were applied.

    Parameters
    ----------
    coefficients : array of shape (K, K + m)
        $[P, Q]$. Kernels round them.
    lengths : array of shape (K,)
        Of the vectors $W$, or a little less: kernels scale by them.
    wide, rows
        As in `inner_products`.
    """
    if kernels_fit(wide, rows):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.combined(coefficients, lengths, wide, rows)
    rows = rows.astype(jnp.promote_types(rows.dtype, wide[0].dtype))
    ends = part_ends(wide)
    under = [*wide, rows]

    def made(own: jax.Array) -> jax.Array:
        pairs = zip(jnp.split(own, part_ends(under), axis=1), under, strict=True)
        return functools.reduce(operator.add, (full_product(*pair) for pair in pairs))

    return [made(own) for own in jnp.split(coefficients, ends)], coefficients


def part_ends(wide: Sequence[jax.Array]) -> list[int]:
    """Return where each part but the last ends when they are stacked."""
    return list(itertools.accumulate(map(len, wide)))[:-1]


class Touches(NamedTuple):
    """How an update in Gram space touches width d: functions of this module, or others of the same kind.

    `compiled` makes of a function what is called between the touches: the same where the whole update is
    compiled, its compiled form where it is not.
    """

    inner_products: Callable[..., tuple[jax.Array, jax.Array]]
    combined: Callable[..., tuple[list[Any], jax.Array]]
    overlaps: Callable[..., jax.Array]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]


ON_DEVICE = Touches(inner_products, combined, overlaps_of, lambda function: function)
"""Of vectors and rows that both are on the device, within one compiled update."""

MOST_ROWS = 128
"""Rows of a batch that the kernels take: their Gram matrix is held in registers."""

MOST_WIDE = 64
"""Players and mean that the kernels take together."""

WORTH = 2**16
"""Features from which on a kernel gains on plain products."""


def kernels_fit(wide: Sequence[Any], rows: Any) -> bool:
    """Say whether the kernels take arrays of these shapes and dtypes.

    On a GPU: float32 players and at most one vector more, and rows as `rows_fit` says.
    """
    one_more = len(wide) == 1 or (len(wide) == 2 and wide[1].shape[0] == 1)
    few = sum(part.shape[0] for part in wide) <= MOST_WIDE
    return rows_fit(rows) and wide[0].dtype == jnp.float32 and one_more and few


def rows_fit(rows: Any) -> bool:
    """Say whether the kernels take such rows: on a GPU, bfloat16, 16 to 128 of them and a power of two."""
    m, d = rows.shape
    return (
        jax.default_backend() == "gpu"
        and rows.dtype == jnp.bfloat16
        and 16 <= m <= MOST_ROWS
        and m & (m - 1) == 0
        and d >= WORTH
        and _has_triton()
    )


@functools.cache
def _has_triton() -> bool:
    """Say whether this JAX has what the kernels are written in: 0.11 says that a later one will not."""
    return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
