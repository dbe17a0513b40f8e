r"""Rayleigh-Ritz: rotate the players to the eigenvectors of $M$ within their span."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.game.rows import as_rows, floating
from eigengame.game.sphere import retract
from eigengame.linalg.eigh import symmetric_eigh
from eigengame.linalg.products import full_product


def settle(rows: Any, players: Any) -> tuple[jax.Array, jax.Array]:
    """Return the Ritz values (k,), largest first, and the Ritz vectors (k, d) in the span of the players.

    If the players span fewer than k dimensions, the last Ritz vectors are zero.

    Parameters
    ----------
    rows : Rows or array of shape (m, d)
    players : array of shape (k, d)
        Not necessarily orthogonal or of unit length.
    """
    rows = as_rows(rows)
    players = floating("players", _check.shaped("players", players))
    _check.same_width("players", players.shape[1], "rows", rows.width)
    scores = rows.scores(players)
    overlaps = full_product(players, players.T)
    values, coefficients = settle_coefficients(rows.gram(scores, scores), overlaps)
    return values, retract(full_product(coefficients, players))


def settle_coefficients(gram: jax.Array, overlaps: jax.Array) -> tuple[jax.Array, jax.Array]:
    r"""Return Ritz values, and Ritz vectors as coefficients of the players.

    Solves $R u = \lambda (V V^\top) u$ by the eigenvectors of the overlaps, without directions that the players do
    not span: overlaps of nearly parallel players are singular.

    Parameters
    ----------
    gram, overlaps : arrays of shape (k, k)
        $R = V M V^\top$ and $V V^\top$.

    Returns
    -------
    values : array of shape (k,)
        Ritz values, largest first; 0 for missing directions.
    coefficients : array of shape (k, k)
        Row $i$ holds the coefficients of the $i$th Ritz vector.
    """
    sizes, axes = symmetric_eigh(overlaps)
    cutoff = sizes[-1] * overlaps.shape[0] * jnp.finfo(overlaps.dtype).eps
    spanned = sizes > cutoff
    whiten = axes * jnp.where(spanned, 1 / jnp.sqrt(jnp.where(spanned, sizes, 1)), 0)[None, :]
    inside = full_product(full_product(whiten.T, gram), whiten)
    values, rotation = symmetric_eigh(inside)
    return values[::-1], full_product(whiten, rotation).T[::-1]
