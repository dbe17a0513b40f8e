"""EigenGame by steps on a source, and rewards and penalties of its players on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import InGramSpace
from eigengame.game.sphere import random_players
from eigengame.game.utilities import penalties, rewards
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from eigengame.sources import Source
from reproduction.trials import eigengame


def play_steps(
    source: Source, k: int, *, step: float, batch: int, marks: Sequence[int], seed: int = 0
) -> dict[int, jax.Array]:
    """Run EigenGame in batches and return its players, shape (k, d), after some numbers of passes.

    Parameters
    ----------
    source : Source
    k : int
    step : float
        Step size, for M summed over the rows of a batch.
    batch : int
        Rows for each update.
    marks : sequence of int
        Numbers of passes after which players are returned; the largest is the length of the run.
    seed : int
        Seed of the initial players.
    """
    # Equal up to rounding, and several times as fast on a GPU.
    algorithm, size = InGramSpace(eigengame(step)), jnp.asarray(step, jnp.float32)
    state = algorithm.init(random_players(seed, k, source.shape[1], np.float32))
    reading = SourcePasses(Batches(source, batch, np.dtype(np.float32)))
    seen = {}
    for made in range(1, max(marks) + 1):
        state = reading.fold(
            lambda state, rows, _: _update(size, rows, state), state, task="EigenGame"
        )
        if made in marks:
            seen[made] = algorithm.components(state)
    return seen


def rewards_and_penalties(
    source: Source, players: np.ndarray | jax.Array, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and penalty of each player (eq. obj), averaged over all rows, in one pass."""
    there, k = jnp.asarray(players), len(players)
    reading = SourcePasses(Batches(source, batch, np.dtype(np.float32)))
    gram, rows = reading.fold(
        lambda carry, rows, count: (carry[0] + _gram(rows, there), carry[1] + count),
        (jnp.zeros((k, k), there.dtype), 0),
        task="measuring",
    )
    earned, lost = np.asarray(rewards(gram), np.float64), np.asarray(penalties(gram), np.float64)
    return earned / rows, lost / rows


@jax.jit
def _update(step: jax.Array, rows: Any, state: Any) -> Any:
    """Return the state after one batch; compiled once for all step sizes."""
    return InGramSpace(eigengame(lambda _: step)).update(rows, state)[0]


@jax.jit
def _gram(rows: Any, players: jax.Array) -> jax.Array:
    """Return the inner products of scores on one batch, shape (k, k)."""
    scores = rows.pass_scores(players)
    return rows.gram(scores, scores)
