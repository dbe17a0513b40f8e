r"""Products over the width $d$ of very wide arrays, by GPU kernels if these apply.

Let $W$ be the vectors of an update, players and possibly a mean, and $X$ a batch of rows. An update in Gram space
reads the full width twice: for the inner products $XX^\top$ and $XW^\top$, and for the linear combinations
$W' = PW + QX$. A pass that only measures needs scores, and directions added to a total. On a GPU these are kernels
that tile $d$; on other devices, and for shapes that the kernels do not support, they are plain products.
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

from eigengame.linalg.products import full_product, long_product, row_product


def inner_products(
    wide: Sequence[jax.Array], rows: jax.Array, draws: jax.Array | None = None
) -> tuple[jax.Array, ...]:
    r"""Return $XX^\top$, shape (m, m), and $XW^\top$, shape (m, K).

    Parameters
    ----------
    wide : sequence of arrays of shape (K_i, d)
        The parts of $W$, with K rows together.
    rows : array of shape (m, d)
        $X$. Kernels read bfloat16 without conversion, and multiply it exactly.
    draws : array of shape (r, d), optional
        Probes $G$: $XG^\top$, shape (m, r), is returned as well.
    """
    if kernels_fit(wide, rows) if draws is None else kernels_fit_probes(wide, rows, draws):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.inner_products(wide, rows, draws=draws)
    rows = rows.astype(jnp.promote_types(rows.dtype, wide[0].dtype))
    across = [full_product(rows, part.T) for part in wide]
    of_draws = [] if draws is None else [full_product(rows, draws.T)]
    return full_product(rows, rows.T), jnp.concatenate(across, axis=1), *of_draws


def overlaps_of(wide: Sequence[jax.Array]) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K)."""
    count = range(len(wide))
    half = {(i, j): long_product(wide[i], wide[j]) for i in count for j in count[i:]}
    return jnp.block([[half[i, j] if i <= j else half[j, i].T for j in count] for i in count])


def remeasured_overlaps(wide: Sequence[jax.Array], known: jax.Array) -> jax.Array:
    r"""Return $WW^\top$, shape (K, K), by a kernel that needs an estimate of it."""
    from eigengame.linalg.kernels import gram_space as kernels

    return kernels.overlaps(wide, lengths_of(known))


def lengths_of(overlaps: jax.Array) -> jax.Array:
    """Return the lengths (K,) of vectors from their overlaps (K, K)."""
    return jnp.sqrt(jnp.maximum(jnp.diag(overlaps), 0))


def combined(
    coefficients: jax.Array, lengths: jax.Array, wide: Sequence[jax.Array], rows: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    r"""Return $W' = PW + QX$ in the same parts as $W$, and the coefficients as rounded by the kernel.

    Parameters
    ----------
    coefficients : array of shape (K, K + m)
        $[P, Q]$.
    lengths : array of shape (K,)
        Approximate lengths of the vectors $W$, which kernels use as scales.
    wide, rows
        As in `inner_products`.
    """
    if kernels_fit(wide, rows):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.combined(coefficients, lengths, wide, rows)
    rows = rows.astype(jnp.promote_types(rows.dtype, wide[0].dtype))
    terms = [*wide, rows]

    def combine(own: jax.Array) -> jax.Array:
        pairs = zip(jnp.split(own, part_ends(terms), axis=1), terms, strict=True)
        return functools.reduce(operator.add, (full_product(*pair) for pair in pairs))

    return [combine(own) for own in jnp.split(coefficients, part_ends(wide))], coefficients


def part_ends(parts: Sequence[jax.Array]) -> list[int]:
    """Return the row at which each part except the last ends when the parts are stacked."""
    return list(itertools.accumulate(map(len, parts)))[:-1]


def scores(players: jax.Array, rows: jax.Array) -> jax.Array:
    r"""Return $XV^\top$, shape (m, K), for players (K, d)."""
    if kernels_fit([players], rows):
        from eigengame.linalg.kernels import gram_space as kernels

        return kernels.scores(players, rows)
    if jax.default_backend() == "gpu":
        return long_product(rows.astype(players.dtype), players)
    return full_product(rows, players.T)


def add_directions(
    total: jax.Array,
    scores: jax.Array,
    rows: jax.Array,
    vector: jax.Array | None = None,
    factors: jax.Array | None = None,
) -> jax.Array:
    r"""Return $T + Y^\top X$, shape (K, d), for a total (K, d) and scores (m, K).

    With a `vector` w (d,) and its `factors` b (K,), return $T + Y^\top X + bw^\top$.
    """
    if kernels_fit([total], rows):
        from eigengame.linalg.kernels import passes as kernels

        return kernels.added(total, scores, rows, vector, factors)
    made = total + row_product(scores, rows)
    if vector is None or factors is None:
        return made
    return made + factors[:, None] * vector[None, :]


class WideOperations(NamedTuple):
    """The operations over width d of an update in Gram space, for one memory location of the vectors.

    The first three have the signatures of the functions of this module. `compiled` compiles a function that is
    called between them; it returns the function unchanged if the whole update is compiled.
    """

    inner_products: Callable[..., tuple[jax.Array, ...]]
    combined: Callable[..., tuple[list[Any], jax.Array]]
    overlaps: Callable[..., jax.Array]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]


ON_DEVICE = WideOperations(inner_products, combined, overlaps_of, lambda function: function)
"""Operations for vectors and rows in device memory, within one compiled update."""

MOST_ROWS = 128
"""Maximum number of rows in a batch for the kernels, which keep its Gram matrix in registers."""

MOST_WIDE = 64
"""Maximum number of players, including the mean, for the kernels."""

LEAST_FEATURES = 2**16
"""Number of features from which kernels are faster than plain products."""


def kernels_fit(wide: Sequence[Any], rows: Any) -> bool:
    """Return whether the kernels support these arrays (or shapes and dtypes).

    They need a GPU, float32 players with at most one further vector, and rows that `rows_fit` accepts.
    """
    one_more = len(wide) == 1 or (len(wide) == 2 and wide[1].shape[0] == 1)
    few = sum(part.shape[0] for part in wide) <= MOST_WIDE
    return rows_fit(rows) and wide[0].dtype == jnp.float32 and one_more and few


def kernels_fit_probes(wide: Sequence[Any], rows: Any, draws: Any) -> bool:
    """Return whether the kernel of inner products can also multiply the rows with probes (r, d)."""
    together = draws.shape[0] + sum(part.shape[0] for part in wide)
    return kernels_fit(wide, rows) and draws.dtype == jnp.float32 and together <= MOST_WIDE


def rows_fit(rows: Any) -> bool:
    """Return whether the kernels support these rows: bfloat16 on a GPU, 16, 32, 64 or 128 rows, large d."""
    m, d = rows.shape
    return (
        jax.default_backend() == "gpu"
        and rows.dtype == jnp.bfloat16
        and 16 <= m <= MOST_ROWS
        and m & (m - 1) == 0
        and d >= LEAST_FEATURES
        and _has_triton()
    )


@functools.cache
def _has_triton() -> bool:
    """Return whether this JAX has Pallas for Triton, which JAX 0.11 announces to remove."""
    return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
