"""Long batches on a GPU: players begin at a sample of the first one, and each batch is one program."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.rows import DenseRows
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.gather import prefetch
from eigengame.sharding.placement import ONE_DEVICE, Placement
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.batch_step import after_batch, play_batch, step
from eigengame.solver.streams.probe_products import begin_products
from eigengame.solver.streams.probe_sums import ProbeSums, rounded_draws
from eigengame.solver.streams.sampled_start import begun, players_at_sample, sampled_places
from eigengame.solver.streams.stream import Stream


def begin_sampled(
    game: Remembered, k: int, d: int, dtype: Any, seed: int, placement: Placement, probes: int = 0
) -> Stream:
    """Return a game without rows, its players drawn on the device."""
    draws = rounded_draws(seed, probes, d).astype(dtype) if probes else None
    state, moments, sums = begun(game, k, d, np.uint32(seed % 2**32), draws)
    start = (0, np.zeros((k, 0), dtype))
    return Stream(state, moments, 0, (start, start), probes=sums)


def take_sampled(
    game: Remembered, stream: Stream, rows: DenseRows, count: int, placement: Placement = ONE_DEVICE
) -> Stream:
    """Version of `batch_step.take` for long batches: players begin at a sample of the first one."""
    if not count:
        return stream  # its players are not orthonormal before the first rows
    now = stream.state, stream.moments, stream.probes
    game, m = replace(game, first_rounds=1), rows.values.shape[0]
    if not stream.rows:
        places = sampled_places(m, len(stream.state.memory.players))
        after = _first_step(game, placement, count == m, rows, *now, places)
    else:
        after = step(game, placement, rows, *now, True)
    state, moments, probes, components = after
    return after_batch(stream._replace(probes=probes), state, moments, count, lambda: components)


@partial(quick_jit, static_argnums=(0, 1, 2))
def _first_step(
    game: Remembered,
    placement: Placement,
    full: bool,
    rows: DenseRows,
    state: RememberedState,
    moments: Moments,
    probes: ProbeSums | None,
    places: jax.Array,
) -> tuple[RememberedState, Moments, ProbeSums | None, jax.Array]:
    """Return what `play_batch` does after the first batch with rows, by players that begin at a sample of it.

    `full` is whether all rows have a weight above 0.
    """
    players = players_at_sample(game.center, full, rows, state, places)
    # A step that is known leaves out a branch, for which the host would wait.
    begun = state._replace(
        memory=state.memory._replace(players=players), step=jnp.zeros_like(state.step)
    )
    after, own, sums, components = play_batch(
        game, placement, rows, begun, moments, probes, True, True
    )
    return after._replace(step=state.step + 1), own, sums, components


def end_sampled(stream: Stream) -> Stream:
    """Return the stream, its arrays on their way to the host; those of the probes are measured on the device."""
    begin_products(stream)
    probes = stream.probes
    prefetch((stream.state, stream.moments, None if probes is None else probes[2:]))
    return stream
