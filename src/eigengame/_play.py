"""Playing the game: any algorithm of the registry, over fixed rows or over a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.algorithms import Algorithm, Info, name_of
from eigengame.game.rows import DenseRows, Rows, as_rows, floating, play_dtype
from eigengame.game.sphere import into_ball, random_players, retract
from eigengame.sharding.gather import gather, is_distributed
from eigengame.sharding.placement import ONE_DEVICE, Placement, choose_placement
from eigengame.solver.outcome import Outcome, Status


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
    mesh: Any = None,
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
        How often all players meet the rows. Each count is compiled anew: to look in between, play
        the same number several times, each from the `state` of the last.
    seed : int
        Seed of the starting players.
    players : array of shape (k, d), optional
        Where to start: rows of any length, brought to the sphere (or into the ball, by an algorithm
        that lives there).
    state : optional
        The state of an earlier run of the same algorithm, on the same mesh.
    mesh : dict, str or Mesh, optional
        Devices to play on, such as ``{"data": 2, "features": 4}``: see `eigengame.sharding`.
    """
    _algorithm(algorithm)
    rows = as_rows(rows)
    _check.whole("rounds", rounds)
    place = _placement(mesh, rows, k)
    state, found = _start(algorithm, rows, k, seed, players, state, place)
    placed = place.rows(_no_finer(rows, found.dtype))
    state, info = _rounds(algorithm, place, rounds, placed, state)
    return _ended(algorithm, state, info, Status.ROUNDS_PLAYED, rounds, rows.width)


def play_stream(
    algorithm: Algorithm,
    stream: Iterable[Any],
    *,
    k: int | None = None,
    seed: int = 0,
    players: Any = None,
    state: Any = None,
    mesh: Any = None,
) -> Played:
    """Play one update for each batch of a stream.

    Parameters are those of `play`. Batches of one shape are compiled once (see `batches`).
    """
    _algorithm(algorithm)
    seen: list[Info] = []
    found, place, width = None, ONE_DEVICE, 0
    for number, batch in enumerate(stream):
        rows = as_rows(batch, name=f"batch {number}")
        if found is None:
            place = _placement(mesh, rows, k)
            state, found = _start(algorithm, rows, k, seed, players, state, place)
            width = rows.width
        else:
            _check.same_width(f"batch {number}", rows.width, "batch 0", width)
            _shared_or_own(algorithm, rows, found.shape[0])
        state, info = _update(algorithm, place, place.rows(_no_finer(rows, found.dtype)), state)
        seen.append(info)
    if not seen:
        raise ValueError("stream has no batch: give at least one batch of rows.")
    # On the host: JAX stacks thousands of small arrays in time that grows with their square.
    info = jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *jax.device_get(seen))
    return _ended(algorithm, state, info, Status.STREAM_ENDED, 1, width)


def _algorithm(algorithm: Any) -> None:
    """Accept an algorithm with its options, not its name or its class."""
    if isinstance(algorithm, str):
        raise ValueError(f"algorithm={algorithm!r}: give make({algorithm!r}) with its options.")
    if isinstance(algorithm, type):
        name = algorithm.__name__
        raise ValueError(f"algorithm={name}: give an algorithm with its options, {name}(...).")
    if not all(callable(getattr(algorithm, f, None)) for f in ("init", "update", "components")):
        raise ValueError(
            f"algorithm={algorithm!r}: give one that has init, update and components, "
            'for example make("alpha").'
        )


def _placement(mesh: Any, rows: Rows, k: int | None) -> Placement:
    """Return where rows and players go."""
    m = rows.values.shape[0] if isinstance(rows, DenseRows) else rows.width
    return choose_placement(mesh, m, k or 1, rows.width)


def _start(
    algorithm: Algorithm,
    rows: Rows,
    k: int | None,
    seed: int,
    players: Any,
    state: Any,
    place: Placement,
) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Return the state to play from, an earlier run's or a new one, and what its components are."""
    if state is None:
        players = _players(algorithm, rows, k, seed, players)
        _shared_or_own(algorithm, rows, players.shape[0])
        state = place.state(algorithm, algorithm.init(players), players.shape[0])
        return state, jax.eval_shape(algorithm.components, state)
    if players is not None:
        raise ValueError("players and state: give one of them; a state has players of its own.")
    found = _described(algorithm, state)
    if k is not None and k != found.shape[0]:
        raise ValueError(f"k={k!r} but state has {found.shape[0]} players: leave k out.")
    _check.same_width("state", found.shape[1], "rows", place.width(rows.width))
    _shared_or_own(algorithm, rows, found.shape[0])
    return state, found


