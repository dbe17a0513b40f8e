"""The result of a fit, in the units of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eigengame.linalg.random_directions import random_outside
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.planning.options import Options
from eigengame.solver.results.outcome import Outcome
from eigengame.solver.rows.frame import Frame, in_range
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.stream import (
    Stream,
    in_host_memory,
    reframed_mean,
    with_components,
    without_spread,
)

REST = 0.01
"""Largest relative error of the variance that the components leave."""

MOST_COMPLETED = 2**27
"""Largest size of players whose null directions are completed, on the host in float64: 1 GiB."""


@dataclass(frozen=True)
class Result:
    """What a fit found: the estimator, merges and model files use this value.

    Attributes
    ----------
    components : array of shape (k, d)
        Orthonormal; each has its largest entry positive.
    explained_variance, explained_variance_ratio, singular_values : arrays of shape (k,)
    mean, var : arrays of shape (d,)
    noise_variance : float
        Mean variance of the directions without a component.
    rows : int
        Rows seen with a weight above 0.
    certificate : Certificate
    outcome : Outcome
    players : array of shape (K, d)
        Components and extra players, from which `certify` starts.
    options : Options
    frame : Frame
        Origin and unit of the rows of the stream.
    stream : Stream or None
        The remembered game after its pass, to be continued or merged.
    """

    components: np.ndarray
    explained_variance: np.ndarray
    explained_variance_ratio: np.ndarray
    singular_values: np.ndarray
    mean: np.ndarray
    var: np.ndarray
    noise_variance: float
    rows: int
    certificate: Certificate
    outcome: Outcome
    players: np.ndarray
    options: Options
    frame: Frame
    stream: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle, with the stream in arrays of NumPy.

        Those of JAX would be read in float32 where float64 is switched off.
        """
        stream = None if self.stream is None else in_host_memory(self.stream)
        return self.__dict__ | {"stream": stream}

    def stream_size(self) -> tuple[Options, int]:
        """Return the options and the number of components of the stream."""
        assert self.stream is not None
        return self.options, self.stream.k


def stream_frame(before: Result) -> Frame | None:
    """Return the frame of a stream; None if the next rows decide it, because all rows so far are equal."""
    assert before.stream is not None
    undecided = before.options.center and without_spread(before.stream)
    return None if undecided else before.frame


def stream_in(before: Result, frame: Frame) -> Stream:
    """Return the stream of a result in a frame: its own, or one that was decided after rows without spread."""
    assert before.stream is not None
    if frame is before.frame:
        return before.stream
    return reframed_mean(before.stream, before.frame, frame)


@dataclass(frozen=True)
class Found:
    """What a route found, in the frame of the rows and the units of the scatter matrix M.

    Attributes
    ----------
    players : array of shape (K, d)
        The first k are the components.
    values : array of shape (k,)
        Eigenvalues of M.
    certificate : Certificate
    outcome : Outcome
    moments : Moments
        Of each feature.
    rows : int
        Rows seen with a weight above 0.
    stream : Stream or None
    """

    players: np.ndarray
    values: np.ndarray
    certificate: Certificate
    outcome: Outcome
    moments: Moments
    rows: int
    stream: Stream | None = None

    def first(self, k: int) -> Found:
        """Return the first k components; the other ones become extra players."""
        if k >= len(self.values):
            return self
        stream = None if self.stream is None else with_components(self.stream, k)
        return replace(
            self, values=self.values[:k], certificate=self.certificate.first(k), stream=stream
        )


def result_of(found: Found, options: Options, frame: Frame, null_level: float = 0.0) -> Result:
    """Return a result in the units of the data.

    Components beyond the rank that the number of rows allows have variance 0. If `null_level` is above 0, so have
    those whose variance is at most this share of the largest and much smaller than the variances of their
    features.
    """
    k, d = len(found.values), found.players.shape[1]
    null, unit, moments = _null(found, options, null_level), frame.unit, found.moments
    values = np.where(null, 0.0, found.values)
    players, certificate = _with_null_directions(found, null)
    scale = divisor(float(moments.weight), found.rows, fading=options.forget < 1)
    total = total_scatter(moments, center=options.center)
    ratios = _ratios(values, total, found)
    center, scatter = frame.outer(np.asarray(moments.mean)), np.asarray(moments.scatter, np.float64)
    weight = float(moments.weight)
    others = min(found.rows, d) - k
    rest = max(total - values.sum(), 0) / scale / others if others > 0 else 0.0
    return Result(
        components=deterministic_signs(players[:k]),
        explained_variance=in_range(values / scale, unit),
        explained_variance_ratio=ratios,
        singular_values=np.sqrt(values) * unit,
        mean=center if options.center else np.zeros_like(center),
        var=(scatter / weight if weight > 0 else scatter) * unit**2,
        noise_variance=rest * unit**2,
        rows=found.rows,
        certificate=certificate.scaled(unit**2),
        outcome=found.outcome,
        players=players,
        options=options,
        frame=frame,
        stream=found.stream,
    )


def count_for(values: np.ndarray, share: float, total: float | None = None) -> int:
    """Return the number of leading eigenvalues that explain a share of the total, by default of their sum.

    It is the number of all values if these explain less.
    """
    values = np.maximum(values, 0)
    explained = np.cumsum(values) / max(float(values.sum()) if total is None else total, 1e-300)
    return min(int(np.searchsorted(explained, share)) + 1, len(values))


def rank_bound(rows: int, d: int, options: Options) -> int:
    """Return the largest possible rank of M for this number of rows with a weight above 0."""
    return min(rows - int(options.center), d)


