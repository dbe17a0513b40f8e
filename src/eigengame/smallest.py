r"""The smallest components: the same game on $\Lambda_{11}I - M$ (appendix Smallest Eigenvectors)."""

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
"""By how much the largest eigenvalue is taken larger than the first game found it."""


class Smallest(NamedTuple):
    r"""The components with the least variance.

    Attributes
    ----------
    eigenvalues : array of shape (k,)
        $\langle\hat v_i, M\hat v_i\rangle$, smallest first.
    components : array of shape (k, d)
        The second game's players, settled on $M$: the smallest first.
    largest : scalar array
        $\Lambda_{11}$ as the first game found it.
    played : Played
        The second game, on $I - M/\Lambda_{11}$.
    """

    eigenvalues: jax.Array
    components: jax.Array
    largest: jax.Array
    played: Played


def smallest_components(
    rows: Any, k: int, *, algorithm: Algorithm | None = None, rounds: int = 200, seed: int = 0
) -> Smallest:
    r"""Find the k components with the least variance.

    One player finds $\Lambda_{11}$ in a game of its own; then k players play on
    $I - M/\Lambda_{11}$, whose largest components are the smallest of $M$.

    Parameters
    ----------
    rows : Rows or array of shape (m, d)
        All rows: a batch's largest eigenvalue is not the data's.
    k : int
        Number of components.
    algorithm : Algorithm, optional
        How to play the second game. Its eigenvalues are between 0 and 1, so a step size of about 0.1
        suits any data. By default best responses, ten to an update, which need none.
    rounds : int
        Updates of the second game; the first, by best responses, has as many and at most 100. Small
        eigenvalues that are close to each other, in units of the largest, need more.
    seed : int
        Seed of the starting players.
    """
    rows = as_rows(rows)
    _check.component_count(k, rows.width)
    _check.seed("seed", seed)
    dtype = play_dtype(rows)
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    first = random_players(seed, 1, rows.width, dtype)
    # The largest entry and not the norm, whose squares leave float32's range for data of 1e-10.
    size = jnp.max(jnp.abs(rows.directions(rows.scores(first))))
    size = jnp.where(size > 0, size, one)
    in_range = AffineRows(rows, zero, 1 / size)
    top = play(BestResponse(), in_range, players=first, rounds=min(rounds, 100))
    largest = top.info.rewards[-1, 0] * size

    # The game's estimate is never above the true eigenvalue: a little more keeps the rest >= 0.
    scale = -1 / jnp.where(largest > 0, largest * (1 + MARGIN), one)
    turned = AffineRows(rows, one, scale)
    played = play(algorithm or BestResponse(), turned, k=k, rounds=rounds, seed=(seed + 1) % 2**32)
    # On M itself, where small eigenvalues have digits that 1 less them has not.
    values, components = settle(rows, played.components)
    return Smallest(values[::-1], components[::-1], largest, played)
