"""The stream of an exact solution: a memory that `partial_fit` continues and `merge` combines.

The memory of a remembered game is a summary of all rows by K players with their strengths. An exact solution has
the best such summary: the first K eigenvectors and eigenvalues of M. The products of the probes with M are exact as
well, up to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import Memory
from eigengame.solver.certificates.rounding import LAMBDA, OPERATIONS, UNIT, Summed
from eigengame.solver.planning.options import PROBES, REFINED_PROBES
from eigengame.solver.planning.plan import Plan
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.more_players import completed_players
from eigengame.solver.streams.probe_sums import ProbeSums, no_sums_on_host
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
    summed: Summed,
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
    summed : Summed
        How they were summed.
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
        numbers: list[Any] = [np.asarray(one).astype(dtype) for one in moments]
        own = Moments(*numbers)
        kept: Any = players.astype(dtype, copy=False)
        strengths: Any = np.maximum(values, 0).astype(dtype)
        centre: Any = own.mean if options.center else np.zeros_like(own.mean)
        memory = Memory(kept, strengths, centre, own.weight)
        like: Any = np.zeros((plan.components, 0), dtype)
        step: Any = np.asarray(batches, np.int32)
        state = RememberedState(memory, like, step)
        if sums is not None and images is not None:
            # The largest row is not known: all squares together are a bound.
            total = np.sum(own.scatter, dtype=np.float64)
            total += float(own.weight) * np.sum(np.square(own.mean, dtype=np.float64))
            longest = min(plan.batch, rows)
            growth = _growth(summed, np.asarray(sums.draws), images, moments, longest, batches)
            unit = np.maximum(np.asarray(sums.unit), growth * summed.unit)
            summed_images: Any = images.astype(dtype)
            limits: Any = (
                total.astype(dtype),
                unit.astype(dtype),
                np.asarray(longest, np.int32),
                np.asarray(batches, np.int32),
            )
            sums = ProbeSums(sums.draws, summed_images, *limits)
        # All at once: each transfer takes a good part of a millisecond.
        state, own, first, sums = jax.device_put((state, own, kept[: plan.components], sums))
        return Stream(state, own, rows, ((rows, first), (rows, first)), probes=sums)


def _growth(
    summed: Summed,
    draws: np.ndarray,
    images: np.ndarray,
    moments: Moments,
    longest: int,
    batches: int,
) -> float:
    r"""Return the factor by which errors of the products exceed those of a game with the same unit roundoff.

    `probe_errors` bounds the latter: a sum over the rows of a batch is off by $\sqrt m u\|s\|$ times the root of
    the squares of the features, with centred scores $s = Z_cg$, $\|s\|^2 = g^\top Mg$. Here sums have other
    lengths. If they are about an origin, and $\nu$ is the mean about it, the scores are those that were summed,
    $\|s\|^2 = g^\top Mg + W\langle\nu, g\rangle^2$, and rows and features have the squares about that origin. If
    the matrix was summed instead, $\|s\|^2$ is the sum over features of $g_f^2$ times these squares; the larger of
    both is taken.

    The mean and the sums of scores are sums of the same length. In float64 their errors count too: with $C$ and $T$
    the squares of $\nu$ and of all rows about the origin, they are one number for each probe, so at most
    $(1 + \lambda)\sqrt{C/T}$ times those above; and sums over batches are not small along the players only.
    """
    length = math.sqrt(summed.rows + OPERATIONS)
    growth = 1.0
    if summed.mean is not None:
        weight, mean, scatter = (
            np.asarray(one, np.float64) for one in (moments.weight, moments.mean, moments.scatter)
        )
        shift = weight * summed.mean**2
        squares = scatter + shift
        # Without temporary arrays as large as the probes.
        values = float(np.maximum(np.einsum("rf,rf->r", draws, images), 0).sum())
        along = np.einsum("rf,f->r", draws, summed.mean)
        scores = values + float(weight) * float(along @ along)
        scores = max(scores, float(np.einsum("rf,rf,f->", draws, draws, squares)))
        if scores > 0:
            growth = math.sqrt(scores / values) if values > 0 else math.inf
        # The squares of the bound are those about the origin of the frame. Features below the largest variance,
        # divided by the length of a sum, are covered by the part of the bound for sums over batches.
        least = max(float(scatter.max(initial=0)) / longest, np.finfo(float).tiny)
        known = np.maximum(scatter + weight * mean**2, least)
        growth *= math.sqrt(max(1.0, float(np.max(squares / known, initial=0))))
        if summed.unit == UNIT:
            share = math.sqrt(float(shift.sum() / squares.sum())) if shift.any() else 0.0
            growth *= 1 + (1 + LAMBDA) * share
            length += batches
    # With a unit roundoff of 1 nothing is certified.
    return min(growth * length / math.sqrt(longest + OPERATIONS), 1 / summed.unit)


def exact_probes(
    plan: Plan, d: int, count: int | None = None
) -> tuple[ProbeSums | None, np.ndarray]:
    """Return the probes of a stream without rows, on the host, and the directions (r, d) to multiply by M.

    `count` is their number if `probes` is "auto", by default that of a game with as many passes.
    """
    given, dtype = plan.options.probes, np.dtype(plan.options.dtype)
    if not isinstance(given, str):
        count = given
    elif count is None:
        count = PROBES if plan.options.passes == 1 else REFINED_PROBES
    sums = no_sums_on_host(count if _fits(plan, d) else 0, d, dtype, plan.options.seed)
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
