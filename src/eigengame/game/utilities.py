r"""The game: rewards, penalties, utilities and their gradients, as functions of scores.

With $R = Y^\top Y$, so that
$R_{ij} = \langle \hat v_i, M \hat v_j\rangle$, the utility of player $i$ (paper, eq. obj) is

$$u_i = R_{ii} - \sum_{j<i} R_{ij}^2 / R_{jj}$$

and its gradient (eq. ui_grad) is $2 (Y C)^\top Z$ with coefficients
$C = I - \mathrm{striu}(R / \mathrm{diag}(R))$, so players are combined in score space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.rows import Rows
from eigengame.linalg.products import full_product


class Rules(NamedTuple):
    r"""Rules of the game; the default is the paper's.

    Attributes
    ----------
    hierarchy : bool
        Whether a player is penalised by its parents $j < i$ only, or by all $j \ne i$ (appendix Without the
        Hierarchy).
    normaliser : bool
        Whether penalties are divided by the other player's reward $\langle \hat v_j, M \hat v_j\rangle$.
    """

    hierarchy: bool = True
    normaliser: bool = True


PAPER = Rules()


def rules_of(value: Any) -> Rules:
    """Convert `Rules`, or a pair of bools, to `Rules`."""
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    if not pair or not all(isinstance(rule, (bool, np.bool_)) for rule in value):
        raise ValueError(f"rules={value!r}: give Rules(hierarchy, normaliser), each True or False.")
    return Rules(*(bool(rule) for rule in value))


def penalised_by(k: int, rules: Rules = PAPER) -> jax.Array:
    """Return the (k, k) mask whose entry [j, i] is true where player j penalises player i."""
    everyone = jnp.ones((k, k), dtype=bool)
    return jnp.triu(everyone, 1) if rules.hierarchy else everyone & ~jnp.eye(k, dtype=bool)


def overlap_ratios(cross: jax.Array, rewards: jax.Array, rules: Rules = PAPER) -> jax.Array:
    r"""Return the ratios of overlaps to rewards in the penalties.

    Parameters
    ----------
    cross : array of shape (k, k)
        Entry [j, i] is $\langle \hat v_j, M \hat v_i\rangle$, with $\hat v_j$ as last broadcast to player $i$.
    rewards : array of shape (k,)
        $\langle \hat v_j, M \hat v_j\rangle$ for the same $\hat v_j$.
    rules : Rules

    Returns
    -------
    array of shape (k, k)
        Entry [j, i] is $\langle \hat v_j, M \hat v_i\rangle / \langle \hat v_j, M \hat v_j\rangle$
        if j penalises i, else 0. A player with a reward of at most 0 imposes no penalty.
    """
    if rules.normaliser:
        divisor = jnp.where(rewards > 0, rewards, 1)
        cross = jnp.where((rewards > 0)[:, None], cross / divisor[:, None], 0)
    return jnp.where(penalised_by(cross.shape[0], rules), cross, 0)


def rewards(gram: jax.Array) -> jax.Array:
    r"""Return each player's reward $\langle \hat v_i, M \hat v_i\rangle$, shape (k,)."""
    return jnp.diag(gram)


def penalties(gram: jax.Array, rules: Rules = PAPER) -> jax.Array:
    """Return each player's penalty, the sum in eq. obj, shape (k,)."""
    return jnp.sum(overlap_ratios(gram, jnp.diag(gram), rules) * gram, axis=0)


def utilities(gram: jax.Array, rules: Rules = PAPER) -> jax.Array:
    """Return each player's utility $u_i$ (eq. obj), shape (k,), from the gram of their scores."""
    return rewards(gram) - penalties(gram, rules)


def coefficients(gram: jax.Array, rules: Rules = PAPER) -> jax.Array:
    r"""Return $C$, shape (k, k); column $i$ is the generalised Gram-Schmidt step of player $i$."""
    k = gram.shape[0]
    return jnp.eye(k, dtype=gram.dtype) - overlap_ratios(gram, jnp.diag(gram), rules)


def gradients(rows: Rows, players: jax.Array, rules: Rules = PAPER) -> jax.Array:
    r"""Return $\nabla_{\hat v_i} u_i$ for every player (eq. ui_grad), shape (k, d).

    With the factor 2 of Alg. 2, which the paper's vectorised listing omits.
    """
    scores = rows.scores(players)
    combined = full_product(scores, coefficients(rows.gram(scores, scores), rules))
    return 2 * rows.directions(combined)
