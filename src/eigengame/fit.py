"""Fitting: a source of rows -> batches -> updates -> what was found, with its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import refine
from eigengame.algorithms import Algorithm, Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.certificate import Certificate, certificate
from eigengame.game.rows import DenseRows, SymmetricRows
from eigengame.game.settle import settle
from eigengame.game.sphere import orthonormalise, random_players
from eigengame.metrics import angular_error
from eigengame.moments import Moments, batch_moments, fade_moments, merge_moments, no_moments
from eigengame.outcome import Ending, Outcome

PROBES = 16
"""Random directions that look for what was missed."""

RISK = 1e-3
"""The chance that they miss it."""

MOST_PASSES = 30
"""Passes that `tol` may take where no number is given."""


class Memory(NamedTuple):
    """A remembered game in progress, with what is reported beside it.

    Attributes
    ----------
    state : RememberedState
    moments : Moments
        Of every feature.
    earlier : array of shape (k, d)
        The components when half as many rows had been seen (or less).
    rows : int
        Rows seen, exactly.
    next_look : int
        Rows at which `earlier` is taken anew.
    """

    state: RememberedState
    moments: Moments
    earlier: jax.Array
    rows: int
    next_look: int


class Found(NamedTuple):
    """What a fit leaves behind, in the unit of the scatter matrix M.

    Attributes
    ----------
    components : array of shape (k, d)
    strengths : array of shape (k,)
    certificate : Certificate
    ending : Ending
    """

    components: np.ndarray
    strengths: np.ndarray
    certificate: Certificate
    ending: Ending


Watch = Callable[[int, Memory], None]
"""Called after each batch with the number of the pass and what is known so far."""


def begin(algorithm: Remembered, k: int, d: int, dtype: Any, seed: int) -> Memory:
    """Return a game in which nothing has been seen."""
    state = algorithm.init(random_players(seed, k, d, dtype))
    return Memory(state, no_moments(d, dtype), state.memory.players[:k], 0, 1)


def take(algorithm: Remembered, memory: Memory, rows: Any, count: int) -> Memory:
    """Return the game after one more batch, of which `count` rows are not padding."""
    state, moments = _step(algorithm, rows, memory.state, memory.moments)
    seen = memory.rows + count
    if seen < memory.next_look:
        return Memory(state, moments, memory.earlier, seen, memory.next_look)
    return Memory(state, moments, algorithm.components(state), seen, 2 * seen)


@partial(jax.jit, static_argnums=0)
def _step(
    algorithm: Remembered, rows: Any, state: RememberedState, moments: Moments
) -> tuple[RememberedState, Moments]:
    """Return players and moments after one batch: one compilation for each shape."""
    if algorithm.forget != 1:
        rows, _ = algorithm._fade(rows, state.memory)
        unfaded = jnp.count_nonzero(rows.weights).astype(moments.weight.dtype)
        moments = fade_moments(
            moments, jnp.asarray(algorithm.forget, moments.weight.dtype) ** unfaded
        )
    moments = merge_moments(moments, batch_moments(rows))
    return algorithm.update(rows, state)[0], moments


def one_pass(
    algorithm: Remembered, source: Any, k: int, dtype: Any, seed: int, watch: Watch | None
) -> Memory:
    """Return the game after one pass over the source."""
    n, d = source.shape
    memory = begin(algorithm, k, d, dtype, seed)
    for rows in source():
        before = memory
        memory = take(algorithm, memory, rows, min(source.size, n - memory.rows))
        # Never more than two batches at once: wait for the one before the one just sent.
        jax.block_until_ready(before.state.step)
        if watch is not None:
            watch(1, memory)
    return memory


def estimated(memory: Memory, k: int, scale: float) -> Certificate:
    """Return what one pass can say: how far components moved since half of the rows were seen."""
    known = memory.state.memory
    values = np.asarray(known.strengths, np.float64)
    below = np.append(values[1:], 0.0)[:k]
    above = np.append(np.inf, values[:-1])[:k]
    moved = angular_error(
        np.asarray(known.players[:k], np.float64), np.asarray(memory.earlier, np.float64)
    )
    unknown = np.full(k, np.nan)
    return Certificate(
        kind="estimate",
        rayleigh=values[:k] / scale,
        residual=unknown,
        gap=np.minimum(values[:k] - below, above - values[:k]) / scale,
        angle=np.where(values[:k] > 0, moved, math.pi / 2),
        level=float(values[-1] / scale) if values.size > k else 0.0,
        confidence=0.0,
        gradient_angle=unknown,
        penalty_ratio=unknown,
    )


def refined(
    source: Any,
    players: jax.Array,
    mean: jax.Array | None,
    k: int,
    *,
    route: str,
    used: int,
    passes: int,
    tol: float | None,
    scale: float,
    seed: int,
) -> Found:
    """Return what further passes make of the players, up to `passes` in all."""
    now = refine.measure(source, players, mean)
    used += 1
    found = certificate(*now.players, k, scale=scale)
    best, best_found, outcome, stalled = now, found, Outcome.PASSES_SPENT, 0
    while used < passes and not _within(best_found, tol):
        now = refine.improve(source, now, mean)
        used += 1
        found = certificate(*now.players, k, scale=scale)
        gain = _merit(found) < 0.7 * _merit(best_found)
        stalled = 0 if gain else stalled + 1
        if _merit(found) < _merit(best_found):
            best, best_found = now, found
        if stalled >= 2 and _at_floor(best_found, best.players.directions.dtype):
            outcome = Outcome.FLOOR_REACHED
            break
    if tol is not None and _within(best_found, tol):
        best_found, used = _checked(source, best, mean, k, used, passes, tol, scale, seed)
        certified = best_found.kind == "certified" and _within(best_found, tol)
        outcome = Outcome.CONVERGED if certified else Outcome.PASSES_SPENT
    players_out = np.asarray(best.players.directions[:k])
    return Found(players_out, best_found.rayleigh * scale, best_found, Ending(outcome, route, used))


def _checked(
    source: Any,
    now: refine.Refined,
    mean: jax.Array | None,
    k: int,
    used: int,
    passes: int,
    tol: float,
    scale: float,
    seed: int,
) -> tuple[Certificate, int]:
    """Return the certificate after random probes looked for what was missed, and passes used."""
    players = now.players.directions
    if players.shape[0] == players.shape[1]:  # nothing lies outside
        return certificate(*now.players, k, scale=scale, level=0.0, confidence=1.0), used
    probes = refine.draw_probes(seed, PROBES, players)
    found = certificate(*now.players, k, scale=scale)
    while used < passes:
        probes = refine.power_probes(source, probes, players, mean, RISK)
        used += 1
        before = found.level if found.kind == "certified" else np.inf
        found = certificate(
            *now.players,
            k,
            scale=scale,
            level=probes.level,
            confidence=1 - RISK,
            probes=PROBES,
            powers=probes.powers,
        )
        if _within(found, tol) or found.level > 0.98 * before:
            break
    return found, used


def certify(
    source: Any, players: Any, mean: Any, k: int, *, scale: float, seed: int, powers: int = 4
) -> Certificate:
    """Return the certificate of given players on the source's data: 1 + `powers` passes."""
    now = refine.measure(source, jnp.asarray(players), mean)
    found, _ = _checked(source, now, mean, k, 0, powers, 0.0, scale, seed)
    return found


