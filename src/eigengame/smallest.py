r"""The smallest components: the same game on $\Lambda_{11}I - M$ (appendix Smallest Eigenvectors)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms import Algorithm
from eigengame.algorithms.alpha import Alpha
from eigengame.game.rows import AffineRows, as_rows
from eigengame.game.sphere import random_players
from eigengame.play import Played, play

# On a matrix with eigenvalues near 1 so large a step leaves nothing of the old player: plain EigenGame
# is then the paper's fixed-point iteration v_i <- A_i v_i / |A_i v_i|, with no step size to choose.
_FIXED_POINT = Alpha(step_size=1e6, riemannian=False)


class Smallest(NamedTuple):
    r"""The components with the least variance.

    Attributes
    ----------
    eigenvalues : array of shape (k,)
        $\langle\hat v_i, M\hat v_i\rangle$, smallest first.
    components : array of shape (k, d)
        The smallest first.
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
    rows: Any, k: int, *, algorithm: Algorithm | None = None, rounds: int = 2000, seed: int = 0
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
        suits any data. By default a fixed-point game with no step size.
    rounds : int
        Rounds of each of the two games.
    seed : int
        Seed of the starting players.
    """
    rows = as_rows(rows)
    _check.component_count(k, rows.width)
    dtype = jax.eval_shape(rows.scores, jnp.zeros((1, rows.width), jnp.bfloat16)).dtype
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    first = random_players(seed, 1, rows.width, dtype)
    size = jnp.linalg.norm(rows.directions(rows.scores(first)))
    size = jnp.where(size > 0, size, one)
    top = play(_FIXED_POINT, AffineRows(rows, zero, 1 / size), players=first, rounds=rounds)
    largest = top.info.rewards[-1, 0] * size

    # The game's estimate is never above the true eigenvalue: a little more keeps the rest >= 0.
    scale = -1 / jnp.where(largest > 0, largest * (1 + 1e-3), one)
    turned = AffineRows(rows, one, scale)
    played = play(algorithm or _FIXED_POINT, turned, k=k, rounds=rounds, seed=seed + 1)
    scores = rows.scores(played.components)
    return Smallest(jnp.diag(rows.gram(scores, scores)), played.components, largest, played)
