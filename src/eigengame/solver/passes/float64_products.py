r"""Products with $M$ in float64, from which certificates are computed.

The rows are those of the data as given, converted to float64 and taken about their mean, which the same pass finds.
With a guess $g$ of the mean and the exact mean $\mu$,

$$\sum_r s_r(x_r - \mu) = Mv,\qquad s_r = \langle x_r - g, v\rangle,$$

for any guess: so one pass gives products that are exact up to the rounding of float64.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.csr_rows import CSRRows
from eigengame.game.rows import DenseRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.linalg.library import array_namespace
from eigengame.linalg.products import row_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.rounding import Rounding
from eigengame.solver.passes.host_arrays import on_host
from eigengame.solver.passes.passes import Passes
from eigengame.solver.rows.raw_rows import RawRows

GROUP, SMALL_GROUP = 256, 32
"""Rows that are converted at a time on a CPU: as many as stay in its cache, and fewer for small batches.

Short sums have small errors, and for small batches their cost is negligible.
"""

ROUNDING = 16 * np.finfo(np.float64).eps
"""Difference of the squared lengths of orthonormal players from 1 that rounding causes."""

SMALL_BATCH = 2**17
"""Largest size of a small batch."""


class Sums(NamedTuple):
    """Sums of one pass; every entry is a plain sum over batches.

    Attributes
    ----------
    directions : array of shape (K, d)
        Sum of scores times rows.
    scores : array of shape (K, 1)
        Sum of scores, weights counted.
    columns : array of shape (1, d)
        Sum of rows, weights counted.
    weight, squares : arrays of shape ()
        Sum of weights, and of squares of all numbers.
    """

    directions: jax.Array
    scores: jax.Array
    columns: jax.Array
    weight: jax.Array
    squares: jax.Array


class Products(NamedTuple):
    """Directions and their exact products with M, up to rounding.

    Attributes
    ----------
    directions, images : arrays of shape (K, d)
        In float64, on the host.
    floor : array of shape (K,)
        Bound on the error of each image.
    rounding : Rounding
        Rounding from which the bound was computed.
    sums, scores : arrays of shape (K,)
        Both parts of the errors (`Rounding.parts`).
    """

    directions: np.ndarray
    images: np.ndarray
    floor: np.ndarray
    rounding: Rounding
    sums: np.ndarray
    scores: np.ndarray


def products(
    passes: Passes,
    block: np.ndarray,
    mean: np.ndarray | None,
    task: str = "measuring",
    *,
    largest: float = 0.0,
) -> Products:
    """Return the products of the rows of `block` (K, d) with M by one pass over the data in float64.

    Parameters
    ----------
    passes : Passes
    block : array of shape (K, d)
        In float64; rows of at most unit length.
    mean : array of shape (d,) or None
        A guess of the mean to take M about; None takes M about zero.
    task : str
        Name of the pass, for progress.
    largest : float
        Largest eigenvalue of M as far as it is known, if no direction has this value.
    """
    exact = passes.in_float64(mean)
    place = exact.placement
    with jax.enable_x64(True):
        there = place.players(block)
        zero = np.zeros_like(block)
        start = Sums(
            place.players(zero),
            place.replicated(zero[:, :1]),
            place.players(zero[:1]),
            place.replicated(np.zeros(())),
            place.replicated(np.zeros(())),
        )
        level = None if mean is None else place.replicated((block @ mean)[None, :])
        carry, batches = exact.fold(partial(_add, there, level), (tuple(start), 0), task=task)
        images, scores, columns, weight, squares = (gather(leaf) for leaf in carry)
    total = max(float(weight), np.finfo(float).tiny)
    centre, left, lengths2 = columns / total, 0.0, None
    values = np.maximum(np.sum(block * images, axis=1), 0)
    if mean is not None:
        images = images - scores * centre
        # Scores are those that were summed: with what is left of the mean in them.
        values = np.maximum(np.sum(block * images, axis=1), 0)
        lengths2 = values + scores[:, 0] ** 2 / total
        square = max(float(np.sum(centre**2)), 0.0 if exact.raw else float(np.sum(mean**2)))
        left = total * square
    chain = longest_sum(exact, block.shape[1], batches)
    rounding = Rounding.worst(block.shape[1], chain, float(squares), left)
    floor = rounding.of_products(values, lengths2, largest)
    return Products(block, images, floor, rounding, *rounding.parts(values, lengths2))


def longest_sum(exact: Passes, d: int, batches: int) -> int:
    """Return the number of sequential additions of a sum over all rows: in groups, batches and devices."""
    group = _group(exact.size, d) if exact.raw else exact.size
    return group + -(-exact.size // group) + batches + jax.device_count()


def _group(rows: int, d: int) -> int:
    """Return the number of raw rows of a batch that are converted at a time."""
    if jax.default_backend() != "cpu":
        return rows
    return min(rows, SMALL_GROUP if rows * d <= SMALL_BATCH else GROUP)


def _add(
    block: jax.Array, level: jax.Array | None, carry: tuple[Any, int], rows: Any, count: int
) -> tuple[Any, int]:
    """Add one batch. A named function, so that it can be sent to workers."""
    sums, batches = carry
    if isinstance(rows, CSRRows):
        return tuple(on_host(_added, rows, block, level, Sums(*sums))), batches + 1
    return _accumulate(rows, block, level, tuple(sums)), batches + 1


@quick_jit
def _accumulate(
    rows: Any, block: jax.Array, level: jax.Array | None, carry: tuple[jax.Array, ...]
) -> tuple[jax.Array, ...]:
    """Add one batch to the sums of a pass."""
    sums = Sums(*carry)
    if not isinstance(rows, RawRows):
        return tuple(_added(rows, block, level, sums))
    size, d = rows.values.shape
    if rows.mesh is not None or _group(size, d) == size:
        return tuple(_added(rows.widened(), block, None, sums))

    def step(now: Sums, group: RawRows) -> tuple[Sums, None]:
        return _added(group.widened(), block, None, now), None

    # From zero, so that sums stay short.
    start = jax.tree.map(jnp.zeros_like, sums)
    own = jax.lax.scan(step, start, rows.groups(_group(size, d)))[0]
    return tuple(jax.tree.map(jnp.add, sums, own))


def _added(
    rows: DenseRows | SparseRows | CSRRows, block: jax.Array, level: jax.Array | None, sums: Sums
) -> Sums:
    """Add rows in float64; `level` (1, K) are the scores of the mean, if rows are not centred."""
    constant, scores = rows.constant(), rows.scores(block)
    xp = array_namespace(scores)
    if level is not None:
        scores = scores - constant * level
    return Sums(
        sums.directions + rows.directions(scores),
        sums.scores + row_product(scores, constant),
        sums.columns + rows.directions(constant),
        sums.weight + xp.sum(xp.square(constant)),
        sums.squares + _squares(rows),
    )


def _squares(rows: DenseRows | SparseRows | CSRRows) -> Any:
    """Return the sum of squares of all numbers."""
    if isinstance(rows, CSRRows):
        return np.sum(np.square(rows.values.data))
    if isinstance(rows, SparseRows):
        return jnp.sum(rows.weights[rows.row] * jnp.square(rows.entries))
    return jnp.sum(jnp.square(rows.values))


def orthonormal(players: np.ndarray) -> np.ndarray:
    """Return orthonormal players (K, d) with the same span in float64, as close to the given ones as possible.

    Players that are nearly orthonormal hardly change. A player that depends on the others gets a direction of its
    own.
    """
    found = np.asarray(players, np.float64)
    for _ in range(2):
        sizes, axes = np.linalg.eigh(found @ found.T)
        if max(sizes[-1] - 1, 1 - sizes[0]) <= ROUNDING:
            return found
        if sizes[0] < 0.5 * sizes[-1]:  # not nearly orthonormal
            q, r = np.linalg.qr(found.T)
            return np.ascontiguousarray((q * np.where(np.diag(r) < 0, -1, 1)).T)
        found = (axes / np.sqrt(sizes)) @ axes.T @ found
    return found
