"""The stream of an exact solution: a memory that `partial_fit` continues and `merge` combines.

The memory of a remembered game is a summary of all rows by K players with their strengths. An exact solution has
the best such summary: the first K eigenvectors and eigenvalues of M. The products of the probes with M are exact as
well, up to rounding.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from eigengame.solver.planning.options import PROBES, REFINED_PROBES
from eigengame.solver.planning.plan import Plan
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.more_players import completed_players
from eigengame.solver.streams.probe_sums import ProbeSums, no_sums
from eigengame.solver.streams.stream import Stream

MOST_KEPT = 2**27
"""Largest size of the arrays of a stream: 512 MiB in float32."""


def exact_stream(
    plan: Plan,
    players: np.ndarray,
    values: np.ndarray,
    moments: Moments,
    rows: int,
    sums: ProbeSums | None,
    images: np.ndarray | None,
) -> Stream | None:
    """Return the remembered game that has seen all rows, on one device.

    None if that is too large, or if its numbers are out of the range of its precision.

    Parameters
    ----------
    plan : Plan
    players : array of shape (m, d)
        Orthonormal eigenvectors of M, at most K of them, largest value first.
    values : array of shape (m,)
        Their eigenvalues.
    moments : Moments
        Of each feature.
    rows : int
        Rows seen with a weight above 0.
    sums : ProbeSums or None
        The probes, without rows (`exact_probes`).
    images : array of shape (r, d) or None
        Their products with M, in float64.
    """
    options, d = plan.options, players.shape[1]
    if not _fits(plan, d):
        return None
    dtype, count = np.dtype(options.dtype), plan.players
    if not _in_range(dtype, values, moments, images):
        return None
    # There may be fewer rows than players.
    values = np.append(values, np.zeros(count - len(players)))
    players = completed_players(players, count, options.seed)
    batches = max(1, -(-rows // plan.batch))
    with jax.enable_x64(dtype == np.float64):
        mean, scatter, weight = (
            np.asarray(one).astype(dtype) for one in (moments.mean, moments.scatter, moments.weight)
        )
        own = Moments(*map(jax.device_put, (weight, mean, scatter)))
        kept = players.astype(dtype, copy=False)
        state = plan.game().empty_state(jax.device_put(kept), plan.components)
        memory = state.memory._replace(
            strengths=jax.device_put(np.maximum(values, 0).astype(dtype)),
            mean=own.mean if options.center else state.memory.mean,
            weight=own.weight,
        )
        state = state._replace(memory=memory, step=jax.device_put(np.int32(batches)))
        if sums is not None and images is not None:
            # The largest row is not known: all squares together are a bound.
            total = np.sum(scatter, dtype=np.float64)
            total += float(weight) * np.sum(np.square(mean, dtype=np.float64))
            sums = sums._replace(
                images=jax.device_put(images.astype(dtype)),
                largest=jax.device_put(total.astype(dtype)),
                longest=jax.device_put(np.int32(min(plan.batch, rows))),
                chain=jax.device_put(np.int32(batches)),
            )
        now = (rows, jax.device_put(kept[: plan.components]))
        return Stream(state, own, rows, (now, now), probes=sums)


def exact_probes(
    plan: Plan, d: int, count: int | None = None
) -> tuple[ProbeSums | None, np.ndarray]:
    """Return the probes of a stream without rows, and the directions (r, d) to multiply by M in float64.

    `count` is their number if `probes` is "auto", by default that of a game with as many passes.
    """
    given, dtype = plan.options.probes, np.dtype(plan.options.dtype)
    if not isinstance(given, str):
        count = given
    elif count is None:
        count = PROBES if plan.options.passes == 1 else REFINED_PROBES
    with jax.enable_x64(dtype == np.float64):
        sums = no_sums(count if _fits(plan, d) else 0, d, dtype, plan.options.seed)
        draws = np.zeros((0, d)) if sums is None else np.asarray(sums.draws, np.float64)
    return sums, draws


def _fits(plan: Plan, d: int) -> bool:
    """Return whether the stream is small enough to be kept beside the components."""
    return (plan.players + 2 * PROBES) * d <= MOST_KEPT


def _in_range(
    dtype: np.dtype[Any], values: np.ndarray, moments: Moments, images: np.ndarray | None
) -> bool:
    """Return whether values (m,), moments and images (r, d) are finite in a precision, and so are their sums."""
    mean, scatter = (np.asarray(one, np.float64) for one in (moments.mean, moments.scatter))
    squares = float(np.sum(scatter)) + float(moments.weight) * float(np.sum(mean**2))
    shown = 0.0 if images is None else float(np.abs(images).max(initial=0))
    return max(shown, squares, float(np.max(values, initial=0))) < float(np.finfo(dtype).max)
