"""Many trials of one game at once: the same algorithm from many starts, vmapped."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from eigengame.algorithms import Algorithm
from eigengame.game.rows import DenseRows, Rows
from eigengame.game.sphere import random_players

Family = Callable[[Any], Algorithm]
"""An algorithm for each step size; one that has none takes it and does without."""

Measure = Callable[[jax.Array, Any], Any]
"""What to keep of components (k, d), given what is true."""


def starts(first_seed: int, trials: int, k: int, d: int) -> jax.Array:
    """Return where the players of each trial start, shape (trials, k, d)."""
    seeds = range(first_seed, first_seed + trials)
    return jnp.stack([random_players(seed, k, d, jnp.float32) for seed in seeds])


def orders(first_seed: int, trials: int, n: int, size: int, updates: int) -> np.ndarray:
    """Return which of n rows each trial meets in each update, shape (trials, updates, size).

    Each trial shuffles the rows anew for every pass; the rest of a pass that fills no batch is left out.
    """
    per_pass = n // size

    def one(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        passes = -(-updates // per_pass)
        drawn = [rng.permutation(n)[: per_pass * size].reshape(-1, size) for _ in range(passes)]
        return np.concatenate(drawn)[:updates].astype(np.int32)

    return np.stack([one(seed) for seed in range(first_seed, first_seed + trials)])


def play_trials(
    family: Family,
    step: float,
    players: jax.Array,
    rows: Rows | jax.Array,
    truth: Any,
    measure: Measure,
    *,
    updates: int,
    every: int,
    order: Any = None,
) -> Any:
    """Play one game from many starts, and measure it on the way.

    Parameters
    ----------
    family : function
        The algorithm for a step size. Compiled once for each family: name it, do not make it anew.
    step : float
        The step size.
    players : array of shape (trials, k, d)
    rows : Rows, or array of shape (n, d) with `order`
        What every update meets, or what batches are taken from.
    truth : tree
        Given to `measure`.
    measure : function
        Takes components (k, d) and the truth.
    updates, every : int
        How many updates, and how many between two measurements; the last are dropped that fill no more.
    order : array of shape (trials, updates, m), optional
        The rows of each update.

    Returns
    -------
    tree of arrays with leading axes (trials, updates // every)
    """
    if order is not None:
        trials, size = order.shape[0], order.shape[2]
        order = jnp.asarray(order[:, : updates // every * every]).reshape(trials, -1, every, size)
    size = jnp.asarray(step, players.dtype)
    with one_thread():
        return jax.device_get(
            _measured(family, measure, updates // every, every, size, players, rows, truth, order)
        )


def seconds_of(
    family: Family,
    step: float,
    players: jax.Array,
    rows: Rows | jax.Array,
    *,
    updates: int,
    order: Any = None,
) -> float:
    """Return how long one trial takes, compiled and unmeasured: the second of two runs."""
    size = jnp.asarray(step, players.dtype)
    taken = 0.0
    chosen = None if order is None else jnp.asarray(order[:updates])
    for _ in range(2):
        begun = time.perf_counter()
        with one_thread():
            jax.block_until_ready(_played(family, updates, size, players, rows, chosen))
        taken = time.perf_counter() - begun
    return taken


def one_thread() -> threadpool_limits:
    """Give LAPACK one thread: a QR of 784 x 16 takes a hundred times as long on two busy ones."""
    return threadpool_limits(1, user_api="blas")


def _rows_of(rows: Any, chosen: jax.Array | None) -> Rows:
    """Return the rows of one update."""
    return rows if chosen is None else DenseRows(rows[chosen])


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _measured(
    family: Family,
    measure: Measure,
    points: int,
    every: int,
    step: jax.Array,
    players: jax.Array,
    rows: Any,
    truth: Any,
    order: jax.Array | None,
) -> Any:
    """Return the measurements of every trial."""
    algorithm = family(lambda _: step)

    def stretch(state: Any, chosen: jax.Array | None) -> tuple[Any, Any]:
        def update(state: Any, one: jax.Array | None) -> tuple[Any, None]:
            return algorithm.update(_rows_of(rows, one), state)[0], None

        state, _ = jax.lax.scan(update, state, chosen, length=every)
        return state, measure(algorithm.components(state), truth)

    def trial(players: jax.Array, chosen: jax.Array | None) -> Any:
        return jax.lax.scan(stretch, algorithm.init(players), chosen, length=points)[1]

    return jax.vmap(trial, in_axes=(0, None if order is None else 0))(players, order)


@partial(jax.jit, static_argnums=(0, 1))
def _played(
    family: Family, updates: int, step: jax.Array, players: jax.Array, rows: Any, order: Any
) -> jax.Array:
    """Return the components of one trial after some updates."""
    algorithm = family(lambda _: step)

    def update(state: Any, one: jax.Array | None) -> tuple[Any, None]:
        return algorithm.update(_rows_of(rows, one), state)[0], None

    state, _ = jax.lax.scan(update, algorithm.init(players), order, length=updates)
    return algorithm.components(state)
