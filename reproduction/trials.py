"""Trials: one algorithm from many random starts, vmapped, with measurements during the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from eigengame.algorithms import Algorithm, Alpha, BestResponse, Remembered
from eigengame.game.rows import DenseRows, Rows
from eigengame.game.sphere import random_players
from reproduction.protocol import HELD_OUT, Runs

Family = Callable[[Any], Algorithm]
"""Makes an algorithm for a step size. Define it once by name: a new function is compiled anew."""

Measure = Callable[[jax.Array, Any], Any]
"""Takes components (k, d) and the truth, and returns a tree of arrays."""


def eigengame(step: Any) -> Alpha:
    """Return EigenGame, which follows the gradient without projection."""
    return Alpha(step, riemannian=False)


def remembered(_: Any) -> Remembered:
    """Return the remembered game, which has no step size."""
    return Remembered()


def best_response(_: Any) -> BestResponse:
    """Return best response with one round per update, which has no step size."""
    return BestResponse(rounds=1)


def components(found: jax.Array, _: Any) -> jax.Array:
    """Return the components themselves: the `Measure` that keeps everything."""
    return found


def starts(first_seed: int, trials: int, k: int, d: int) -> jax.Array:
    """Return the initial players of each trial, shape (trials, k, d)."""
    seeds = range(first_seed, first_seed + trials)
    return jnp.stack([random_players(seed, k, d, jnp.float32) for seed in seeds])


def orders(first_seed: int, trials: int, n: int, size: int, updates: int) -> np.ndarray:
    """Return the row indices of each batch of each trial, shape (trials, updates, size).

    Each trial shuffles the n rows for every pass. Rows that do not fill a last batch are left out.
    """
    per_pass = n // size

    def one(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        passes = -(-updates // per_pass)
        drawn = [rng.permutation(n)[: per_pass * size].reshape(-1, size) for _ in range(passes)]
        return np.concatenate(drawn)[:updates].astype(np.int32)

    return np.stack([one(seed) for seed in range(first_seed, first_seed + trials)])


def log_points(updates: int, count: int) -> list[int]:
    """Return about `count` increasing iterations from 1 to `updates`, in equal ratios.

    Iterations are whole numbers: at the start, where the ratio is below one iteration, every iteration is a
    point. Rounding makes points coincide there, so that the ratio is chosen for `count` distinct ones.
    """
    count = min(count, updates)
    drawn = count
    while True:
        points = np.unique(np.rint(np.geomspace(1, updates, drawn)).astype(int)).tolist()
        if len(points) >= count:
            return points
        drawn += 1


def seeded_runs(
    family: Family,
    rows: Any,
    truth: Any,
    measure: Measure,
    *,
    k: int,
    trials: int,
    updates: int | None = None,
    every: int | None = None,
    points: Sequence[int] | None = None,
    batch: int | None = None,
) -> Runs:
    """Return a function for `tune` that runs all trials at a step size from a first seed.

    With `batch`, rows are an array of shape (n, d), and each trial shuffles it. The shuffles are made here,
    so that they are not part of measured times. Other parameters: see `play_trials`.
    """
    d = rows.width if batch is None else rows.shape[1]
    points = _measured_at(updates, every, points)
    shuffled = {
        seed: None if batch is None else orders(seed, trials, len(rows), batch, points[-1])
        for seed in (0, HELD_OUT)
    }

    def runs(step: float, first_seed: int) -> Any:
        return play_trials(
            family,
            step,
            starts(first_seed, trials, k, d),
            rows,
            truth,
            measure,
            points=points,
            order=shuffled[first_seed],
        )

    return runs


def play_trials(
    family: Family,
    step: float,
    players: jax.Array,
    rows: Rows | jax.Array,
    truth: Any,
    measure: Measure,
    *,
    updates: int | None = None,
    every: int | None = None,
    points: Sequence[int] | None = None,
    order: Any = None,
) -> Any:
    """Run one algorithm from many starts and measure it during the run.

    Parameters
    ----------
    family : function
        Makes the algorithm for a step size.
    step : float
        Step size.
    players : array of shape (trials, k, d)
        Initial players.
    rows : Rows, or array of shape (n, d) with `order`
        The rows of every update, or the array that batches are taken from.
    truth : tree
        Passed to `measure`.
    measure : function
        Takes components (k, d) and the truth.
    updates, every : int, optional
        Number of updates, and updates per measurement. An incomplete last group is not run.
    points : increasing sequence of int, optional
        Numbers of updates after which to measure, in place of `updates` and `every`; see `log_points`.
    order : array of shape (trials, updates, m), optional
        Row indices of each batch.

    Returns
    -------
    tree of arrays with leading axes (trials, points)
    """
    stretches = np.diff(_measured_at(updates, every, points), prepend=0).astype(np.int32)
    size = jnp.asarray(step, players.dtype)
    order = None if order is None else jnp.asarray(order)
    with one_thread():
        return jax.device_get(
            _measured(family, measure, stretches, size, players, rows, truth, order)
        )


def _measured_at(
    updates: int | None, every: int | None, points: Sequence[int] | None
) -> Sequence[int]:
    """Return the iterations of all measurements."""
    if points is not None:
        if updates is not None or every is not None or not len(points):
            raise ValueError("give points (at least one), or updates and every.")
        if points[0] < 1 or np.any(np.diff(points) < 1):
            raise ValueError(f"points={list(points)[:5]}...: give increasing numbers from 1 on.")
        return points
    if updates is None or every is None:
        raise ValueError("give updates and every, or points.")
    return range(every, updates + 1, every)


def one_thread() -> threadpool_limits:
    """Limit LAPACK to one thread: a QR of 784 x 16 takes a hundred times as long on two busy cores."""
    return threadpool_limits(1, user_api="blas")


@partial(jax.jit, static_argnums=(0, 1))
def _measured(
    family: Family,
    measure: Measure,
    stretches: jax.Array,
    step: jax.Array,
    players: jax.Array,
    rows: Any,
    truth: Any,
    order: jax.Array | None,
) -> Any:
    """Return the measurements of all trials, after stretches of the given numbers of updates.

    The lengths of the stretches are data, so that runs of any length with equally many points compile once.
    """
    algorithm = family(lambda _: step)

    def trial(players: jax.Array, order: jax.Array | None) -> Any:
        def update(at: jax.Array, state: Any) -> Any:
            batch = rows if order is None else DenseRows(rows[order[at]])
            return algorithm.update(batch, state)[0]

        def stretch(carry: tuple[jax.Array, Any], length: jax.Array) -> tuple[Any, Any]:
            begin, state = carry
            state = jax.lax.fori_loop(begin, begin + length, update, state)
            return (begin + length, state), measure(algorithm.components(state), truth)

        begun = jnp.zeros((), stretches.dtype), algorithm.init(players)
        return jax.lax.scan(stretch, begun, stretches)[1]

    return jax.vmap(trial, in_axes=(0, None if order is None else 0))(players, order)
