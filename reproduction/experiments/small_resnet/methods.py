"""Deflation, EigenGame and Frequent Directions on stored rows, each with its time without compilation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import FrequentDirections, HebbDeflation, InGramSpace, recover_components
from eigengame.algorithms.frequent_directions import SketchState
from eigengame.game.rows import DenseRows
from eigengame.game.sphere import random_players
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from reproduction.experiments.resnet.stored import StoredRows


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, once it is computed, and its seconds."""
    begun = time.perf_counter()
    found = jax.block_until_ready(call())
    return found, time.perf_counter() - begun


class Deflated(NamedTuple):
    """Components by Hebb's rule with deflation.

    Attributes
    ----------
    components : array of shape (k, d)
    quotients : array of shape (k, 2)
        Mean Rayleigh quotient of each component over the rows in the last two passes of its turn.
    updates : int
    seconds : float
    """

    components: jax.Array
    quotients: np.ndarray
    updates: int
    seconds: float


def deflate(
    rows: StoredRows, scales: np.ndarray, *, step: float, slower: int, batch: int, turn: int
) -> Deflated:
    """Find one component after another by Hebb's rule, each in a turn of some passes.

    Parameters
    ----------
    rows : StoredRows
    scales : array of shape (k,)
        Size of each eigenvalue, mean over the rows. With one step size for all, the components with small
        eigenvalues would need hundreds of times as many passes as the first.
    step : float
        Step size at the beginning of a turn, in units of one over the component's eigenvalue of a batch.
    slower : int
        Passes after which the step size is half of that; it decreases as one over the number of updates.
    batch : int
        Rows for each update.
    turn : int
        Passes for each component, at least 2.
    """
    k, n = len(scales), rows.shape[0]
    assert n is not None
    per_pass = -(-n // batch)
    first = jnp.asarray(step / (batch * np.asarray(scales)), jnp.float32)

    def step_at(updates: jax.Array) -> jax.Array:
        number, taken = updates // (turn * per_pass), updates % (turn * per_pass)
        return first[jnp.minimum(number, k - 1)] / (1 + taken / (slower * per_pass))

    # Turns have a fixed length: on batches of some rows the quotient is never steady to many digits.
    length = turn * per_pass
    algorithm = InGramSpace(HebbDeflation(step_at, patience=length, turn=length))

    @jax.jit
    def update(batch_rows: Any, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, total = carry
        active = jnp.minimum(state.state.active, k - 1)
        new, info = algorithm.update(batch_rows, state)
        return new, total + info.rewards[active]

    reading = SourcePasses(Batches(rows, batch, np.dtype(np.float32)))

    def run_pass(state: Any) -> tuple[Any, float]:
        start = (state, jnp.zeros((), jnp.float32))
        new, total = reading.fold(lambda carry, of, _: update(of, carry), start, task="deflation")
        return new, float(total) / n

    state = algorithm.init(random_players(0, k, rows.shape[1], np.float32))
    run_pass(state)  # compiles
    quotients = np.zeros((k, turn))
    begun = time.perf_counter()
    for number in range(k):
        for made in range(turn):
            state, quotients[number, made] = run_pass(state)
    components = jax.block_until_ready(algorithm.components(state))
    taken = time.perf_counter() - begun
    return Deflated(components, quotients[:, -2:], k * length, taken)


class Sketched(NamedTuple):
    """Components by Frequent Directions, with seconds of the parts.

    Attributes
    ----------
    components : array of shape (k, d)
        Recovered from the data projected on the sketch.
    sketch : float
        Seconds of the sketch of all rows.
    recovery : float
        Seconds of the second pass.
    shard : float
        Seconds of the sketch of the rows of one shard.
    """

    components: jax.Array
    sketch: float
    recovery: float
    shard: float


def sketch(rows: StoredRows, k: int, *, size: int, shard: int) -> Sketched:
    """Run Frequent Directions with `size` rows in all of the data, and time it for the first `shard` rows."""
    algorithm, (n, d) = FrequentDirections(size), rows.shape
    assert n is not None
    # The old sketch is overwritten: several of them would not fit beside the rows.
    update = jax.jit(lambda of, state: algorithm.update(of, state)[0], donate_argnums=1)

    def batches(end: int) -> Iterator[DenseRows]:
        # As many rows as the sketch has space for: one decomposition for each batch.
        for begin in range(0, end, size):
            yield DenseRows(rows.read(begin, min(begin + size, end)))

    def sketched(end: int) -> SketchState:
        # Compiled, so that no two parts of the state share a buffer.
        state = jax.jit(lambda: algorithm.init(jnp.zeros((k, d), jnp.float32)))()
        for one in batches(end):
            state = update(one, state)
        return state

    def recovered() -> jax.Array:
        return recover_components(batches(n), whole)[1]

    jax.block_until_ready(sketched(min(3 * size, n)))  # compiles
    _, shard_seconds = timed(lambda: sketched(shard))
    whole, sketch_seconds = timed(lambda: sketched(n))
    jax.block_until_ready(recovered())  # compiles
    components, recovery_seconds = timed(recovered)
    return Sketched(components, sketch_seconds, recovery_seconds, shard_seconds)
