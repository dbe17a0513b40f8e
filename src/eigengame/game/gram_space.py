r"""A whole update in the small space of players and batch, for wide rows.

Every quantity of a round is an inner product between rows of $[V; X]$, and every new player is a
combination of them. So where the batch is not much taller than the players are many, the Gram matrix
of both is computed once, all rounds are played on it to their equilibrium, and width $d$ is touched a
second time only to form $V' = PV + QX$.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from eigengame.game.rounds import put_last
from eigengame.game.rows import full_product


def equilibrium_of_all(
    players: jax.Array, strengths: jax.Array, rows: jax.Array
) -> tuple[jax.Array, jax.Array]:
    r"""Return the top K eigenvectors of $V^\top\mathrm{diag}(\lambda)V + W^\top W$, and their strengths.

    Parameters
    ----------
    players : array of shape (K, d)
        Orthonormal.
    strengths : array of shape (K,)
        $\lambda$, at least 0.
    rows : array of shape (m, d)
        $W$: everything new, centred and with the bridge between means.

    Returns
    -------
    players : array of shape (K, d)
        Orthonormal, the strongest first.
    strengths : array of shape (K,)
    """
    k = players.shape[0]
    inside = full_product(rows, players.T)  # (m, K), what the players see of the rows
    # Units of the largest row keep squares in range over the whole range of the dtype.
    size = jnp.max(jnp.linalg.norm(inside, axis=1, keepdims=True)) + jnp.max(jnp.abs(rows))
    size = jnp.where(size > 0, size, 1)
    scaled, inside = rows / size, inside / size
    outside = full_product(scaled, scaled.T) - full_product(inside, inside.T)
    sizes, axes = jnp.linalg.eigh((outside + outside.T) / 2)
    # What is left of a row after cancellation is noise below this: it would not be orthogonal.
    # Rows in half precision are exact as they are: it is the products that round, in the players' dtype.
    limits = jnp.finfo(scaled.dtype)
    floor = 1e3 * limits.eps * jnp.max(jnp.sum(jnp.square(scaled), axis=1))
    held = sizes > jnp.maximum(floor, limits.tiny)
    roots = jnp.sqrt(jnp.where(held, sizes, 1))
    # The rows in the orthonormal basis of the players and of what the rows add to them.
    added = jnp.where(held, roots, 0)[None, :] * axes
    past = jnp.diag(strengths / size / size)
    across = full_product(inside.T, added)
    small = jnp.block(
        [
            [past + full_product(inside.T, inside), across],
            [
                across.T,
                put_last(jnp.diag(jnp.where(held, sizes, 0)), ~held, jnp.ones((), scaled.dtype)),
            ],
        ]
    )
    values, vectors = jnp.linalg.eigh((small + small.T) / 2)
    chosen = vectors.T[::-1][:k]
    from_rows = full_product(chosen[:, k:] * jnp.where(held, 1 / roots, 0)[None, :], axes.T)
    from_players = chosen[:, :k] - full_product(from_rows, inside)
    moved = full_product(from_players, players) + full_product(from_rows, scaled)
    return moved, jnp.maximum(values[::-1][:k], 0) * size * size


def cheaper_in_gram_space(m: int, k: int, d: int) -> bool:
    """Say whether an update of m rows, k players and d features is cheaper in Gram space.

    Multiplications: Gram space takes $(m + k)^2 d$ and two small problems of size m and m + k; score
    space takes $3mkd + 4k^2d$ and two of size k and 2k. A small problem of size s costs about
    $25 s^3$ multiplications' time, measured with LAPACK on one core against products on two.
    """
    gram = (m + k) ** 2 * d + 25 * (m**3 + (m + k) ** 3)
    score = (3 * m * k + 4 * k**2) * d + 25 * (k**3 + (2 * k) ** 3)
    return gram <= score
