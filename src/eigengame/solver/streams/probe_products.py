r"""Small matrices of players, probes and their products with $M$, from which a pass is certified.

They are summed in float64 over blocks of features, so that arrays of any width need no copy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.linalg import eigh

from eigengame.linalg.quick_jit import quick_jit
from eigengame.metrics import angular_error
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.rounding import probe_errors
from eigengame.solver.passes.float64_products import orthonormal
from eigengame.solver.planning.memory import CERTIFIED_FEATURES
from eigengame.solver.streams.stream import Stream

LARGE = 2**17
"""Size from which arrays on a device with memory of its own are multiplied there."""


class ProbeProducts(NamedTuple):
    r"""Small matrices of orthonormal players $V$, probes $G$ and their products $P = GM$.

    Attributes
    ----------
    shares, inside : arrays of shape (r, K)
        $GV^\top$ and $PV^\top$.
    outside : array of shape (r, r)
        A matrix with the same inner products of rows as $P\Pi$, the part of $P$ outside the players.
    along : array of shape (K,)
        Bound on the norm of the errors of $P$ along each player.
    error : float
        Bound on the norm of all errors of $P$.
    tilt : array of shape (K,)
        Angle of each player to the orthonormal one.
    """

    shares: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    along: np.ndarray
    error: float
    tilt: np.ndarray


def probe_products(stream: Stream) -> ProbeProducts:
    """Return the small matrices of a stream with probes, which is on one device."""
    with jax.enable_x64(True):
        arrays, turn, tilt = _with_orthonormal_players(stream)
        return _products(stream, arrays, turn, tilt)


def probe_error(stream: Stream) -> float:
    """Return the error of the products of a stream with probes, without the small matrices."""
    with jax.enable_x64(True):
        arrays, turn, _ = _with_orthonormal_players(stream)
        return _errors(stream, arrays, turn)[1]


def with_errors_of(merged: Stream, parts: Iterable[tuple[Stream, float]]) -> Stream:
    r"""Return a stream that was merged from parts in different frames, with the errors of these.

    Errors are relative to numbers about the origin of the frame in which they were made. If numbers are smaller in
    the frame of the merged stream, a larger unit roundoff makes up for it. Errors of the parts are added: equal
    parts have equal errors.

    The mean itself need not be made up for where it multiplies errors of scores: these reach a product through
    centred rows. Sums of centred scores are multiplied by the mean, though. Their errors are those of one more
    feature, with the squares of the mean along a player.

    Parameters
    ----------
    merged : Stream
    parts : iterable of (Stream, float)
        Each in its own frame, and the factor by which squares are multiplied in that of the merged stream.
    """
    if merged.probes is None:
        return merged
    with jax.enable_x64(True):
        arrays, turn, _ = _with_orthonormal_players(merged)
        strengths, count = _strengths(merged), len(arrays.draws)
        along, whole = np.zeros(len(strengths)), 0.0
        for part, factor in parts:
            own = _Arrays.of(part)
            own = own._replace(
                players=arrays.players, draws=own.draws[:count], images=own.images[:count]
            )
            # Along a player, a part has at most the variance of all rows, and at most its own.
            least = np.minimum(strengths / factor, float(np.sum(gather(part.moments.scatter))))
            errors = _errors(part, own, turn, least, centred=True)
            along, whole = along + factor * errors[0], whole + factor * errors[1]
        stated = _errors(merged, arrays, turn)
    ratios = np.append(along, whole) / np.maximum(np.append(*stated), np.finfo(float).tiny)
    probes, growth = merged.probes, max(1.0, float(ratios.max()))
    unit = jnp.minimum(probes.unit * growth, 1).astype(probes.unit.dtype)
    return merged._replace(probes=probes._replace(unit=unit))


class _Arrays(NamedTuple):
    """Players (K, d), probes (r, d), their products (r, d), mean (d,) and scatter (d,): NumPy, or on a device."""

    players: Any
    draws: Any
    images: Any
    mean: Any
    scatter: Any

    @classmethod
    def of(cls, stream: Stream) -> _Arrays:
        """Return the arrays of a stream: on the host unless they are large and on a device with its own memory."""
        assert stream.probes is not None
        players = stream.state.memory.players
        there = jax.default_backend() != "cpu" and isinstance(players, jax.Array)
        arrays = (players, *stream.probes[:2], stream.moments.mean, stream.moments.scatter)
        stay = there and players.size + 2 * stream.probes.draws.size > LARGE
        found = cls(*(one if stay else gather(one) for one in arrays))
        # One block on the host is converted once, for all looks at it.
        once = not stay and players.shape[1] <= CERTIFIED_FEATURES
        return found.in_float64() if once else found

    def in_float64(self) -> _Arrays:
        """Return the arrays in float64."""
        return _Arrays(*(one.astype(np.float64, copy=False) for one in self))

    def summed(self, look: Callable[..., tuple[Any, ...]], *more: Any) -> list[np.ndarray]:
        """Return the sums over blocks of features of what a function of the arrays in float64 returns."""
        d, totals = self.players.shape[1], None
        for begin in range(0, d, CERTIFIED_FEATURES):
            whole, own = d <= CERTIFIED_FEATURES, slice(begin, begin + CERTIFIED_FEATURES)
            block = self if whole else _Arrays(*(one[..., own] for one in self))
            if isinstance(block.players, np.ndarray):
                parts = look(block.in_float64(), *more)
            else:
                parts = _looked(look, block, *more)
            found = [np.asarray(one) for one in parts]
            totals = found if totals is None else list(map(np.add, totals, found))
        assert totals is not None
        return totals


@partial(quick_jit, static_argnums=0)
def _looked(look: Callable[..., tuple[Any, ...]], block: _Arrays, *more: Any) -> tuple[Any, ...]:
    """Return what a function of the arrays in float64 returns, compiled for arrays on a device."""
    return look(block.in_float64(), *more)


def _with_orthonormal_players(stream: Stream) -> tuple[_Arrays, np.ndarray, np.ndarray]:
    """Return the arrays, the matrix (K, K) that makes the players orthonormal, and the angles of these (K,)."""
    arrays = _Arrays.of(stream)
    turn, tilt = _orthonormal(arrays)
    if turn is None:
        # Players that are not nearly orthonormal: they are few, or there are few features.
        given = np.asarray(arrays.players, np.float64)
        settled = orthonormal(given)
        arrays, turn = arrays._replace(players=settled), np.eye(len(settled))
        tilt = angular_error(given, settled)
    return arrays, turn, tilt


def _orthonormal(arrays: _Arrays) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the matrix (K, K) that makes the players orthonormal, and the angles by which it turns them.

    It is None if they are too far from that.
    """
    (overlaps,) = arrays.summed(_overlaps)
    sizes, axes = eigh(overlaps)
    if not sizes[0] > 0.5 * sizes[-1]:
        return None, np.zeros(len(sizes))
    turn, back = ((axes * sizes**power) @ axes.T for power in (-0.5, 0.5))
    along = np.diag(back)
    return turn, np.arctan2(np.linalg.norm(back - np.diag(along), axis=1), along)


