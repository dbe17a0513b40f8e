"""Run an algorithm of the registry on fixed rows, or on a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame._rounds import block_of_rounds, run_rounds
from eigengame.algorithms import Algorithm, Info, name_of
from eigengame.game.rows import DenseRows, Rows, as_rows, floating, play_dtype
from eigengame.game.sphere import into_ball, random_players, retract
from eigengame.sharding.gather import gather, is_distributed
from eigengame.sharding.own_batches import own_batches_placement
from eigengame.sharding.placement import ONE_DEVICE, Placement, choose_placement
from eigengame.solver.results.outcome import Outcome, Status


class Played(NamedTuple):
    """The result of a run.

    Attributes
    ----------
    components : array of shape (k, d)
        The components, in order.
    state : algorithm state
        Pass it to `play` or `play_stream` to continue the run.
    info : Info
        Measurements of each update: its fields have shape (rounds, k).
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
    """Run an algorithm for `rounds` updates on the same rows.

    Parameters
    ----------
    algorithm : Algorithm
        For example `make("alpha", step_size=1e-3)`.
    rows : Rows or array of shape (m, d)
        The data of every update. With `own_batches`, an array of shape (k, m, d), one batch for each player.
    k : int, optional
        Number of random initial players. Give this, or `players`, or `state`.
    rounds : int
        Number of updates. Another number does not compile again.
    seed : int
        Seed of the random initial players.
    players : array of shape (k, d), optional
        Initial players. They are scaled to length 1, or to at most 1 if the algorithm plays on the ball.
    state : optional
        The state of an earlier run of the same algorithm on the same mesh, to continue it.
    mesh : dict, str or Mesh, optional
        Devices to use, for example ``{"data": 2, "features": 4}``: see `eigengame.sharding`. With one batch for
        each player, ``{"players": k}`` puts each player and its batch on its own device.
    """
    _check_algorithm(algorithm)
    rows = as_rows(rows)
    _check.whole("rounds", rounds)
    place = _placement(mesh, rows, k)
    state, found = _start(algorithm, rows, k, seed, players, state, place)
    width = rows.width
    # Under the same name: a second copy of the rows would fill the first device for the whole run.
    rows = place.rows(_cast_down(rows, found.dtype))
    state, info = run_rounds(partial(_block, algorithm, place, rows), state, rounds)
    return _played(algorithm, state, info, Status.ROUNDS_PLAYED, rounds, width)


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
    """Run an algorithm with one update for each batch of a stream.

    Parameters are those of `play`. The update is compiled once for each shape of batches (see `game.batches`).
    """
    _check_algorithm(algorithm)
    infos: list[Info] = []
    found, place, width = None, ONE_DEVICE, 0
    for number, batch in enumerate(stream):
        rows = as_rows(batch, name=f"batch {number}")
        if found is None:
            place = _placement(mesh, rows, k)
            state, found = _start(algorithm, rows, k, seed, players, state, place)
            width = rows.width
        else:
            _check.same_width(f"batch {number}", rows.width, "batch 0", width)
            _check_batches(algorithm, rows, found.shape[0])
        state, info = _update(algorithm, place, place.rows(_cast_down(rows, found.dtype)), state)
        infos.append(info)
    if not infos:
        raise ValueError("stream has no batch: give at least one batch of rows.")
    # On the host: JAX needs quadratic time to stack thousands of small arrays.
    info = jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *jax.device_get(infos))
    return _played(algorithm, state, info, Status.STREAM_ENDED, 1, width)


def _check_algorithm(algorithm: Any) -> None:
    """Raise unless this is an instance of an algorithm, and not a name or a class."""
    if isinstance(algorithm, str):
        raise ValueError(f"algorithm={algorithm!r}: give make({algorithm!r}) with its options.")
    if isinstance(algorithm, type):
        name = algorithm.__name__
        raise ValueError(f"algorithm={name}: give an instance with its options, {name}(...).")
    if not all(callable(getattr(algorithm, f, None)) for f in ("init", "update", "components")):
        raise ValueError(
            f"algorithm={algorithm!r}: give an object with methods init, update and components, "
            'for example make("alpha").'
        )


def _placement(mesh: Any, rows: Rows, k: int | None) -> Placement:
    """Return the placement of rows and players."""
    shape = rows.values.shape if isinstance(rows, DenseRows) else (rows.width, rows.width)
    if len(shape) == 3:
        return own_batches_placement(mesh, shape)
    return choose_placement(mesh, shape[0], k or 1, rows.width)


def _start(
    algorithm: Algorithm,
    rows: Rows,
    k: int | None,
    seed: int,
    players: Any,
    state: Any,
    place: Placement,
) -> tuple[Any, jax.ShapeDtypeStruct]:
    """Return the initial state, new or of an earlier run, and the shape and dtype of its components."""
    if state is None:
        players = _players(algorithm, rows, k, seed, players)
        _check_batches(algorithm, rows, players.shape[0])
        state = place.state(algorithm.init(players))
        return state, jax.eval_shape(algorithm.components, state)
    if players is not None:
        raise ValueError("players and state: give one of them, since a state contains players.")
    found = _check_state(algorithm, state)
    if k is not None and k != found.shape[0]:
        raise ValueError(f"k={k!r} but state has {found.shape[0]} players: leave k out.")
    _check.same_width("state", found.shape[1], "rows", place.width(rows.width))
    _check_batches(algorithm, rows, found.shape[0])
    return state, found