def _null(found: Found, options: Options, level: float) -> np.ndarray:
    """Return which of the k components have no variance, shape (k,)."""
    values, k = np.maximum(found.values, 0), len(found.values)
    null = values == 0
    if (np.diff(values) <= 0).all():
        null |= np.arange(k) >= rank_bound(found.rows, found.players.shape[1], options)
    if level > 0:
        # A small variance of features that are small themselves is real; only cancellation leaves rounding errors.
        own = np.square(found.players[:k].astype(np.float64)) @ np.asarray(found.moments.scatter)
        null |= (values <= level * values.max(initial=0)) & (values <= 1e-6 * own)
    return null


def _with_null_directions(found: Found, null: np.ndarray) -> tuple[np.ndarray, Certificate]:
    """Return players and certificate with null components completed to an orthonormal set.

    A null component that nothing determines is replaced by a direction that depends only on the other components:
    fixed random directions, orthonormalised against these and each other.
    """
    certificate, undetermined = found.certificate, null.copy()
    if certificate.kind != "estimate":
        undetermined &= certificate.group_angle >= math.pi / 2
    if not undetermined.any() or found.players.size > MOST_COMPLETED:
        return found.players, certificate
    players, k = found.players.copy(), len(null)
    others = players[:k][~undetermined].astype(np.float64)
    players[:k][undetermined] = random_outside(others, int(undetermined.sum()), seed=0)
    angle = np.where(undetermined, math.pi / 2, certificate.angle)
    return players, replace(certificate, angle=angle)


def divisor(weight: float, rows: int, *, fading: bool) -> float:
    """Return the divisor of M for a covariance: one less than the sum of the weights.

    Weights with a mean below 1 are relative, not counts of rows: the divisor is then that of the same weights
    scaled to a mean of 1, times the scale.

    Parameters
    ----------
    weight : float
        Sum of the weights.
    rows : int
        Rows with a weight above 0.
    fading : bool
        Whether weights fade with age (`forget` below 1).
    """
    if fading:
        return max(weight - 1, weight / 2, 1e-300)
    # An exact count if possible: float32 loses single rows beyond 16 million.
    if abs(weight - rows) <= 1e-6 * rows:
        return max(rows - 1, 1)
    if rows <= 1:  # it counts at least as one row
        return max(weight if weight <= 1 else max(weight - 1, 1.0), 1e-300)
    return max(weight - min(1.0, weight / rows), 1e-300)


def total_scatter(moments: Moments, *, center: bool) -> float:
    """Return the trace of M, which all components together explain."""
    mean, weight = np.asarray(moments.mean, np.float64), float(moments.weight)
    scatter = float(np.sum(np.asarray(moments.scatter, np.float64)))
    return scatter if center else scatter + weight * float(np.sum(mean**2))


def rest_is_known(values: np.ndarray, errors: np.ndarray, total: float, others: int) -> bool:
    """Return whether the variance that components leave is much larger than the errors of their variances.

    It is the difference of the total and the variances of the components, and `noise_variance_` its mean.

    Parameters
    ----------
    values, errors : arrays of shape (k,)
        Eigenvalues of M, and bounds on their errors.
    total : float
        Trace of M, computed in float32.
    others : int
        Number of directions with variance beside the components, at most.
    """
    rounding = float(np.finfo(np.float32).eps) * total
    return others <= 0 or errors.sum() + rounding <= REST * (total - values.sum())


def _ratios(values: np.ndarray, total: float, found: Found) -> np.ndarray:
    """Return the share of the total that each component explains, shape (k,)."""
    explained = float(np.sum(values))
    if explained > total + _rounding_of_total(found):
        raise ArithmeticError(
            f"the components explain {explained:.6g}, more than the total of {total:.6g}: either "
            f"{_coarsest_dtype(found)} is too coarse for this data (pass dtype='float64', or "
            "subtract the mean first), or this is a bug in eigengame (please report it)."
        )
    return values / (total if total > 0 else 1)


def _rounding_of_total(found: Found) -> float:
    """Return by how much the values may exceed the total because of rounding."""
    # The scatter is a difference of sums of squares, which round in proportion to their own size.
    squares = total_scatter(found.moments, center=False)
    # Each update rounds once more: measured, 0.2 eps for each in streams of single rows.
    updates = found.rows if found.stream is None else int(found.stream.state.step)
    return min(_coarsest_eps(found) * (1000 + updates), 0.05) * squares


def _coarsest_dtype(found: Found) -> str:
    """Return the name of the dtype in which the moments may have been summed."""
    return "float64" if _coarsest_eps(found) < np.finfo(np.float32).eps / 2 else "float32"


def _coarsest_eps(found: Found) -> float:
    """Return the relative precision in which the moments may have been summed.

    A model in float32 that is merged with one in float64 has its sums in float64 from then on. Its probes tell.
    """
    if found.stream is None:
        return float(np.finfo(found.moments.scatter.dtype).eps)
    probes = found.stream.probes
    return float(np.finfo(np.float32).eps) if probes is None else 2 * float(probes.unit)


def deterministic_signs(components: np.ndarray) -> np.ndarray:
    """Return the components, each with its largest entry positive: the convention of scikit-learn."""
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    return components * np.where(largest < 0, -1, 1).astype(components.dtype)[:, None]


def scale_of(moments: Any, rows: int, options: Options) -> float:
    """Return the divisor of M for a covariance."""
    return divisor(float(moments.weight), rows, fading=options.forget < 1)
