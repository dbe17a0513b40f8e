r"""The variance outside the components of a model: its sum, and the sum of squares of its eigenvalues.

Let $\lambda_{k+1}, \lambda_{k+2}, \dots$ be the variances of the directions without a component. A model knows

* $\theta_1 = \sum_j \lambda_j$: the total variance minus that of the components;
* the variances of its extra players, which estimate $\lambda_{k+1}, \dots, \lambda_K$;
* the products $Mg_i$ of random probes with the scatter matrix, which are accumulated in the first pass.

Let $P$ be the projection away from components and extra players. For a Gaussian probe $g$, $\mathbb E\|PMg\|^2$ is
the sum of the squares of all other eigenvalues (Hutchinson's estimator). So $\theta_2 = \sum_j \lambda_j^2$ is
estimated by the sum of squares over the extra players, plus the mean of $\|PMg_i\|^2$ over the probes.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from eigengame.solver.results.result import Result, scale_of

ROUNDING = 1000
"""Relative error of a covariance matrix, in units of the precision of the fit."""


class Remainder(NamedTuple):
    r"""Moments of the eigenvalues outside the components.

    Attributes
    ----------
    total : float
        $\theta_1$, the variance outside the components.
    square : float
        $\theta_2$, the sum of squares of the eigenvalues.
    known : {"probes", "players", "equal"}
        How $\theta_2$ is known: by probes; by extra players, with equal variances in all other directions; or with
        equal variances in all directions, if the model has neither.
    floor : float
        Squared length of a residual that rounding alone explains.
    """

    total: float
    square: float
    known: Literal["probes", "players", "equal"]
    floor: float


def remainder_of(result: Result, used: np.ndarray) -> Remainder:
    """Return the moments of the spectrum outside the used components, in the units of the data.

    Parameters
    ----------
    result : Result
    used : array of shape (k,) of bool
        Components that count; the others, which have no variance, belong to the remainder.
    """
    rank, variance = min(result.rows, result.components.shape[1]), result.explained_variance
    directions = rank - int(used.sum())
    total = max(result.noise_variance, 0.0) * (rank - len(used)) + float(variance[~used].sum())
    floor = _floor(variance[used], float(np.finfo(result.options.dtype).eps))
    if directions < 1 or total <= floor:
        return Remainder(0.0, 0.0, "equal", floor)
    values, outside = _extra_players(result, used)
    square = float(np.sum(values**2))
    probed = _probed(result, outside)
    if probed is not None:
        square, known = square + probed, "probes"
    else:
        left = max(total - float(values.sum()), 0.0)
        others = max(directions - len(values), 1)
        square, known = square + left**2 / others, "players" if len(values) else "equal"
    # Limits for given sum and number of eigenvalues, which estimates may exceed.
    square = min(max(square, total**2 / directions), total**2)
    return Remainder(total, square, known, floor)  # type: ignore[arg-type]


def _floor(variance: np.ndarray, eps: float) -> float:
    r"""Return the mean squared length of the residuals that rounding causes.

    An error of norm $\epsilon$ of the covariance matrix turns component $i$ by up to $\epsilon/\lambda_i$, and the
    score of a row along it is about $\sqrt{\lambda_i}$.
    """
    return float(np.sum((ROUNDING * eps * variance[0]) ** 2 / variance))


def _extra_players(result: Result, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances of the extra players (m,), and components and extra players together (k + m, d)."""
    components = result.components[used].astype(np.float64)
    stream = result.stream
    if stream is None:
        return np.zeros(0), components
    memory, k = stream.state.memory, len(result.components)
    values = np.asarray(memory.strengths, np.float64)[k:] * _unit(result)
    extra = np.asarray(memory.players, np.float64)[k:][values > 0]
    values = values[values > 0]
    # Refined components differ from those of the memory: the extra players are made orthogonal to them.
    extra = extra - (extra @ components.T) @ components
    lengths = np.linalg.norm(extra, axis=1)
    apart = lengths > 0.5
    both = np.concatenate([components, extra[apart]])
    return values[apart], np.linalg.qr(both.T)[0].T if len(both) else both


def _probed(result: Result, outside: np.ndarray) -> float | None:
    r"""Return the sum of squares of the eigenvalues outside given directions by the probes; None without them."""
    stream = result.stream
    if stream is None or stream.probes is None:
        return None
    images = np.asarray(stream.probes.images, np.float64) * _unit(result)
    images = images - (images @ outside.T) @ outside
    found = float(np.mean(np.sum(images**2, axis=1)))
    return found if math.isfinite(found) else None


def _unit(result: Result) -> float:
    """Return the factor from eigenvalues of the stream's scatter matrix to variances in the units of the data."""
    assert result.stream is not None
    moments, rows = result.stream.moments, result.stream.rows
    return float(result.frame.unit**2 / scale_of(moments, rows, result.options))
