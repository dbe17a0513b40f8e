"""The remembered game in progress: a value that can be merged, moved between frames, and saved."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.linalg.orthonormal import inner, norms
from eigengame.metrics import angular_error
from eigengame.sharding.gather import is_distributed
from eigengame.sharding.placement import Placement
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.planning.plan import MOST_PRECISE
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.moments import Moments, gathered_moments, merge_moments, placed_moments
from eigengame.solver.streams.probe_sums import (
    ProbeSums,
    common_probes,
    merge_sums,
    sums_in_precision,
)

Snapshot = tuple[int, Any]
"""A number of rows, and the components (k, d) after these rows."""


class Stream(NamedTuple):
    """A remembered game in progress.

    Attributes
    ----------
    state : RememberedState
    moments : Moments
        Of each feature.
    rows : int
        Rows seen with a weight above 0.
    snapshots : tuple of two (int, array of shape (k, d))
        Components at two earlier numbers of rows, each at least twice the one before.
    overlaps : array of shape (K, K) or (K + 1, K + 1), with r further columns for probes, optional
        Inner products of players and mean, if a pass carries them along.
    probes : ProbeSums, optional
        Random probes and their products with M, which certify the components after the pass.
    """

    state: RememberedState
    moments: Moments
    rows: int
    snapshots: tuple[Snapshot, Snapshot]
    overlaps: jax.Array | None = None
    probes: ProbeSums | None = None

    @property
    def k(self) -> int:
        """Number of components."""
        return self.state.k

    @property
    def earlier(self) -> Snapshot:
        """The snapshot after about half of the rows, at most three quarters of them."""
        older, newer = self.snapshots
        return newer if 4 * newer[0] <= 3 * self.rows else older


def in_host_memory(stream: Stream) -> Stream:
    """Return a stream with arrays of NumPy, which are not copied from those of a CPU.

    Arrays that other processes share stay as they are.
    """

    def held(leaf: Any) -> Any:
        own = isinstance(leaf, jax.Array) and not is_distributed(leaf)
        return np.asarray(leaf) if own else leaf

    found: Stream = jax.tree.map(held, stream)
    return found


def merge(game: Remembered, one: Stream, other: Stream) -> Stream:
    """Return the game of both streams together.

    Without forgetting their order does not matter. With it both end at the same time: the rows of one do not fade
    those of the other.
    """
    probes = common_probes(one.probes, other.probes)
    small = one.state.memory.players.size <= MOST_PRECISE
    merge_states = game.merge_on_host if small else partial(_merge_states, game)
    state = merge_states(one.state, other.state)
    moments, sums = _merge_sums(game, one.moments, other.moments, *probes)
    larger = one if one.rows >= other.rows else other
    snapshot = (larger.rows, game.components(larger.state))
    return Stream(state, moments, one.rows + other.rows, (snapshot, snapshot), probes=sums)


@partial(jax.jit, static_argnums=0)
def _merge_states(
    game: Remembered, one: RememberedState, other: RememberedState
) -> RememberedState:
    """Merge states in one compiled program."""
    return game.merge(one, other)


@partial(jax.jit, static_argnums=0)
def _merge_sums(
    game: Remembered,
    one: Moments,
    other: Moments,
    mine: ProbeSums | None,
    theirs: ProbeSums | None,
) -> tuple[Moments, ProbeSums | None]:
    """Merge moments and probes in one compiled program."""
    return merge_moments(one, other), merge_sums(mine, theirs, one, other, center=game.center)


def with_components(stream: Stream, k: int) -> Stream:
    """Return the stream with its first k players as components; the others are extra."""
    like = stream.state.like
    state = stream.state._replace(like=jax.device_put(np.zeros((k, 0), like.dtype)))
    one, other = ((rows, players[:k]) for rows, players in stream.snapshots)
    return stream._replace(state=state, snapshots=(one, other))


def reframed(stream: Stream, frame: Frame, target: Frame) -> Stream:
    """Return the stream with its rows in another frame."""
    if frame.plain and target.plain:
        return stream
    memory, moments = stream.state.memory, stream.moments
    factor = frame.unit / target.unit
    if not 1e-15 < factor < 1e15:  # squares of one are beyond the precision of the other
        raise ValueError(
            f"the two streams have numbers of about {frame.unit:.1g} and {target.unit:.1g}: their sizes are too "
            "different to be merged in one dtype; scale the data of one of them."
        )

    def mean_of(mean: jax.Array) -> jax.Array:
        moved = frame.moved(np.asarray(mean), target)
        return jnp.asarray(moved, mean.dtype)

    memory = memory._replace(strengths=memory.strengths * factor**2, mean=mean_of(memory.mean))
    moments = moments._replace(mean=mean_of(moments.mean), scatter=moments.scatter * factor**2)
    probes = stream.probes
    if probes is not None:
        probes = probes._replace(
            images=probes.images * factor**2, largest=probes.largest * factor**2
        )
    state = stream.state._replace(memory=memory)
    return stream._replace(state=state, moments=moments, probes=probes)


def without_spread(stream: Stream) -> bool:
    """Return whether all rows so far are equal, so that nothing tells their scale."""
    return not np.asarray(stream.moments.scatter).any()


def reframed_mean(stream: Stream, frame: Frame, target: Frame) -> Stream:
    """Version of `reframed` for a stream of centred rows without spread: only its mean is converted."""
    memory, moments = stream.state.memory, stream.moments
    mean = frame.moved(np.asarray(moments.mean), target)
    moved = jnp.asarray(mean, moments.mean.dtype)
    state = stream.state._replace(memory=memory._replace(mean=moved))
    probes = stream.probes
    if probes is not None:
        largest = jnp.asarray(np.sum(mean**2), probes.largest.dtype)
        probes = probes._replace(images=jnp.zeros_like(probes.images), largest=largest)
    return stream._replace(state=state, moments=moments._replace(mean=moved), probes=probes)


def reordered(stream: Stream, order: np.ndarray) -> Stream:
    """Return the stream with its features in another order, given as indices (d,)."""

    def features(values: jax.Array) -> jax.Array:
        return values[..., order] if values.shape[-1] else values  # some snapshots hold no features

    return _with_features(stream, features)


def in_precision(stream: Stream, dtype: Any) -> Stream:
    """Return the stream with its arrays in another dtype."""

    def cast(leaf: Any) -> Any:
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(dtype) if floating else leaf

    cast_stream: Stream = jax.tree.map(cast, stream._replace(probes=None))
    return cast_stream._replace(probes=sums_in_precision(stream.probes, dtype))


def _with_features(stream: Stream, features: Any) -> Stream:
    """Return the stream with a function applied to each array whose last axis is features."""
    memory, moments = stream.state.memory, stream.moments
    memory = memory._replace(players=features(memory.players), mean=features(memory.mean))
    moments = moments._replace(mean=features(moments.mean), scatter=features(moments.scatter))
    older, newer = ((rows, features(found)) for rows, found in stream.snapshots)
    state, probes = stream.state._replace(memory=memory), stream.probes
    if probes is not None:
        probes = probes._replace(draws=features(probes.draws), images=features(probes.images))
    return stream._replace(state=state, moments=moments, snapshots=(older, newer), probes=probes)


def placed(game: Remembered, stream: Stream, placement: Placement) -> Stream:
    """Return the stream on the devices of a placement; the inverse of `gathered`."""
    if placement.mesh is None:
        return stream
    older, newer = (
        (rows, placement.players(found) if found.shape[1] else found)
        for rows, found in stream.snapshots
    )
    probes = stream.probes
    if probes is not None:
        draws, images = (placement.players(one) for one in (probes.draws, probes.images))
        probes = ProbeSums(draws, images, *map(placement.replicated, probes[2:]))
    return stream._replace(
        state=placement.state(stream.state),
        moments=placed_moments(stream.moments, placement),
        snapshots=(older, newer),
        probes=probes,
    )


def gathered(stream: Stream, d: int, placement: Placement) -> Stream:
    """Return the stream of d features on one device, without the padding of a mesh."""
    if placement.mesh is None:
        return stream

    def gather(leaf: Any) -> Any:
        return placement.gathered(leaf) if isinstance(leaf, jax.Array) else leaf

    def cut(values: Any) -> Any:
        return values[..., :d]

    state = jax.tree.map(gather, stream.state)
    moments = gathered_moments(stream.moments, d, placement)
    older, newer = ((rows, gather(found)) for rows, found in stream.snapshots)
    probes = jax.tree.map(gather, stream.probes)
    whole = stream._replace(state=state, moments=moments, snapshots=(older, newer), probes=probes)
    return _with_features(whole, cut)


def estimate(stream: Stream, scale: float) -> Certificate:
    """Return the certificate of one pass: how far components moved since about half of the rows.

    Parameters
    ----------
    stream : Stream
    scale : float
        Divisor of M for a covariance.
    """
    memory, k = stream.state.memory, stream.k
    values = np.asarray(memory.strengths, np.float64)
    below = np.append(values[1:], 0.0)[:k]
    above = np.append(np.inf, values[:-1])[:k]
    rows, before = stream.earlier
    moved = _angles(memory.players[:k], before)
    unknown = np.full(k, np.nan)
    return Certificate(
        kind="estimate",
        rayleigh=values[:k] / scale,
        residual=unknown,
        gap=np.minimum(values[:k] - below, above - values[:k]) / scale,
        # Before the first snapshot players were at random: the distance from there has no meaning.
        angle=np.where((values[:k] > 0) & (rows > 0), moved, math.pi / 2),
        level=float(values[-1] / scale) if values.size > k else 0.0,
        confidence=0.0,
        gradient_angle=unknown,
        penalty_ratio=unknown,
    )


def _angles(components: Any, before: Any) -> np.ndarray:
    """Return the angle of each component to its earlier direction, shape (k,)."""
    if before.shape != components.shape:
        return np.full(len(components), math.pi / 2)
    if components.size > 2**25 and isinstance(components, jax.Array):
        return np.asarray(_angles_on_device(components, before), np.float64)
    return angular_error(np.asarray(components, np.float64), np.asarray(before, np.float64))


@jax.jit
def _angles_on_device(components: jax.Array, before: jax.Array) -> jax.Array:
    """On-device version of `_angles`, for components that are too large to transfer."""
    along = inner(components, before)
    return jnp.arctan2(norms(components - along * before), jnp.abs(along))[:, 0]
