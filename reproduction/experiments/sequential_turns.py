"""Alg. 1 from many starts: the length of each player's turn, and the angles."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import Sequential
from eigengame.game import SymmetricRows
from reproduction.trials import starts


class Turns(NamedTuple):
    """Turns of the players in all trials.

    Attributes
    ----------
    angles : array of shape (trials, rounds, k)
        In radians, after each round.
    used : array of shape (trials, k)
        Rounds of each player's turn.
    first : array of shape (trials, k)
        Norm of each player's first Riemannian gradient; 0 if it had no turn.
    done : bool
        Whether all players of all trials finished their turns.
    """

    angles: np.ndarray
    used: np.ndarray
    first: np.ndarray
    done: bool


def play_turns(
    algorithm: Sequential, eigenvalues: np.ndarray, k: int, *, trials: int, rounds: int
) -> Turns:
    """Run k players on a diagonal M, in float64: the thresholds of parents are too small for float32."""
    with jax.enable_x64(True):
        begun = starts(0, trials, k, len(eigenvalues)).astype(jnp.float64)
        rows = SymmetricRows(jnp.diag(jnp.asarray(eigenvalues, jnp.float64)))
        active, norms, angles = jax.device_get(_scanned(algorithm, rounds, rows, begun))
    # Shape (trials, rounds, k): whether a round is in the turn of a player.
    mine = active[:, :-1, None] == np.arange(k)[None, None, :]
    first = np.take_along_axis(norms, mine.argmax(axis=1), axis=1)
    return Turns(
        angles=angles,
        used=mine.sum(axis=1),
        first=np.where(mine.any(axis=1), first, 0),
        done=bool((active[:, -1] == k).all()),
    )


@partial(jax.jit, static_argnums=(0, 1))
def _scanned(
    algorithm: Sequential, rounds: int, rows: SymmetricRows, begun: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the active player (with the one after the last round), its gradient norm, and all angles."""
    truth = jnp.eye(begun.shape[1], begun.shape[2], dtype=begun.dtype)

    def trial(players: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def update(state: Any, _: None) -> tuple[Any, Any]:
            after, info = algorithm.update(rows, state)
            angles = metrics.angular_error(algorithm.components(after), truth)
            # Only the norm of the active player is not 0.
            return after, (state.active, jnp.sum(info.direction_norms), angles)

        state, (active, norms, angles) = jax.lax.scan(
            update, algorithm.init(players), None, length=rounds
        )
        return jnp.append(active, state.active), norms, angles

    return jax.vmap(trial)(begun)
