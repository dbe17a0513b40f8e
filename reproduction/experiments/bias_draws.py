r"""Monte Carlo estimates of the bias: the mean direction on a batch minus the direction on all rows.

Rows are drawn with covariance $\Sigma$, and a direction is $g(M)$ with $M = X^\top X/m$, so that it is
$g(\Sigma)$ on the full data. Deviations $g(M) - g(\Sigma)$ are mostly noise, of order $m^{-1/2}$. Their part
linear in $M - \Sigma$ is the derivative of $g$ and has mean zero. The rest has the same mean, the bias, with
noise of the order of the bias itself. *Plain* deviations include the linear part, *paired* ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.gha import gha_direction
from eigengame.game import random_players
from eigengame.game.memory import RememberedRows
from eigengame.game.rows import DenseRows, Rows, SymmetricRows
from eigengame.game.sphere import project_tangent
from eigengame.game.utilities import gradients
from eigengame.linalg.products import full_product
from reproduction.trials import one_thread

TOGETHER = 20
"""Draws per vectorised group."""

GAMES = ("EigenGame", "EigenGame^R", "GHA", "mu")


def directions(rows: Rows, players: jax.Array) -> jax.Array:
    """Return the direction of each player in each of the games, shape (4, k, d).

    The direction of mu is the tangent part of half of GHA's: they differ by the term j = i, which is parallel to
    the player.
    """
    gradient, hebbian = gradients(rows, players), gha_direction(rows, players)[0]
    tangent = [project_tangent(players, one) for one in (gradient, hebbian / 2)]
    return jnp.stack([gradient, tangent[0], hebbian, tangent[1]])


class Moments(NamedTuple):
    """Mean over draws and the variance of that mean, arrays of equal shape."""

    mean: np.ndarray
    variance: np.ndarray


def gaussian_bias(players: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Return the bias of EigenGame's gradient for Gaussian rows, times the batch size: shape (k, d).

    $-2\sum_{j<i}(\Sigma\hat v_i - \rho_{ij}\Sigma\hat v_j)$ with
    $\rho_{ij} = \langle\hat v_i,\Sigma\hat v_j\rangle / \langle\hat v_j,\Sigma\hat v_j\rangle$: each parent
    subtracts $1/m$ of the gradient with this parent alone. Given the scores of parent $j$, a Gaussian row is a
    multiple of its score plus an independent residual. The ratio in the penalty depends on these scores only, and
    the product of the residuals of $\hat v_i$ and of the row has their covariance as its mean, for every $m$.
    The formula is therefore exact for any players and batch size.
    """
    images = players @ covariance
    gram = images @ players.T
    bias = np.zeros_like(images)
    for i in range(len(players)):
        for j in range(i):
            bias[i] -= 2 * (images[i] - gram[i, j] / gram[j, j] * images[j])
    return bias


def batch_moments(
    players: jax.Array,
    covariance: jax.Array,
    sizes: Sequence[int],
    draws: int,
    *,
    heavy: bool,
) -> dict[str, dict[str, Moments]]:
    """Return the moments of "plain" and "paired" deviations of every game, shape (sizes, k, d).

    The batches of one draw are prefixes of one stream of rows, so that all sizes cost as much as the largest.
    `heavy` rows are Gaussian rows times the root of an exponential variable, with the same covariance.
    """
    with one_thread():
        total, squares = _batches(
            _keys(draws), players, covariance, jnp.asarray(heavy), tuple(sizes)
        )
    mean, variance = _moments(total, squares, draws)
    return {
        name: {
            how: Moments(mean[g, h], variance[g, h]) for h, how in enumerate(("plain", "paired"))
        }
        for g, name in enumerate(GAMES)
    }


def memory_moments(
    players: jax.Array,
    covariance: jax.Array,
    *,
    kept: int,
    size: int,
    batches: int,
    draws: int,
) -> Moments:
    """Return the moments of paired deviations of EigenGame's gradient under a memory of earlier batches.

    Shape (batches, k, d); the first batch has an empty memory. The memory is that of the remembered game with
    `kept` players. The linear part is that of all rows so far, whether the memory keeps them or not.
    """
    with one_thread():
        total, squares = _streams(_keys(draws), players, covariance, kept, size, batches)
    return _moments(total, squares, draws)


