r"""Small matrices of players, probes and their products with $M$, from which a pass is certified.

They are summed in float64 over blocks of features, so that arrays of any width need no copy in float64.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.linalg import eigh

from eigengame.linalg.orthonormal import whiten_nearly
from eigengame.linalg.quick_jit import quick_jit
from eigengame.metrics import angular_error
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.rounding import probe_errors
from eigengame.solver.passes.float64_products import orthonormal
from eigengame.solver.planning.memory import CERTIFIED_FEATURES
from eigengame.solver.streams.stream import Stream

LARGE = 2**14
"""Size from which arrays on a device with memory of its own are multiplied there, by one program."""

NEARLY = 0.1
"""Largest distance of the overlaps of players from the identity for which a few steps make them orthonormal."""


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


class _Ahead(threading.local):
    """The sums of one stream that a device computes before they are asked for, in each thread.

    They belong to these inputs and no others: arrays of JAX do not change, and are compared by their identity.
    """

    inputs: tuple[weakref.ref[Any], ...] = ()
    packed: Any = None

    def begin(self, arrays: _Arrays, weight: jax.Array) -> None:
        """Begin to compute the sums of a stream, and keep them."""
        self.packed = _sums_there(arrays, weight)
        self.packed.copy_to_host_async()
        self.inputs = tuple(map(weakref.ref, (*arrays, weight)))

    def sums(self, arrays: _Arrays, weight: jax.Array) -> jax.Array:
        """Return the sums of a stream: those that were begun, or new ones. They are kept for a second look."""
        given = (*arrays, weight)
        same = [one() is other for one, other in zip(self.inputs, given, strict=False)]
        if not same or not all(same):
            self.begin(arrays, weight)
        found: jax.Array = self.packed
        return found


_ahead = _Ahead()


def begin_products(stream: Stream) -> None:
    """Begin to compute what `probe_products` and `probe_error` need, while the device still makes the pass."""
    if not _Arrays.stay_there(stream):
        return
    with jax.enable_x64(True):
        arrays = _Arrays.of(stream)
        if arrays.one_block_there:
            _ahead.begin(arrays, stream.moments.weight)


def probe_products(stream: Stream) -> ProbeProducts:
    """Return the small matrices of a stream with probes, which is on one device."""
    with jax.enable_x64(True):
        arrays = _Arrays.of(stream)
        looked = _looked_once(stream, arrays)
        if looked is not None:
            sums, tilt = looked
            along, error = _errors(stream, arrays, sums.for_errors)
            return ProbeProducts(sums.shares, sums.inside, _root(sums.outside), along, error, tilt)
        arrays, turn, tilt = _with_orthonormal_players(arrays)
        return _products(stream, arrays, turn, tilt)


def probe_error(stream: Stream) -> float:
    """Return the error of the products of a stream with probes, without the small matrices."""
    with jax.enable_x64(True):
        arrays = _Arrays.of(stream)
        looked = _looked_once(stream, arrays)
        if looked is not None:
            return _errors(stream, arrays, looked[0].for_errors)[1]
        arrays, turn, _ = _with_orthonormal_players(arrays)
        return _errors(stream, arrays, _for_errors(stream, arrays, turn))[1]


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
        arrays, turn, _ = _with_orthonormal_players(_Arrays.of(merged))
        strengths, count = _strengths(merged), len(arrays.draws)
        along, whole = np.zeros(len(strengths)), 0.0
        for part, factor in parts:
            own = _Arrays.of(part)
            own = own._replace(
                players=arrays.players, draws=own.draws[:count], images=own.images[:count]
            )
            # Along a player, a part has at most the variance of all rows, and at most its own.
            least = np.minimum(strengths / factor, float(np.sum(gather(part.moments.scatter))))
            errors = _errors(part, own, _for_errors(part, own, turn), least, centred=True)
            along, whole = along + factor * errors[0], whole + factor * errors[1]
        stated = _errors(merged, arrays, _for_errors(merged, arrays, turn))
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

    @staticmethod
    def stay_there(stream: Stream) -> bool:
        """Return whether the arrays of a stream are large, and on a device with memory of its own."""
        players = stream.state.memory.players
        there = jax.default_backend() != "cpu" and isinstance(players, jax.Array)
        return (
            there
            and stream.probes is not None
            and players.size + 2 * stream.probes.draws.size > LARGE
        )

    @classmethod
    def of(cls, stream: Stream) -> _Arrays:
        """Return the arrays of a stream: on the host unless they are large and on a device with its own memory."""
        assert stream.probes is not None
        players, stay = stream.state.memory.players, cls.stay_there(stream)
        arrays = (players, *stream.probes[:2], stream.moments.mean, stream.moments.scatter)
        found = cls(*(one if stay else gather(one) for one in arrays))
        # One block on the host is converted once, for all looks at it.
        once = not stay and players.shape[1] <= CERTIFIED_FEATURES
        return found.in_float64() if once else found

    @property
    def one_block_there(self) -> bool:
        """Whether the arrays are on a device, with as many features as are converted at a time."""
        d = self.players.shape[1]
        return not isinstance(self.players, np.ndarray) and d <= CERTIFIED_FEATURES

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


class _Sums(NamedTuple):
    """Overlaps (K, K) of the players, the small matrices for orthonormal ones, and the sums for their errors.

    `outside` has shape (r, r).
    """

    overlaps: Any
    shares: Any
    inside: Any
    outside: Any
    for_errors: tuple[Any, ...]

    @classmethod
    def of_packed(cls, packed: np.ndarray, k: int, r: int) -> _Sums:
        """Return the sums of one array of all numbers (`_sums_there`), for k players and r probes."""
        shapes = [(k, k), (r, k), (r, k), (r, r), (r,), (r,), (k,), (k,)]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = np.split(packed, ends[:-1])
        made = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        overlaps, shares, inside, outside, *for_errors = made
        return cls(overlaps, shares, inside, outside, tuple(for_errors))


def _looked_once(stream: Stream, arrays: _Arrays) -> tuple[_Sums, np.ndarray] | None:
    """Return the sums and the angles (K,) of the players to orthonormal ones, by one program on a device.

    It is None for arrays that it does not take: on the host, in blocks, or with players that are not nearly
    orthonormal.
    """
    if not arrays.one_block_there:
        return None
    packed = np.asarray(_ahead.sums(arrays, stream.moments.weight))
    sums = _Sums.of_packed(packed, len(arrays.players), len(arrays.draws))
    overlaps = sums.overlaps
    if not np.linalg.norm(overlaps - np.eye(len(overlaps))) < NEARLY:
        return None
    return sums, _tilt(overlaps @ whiten_nearly(overlaps))


@quick_jit
def _sums_there(arrays: _Arrays, weight: jax.Array) -> jax.Array:
    """Return all numbers of the sums of arrays on a device, in float64, for players that are nearly orthonormal.

    They are one array, since each transfer waits for the device.
    """
    one = arrays.in_float64()
    (overlaps,) = _overlaps(one)
    turn = whiten_nearly(overlaps)
    one = one._replace(players=_product(turn, one.players.T))
    shares, inside = _shares(one)
    unit = jnp.eye(len(turn), dtype=turn.dtype)
    for_errors = _sums_for_errors(one, weight.astype(turn.dtype), unit)
    sums = _Sums(overlaps, shares, inside, _outside(one, inside)[0], for_errors)
    return jnp.concatenate([part.ravel() for part in jax.tree.leaves(sums)])


def _with_orthonormal_players(arrays: _Arrays) -> tuple[_Arrays, np.ndarray, np.ndarray]:
    """Return the arrays, the matrix (K, K) that makes the players orthonormal, and the angles of these (K,)."""
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
    return (axes / np.sqrt(sizes)) @ axes.T, _tilt((axes * np.sqrt(sizes)) @ axes.T)


def _tilt(back: np.ndarray) -> np.ndarray:
    """Return the angles (K,) of players to orthonormal ones, of which they are combinations `back` (K, K)."""
    along = np.diag(back)
    return np.arctan2(np.linalg.norm(back - np.diag(along), axis=1), along)


def _products(stream: Stream, arrays: _Arrays, turn: np.ndarray, tilt: np.ndarray) -> ProbeProducts:
    """Return the small matrices, by three more looks at the arrays."""
    along, error = _errors(stream, arrays, _for_errors(stream, arrays, turn))
    shares, inside = (one @ turn.T for one in arrays.summed(_shares))
    (outside,) = arrays.summed(_outside, inside @ turn)
    return ProbeProducts(shares, inside, _root(outside), along, error, tilt)


def _root(square: np.ndarray) -> np.ndarray:
    """Return a matrix (r, r) whose rows have these inner products."""
    sizes, axes = eigh(square)
    return axes * np.sqrt(np.maximum(sizes, 0))


def _for_errors(stream: Stream, arrays: _Arrays, turn: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the sums from which the errors follow, for players that a matrix (K, K) makes orthonormal."""
    return tuple(arrays.summed(_sums_for_errors, float(stream.moments.weight), turn))


def _errors(
    stream: Stream,
    arrays: _Arrays,
    sums: tuple[np.ndarray, ...],
    strengths: np.ndarray | None = None,
    *,
    centred: bool = False,
) -> tuple[np.ndarray, float]:
    """Return bounds on the errors of the products along each player (K,), and on all of them.

    `sums` are those of `_for_errors`. `strengths` (K,) are by default those of the stream. With `centred`, the mean
    is one more feature of each player, instead of a part of its variance (`with_errors_of`).
    """
    weight = float(stream.moments.weight)
    values, lengths2, mean, columns = sums
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


def _sums_for_errors(one: _Arrays, weight: Any, turn: Any) -> tuple[Any, ...]:
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
