r"""Frequent Directions (Ghashami et al., 2016; appendix Frequent Directions): a mergeable sketch.

Not a game, but an alternative that the paper discusses. One pass computes a sketch $B$ of at most $2l$ rows with
$\|X^\top X - B^\top B\|_2 \le \|X - X_k\|_F^2/(l - k)$; a second pass recovers principal components from the data
projected on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import Info, info_from
from eigengame.game import sphere
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.gram_space import coordinates_of
from eigengame.game.rows import DenseRows, Rows, SampleRows, as_rows
from eigengame.linalg.orthonormal import reorthonormalise
from eigengame.linalg.products import LONG, full_product, long_product


def sketch_size(k: int, epsilon: float) -> int:
    r"""Return $l = \lceil k + 1/\epsilon\rceil$ for a tolerance $\epsilon$ on the subspace error."""
    # Round off the last bit of 1 / (0.25 / k) first, so that it gives 4 k and not 4 k + 1.
    return math.ceil(round(k + 1 / _check.positive("epsilon", epsilon), 9))


def best_shards(n: int, l: int) -> float:
    r"""Return $b^* = \sqrt{n/2l}$, the number of shards that minimises `runtime_multiplier`."""
    return math.sqrt(n / (2 * l))


def runtime_multiplier(b: float, n: int, l: int) -> float:
    r"""Return $1/b + 2bl/n$: the time with b shards and one merge, divided by the time with one shard."""
    return 1 / b + 2 * b * l / n


class SketchState(NamedTuple):
    """The sketch and the number of its rows in use.

    Attributes
    ----------
    sketch : array of shape (2l, d)
        $B$: rows of the sketch, then rows of data not yet merged into it, then zeros.
    filled : int32
        Rows in use.
    like : array of shape (k, 0)
        Empty; its shape stores the number of components. Checkpoints contain it.
    step : int32
        Updates so far.
    """

    sketch: jax.Array
    filled: jax.Array
    like: jax.Array
    step: jax.Array

    @property
    def k(self) -> int:
        """The number of components."""
        return self.like.shape[0]

    def axes(self) -> SketchState:
        """Return the axis names of each array; rows of the sketch are placed like players."""
        return SketchState(PLAYERS, WHOLE, WHOLE, WHOLE)


@dataclass(frozen=True)
class FrequentDirections:
    r"""Frequent Directions with a buffer of $2l$ rows, reduced to $l$ rows whenever it is full.

    Parameters
    ----------
    size : int, optional
        $l$, at least k. The default is $5k$, the paper's choice ($\epsilon = 0.25/k$).
    """

    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            _check.whole("size", self.size)

    def init(self, players: jax.Array) -> SketchState:
        """Return an empty sketch with the dtype of the players, for as many components as players."""
        k, d = players.shape
        l = self.size or sketch_size(k, 0.25 / k)
        if l < k:
            raise ValueError(f"size={l} is less than the {k} components: give at least {k}.")
        zero = jnp.zeros((), jnp.int32)
        return SketchState(
            jnp.zeros((2 * l, d), players.dtype), zero, jnp.zeros((k, 0), players.dtype), zero
        )

    def update(self, rows: Rows, state: SketchState) -> tuple[SketchState, Info]:
        """Add the rows to the sketch."""
        if not isinstance(rows, SampleRows):
            raise ValueError(
                f"rows is {type(rows).__name__}, but frequent_directions needs rows of data: "
                "give as_rows(Z) with Z.T @ Z = M, for example a Cholesky factor."
            )
        data = rows.dense().astype(state.sketch.dtype)
        l = state.sketch.shape[0] // 2
        size = min(l, data.shape[0])
        padded = jnp.pad(data, ((0, -data.shape[0] % size), (0, 0)))

        def add(
            carry: tuple[jax.Array, jax.Array], chunk: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            full = carry[1] + size > 2 * l
            sketch, filled = jax.lax.cond(
                full, lambda c: (_shrink(c[0], l), jnp.full_like(c[1], l)), lambda c: c, carry
            )
            sketch = jax.lax.dynamic_update_slice_in_dim(sketch, chunk, filled, axis=0)
            return (sketch, filled + size), None

        chunks = padded.reshape(-1, size, data.shape[1])
        (sketch, filled), _ = jax.lax.scan(add, (state.sketch, state.filled), chunks)
        new = SketchState(sketch, filled, state.like, state.step + 1)
        # The info uses the first rows of the old sketch as players: an SVD for it would cost more than the update.
        # An empty sketch has no reward.
        leading = sphere.retract(state.sketch[: state.k])
        scores = rows.scores(leading)
        # No player moves.
        return new, info_from(rows.gram(scores, scores), jnp.zeros_like(leading[:, :1]))

    def components(self, state: SketchState) -> jax.Array:
        """Return the top right singular vectors of the sketch, shape (k, d), without a second pass."""
        return _singular_vectors(state.sketch)[1][: state.k]

    def merge(self, one: SketchState, other: SketchState) -> SketchState:
        """Return the sketch of both streams: stacked, then reduced."""
        shapes = [(state.sketch.shape, state.k) for state in (one, other)]
        if shapes[0] != shapes[1]:
            described = [f"{shape} for k={k}" for shape, k in shapes]
            raise ValueError(
                f"one has a sketch of shape {described[0]} and other {described[1]}: "
                "give sketches of the same size, width and number of components."
            )
        l = one.sketch.shape[0] // 2
        both = _shrink(jnp.concatenate([one.sketch, other.sketch]), l)
        filled = jnp.full((), l, jnp.int32)
        return SketchState(both[: 2 * l], filled, one.like, one.step + other.step)


def recover_components(rows: Any, state: SketchState) -> tuple[jax.Array, jax.Array]:
    r"""Return Rayleigh quotients (k,) and components (k, d) from the data projected on the sketch.

    $Y = X B^\top$ with the sketch's rows made orthonormal, $Q$ the right singular vectors of $Y$,
    $\hat V = B^\top Q$ (appendix Complexity Analysis): the second pass over the data.

    Parameters
    ----------
    rows : Rows, array of shape (m, d), or an iterator of either
        All of the data, at once or in batches (see `batches`).
    state : SketchState
        The sketch of the first pass.
    """
    k, d = state.k, state.sketch.shape[1]
    basis = _basis(state.sketch)
    gram = None
    for number, batch in enumerate(rows if isinstance(rows, Iterator) else [rows]):
        batch = as_rows(batch, name=f"batch {number}" if isinstance(rows, Iterator) else "rows")
        _check.same_width(f"batch {number}", batch.width, "the sketch", d)
        # Compiled, so that millions of features are not copied between operations.
        added = (_dense_gram if isinstance(batch, DenseRows) else _gram)(batch, basis)
        gram = added if gram is None else gram + added
    if gram is None:
        raise ValueError("rows has no batch: give at least one batch of rows.")
    # Q by the eigenvectors of Y'Y, which is a sum over batches, so that Y need not be in memory.
    values, rotation = jnp.linalg.eigh((gram + gram.T) / 2)
    return jnp.maximum(values[::-1][:k], 0), full_product(rotation.T[::-1][:k], basis)


def _gram(rows: Rows, basis: jax.Array) -> jax.Array:
    """Return the inner products of the scores of a basis (r, d), shape (r, r)."""
    scores = rows.pass_scores(basis) if isinstance(rows, SampleRows) else rows.scores(basis)
    return rows.gram(scores, scores)


_dense_gram = jax.jit(_gram)


@jax.jit
def _basis(sketch: jax.Array) -> jax.Array:
    """Return the right singular vectors of a sketch (2l, d); zero rows in place of those that are noise."""
    sizes, axes = _singular_vectors(sketch)
    # Directions with a singular value within rounding of 0. Rounding is relative to the sketch's own rows, so that
    # it does not grow with d.
    held = sizes > sizes[0] * jnp.finfo(sizes.dtype).eps * len(sketch)
    axes = jnp.where(held[:, None], axes, 0)
    return axes if sketch.shape[1] < LONG else reorthonormalise(axes)


def _shrink(sketch: jax.Array, l: int) -> jax.Array:
    """Reduce the sketch to its l largest directions; its shape stays the same.

    The (l + 1)th squared singular value is subtracted from all.
    """
    sizes, axes = _singular_vectors(sketch, l)
    least = sizes[l] if sizes.shape[0] > l else jnp.zeros((), sizes.dtype)
    kept = jnp.sqrt(jnp.maximum((sizes - least) * (sizes + least), 0))[:l, None] * axes[:l]
    return jnp.zeros_like(sketch).at[: kept.shape[0]].set(kept)


def _singular_vectors(sketch: jax.Array, count: int | None = None) -> tuple[jax.Array, jax.Array]:
    """Return all singular values (r,), and the first `count` right singular vectors (count, d); all by default.

    A sketch with more than `LONG` features is decomposed in an orthonormal basis of its own rows, as in Gram space:
    the decomposition is of shape (2l, 2l) for any d, and the width is used in two products only. In float32 this
    loses directions with a singular value below about 0.005 of the largest, far below what a sketch can tell apart.
    """
    if sketch.shape[1] < LONG:
        _, sizes, axes = jnp.linalg.svd(sketch, full_matrices=False)
        return sizes, axes[:count]
    coordinates, back, _ = coordinates_of(long_product(sketch, sketch))
    _, sizes, axes = jnp.linalg.svd(coordinates)
    return sizes, full_product(full_product(axes[:count], back), sketch)
