"""Playing the game: any algorithm of the registry, over fixed rows or over a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.algorithms import Algorithm, Info
from eigengame.game.rows import DenseRows, Rows, as_rows
from eigengame.game.sphere import random_players
from eigengame.outcome import Outcome


class Played(NamedTuple):
    """What a run leaves behind.

    Attributes
    ----------
    components : array of shape (k, d)
        The components found, in their order.
    state : algorithm state
        Give it back to play on.
    info : Info
        What was seen in each round or update: its fields have shape (rounds, k).
    outcome : Outcome
        How the run ended.
    """

    components: jax.Array
    state: Any
    info: Info
    outcome: Outcome


def play(
    algorithm: Algorithm,
    rows: Any,
    *,
    k: int | None = None,
    rounds: int = 1000,
    seed: int = 0,
    players: Any = None,
    state: Any = None,
) -> Played:
    """Play `rounds` rounds on the same rows.

    Parameters
    ----------
    algorithm : Algorithm
        For example `make("alpha", step_size=1e-3)`.
    rows : Rows or array of shape (m, d)
        What every round sees.
    k : int
        Number of players, started at random from `seed`; or give `players`, or a `state` to play on.
    rounds : int
        How often all players meet the rows.
    seed : int
        Seed of the starting players.
    players : array of shape (k, d), optional
        Where to start.
    state : optional
        The state of an earlier run of the same algorithm.
    """
    rows = as_rows(rows)
    _check.whole("rounds", rounds)
    if state is None:
        state = algorithm.init(_start(rows, k, seed, players))
    state, info = _rounds(algorithm, rounds, rows, state)
    return _ended(algorithm, state, info, Outcome.ROUNDS_PLAYED)


def play_stream(
    algorithm: Algorithm,
    stream: Iterable[Any],
    *,
    k: int | None = None,
    seed: int = 0,
    players: Any = None,
    state: Any = None,
) -> Played:
    """Play one update for each batch of a stream.

    Parameters are those of `play`. Batches of one shape are compiled once (see `batches`).
    """
    seen: list[Info] = []
    width = None
    for number, batch in enumerate(stream):
        rows = as_rows(batch, name=f"batch {number}")
        if width is not None:
            _check.same_width(f"batch {number}", rows.width, "batch 0", width)
        width = rows.width
        if state is None:
            state = algorithm.init(_start(rows, k, seed, players))
        state, info = _update(algorithm, rows, state)
        seen.append(info)
    if not seen:
        raise ValueError("stream has no batch: give at least one batch of rows.")
    info = jax.tree.map(lambda *parts: jnp.stack(parts), *seen)
    return _ended(algorithm, state, info, Outcome.STREAM_ENDED)


def _start(rows: Rows, k: int | None, seed: int, players: Any) -> jax.Array:
    """Return the starting players, checked against the rows."""
    dtype = jax.eval_shape(rows.scores, jnp.zeros((1, rows.width), jnp.bfloat16)).dtype
    if players is None:
        if k is None:
            raise ValueError("k=None: give the number of components k, or players to start from.")
        _check.component_count(k, rows.width)
        players = random_players(seed, k, rows.width, dtype)
    _check.matrix("players", players)
    players = jnp.asarray(players)
    if not jnp.issubdtype(players.dtype, jnp.floating):
        players = players.astype(dtype)
    _check.same_width("players", players.shape[1], "rows", rows.width)
    _check.component_count(players.shape[0], rows.width, name="number of players")
    if isinstance(rows, DenseRows) and rows.values.ndim == 3:
        _own_batches(rows, players)
    return players


def _own_batches(rows: DenseRows, players: jax.Array) -> None:
    """Accept one batch for each player."""
    if rows.values.shape[0] != players.shape[0]:
        raise ValueError(
            f"rows has {rows.values.shape[0]} batches for {players.shape[0]} players: "
            "give one batch for each player, shape (k, m, d)."
        )


@partial(jax.jit, static_argnums=(0, 1))
def _rounds(algorithm: Algorithm, rounds: int, rows: Rows, state: Any) -> tuple[Any, Info]:
    """Return the state after `rounds` updates on the same rows, and what each of them saw."""

    def one(state: Any, _: None) -> tuple[Any, Info]:
        return algorithm.update(rows, state)

    return jax.lax.scan(one, state, None, length=rounds)


@partial(jax.jit, static_argnums=0)
def _update(algorithm: Algorithm, rows: Rows, state: Any) -> tuple[Any, Info]:
    """Return the state after one update: compiled once for each algorithm and shape."""
    return algorithm.update(rows, state)


def _ended(algorithm: Algorithm, state: Any, info: Info, outcome: Outcome) -> Played:
    """Return what the run leaves, with its ending told apart from a divergence."""
    components = algorithm.components(state)
    if not np.isfinite(np.asarray(components)).all():
        outcome = Outcome.DIVERGED
    return Played(components, state, info, outcome)