def _players(algorithm: Algorithm, rows: Rows, k: int | None, seed: int, players: Any) -> jax.Array:
    """Return the initial players in the precision of the run, after a check against the rows."""
    dtype = play_dtype(rows)
    if players is None:
        if k is None:
            raise ValueError("k=None: give the number of components k, or initial players.")
        _check.component_count(k, rows.width)
        return random_players(_check.seed("seed", seed), k, rows.width, dtype)
    given = _check.matrix("players", players)
    players = floating("players", given)
    # The higher precision of players and rows, so that neither loses digits.
    players = players.astype(jnp.promote_types(players.dtype, dtype))
    _check.same_width("players", players.shape[1], "rows", rows.width)
    _check.component_count(players.shape[0], rows.width, name="number of players")
    if k is not None and k != players.shape[0]:
        raise ValueError(f"k={k!r} but players has {players.shape[0]} rows: leave k out.")
    zero = ~np.asarray(jnp.any(players != 0, axis=1))
    if zero.any():
        raise ValueError(
            f"players[{int(zero.argmax())}] is zero: give non-zero rows, or k for random players."
        )
    on_the_ball = getattr(algorithm, "surface", "sphere") == "ball"
    return into_ball(players) if on_the_ball else retract(players)


def _check_batches(algorithm: Algorithm, rows: Rows, k: int) -> None:
    """Raise unless rows are one batch for all players or, with `own_batches`, one batch for each."""
    own_batches = getattr(algorithm, "own_batches", False)
    shape = rows.values.shape if isinstance(rows, DenseRows) else ()
    several = len(shape) == 3
    if several and not own_batches:
        raise ValueError(
            f"rows has shape {shape}, one batch for each player: "
            "give Alpha(own_batches=True), or rows of shape (m, d)."
        )
    if own_batches and not several:
        raise ValueError(
            "own_batches=True but rows is one batch: give rows of shape (k, m, d), "
            "or own_batches=False."
        )
    if own_batches and shape[0] != k:
        raise ValueError(
            f"rows has {shape[0]} batches for {k} players: "
            "give one batch for each player, shape (k, m, d)."
        )
    if own_batches and isinstance(rows, DenseRows):
        for name, given, size in (("roots", rows.roots, shape[1]), ("mean", rows.mean, shape[2])):
            if given is not None and given.shape != (k, size):
                raise ValueError(
                    f"rows.{name} has shape {given.shape} for rows of shape {shape}: "
                    f"give one for each batch, shape {(k, size)}."
                )


def _check_state(algorithm: Algorithm, state: Any) -> jax.ShapeDtypeStruct:
    """Raise unless the state is one of this algorithm; return shape and dtype of its components."""
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
                f"{wrong} (it has {one.dtype}{one.shape} instead of {other.dtype}{other.shape}): {fix}"
            )
    return found


def _cast_down(rows: Rows, dtype: Any) -> Rows:
    """Cast rows of a higher precision than the players to the players' dtype, that of the whole run."""

    def cast(leaf: jax.Array) -> jax.Array:
        higher = jnp.issubdtype(leaf.dtype, jnp.floating) and (
            jnp.promote_types(leaf.dtype, dtype) != dtype
        )
        return leaf.astype(dtype) if higher else leaf

    return jax.tree.map(cast, rows)


@partial(jax.jit, static_argnums=(0, 1))
def _block(
    algorithm: Algorithm, place: Placement, rows: Rows, state: Any, count: jax.Array
) -> tuple[Any, Info]:
    """Run `count` updates on the same rows (see `block_of_rounds`)."""
    return block_of_rounds(partial(_updated, algorithm, place, rows), state, count)


def _updated(algorithm: Algorithm, place: Placement, rows: Rows, state: Any) -> tuple[Any, Info]:
    """Run one update; the state keeps its placement."""
    state, info = algorithm.update(rows, state)
    return place.constrain_state(state), info


_update = jax.jit(_updated, static_argnums=(0, 1))


def _played(
    algorithm: Algorithm, state: Any, info: Info, status: Status, passes: int, width: int
) -> Played:
    """Return the result of a run, after a check for divergence and for players that did not finish."""
    components = algorithm.components(state)[:, :width]
    if is_distributed(components):
        components = jnp.asarray(gather(components))
    if not jnp.isfinite(components).all():
        status = Status.DIVERGED
    elif getattr(state, "active", len(components)) < len(components):
        status = Status.TURNS_LEFT
    outcome = Outcome(status, name_of(algorithm), passes)
    return Played(components, state, info, outcome)
