r"""Updates in Gram space: in an orthonormal basis of the span of players and batch, for wide rows.

An update only uses inner products of its vectors $W$ (players and possibly a mean) and the rows $X$ of a batch, and
only forms linear combinations of them. The game is invariant under rotations. So the Gram matrix of $[W; X]$ gives
an orthonormal basis of their span, any algorithm can be run on coordinates in that basis as it would be in $d$
dimensions, and the full width $d$ is used again only to form $W' = PW + QX$ (`eigengame.linalg.wide`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.krylov_round import sort_empty_last
from eigengame.game.rows import DenseRows
from eigengame.linalg.eigh import symmetric_eigh
from eigengame.linalg.orthonormal import whiten
from eigengame.linalg.products import full_product
from eigengame.linalg.wide import ON_DEVICE, WideOperations, lengths_of


class Coordinates(NamedTuple):
    """The vectors of an update in an orthonormal basis of their span, with r = K + m directions.

    Attributes
    ----------
    wide : list of arrays of shape (K_i, r)
        The parts of W.
    rows : DenseRows of width r
        The batch.
    empty : array of shape (r,)
        Mask of directions of the basis outside the span, which may have fewer than r dimensions.
    """

    wide: list[jax.Array]
    rows: DenseRows
    empty: jax.Array


SmallUpdate = Callable[[Coordinates, Any], tuple[Sequence[jax.Array], Any]]
"""An update of coordinates: from coordinates and further inputs to new vectors and further outputs."""


def update_in_span(
    update: SmallUpdate,
    inputs: Any,
    wide: Sequence[jax.Array],
    rows: DenseRows,
    overlaps: jax.Array,
    operations: WideOperations = ON_DEVICE,
) -> tuple[list[Any], Any, jax.Array]:
    r"""Run an update in an orthonormal basis of the span of its vectors.

    Parameters
    ----------
    update : SmallUpdate
        Returns new vectors in the same parts as `wide`.
    inputs : any
        Further inputs of `update`.
    wide : sequence of arrays of shape (K_i, d)
        $W$.
    rows : DenseRows of width d
        $X$.
    overlaps : array of shape (K, K)
        $WW^\top$.
    operations : WideOperations
        The operations over width d.

    Returns
    -------
    moved : list of arrays of shape (K_i, d)
    outputs : any
        Further outputs of `update`.
    overlaps : array of shape (K, K)
        $W'W'^\top$, computed from coordinates, so that the next update need not measure it.
    """
    wide = list(map(rows.columns, wide))
    square, across = map(rows.small, operations.inner_products(wide, rows.values))
    overlaps, roots = rows.small(overlaps), None if rows.roots is None else rows.small(rows.roots)
    run = operations.compiled(_coefficients)
    coefficients, coordinates, outputs = run(
        (update, tuple(map(len, wide))), square, across, overlaps, roots, inputs
    )
    moved, applied = operations.combined(coefficients, lengths_of(overlaps), wide, rows.values)
    overlaps = overlaps + _overlap_change(applied, coordinates)
    return list(map(rows.columns, moved)), outputs, overlaps


def _overlap_change(coefficients: jax.Array, coordinates: jax.Array) -> jax.Array:
    """Return the change of overlaps (K, K) when coefficients (K, r) are applied to the vectors.

    Overlaps recomputed from coordinates would lose some of their last digits in every update; a change does not.
    """
    k, r = coefficients.shape
    moves = coefficients - jnp.eye(k, r, dtype=coefficients.dtype)
    moved, known = full_product(moves, coordinates), coordinates[:k]
    half = full_product(moved, (known + moved / 2).T)
    return half + half.T


def _coefficients(
    how: tuple[SmallUpdate, tuple[int, ...]],
    square: jax.Array,
    across: jax.Array,
    overlaps: jax.Array,
    roots: jax.Array | None,
    inputs: Any,
) -> tuple[jax.Array, jax.Array, Any]:
    """Return the coefficients (K, K + m) of an update, the coordinates, and the outputs of `update`."""
    update, counts = how
    coordinates, back, empty = coordinates_of(jnp.block([[overlaps, across.T], [across, square]]))
    k, m = len(overlaps), len(square)
    known, batch = jnp.split(coordinates, [k])
    parts = jnp.split(known, list(itertools.accumulate(counts))[:-1])
    moved, outputs = update(Coordinates(parts, DenseRows(batch, roots), empty), inputs)
    # Only moves are converted to coefficients: a vector that does not move is not rounded.
    moves = jnp.concatenate(list(moved)) - known
    coefficients = jnp.eye(k, k + m, dtype=known.dtype) + full_product(moves, back)
    return coefficients, coordinates, outputs


def coordinates_of(gram: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return vectors in an orthonormal basis of their span, given their Gram matrix (r, r).

    Returns
    -------
    coordinates : array of shape (r, r)
        Row i is vector i in the basis.
    back : array of shape (r, r)
        Converts coordinates (rows) to coefficients of the vectors.
    empty : array of shape (r,)
        Mask of unused directions of the basis.
    """
    lengths = lengths_of(gram)
    absent = lengths == 0  # for example rows of padding
    scale = jnp.where(absent, 0, 1 / jnp.where(absent, 1, lengths))
    unit = scale[:, None] * gram * scale[None, :]
    turn, empty, _ = whiten(unit, absent)
    coordinates = lengths[:, None] * full_product(unit, turn.T)
    return coordinates, turn * scale[None, :], empty


def top_eigenvectors(
    players: jax.Array, strengths: jax.Array, rows: jax.Array, empty: jax.Array
) -> tuple[jax.Array, jax.Array]:
    r"""Return the top K eigenvectors of $V^\top\mathrm{diag}(\lambda)V + W^\top W$, and their eigenvalues.

    Parameters
    ----------
    players : array of shape (K, r)
        Orthonormal, in a small space.
    strengths : array of shape (K,)
        $\lambda$, at least 0.
    rows : array of shape (m, r)
        $W$: the new rows, centred, and the bridge between means.
    empty : array of shape (r,)
        Mask of unused directions of the basis.

    Returns
    -------
    players : array of shape (K, r)
        Orthonormal, by decreasing eigenvalue.
    strengths : array of shape (K,)
    """
    k = players.shape[0]
    past = full_product(players.T * strengths[None, :], players)
    scatter = past + full_product(rows.T, rows)
    scatter = sort_empty_last(scatter, empty, jnp.max(jnp.diag(scatter)))
    values, vectors = symmetric_eigh(scatter)
    return vectors.T[::-1][:k], jnp.maximum(values[::-1][:k], 0)


def cheaper_in_gram_space(m: int, k: int, d: int) -> bool:
    """Return whether an update of m rows, k players and d features is cheaper in Gram space.

    Gram space needs $(m + k)^2 d$ multiplications and an eigenproblem of size m + k; score space needs
    $3mkd + 4k^2d$ and eigenproblems of sizes k and 2k. An eigenproblem of size s takes about as long as $25 s^3$
    multiplications, measured with LAPACK on one core against products on two.
    """
    gram = (m + k) ** 2 * d + 25 * (m + k) ** 3
    score = (3 * m * k + 4 * k**2) * d + 25 * (k**3 + (2 * k) ** 3)
    return gram <= score
