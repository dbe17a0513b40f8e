r"""A whole update in the small space of players and batch, for wide rows.

Every quantity of an update is an inner product between vectors it starts from, $W$ (players, perhaps a mean),
and rows $X$ of a batch; all it makes are combinations of them. And the game does not change when everything is
turned. So the Gram matrix of $[W; X]$ gives an orthonormal basis of their span, any algorithm can play in the
coordinates of that basis as it would play in $d$ dimensions, and width $d$ is touched a second time only to
form $W' = PW + QX$ (`eigengame.linalg.wide`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.joint_round import put_last
from eigengame.game.rows import DenseRows
from eigengame.linalg.orthonormal import whiten
from eigengame.linalg.products import full_product
from eigengame.linalg.wide import ON_DEVICE, Touches, lengths_of


class Small(NamedTuple):
    """An update's vectors in an orthonormal basis of their span, of r = K + m directions.

    Attributes
    ----------
    wide : list of arrays of shape (K_i, r)
        What the update starts from.
    rows : DenseRows of width r
        The batch.
    empty : array of shape (r,)
        Where the span has fewer directions than the basis has places: nothing lies along these.
    """

    wide: list[jax.Array]
    rows: DenseRows
    empty: jax.Array


Play = Callable[[Small, Any], tuple[Sequence[jax.Array], Any]]
"""From an update's vectors in the basis, and what else it starts from, to new ones and what else it finds."""


def in_span(
    play: Play,
    given: Any,
    wide: Sequence[jax.Array],
    rows: DenseRows,
    overlaps: jax.Array,
    touch: Touches = ON_DEVICE,
) -> tuple[list[Any], Any, jax.Array]:
    r"""Return what an update makes of its vectors, played in the basis of their span.

    Parameters
    ----------
    play : Play
        New vectors come in the parts that `wide` has.
    given : anything
        What `play` is given beside the vectors.
    wide : sequence of arrays of shape (K_i, d)
        $W$.
    rows : DenseRows of width d
        $X$.
    overlaps : array of shape (K, K)
        $WW^\top$.
    touch : Touches
        How width d is touched.

    Returns
    -------
    moved : list of arrays of shape (K_i, d)
    other : what `play` returned beside them
    overlaps : array of shape (K, K)
        $W'W'^\top$, known from the coordinates: the next update need not measure it.
    """
    wide = list(map(rows.columns, wide))
    square, across = map(rows.small, touch.inner_products(wide, rows.values))
    overlaps, roots = rows.small(overlaps), None if rows.roots is None else rows.small(rows.roots)
    small = touch.compiled(_played)
    coefficients, coordinates, other = small(
        (play, tuple(map(len, wide))), square, across, overlaps, roots, given
    )
    moved, applied = touch.combined(coefficients, lengths_of(overlaps), wide, rows.values)
    overlaps = overlaps + _changed(applied, coordinates)
    return list(map(rows.columns, moved)), other, overlaps


def _changed(coefficients: jax.Array, coordinates: jax.Array) -> jax.Array:
    """Return by how much overlaps (K, K) change when vectors become what coefficients (K, r) make.

    The change alone: overlaps made anew from coordinates would lose some of their last digits in every update.
    """
    k, r = coefficients.shape
    moves = coefficients - jnp.eye(k, r, dtype=coefficients.dtype)
    moved, known = full_product(moves, coordinates), coordinates[:k]
    half = full_product(moved, (known + moved / 2).T)
    return half + half.T


def _played(
    how: tuple[Play, tuple[int, ...]],
    square: jax.Array,
    across: jax.Array,
    overlaps: jax.Array,
    roots: jax.Array | None,
    given: Any,
) -> tuple[jax.Array, jax.Array, Any]:
    """Return what is small of an update: coefficients (K, K + m), coordinates, and what `play` found beside."""
    play, counts = how
    coordinates, back, empty = basis_of(jnp.block([[overlaps, across.T], [across, square]]))
    k, m = len(overlaps), len(square)
    known, batch = jnp.split(coordinates, [k])
    parts = jnp.split(known, list(itertools.accumulate(counts))[:-1])
    moved, other = play(Small(parts, DenseRows(batch, roots), empty), given)
    # The moves alone: whoever stays is not rounded.
    found = jnp.concatenate(list(moved))
    coefficients = jnp.eye(k, k + m, dtype=known.dtype) + full_product(found - known, back)
    return coefficients, coordinates, other


def basis_of(gram: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return vectors in an orthonormal basis of their span, and the way back, from their Gram matrix (r, r).

    Returns
    -------
    coordinates : array of shape (r, r)
        Row i is vector i in the basis.
    back : array of shape (r, r)
        Turns coordinates (row by row) into coefficients over the vectors.
    empty : array of shape (r,)
        Places of the basis that stand for no direction.
    """
    lengths = lengths_of(gram)
    absent = lengths == 0  # such as rows of padding
    scale = jnp.where(absent, 0, 1 / jnp.where(absent, 1, lengths))
    unit = scale[:, None] * gram * scale[None, :]
    turn, empty = whiten(unit, absent)
    coordinates = lengths[:, None] * full_product(unit, turn.T)
    return coordinates, turn * scale[None, :], empty


def equilibrium_of_all(
    players: jax.Array, strengths: jax.Array, rows: jax.Array, empty: jax.Array
) -> tuple[jax.Array, jax.Array]:
    r"""Return the top K eigenvectors of $V^\top\mathrm{diag}(\lambda)V + W^\top W$, and their strengths.

    Parameters
    ----------
    players : array of shape (K, r)
        Orthonormal, in a small space.
    strengths : array of shape (K,)
        $\lambda$, at least 0.
    rows : array of shape (m, r)
        $W$: everything new, centred and with the bridge between means.
    empty : array of shape (r,)
        Places that stand for no direction: they come last.

    Returns
    -------
    players : array of shape (K, r)
        Orthonormal, the strongest first.
    strengths : array of shape (K,)
    """
    k = players.shape[0]
    past = full_product(players.T * strengths[None, :], players)
    scatter = past + full_product(rows.T, rows)
    scatter = put_last(scatter, empty, jnp.max(jnp.diag(scatter)))
    values, vectors = jnp.linalg.eigh((scatter + scatter.T) / 2)
    return vectors.T[::-1][:k], jnp.maximum(values[::-1][:k], 0)


def cheaper_in_gram_space(m: int, k: int, d: int) -> bool:
    """Say whether an update of m rows, k players and d features is cheaper in Gram space.

    Multiplications: Gram space takes $(m + k)^2 d$ and a small problem of size m + k; score space takes
    $3mkd + 4k^2d$ and two of size k and 2k. A small problem of size s costs about $25 s^3$ multiplications'
    time, measured with LAPACK on one core against products on two.
    """
    gram = (m + k) ** 2 * d + 25 * (m + k) ** 3
    score = (3 * m * k + 4 * k**2) * d + 25 * (k**3 + (2 * k) ** 3)
    return gram <= score
