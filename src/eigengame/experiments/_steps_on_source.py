"""The paper's own algorithm on a source that can be read again, and what its players earn on all of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import InGramSpace
from eigengame.experiments._families import eigengame
from eigengame.game.sphere import random_players
from eigengame.game.utilities import penalties, rewards
from eigengame.solver.batches import Feed
from eigengame.solver.passes import Reading
from eigengame.sources import Source


def play_steps(
    source: Source, k: int, *, step: float, batch: int, passes: int, seed: int = 0
) -> np.ndarray:
    """Return the players of EigenGame, shape (k, d), after some passes in batches.

    Parameters
    ----------
    source : Source
    k : int
    step : float
        Step size, for M summed over the rows of a batch.
    batch : int
        Rows for each update.
    passes : int
    seed : int
        Of the start.
    """
    # The same but for rounding, and on a GPU several times as fast.
    algorithm = InGramSpace(eigengame(step))
    state = algorithm.init(random_players(seed, k, source.shape[1], np.float32))
    reading = Reading(Feed(source, batch, np.dtype(np.float32)))
    for _ in range(passes):
        state = reading.fold(
            lambda state, rows, _: _update(algorithm, rows, state), state, task="EigenGame"
        )
    return np.asarray(algorithm.components(state))


def earned_and_lost(
    source: Source, players: np.ndarray, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return each player's reward and penalty (eq. obj) on all rows, both for a mean row, by one pass."""
    there, k = jnp.asarray(players), len(players)
    reading = Reading(Feed(source, batch, np.dtype(np.float32)))
    gram, rows = reading.fold(
        lambda carry, rows, count: (carry[0] + _gram(rows, there), carry[1] + count),
        (jnp.zeros((k, k), there.dtype), 0),
        task="measuring",
    )
    earned, lost = np.asarray(rewards(gram), np.float64), np.asarray(penalties(gram), np.float64)
    return earned / rows, lost / rows


@partial(jax.jit, static_argnums=0)
def _update(algorithm: InGramSpace, rows: Any, state: Any) -> Any:
    """Return the state after one batch."""
    return algorithm.update(rows, state)[0]


@jax.jit
def _gram(rows: Any, players: jax.Array) -> jax.Array:
    """Return one batch's inner products of scores, shape (k, k)."""
    scores = rows.pass_scores(players)
    return rows.gram(scores, scores)
