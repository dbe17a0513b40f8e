"""The remembered game over a stream: batches in, players, moments and an estimate out."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import Memory
from eigengame.game.rows import DenseRows
from eigengame.linalg.orthonormal import inner, norms
from eigengame.metrics import angular_error
from eigengame.sharding.gather import any_spread
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.certificate import Certificate
from eigengame.solver.frame import Frame
from eigengame.solver.moments import (
    Moments,
    batch_moments,
    fade_moments,
    gathered_moments,
    kept_moments,
    merge_moments,
    no_moments,
)
from eigengame.solver.passes import Passes


class Stream(NamedTuple):
    """A remembered game in progress, with what is reported beside it.

    Attributes
    ----------
    state : RememberedState
    moments : Moments
        Of every feature.
    rows : int
        Rows seen, exactly.
    looks : tuple of two (int, array of shape (k, d))
        The components as they were at two earlier counts of rows, each at least twice the one before.
    """

    state: RememberedState
    moments: Moments
    rows: int
    looks: tuple[tuple[int, jax.Array], tuple[int, jax.Array]]

    @property
    def earlier(self) -> tuple[int, jax.Array]:
        """The look when about half of the rows, at most three quarters, had been seen."""
        older, newer = self.looks
        return newer if 4 * newer[0] <= 3 * self.rows else older


def begin(
    algorithm: Remembered,
    k: int,
    d: int,
    dtype: Any,
    seed: int,
    place: Placement = ONE_DEVICE,
) -> Stream:
    """Return a game in which nothing has been seen."""
    players = drawn(algorithm.players_for(k, d), d, dtype, seed)
    state = algorithm.empty_state(jax.device_put(players), k)
    state = place.state(state)
    start = (0, place.players(players[:k]))
    return Stream(state, no_moments(d, dtype, place), 0, (start, start))


def drawn(count: int, d: int, dtype: Any, seed: int) -> np.ndarray:
    """Return random orthonormal players (count, d), by NumPy: a game begins without compiling."""
    draws = np.random.default_rng(seed).standard_normal((count, d), dtype)
    if d < 4 * count:
        return np.ascontiguousarray(np.linalg.qr(draws.T)[0].T)
    # Many more features than players: the draws are nearly orthogonal, and Cholesky is good enough.
    factor = np.linalg.cholesky((draws @ draws.T).astype(np.float64))
    return np.linalg.inv(factor).astype(dtype) @ draws


def take(
    algorithm: Remembered, memory: Stream, rows: Any, count: int, place: Placement = ONE_DEVICE
) -> Stream:
    """Return the game after one more batch, of which `count` rows are not padding."""
    state, moments, components = _step(algorithm, place, rows, memory.state, memory.moments)
    seen, (_, newer) = memory.rows + count, memory.looks
    if seen < max(2 * newer[0], 1):
        return Stream(state, moments, seen, memory.looks)
    return Stream(state, moments, seen, (newer, (seen, components)))


def merge(algorithm: Remembered, one: Stream, other: Stream) -> Stream:
    """Return the game of both streams together.

    Without forgetting it does not matter which came first. With it both end at the same time: neither is faded by
    the rows of the other.
    """
    state, moments = _merge(algorithm, one.state, other.state, one.moments, other.moments)
    larger = one if one.rows >= other.rows else other
    look = (larger.rows, algorithm.components(larger.state))
    return Stream(state, moments, one.rows + other.rows, (look, look))


@partial(jax.jit, static_argnums=0)
def _merge(
    algorithm: Remembered,
    one: RememberedState,
    other: RememberedState,
    moments: Moments,
    others: Moments,
) -> tuple[RememberedState, Moments]:
    """Return state and moments of both: compiled as one, where step by step takes much longer."""
    return algorithm.merge(one, other), merge_moments(moments, others)


def reframed(stream: Stream, frame: Frame, target: Frame) -> Stream:
    """Return a stream whose rows were in one frame as if they had been in another."""
    if frame.plain and target.plain:
        return stream
    memory, moments = stream.state.memory, stream.moments
    factor = frame.unit / target.unit
    if not 1e-15 < factor < 1e15:  # squares of the one are beyond the other's precision
        raise ValueError(
            f"the two streams have numbers of about {frame.unit:.1g} and {target.unit:.1g}: their sizes are too "
            "different to be merged in one dtype; scale the data of one of them."
        )

    def mean_of(mean: jax.Array) -> jax.Array:
        moved = target.inner(frame.outer(np.asarray(mean)))
        return jnp.asarray(moved, mean.dtype)

    memory = memory._replace(strengths=memory.strengths * factor**2, mean=mean_of(memory.mean))
    moments = moments._replace(mean=mean_of(moments.mean), scatter=moments.scatter * factor**2)
    return stream._replace(state=stream.state._replace(memory=memory), moments=moments)


def reordered(stream: Stream, order: np.ndarray) -> Stream:
    """Return the same stream with its features in another order, given as indices (d,)."""
    memory, moments = stream.state.memory, stream.moments
    memory = memory._replace(players=memory.players[:, order], mean=memory.mean[order])
    moments = moments._replace(mean=moments.mean[order], scatter=moments.scatter[order])
    # Wide streams begin without a copy of their players: an array (k, 0).
    older, newer = (
        (rows, look[:, order] if look.shape[1] else look) for rows, look in stream.looks
    )
    state = stream.state._replace(memory=memory)
    return Stream(state, moments, stream.rows, (older, newer))


def in_precision(stream: Stream, dtype: Any) -> Stream:
    """Return the same stream with its arrays in another dtype."""

    def cast(leaf: Any) -> Any:
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(dtype) if floating else leaf

    return jax.tree.map(cast, stream)


@partial(jax.jit, static_argnums=(0, 1))
def _step(
    algorithm: Remembered, place: Placement, rows: Any, state: RememberedState, moments: Moments
) -> tuple[RememberedState, Moments, jax.Array]:
    """Return state, moments and components after one batch: one compilation for each shape."""
    counted = rows
    if algorithm.forget != 1:
        counted, keep = algorithm.fade(rows, moments.weight.dtype)
        moments = fade_moments(moments, keep)
    own = batch_moments(counted)
    moments = merge_moments(moments, own)
    if algorithm.forget == 1 and isinstance(rows, DenseRows):
        rows = replace(rows, mean=own.mean)
    state, _ = algorithm.update(rows, state)
    state = place.kept(state)
    moments = kept_moments(moments, place)
    return state, moments, algorithm.components(state)


def one_pass(
    algorithm: Remembered, reading: Passes, begun: Stream, place: Placement = ONE_DEVICE
) -> Stream:
    """Return the game after one pass over the data."""
    step = partial(take, algorithm, place=place)
    return reading.fold(step, begun, task="remembered", tell=so_far)


def gathered(stream: Stream, d: int, place: Placement) -> Stream:
    """Return the game of d features on one device, to go on with anywhere."""
    if place.mesh is None:
        return stream
    here, state, memory = place.gathered, stream.state, stream.state.memory
    memory = Memory(
        players=here(memory.players, len(memory.players), d),
        strengths=here(memory.strengths),
        mean=here(memory.mean, d),
        weight=here(memory.weight),
    )
    older, newer = ((rows, here(look, len(look), d)) for rows, look in stream.looks)
    return Stream(
        RememberedState(memory, here(state.like), here(state.step)),
        gathered_moments(stream.moments, d, place),
        stream.rows,
        (older, newer),
    )


def so_far(seen: Stream) -> dict[str, float]:
    """Return figures of a stream worth watching: the share of variance explained, and the streak."""
    if any_spread(seen):  # Only together could processes say, and not all of them are watched.
        return {}
    k, memory = seen.state.k, seen.state.memory
    total = float(np.sum(np.asarray(seen.moments.scatter, np.float64)))
    share = (
        float(np.sum(np.asarray(memory.strengths, np.float64)[:k])) / total if total > 0 else 0.0
    )
    return {"variance": share, "streak": float(estimated(seen, k, 1.0).streak())}


def estimated(memory: Stream, k: int, scale: float) -> Certificate:
    """Return what one pass can say: how far components moved since about half of the rows were seen."""
    known = memory.state.memory
    values = np.asarray(known.strengths, np.float64)
    below = np.append(values[1:], 0.0)[:k]
    above = np.append(np.inf, values[:-1])[:k]
    seen, before = memory.earlier
    moved = _angles(known.players[:k], before)
    unknown = np.full(k, np.nan)
    return Certificate(
        kind="estimate",
        rayleigh=values[:k] / scale,
        residual=unknown,
        gap=np.minimum(values[:k] - below, above - values[:k]) / scale,
        # Before the first look players were where they had been drawn: that says nothing.
        angle=np.where((values[:k] > 0) & (seen > 0), moved, math.pi / 2),
        level=float(values[-1] / scale) if values.size > k else 0.0,
        confidence=0.0,
        gradient_angle=unknown,
        penalty_ratio=unknown,
    )


def _angles(components: jax.Array, before: jax.Array) -> np.ndarray:
    """Return how far each component is from where it was, shape (k,)."""
    if before.shape != components.shape:
        return np.full(len(components), math.pi / 2)
    if components.size > 2**25 and isinstance(components, jax.Array):
        return np.asarray(_angles_there(components, before), np.float64)
    return angular_error(np.asarray(components, np.float64), np.asarray(before, np.float64))


@jax.jit
def _angles_there(components: jax.Array, before: jax.Array) -> jax.Array:
    """Return the same where the components are: what is too large to be sent for a look."""
    along = inner(components, before)
    return jnp.arctan2(norms(components - along * before), jnp.abs(along))[:, 0]