def _keys(draws: int) -> jax.Array:
    """Return a random key for each draw, shape (groups, draws per group)."""
    together = min(draws, TOGETHER)
    return jax.random.split(jax.random.key(0), (draws // together, together))


def _rows(key: jax.Array, count: int, covariance: jax.Array) -> jax.Array:
    """Draw Gaussian rows with a diagonal covariance."""
    root = jnp.sqrt(jnp.diag(covariance))
    return root[None, :] * jax.random.normal(key, (count, root.size), root.dtype)


def _expected(
    game: Callable[[Rows, jax.Array], jax.Array],
    players: jax.Array,
    covariance: jax.Array,
    seen: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return the directions at the covariance, and their derivative along the deviation of the sample."""

    def at(matrix: jax.Array) -> jax.Array:
        return game(SymmetricRows(matrix), players)

    return jax.jvp(at, (covariance,), (seen - covariance,))


@partial(jax.jit, static_argnums=4)
def _batches(
    keys: jax.Array,
    players: jax.Array,
    covariance: jax.Array,
    heavy: jax.Array,
    sizes: tuple[int, ...],
) -> tuple[jax.Array, jax.Array]:
    """Return sums and sums of squares of shape (games, 2, sizes, k, d)."""

    def deviations(seen: jax.Array) -> jax.Array:
        full, linear = _expected(directions, players, covariance, seen)
        plain = directions(SymmetricRows(seen), players) - full
        return jnp.stack([plain, plain - linear], axis=1)

    def draw(key: jax.Array) -> jax.Array:
        of_rows, of_scales = jax.random.split(key)
        scale = jax.random.exponential(of_scales, (max(sizes), 1), players.dtype)
        rows = _rows(of_rows, max(sizes), covariance) * jnp.where(heavy, jnp.sqrt(scale), 1)
        seen = jnp.stack([full_product(rows[:m].T, rows[:m]) / m for m in sizes])
        return jnp.moveaxis(jax.vmap(deviations)(seen), 0, 2)

    return _summed(jax.vmap(draw), keys)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _streams(
    keys: jax.Array, players: jax.Array, covariance: jax.Array, kept: int, size: int, batches: int
) -> tuple[jax.Array, jax.Array]:
    """Return sums and sums of squares of shape (batches, k, d)."""
    k, d = players.shape
    remembered = Remembered(extra=kept - k)

    def update(carry: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        state, past, count = carry
        rows = _rows(key, size, covariance)
        batch = DenseRows(rows)
        recalled = RememberedRows.of(batch, state.memory, center=False).with_past()
        past, count = past + full_product(rows.T, rows), count + size
        full, linear = _expected(gradients, players, covariance, past / count)
        left = gradients(recalled, players) / count - full - linear
        return (remembered.update(batch, state)[0], past, count), left

    def draw(key: jax.Array) -> jax.Array:
        of_start, of_rows = jax.random.split(key)
        state = remembered.init(random_players(of_start, k, d, players.dtype))
        nothing = (state, jnp.zeros_like(covariance), jnp.zeros((), players.dtype))
        return jax.lax.scan(update, nothing, jax.random.split(of_rows, batches))[1]

    # Not vmapped: that would compute both branches of every condition.
    return _summed(partial(jax.lax.map, draw), keys)


def _summed(
    draws: Callable[[jax.Array], jax.Array], keys: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the sums over all draws of the values and of their squares."""

    def more(sums: tuple[jax.Array, jax.Array], some: jax.Array) -> tuple[Any, None]:
        drawn = draws(some)
        return (sums[0] + drawn.sum(0), sums[1] + jnp.square(drawn).sum(0)), None

    one = jax.eval_shape(draws, keys[0])
    zeros = jnp.zeros(one.shape[1:], one.dtype)
    return jax.lax.scan(more, (zeros, zeros), keys)[0]


def _moments(total: jax.Array, squares: jax.Array, draws: int) -> Moments:
    """Return the mean and its variance from sums over the draws."""
    mean = np.asarray(total, np.float64) / draws
    spread = np.asarray(squares, np.float64) / draws - mean**2
    return Moments(mean, np.maximum(spread, 0) / (draws - 1))