def _players(algorithm: Algorithm, rows: Rows, k: int | None, seed: int, players: Any) -> jax.Array:
    """Return the starting players, checked against the rows, in the precision of the run."""
    dtype = play_dtype(rows)
    if players is None:
        if k is None:
            raise ValueError("k=None: give the number of components k, or players to start from.")
        _check.component_count(k, rows.width)
        return random_players(_check.seed("seed", seed), k, rows.width, dtype)
    given = _check.matrix("players", players)
    players = floating("players", given)
    # The finer of players' and rows' precision: neither loses digits, and no update changes it.
    players = players.astype(jnp.promote_types(players.dtype, dtype))
    _check.same_width("players", players.shape[1], "rows", rows.width)
    _check.component_count(players.shape[0], rows.width, name="number of players")
    if k is not None and k != players.shape[0]:
        raise ValueError(f"k={k!r} but players has {players.shape[0]} rows: leave k out.")
    zero = ~np.asarray(jnp.any(players != 0, axis=1))
    if zero.any():
        raise ValueError(
            f"players[{int(zero.argmax())}] is zero: give rows that point somewhere, "
            "or k for random ones."
        )
    on_the_ball = getattr(algorithm, "surface", "sphere") == "ball"
    return into_ball(players) if on_the_ball else retract(players)


def _shared_or_own(algorithm: Algorithm, rows: Rows, k: int) -> None:
    """Accept one batch for all players or, where the algorithm wants it, one for each."""
    wanted = getattr(algorithm, "own_batches", False)
    shape = rows.values.shape if isinstance(rows, DenseRows) else ()
    given = len(shape) == 3
    if given and not wanted:
        raise ValueError(
            f"rows has shape {shape}, one batch for each player: "
            "give Alpha(own_batches=True), or rows of shape (m, d)."
        )
    if wanted and not given:
        raise ValueError(
            "own_batches=True but rows is one batch: give rows of shape (k, m, d), "
            "or own_batches=False."
        )
    if wanted and shape[0] != k:
        raise ValueError(
            f"rows has {shape[0]} batches for {k} players: "
            "give one batch for each player, shape (k, m, d)."
        )


def _described(algorithm: Algorithm, state: Any) -> jax.ShapeDtypeStruct:
    """Return shape and dtype of the state's components, after checking that it is of this algorithm."""
    wrong = f"state is {type(state).__name__} but not one of {algorithm}"
    fix = "give the state of an earlier run of the same algorithm and options."
    try:
        has = jax.eval_shape(lambda state: state, state)
        found = jax.eval_shape(algorithm.components, state)
        wants = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct(found.shape, found.dtype))
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{wrong} ({error}): {fix}") from None
    trees: list[Any] = [jax.tree.structure(tree) for tree in (has, wants)]
    if trees[0] != trees[1]:
        raise ValueError(f"{wrong}: {fix}")
    for one, other in zip(jax.tree.leaves(has), jax.tree.leaves(wants), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise ValueError(
                f"{wrong} (it holds {one.dtype}{one.shape} for {other.dtype}{other.shape}): {fix}"
            )
    return found


def _no_finer(rows: Rows, dtype: Any) -> Rows:
    """Return the rows, no finer than the players: the players' dtype is that of the whole run."""

    def cast(leaf: jax.Array) -> jax.Array:
        finer = jnp.issubdtype(leaf.dtype, jnp.floating) and (
            jnp.promote_types(leaf.dtype, dtype) != dtype
        )
        return leaf.astype(dtype) if finer else leaf

    return jax.tree.map(cast, rows)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _rounds(
    algorithm: Algorithm, place: Placement, rounds: int, rows: Rows, state: Any
) -> tuple[Any, Info]:
    """Return the state after `rounds` updates on the same rows, and what each of them saw."""

    def one(state: Any, _: None) -> tuple[Any, Info]:
        return _updated(algorithm, place, rows, state)

    return jax.lax.scan(one, state, None, length=rounds)


@partial(jax.jit, static_argnums=(0, 1))
def _update(algorithm: Algorithm, place: Placement, rows: Rows, state: Any) -> tuple[Any, Info]:
    """Return the state after one update: compiled once for each algorithm and shape."""
    return _updated(algorithm, place, rows, state)


def _updated(algorithm: Algorithm, place: Placement, rows: Rows, state: Any) -> tuple[Any, Info]:
    """Return the state after one update, where it was."""
    k = jax.eval_shape(algorithm.components, state).shape[0]
    state, info = algorithm.update(rows, state)
    return place.constrain_state(algorithm, state, k), info


def _ended(
    algorithm: Algorithm, state: Any, info: Info, status: Status, passes: int, width: int
) -> Played:
    """Return what the run leaves, with its ending told apart from a divergence."""
    components = algorithm.components(state)[:, :width]
    if is_distributed(components):
        components = jnp.asarray(gather(components))
    if not jnp.isfinite(components).all():
        status = Status.DIVERGED
    elif getattr(state, "active", len(components)) < len(components):
        status = Status.TURNS_LEFT
    outcome = Outcome(status, name_of(algorithm), passes)
    return Played(components, state, info, outcome)
