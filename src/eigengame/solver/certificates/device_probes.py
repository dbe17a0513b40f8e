r"""Random probes that search for a missed direction of larger variance than the players.

Let $F$ be $M$ on the complement of the players' span, $\lambda$ its largest eigenvalue with unit eigenvector
$u$, and $G$ a block of $r$ Gaussian probes. Then $\|GF^q\| \ge \|GF^qu\| = \lambda^q\|Gu\|$, and
$\|Gu\|^2$ is a chi-squared variable with $r$ degrees of freedom. So with probability $1 - \delta$, for every
$q$ at once,

$$\lambda^q\sqrt{\chi^2_r(\delta)} \le \|GF^q\|.$$

The spectral norm of the block is used instead of its longest row: many small directions together make each row
long, but not the norm of the block.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from eigengame.linalg.orthonormal import norms
from eigengame.linalg.products import full_product, measured_product
from eigengame.linalg.quick_jit import quick_jit
from eigengame.sharding.gather import gather
from eigengame.solver.certificates.probes import STREAM, least_norm


class Probes(NamedTuple):
    """Random directions outside the players, powered by M.

    Attributes
    ----------
    directions : array of shape (r, d)
        Unit rows, on the host or on the device, like the players.
    logs : array of shape (r,)
        Logarithm of the length each would have if it had not been scaled.
    sizes : tuple of float
        Logarithm of the block's spectral norm before the first product and after each.
    level : float
        Smallest bound so far on the largest eigenvalue outside the players.
    """

    directions: Any
    logs: np.ndarray
    sizes: tuple[float, ...]
    level: float

    @property
    def powers(self) -> int:
        """Products with M so far."""
        return len(self.sizes) - 1


def draw_probes(seed: int, count: int, players: Any) -> Probes:
    """Return Gaussian probes, their part along the players removed."""
    shape = (count, players.shape[1])
    # Not from the seed alone: data may have been drawn from the same one.
    key = jax.random.fold_in(jax.random.key(seed), STREAM)
    draws: Any = (
        np.random.default_rng([STREAM, seed]).standard_normal(shape)
        if isinstance(players, np.ndarray)
        else jax.random.normal(key, shape, players.dtype)
    )
    unit, logs = _scaled(outside(draws, players), np.zeros(count))
    return Probes(unit, logs, (_size(unit, logs),), math.inf)


def powered(probes: Probes, images: Any, players: Any, *, risk: float, error: float) -> Probes:
    """Return the probes after one more product with M, with the level they show.

    Parameters
    ----------
    probes : Probes
    images : array of shape (r, d)
        M times the directions of the probes.
    players : array of shape (K, d)
    risk : float
        Chance that is allowed for the level to be too small.
    error : float
        Bound on the rounding error of the product of a unit vector.
    """
    unit, logs = _scaled(outside(images, players), probes.logs)
    sizes = (*probes.sizes, _size(unit, logs))
    level = missed_level(sizes, len(logs), risk, error)
    return Probes(unit, logs, sizes, min(probes.level, level))


def missed_level(sizes: tuple[float, ...], count: int, risk: float, error: float = 0.0) -> float:
    r"""Return $\mu$ with $P[\lambda_{max}(F) > \mu] \le$ `risk`, from the norms of powered probes.

    With products that are off by at most `error` for a unit vector, the computed block $C_q$ differs from the
    exact one by at most $\eta\sqrt r\sum_{j=1}^q\lambda^{q-j}\|C_{j-1}\|$. So $\lambda$ is at most the positive
    root of

    $$\lambda^q\sqrt{\chi^2_r(\delta)} = \|C_q\| + \eta\sqrt r\sum_{j=1}^q\lambda^{q-j}\|C_{j-1}\|.$$

    Parameters
    ----------
    sizes : tuple of q + 1 floats
        Logarithms of $\|C_0\|, \dots, \|C_q\|$.
    count : int
        $r$, the number of probes.
    risk : float
        $\delta$, the chance that is allowed.
    error : float
        $\eta$.
    """
    powers, least = len(sizes) - 1, math.log(least_norm(risk, count))
    slack = math.log(error) + math.log(count) / 2 if error > 0 else -math.inf
    # Divided by the left side, every term falls in the logarithm of lambda: one root.
    terms = [(sizes[-1], powers)] + [(slack + sizes[j - 1], j) for j in range(1, powers + 1)]
    terms = [(term - least, power) for term, power in terms if term > -math.inf]
    if not terms:
        return 0.0

    def excess(log: float) -> float:
        return math.fsum(math.exp(min(term - power * log, 700)) for term, power in terms) - 1

    # One term alone makes more than 1 at the left end, all together less than 1 at the right one.
    low = max(term / power for term, power in terms) - 1e-9
    high = max((term + math.log(len(terms))) / power for term, power in terms) + 1e-9
    return math.exp(brentq(excess, low, high) + 1e-9)


def outside(directions: Any, players: Any) -> Any:
    """Return directions (r, d) without their part in the span of orthonormal players (K, d).

    Subtracted twice: once leaves a part of the size of the rounding of what is subtracted, which is large
    where a direction lies mostly within the span.
    """
    if not isinstance(players, np.ndarray):
        return _outside_there(directions, players)
    for _ in range(2):
        directions = directions - (directions @ players.T) @ players
    return directions


@quick_jit
def _outside_there(directions: jax.Array, players: jax.Array) -> jax.Array:
    """On-device version of `outside`."""
    for _ in range(2):
        inside = full_product(directions, players.T)
        directions = directions - full_product(inside, players)
    return directions


def _scaled(directions: Any, logs: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return unit probes, and the logarithms of their lengths added up."""
    if isinstance(directions, np.ndarray):
        # By the largest entry first: squares stay in range.
        largest = np.abs(directions).max(axis=1, keepdims=True)
        shrunk = directions / np.where(largest > 0, largest, 1)
        lengths = np.linalg.norm(shrunk, axis=1, keepdims=True)
        unit, lengths = shrunk / np.where(lengths > 0, lengths, 1), (largest * lengths)[:, 0]
    else:
        unit, lengths = _unit_there(directions)
    with np.errstate(divide="ignore"):
        return unit, logs + np.log(gather(lengths).astype(np.float64))


@quick_jit
def _unit_there(directions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows, zero rows as they are, and the lengths they had."""
    lengths = norms(directions)
    return directions / jnp.where(lengths > 0, lengths, 1), lengths[:, 0]


def _size(unit: Any, logs: np.ndarray) -> float:
    """Return the logarithm of the spectral norm of probes as they would be if they had not been scaled."""
    shift = float(logs.max())
    if not math.isfinite(shift):
        return -math.inf
    host = isinstance(unit, np.ndarray)
    gram = unit @ unit.T if host else gather(measured_product(unit, unit)).astype(np.float64)
    weights = np.exp(logs - shift)
    largest = np.linalg.eigvalsh(weights[:, None] * gram * weights)[-1]
    return shift + math.log(max(float(largest), 1e-300)) / 2