def _within(found: Certificate, tol: float | None) -> bool:
    """Say whether every component is within tol by its bound."""
    return tol is not None and bool((found.angle <= tol).all())


def _merit(found: Certificate) -> float:
    """Return how far the worst component may be off, finer than pi/2 where no bound holds yet."""
    return float(np.max(found.angle) + np.max(found.residual) / max(found.rayleigh[0], 1e-300))


def _at_floor(found: Certificate, dtype: Any) -> bool:
    """Say whether residuals are down to what the dtype can resolve."""
    floor = 1e3 * float(jnp.finfo(dtype).eps) * found.rayleigh[0]
    return bool(np.median(found.residual) <= floor)


def by_covariance(
    source: Any, k: int, extra: int, dtype: Any, seed: int, center: bool
) -> tuple[Any, Moments]:
    """Return the rows of M, accumulated in one pass, and the moments: for few features."""
    d = source.shape[1]
    total, moments = jnp.zeros((d, d), dtype), no_moments(d, dtype)
    for rows in source():
        total, moments = _accumulate_covariance(rows, total, moments)
    if center:
        total = total - moments.weight * moments.mean[:, None] * moments.mean[None, :]
    return SymmetricRows((total + total.T) / 2), moments


@jax.jit
def _accumulate_covariance(
    rows: DenseRows, total: jax.Array, moments: Moments
) -> tuple[jax.Array, Moments]:
    """Add one batch's X'X, and its moments."""
    weighted = rows.values if rows.weights is None else rows.weights[:, None] * rows.values
    return total + weighted.T @ rows.values, merge_moments(moments, batch_moments(rows))


def by_steps(
    algorithm: Algorithm,
    source: Any,
    k: int,
    dtype: Any,
    seed: int,
    passes: int,
    mean: jax.Array | None,
    unit: float,
) -> jax.Array:
    """Return the players of an algorithm with a step size after `passes` passes, settled or not.

    Batches are centred and divided by `unit`, so that the largest eigenvalue of a batch is near 1.
    """
    state = algorithm.init(random_players(seed, k, source.shape[1], dtype))
    for _ in range(passes):
        for rows in source():
            state = _plain_step(algorithm, rows, state, mean, unit)
    return algorithm.components(state)


@partial(jax.jit, static_argnums=0)
def _plain_step(
    algorithm: Algorithm, rows: DenseRows, state: Any, mean: jax.Array | None, unit: float
) -> Any:
    """Return the state after one batch of centred, scaled rows."""
    values = rows.values if mean is None else rows.values - mean[None, :]
    return algorithm.update(DenseRows(values / unit, rows.weights), state)[0]


def settled(source: Any, players: jax.Array, mean: jax.Array | None, k: int) -> refine.Refined:
    """Return the players with their images, in their own order: for algorithms that keep one."""
    images = refine.image(source, orthonormalise(players), mean)
    return refine.Refined(refine.Imaged(orthonormalise(players), images))


def first_scale(rows: DenseRows, mean: jax.Array | None) -> float:
    """Return the root of the largest eigenvalue of one batch: the unit for step sizes."""
    values = rows.values if mean is None else rows.values - mean[None, :]
    players = random_players(0, min(4, values.shape[1]), values.shape[1], values.dtype)
    plain = DenseRows(values, rows.weights)
    for _ in range(10):
        players = plain.directions(plain.scores(orthonormalise(players)))
    top = settle(plain, orthonormalise(players))[0][0]
    return float(jnp.sqrt(jnp.maximum(top, 0)))
