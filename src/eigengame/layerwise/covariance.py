r"""Components of one layer from its scatter matrix, which was summed in float32, with a certificate.

A bound on the rounding error of the matrix by its number of rows would be far too large. The products of the probes
with $M$ were summed separately, so they measure it, as in `eigengame.solver.exact.float32_scatter`. On a CPU they
are in float64. On an accelerator they are in float32 too: their own error is bounded by `probe_error`, and is most
of the bound.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.linalg.chebyshev import leading_eigenvectors
from eigengame.linalg.quick_jit import quick_jit
from eigengame.solver.certificates.probes import least_norm
from eigengame.solver.certificates.risk import EXACT_RISK
from eigengame.solver.certificates.rounding import unit_roundoff
from eigengame.solver.exact.covariance import solve_scatter
from eigengame.solver.exact.scatter import Scatter
from eigengame.solver.planning.options import Options
from eigengame.solver.results.outcome import Outcome, Status, converged_status
from eigengame.solver.results.result import Found, rank_bound, scale_of
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.probe_products import probe_error
from eigengame.solver.streams.probe_sums import ProbeSums
from eigengame.solver.streams.stream import Stream

ROUTE = "covariance in float32"
"""Name of the route in an outcome."""


def guarded(players: int, d: int) -> int:
    """Return the number of vectors of an iteration that finds `players` eigenvectors: the last converge slowly."""
    return min(d, players + max(8, players // 4))


def eigenvectors_on_device(
    matrices: jax.Array, weights: jax.Array, means: jax.Array, start: np.ndarray, players: int
) -> np.ndarray:
    """Return Ritz vectors (L, K + guard, d) of the scatter matrices about their means.

    Parameters
    ----------
    matrices : array of shape (L, d, d)
    weights : array of shape (L,)
    means : array of shape (L, d)
        Subtracted; zero for matrices that are not centred.
    start : array of shape (K + guard, d)
    players : int
        K, the number of wanted vectors.
    """
    centred = _centred(matrices, weights, means)
    return np.asarray(leading_eigenvectors(centred, start, players)[1])


@quick_jit
def _centred(matrices: jax.Array, weights: jax.Array, means: jax.Array) -> jax.Array:
    """Return the scatter matrices about their means, symmetric."""
    centred = matrices - weights[:, None, None] * means[:, :, None] * means[:, None, :]
    return (centred + centred.mT) / 2


def found_in_scatter(
    game: Remembered,
    matrix: np.ndarray,
    moments: Moments,
    probes: ProbeSums,
    rows: int,
    k: int,
    options: Options,
    vectors: np.ndarray | None,
) -> Found:
    """Return the components of a scatter matrix (d, d) that was summed in float32.

    Parameters
    ----------
    game : Remembered
    matrix : array of shape (d, d)
        About the origin of the rows.
    moments : Moments
    probes : ProbeSums
        With products that were summed separately.
    rows : int
    k : int
    options : Options
    vectors : array of shape (K + guard, d) or None
        Nearly eigenvectors, and some more; None computes them here.
    """
    d, weight = len(matrix), float(moments.weight)
    narrow = _in_float32(moments, probes)
    wide = np.asarray(matrix, np.float64)
    if options.center:
        mean = np.asarray(moments.mean, np.float64)
        wide = wide - weight * mean[:, None] * mean[None, :]
    wide = (wide + wide.T) / 2
    scale, players = scale_of(moments, rows, options), options.players(k, d)
    stream = _stream(game, np.eye(players, d), np.zeros(players), moments, probes, rows, k)
    certificate, kept, values = solve_scatter(
        _with_error(wide, stream),
        players,
        k,
        scale=scale,
        tol=options.tol or 1e-3,
        dtype=options.dtype,
        vectors=vectors,
    )
    status = converged_status(certificate, options.tol, rank_bound(rows, d, options))
    return Found(
        players=kept,
        values=certificate.rayleigh * scale,
        certificate=certificate,
        outcome=Outcome(status or Status.STREAM_ENDED, ROUTE, 1),
        moments=moments,
        rows=rows,
        stream=_stream(game, kept, values, *narrow, rows, k),
    )


def _in_float32(moments: Moments, probes: ProbeSums) -> tuple[Moments, ProbeSums]:
    """Return moments and probes as the stream of a fit keeps them."""

    def rounded(leaf: Any) -> jax.Array:
        kept = np.asarray(leaf)
        return jax.device_put(kept.astype(np.float32) if kept.dtype == np.float64 else kept)

    moments, probes = jax.tree.map(rounded, (moments, probes))
    least = jax.device_put(np.float32(unit_roundoff(np.float32)))
    return moments, probes._replace(unit=jax.numpy.maximum(probes.unit, least))


def _with_error(matrix: np.ndarray, stream: Stream) -> Scatter:
    """Return a scatter matrix with what the products of the probes show of its error."""
    assert stream.probes is not None
    draws, images = (np.asarray(one, np.float64) for one in stream.probes[:2])
    seen, seen_error = draws @ matrix - images, probe_error(stream)
    error = float(np.linalg.norm(seen, 2)) + seen_error
    error /= least_norm(EXACT_RISK / 2, len(draws))
    return Scatter(matrix, stream.moments, stream.rows, error, seen, seen_error)


def _stream(
    game: Remembered,
    players: np.ndarray,
    values: np.ndarray,
    moments: Moments,
    probes: ProbeSums,
    rows: int,
    k: int,
) -> Stream:
    """Return the remembered game whose memory is these players (K, d) and their eigenvalues (K,)."""
    kept = jax.device_put(players.astype(np.float32))
    state = game.empty_state(kept, k)
    mean, weight = (jax.device_put(np.asarray(one, np.float32)) for one in moments[1::-1])
    memory = state.memory._replace(
        strengths=jax.device_put(np.maximum(values, 0).astype(np.float32)),
        mean=mean if game.center else state.memory.mean,
        weight=weight,
    )
    state = state._replace(memory=memory, step=probes.chain)
    now = (rows, kept[:k])
    return Stream(state, moments, rows, (now, now), probes=probes)
