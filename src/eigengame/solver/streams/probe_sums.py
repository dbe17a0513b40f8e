r"""Products of random probes with $M$, accumulated during the first pass, while $M$ is seen.

$P = GM$ is linear in the rows and about their mean, like the scatter of each feature. So it is merged, faded and
weighted like the moments. The players do not depend on it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.csr_rows import CSRRows, sums_of_rows
from eigengame.game.host_rows import HostRows, longest_host_sum
from eigengame.game.rows import DenseRows, SampleRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.linalg.library import array_namespace
from eigengame.linalg.products import (
    full_product,
    longest_row_sum,
    row_product,
    row_squares,
)
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.certificates.probes import STREAM, draw_probes
from eigengame.solver.certificates.rounding import unit_roundoff
from eigengame.solver.rows.moments import Moments


class ProbeSums(NamedTuple):
    """Probes and their products with M of the rows so far.

    Attributes
    ----------
    draws, images : arrays of shape (r, d)
        Gaussian probes $G$, and $GM$ about the mean of the rows so far.
    largest : array of shape ()
        Largest sum of squares of a row. A difference of two means counts as a row.
    unit : array of shape ()
        Unit roundoff of the coarsest precision in which products were computed. It may be coarser than that of the
        arrays: models in float32 and float64 merge to arrays in float64.
    longest : int32
        Largest number of additions in a row of a sum over the rows of a batch.
    chain : int32
        Largest number of additions in a row: one for each batch of a stream, and one for each level of a tree of
        merges.

    The last four are used by the bound of rounding errors (`probe_errors`).
    """

    draws: jax.Array
    images: jax.Array
    largest: jax.Array
    unit: jax.Array
    longest: jax.Array
    chain: jax.Array


def no_sums(
    count: int, d: int, dtype: Any, seed: int, placement: Placement = ONE_DEVICE
) -> ProbeSums | None:
    """Return probes without rows; None if their number is 0."""
    if count == 0:
        return None
    draws = rounded_draws(seed, count, d).astype(dtype)
    return sums_without_rows(
        placement.players(draws), placement.players(np.zeros_like(draws)), placement
    )


def no_sums_on_host(count: int, d: int, dtype: Any, seed: int) -> ProbeSums | None:
    """Version of `no_sums` whose arrays are those of NumPy."""
    if count == 0:
        return None
    draws: Any = rounded_draws(seed, count, d).astype(dtype)
    zero, none, unit = np.zeros((), dtype), np.zeros((), np.int32), unit_roundoff(dtype)
    limits: Any = (zero, np.asarray(unit, dtype), none, none)
    return ProbeSums(draws, np.zeros_like(draws), *limits)


def rounded_draws(seed: int, count: int, d: int) -> np.ndarray:
    """Return Gaussian probes (count, d) in float32.

    They are rounded to float32 in any precision, so that models in float32 and float64 have the same ones. This
    changes their norms, and the probabilities of the bounds, by relative amounts of less than 1e-7.
    """
    return draw_probes(seed, count, d).astype(np.float32)


def no_sums_on_device(count: int, d: int, dtype: Any, seed: int) -> ProbeSums | None:
    """Version of `no_sums` for so many features that the device draws the probes."""
    if count == 0:
        return None
    draws = _drawn_on_device(count, d, np.dtype(dtype), seed)
    return sums_without_rows(draws, jnp.zeros_like(draws), ONE_DEVICE)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _drawn_on_device(count: int, d: int, dtype: Any, seed: int) -> jax.Array:
    """Return Gaussian probes (count, d)."""
    return jax.random.normal(jax.random.fold_in(jax.random.key(seed), STREAM), (count, d), dtype)


def sums_without_rows(draws: jax.Array, images: jax.Array, placement: Placement) -> ProbeSums:
    """Return probes (r, d) without rows; `images` are zero."""
    dtype = draws.dtype
    return ProbeSums(
        draws,
        images,
        placement.replicated(np.zeros((), dtype)),
        placement.replicated(np.asarray(unit_roundoff(dtype), dtype)),
        placement.replicated(np.zeros((), np.int32)),
        placement.replicated(np.zeros((), np.int32)),
    )


def add_batch(
    sums: ProbeSums, rows: SampleRows, before: Moments, own: Moments, *, center: bool
) -> ProbeSums:
    """Return the sums with one more batch.

    Parameters
    ----------
    sums : ProbeSums
    rows : SampleRows
        The batch, with its weights.
    before, own : Moments
        Of the rows before the batch, and of the batch.
    center : bool
        Whether M is about the mean.
    """
    scores = rows.pass_scores(sums.draws)
    constant, xp = rows.constant(), array_namespace(scores)
    own_rows, parts = xp.asarray(xp.count_nonzero(constant)).astype(sums.longest.dtype), 1
    if isinstance(rows, CSRRows):
        own_rows, parts = sums_of_rows(int(own_rows))
    elif isinstance(rows, HostRows):
        own_rows = longest_host_sum(int(own_rows))
    elif isinstance(rows, DenseRows) and rows.one_device:
        own_rows = xp.minimum(own_rows, longest_row_sum(rows.values.shape[0]))
    sums = sums._replace(
        largest=xp.maximum(sums.largest, _largest_row(rows)),
        longest=xp.maximum(sums.longest, own_rows),
        chain=sums.chain + parts,
    )
    if not center:
        return sums._replace(images=rows.add_directions(sums.images, scores))
    scores = scores - constant * full_product(own.mean[None, :], sums.draws.T)
    images = rows.add_directions(sums.images, scores)
    # Centred scores sum to zero up to rounding.
    sums_of_scores = (rows.gram if isinstance(rows, HostRows) else row_product)(scores, constant)
    images = images - sums_of_scores * own.mean[None, :]
    return _with_bridge(sums._replace(images=images), before, own)


def merge_sums(
    one: ProbeSums | None, other: ProbeSums | None, mine: Moments, theirs: Moments, *, center: bool
) -> ProbeSums | None:
    """Return the sums of both sets of rows together; None if one has no probes."""
    if one is None or other is None:
        return None
    images, *limits = one.images + other.images, *map(jnp.maximum, one[2:], other[2:])
    sums = ProbeSums(one.draws, images, *limits)
    sums = sums._replace(chain=sums.chain + 1)
    return _with_bridge(sums, mine, theirs) if center else sums


def sums_in_precision(sums: ProbeSums | None, dtype: Any) -> ProbeSums | None:
    """Return the sums in another dtype. Their unit roundoff is that of the coarser one."""
    if sums is None:
        return None
    draws, images, largest, unit = (leaf.astype(dtype) for leaf in sums[:4])
    unit = jnp.maximum(unit, jnp.asarray(unit_roundoff(dtype), dtype))
    return ProbeSums(draws, images, largest, unit, *sums[4:])


def fade_sums(sums: ProbeSums | None, keep: jax.Array) -> ProbeSums | None:
    """Return the sums with the weight of all rows multiplied by `keep`."""
    return None if sums is None else sums._replace(images=keep * sums.images)


def common_probes(
    one: ProbeSums | None, other: ProbeSums | None
) -> tuple[ProbeSums | None, ProbeSums | None]:
    """Return the sums of the probes that two streams have in common, so that they can be merged; else None.

    With the same seed the probes of one stream are the first ones of the other, however many both have.
    """
    if one is None or other is None or one.draws.shape[1] != other.draws.shape[1]:
        return None, None
    count = min(len(one.draws), len(other.draws))
    mine, theirs = (
        sums._replace(draws=sums.draws[:count], images=sums.images[:count]) for sums in (one, other)
    )
    return (mine, theirs) if bool(jnp.array_equal(mine.draws, theirs.draws)) else (None, None)


def _with_bridge(sums: ProbeSums, one: Moments, other: Moments) -> ProbeSums:
    """Return the sums with what the difference of two means adds: one more row."""
    total = one.weight + other.weight
    xp = array_namespace(total)
    weight = one.weight * (other.weight / xp.where(total > 0, total, 1))
    step = (other.mean - one.mean)[None, :]
    images = sums.images + weight * full_product(sums.draws, step.T) * step
    largest = xp.maximum(sums.largest, weight * xp.sum(xp.square(step)))
    return sums._replace(images=images, largest=largest)


def _largest_row(rows: SampleRows) -> jax.Array:
    """Return the largest sum of squares of a row."""
    if isinstance(rows, CSRRows | HostRows):
        return rows.row_squares().max(initial=0).astype(rows.values.dtype)
    if isinstance(rows, SparseRows):
        squares = rows.weights[rows.row] * jnp.square(rows.entries)
        return jnp.max(jax.ops.segment_sum(squares, rows.row, rows.weights.shape[0]))
    return jnp.max(row_squares(rows.dense()))
