r"""The smallest components, by the game on $\Lambda_{11}I - M$ (appendix Smallest Eigenvectors)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame._play import Played, play
from eigengame.algorithms import Algorithm
from eigengame.algorithms.best_response import BestResponse
from eigengame.game.rayleigh_ritz import settle
from eigengame.game.rows import AffineRows, as_rows, play_dtype
from eigengame.game.sphere import random_players

MARGIN = 1e-3
"""Relative increase of the estimate of the largest eigenvalue."""


class Smallest(NamedTuple):
    r"""The components with the smallest variance.

    Attributes
    ----------
    eigenvalues : array of shape (k,)
        $\langle\hat v_i, M\hat v_i\rangle$, smallest first.
    components : array of shape (k, d)
        The players of the second game, settled on $M$: the smallest first.
    largest : scalar array
        Estimate of $\Lambda_{11}$ from the first game.
    played : Played
        Result of the second game, on $I - M/\Lambda_{11}$.
    """

    eigenvalues: jax.Array
    components: jax.Array
    largest: jax.Array
    played: Played


def smallest_components(
    rows: Any, k: int, *, algorithm: Algorithm | None = None, rounds: int = 200, seed: int = 0
) -> Smallest:
    r"""Find the k components with the smallest variance.

    A first game with one player estimates $\Lambda_{11}$. A second game with k players uses $I - M/\Lambda_{11}$,
    whose largest components are the smallest of $M$.

    Parameters
    ----------
    rows : Rows or array of shape (m, d)
        All rows, since the largest eigenvalue of a batch is not that of the data.
    k : int
        Number of components.
    algorithm : Algorithm, optional
        Algorithm of the second game. Its eigenvalues are between 0 and 1, so a step size of about 0.1 suits any
        data. The default is `BestResponse()`, which has no step size.
    rounds : int
        Updates of the second game. The first, by `BestResponse()`, has as many but at most 100. Small eigenvalues
        with small gaps relative to the largest eigenvalue need more.
    seed : int
        Seed of the initial players.
    """
    rows = as_rows(rows)
    _check.component_count(k, rows.width)
    _check.seed("seed", seed)
    dtype = play_dtype(rows)
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    first = random_players(seed, 1, rows.width, dtype)
    # The largest entry, not the norm: squares underflow in float32 for data of 1e-10.
    size = jnp.max(jnp.abs(rows.directions(rows.scores(first))))
    size = jnp.where(size > 0, size, one)
    in_range = AffineRows(rows, zero, 1 / size)
    top = play(BestResponse(), in_range, players=first, rounds=min(rounds, 100))
    largest = top.info.rewards[-1, 0] * size

    # The estimate is at most the true eigenvalue; the margin keeps all eigenvalues at least 0.
    scale = -1 / jnp.where(largest > 0, largest * (1 + MARGIN), one)
    turned = AffineRows(rows, one, scale)
    played = play(algorithm or BestResponse(), turned, k=k, rounds=rounds, seed=(seed + 1) % 2**32)
    # On M, where small eigenvalues have more correct digits than on I - M / largest.
    values, components = settle(rows, played.components)
    return Smallest(values[::-1], components[::-1], largest, played)