def _products(stream: Stream, arrays: _Arrays, turn: np.ndarray, tilt: np.ndarray) -> ProbeProducts:
    """Return the small matrices, by three more looks at the arrays."""
    along, error = _errors(stream, arrays, turn)
    shares, inside = (one @ turn.T for one in arrays.summed(_shares))
    (outside,) = arrays.summed(_outside, inside @ turn)
    sizes, axes = eigh(outside)
    root = axes * np.sqrt(np.maximum(sizes, 0))
    return ProbeProducts(shares, inside, root, along, error, tilt)


def _errors(
    stream: Stream,
    arrays: _Arrays,
    turn: np.ndarray,
    strengths: np.ndarray | None = None,
    *,
    centred: bool = False,
) -> tuple[np.ndarray, float]:
    """Return bounds on the errors of the products along each player (K,), and on all of them.

    `strengths` (K,) are by default those of the stream. With `centred`, the mean is one more feature of each
    player, instead of a part of its variance (`with_errors_of`).
    """
    weight = float(stream.moments.weight)
    values, lengths2, mean, columns = arrays.summed(_sums_for_errors, weight, turn)
    scatter, centre = (gather(one).astype(np.float64) for one in (arrays.scatter, arrays.mean))
    features = scatter + weight * centre**2
    probes, strengths = stream.probes, _strengths(stream) if strengths is None else strengths
    assert probes is not None
    means = weight * mean**2
    if centred:
        columns, means = columns + means, np.zeros_like(means)
    return probe_errors(
        strengths,
        means,
        columns,
        np.sqrt(lengths2),
        values,
        rows=stream.rows,
        width=arrays.players.shape[1],
        trace=float(features.sum()),
        feature=float(features.max()),
        largest=float(probes.largest),
        longest=int(probes.longest),
        batches=int(stream.state.step),
        chain=int(probes.chain),
        unit=float(probes.unit),
    )


def _strengths(stream: Stream) -> np.ndarray:
    """Return the strengths of the players (K,)."""
    return gather(stream.state.memory.strengths).astype(np.float64)


def _overlaps(one: _Arrays) -> tuple[Any]:
    """Return the inner products (K, K) of the players."""
    return (_product(one.players, one.players),)


def _shares(one: _Arrays) -> tuple[Any, Any]:
    """Return the inner products (r, K) of probes and players, and of images and players."""
    return _product(one.draws, one.players), _product(one.images, one.players)


def _outside(one: _Arrays, inside: Any) -> tuple[Any]:
    """Return the inner products (r, r) of the images without a combination (r, K) of the players."""
    rest = one.images - _product(inside, one.players.T)
    return (_product(rest, rest),)


def _sums_for_errors(one: _Arrays, weight: float, turn: Any) -> tuple[Any, ...]:
    """Return the sums of `_errors` over features, for players that are made orthonormal by a matrix (K, K)."""
    players = _product(turn, one.players.T)
    columns = one.scatter + weight * one.mean**2
    return (
        (one.draws * one.images).sum(axis=1),
        (one.draws**2).sum(axis=1),
        _product(one.mean[None, :], players)[0],
        _product(columns[None, :], players**2)[0],
    )


def _product(left: Any, right: Any) -> Any:
    """Return `left @ right.T` in float64."""
    if isinstance(left, np.ndarray):
        return left @ right.T
    return jnp.matmul(left, right.T, precision=jax.lax.Precision.HIGHEST)
