r"""General players: $X\hat v_i \to f_i(X)$ (Design Decisions).

The utilities are made of inner products of the players' outputs alone, so a player may be any
function of the rows. Here each is a small network of its own, trained by the same game; with a
linear network it is the linear game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.game.rows import small_product
from eigengame.game.utilities import PAPER, Rules, overlap_ratios

Apply = Callable[[Any, jax.Array], jax.Array]
"""A player: parameters and rows (m, d) to outputs (m,)."""


def outputs(apply: Apply, parameters: Any, rows: jax.Array) -> jax.Array:
    """Return every player's outputs, shape (m, k); parameters carry a leading axis of k."""
    return jax.vmap(apply, in_axes=(0, None), out_axes=1)(parameters, rows)


def output_utilities(own: jax.Array, known: jax.Array, rules: Rules = PAPER) -> jax.Array:
    """Return each player's utility (k,) from its outputs, given all players' outputs as known to it.

    Utilities are eq. obj with outputs $f_i(X)$ in the place of scores. `own` and `known` are the same
    numbers; keeping them apart keeps a player from moving its parents.
    """
    cross = small_product(known.T, own)
    ratios = overlap_ratios(cross, jnp.sum(jnp.square(known), axis=0), rules)
    return jnp.sum(jnp.square(own), axis=0) - jnp.sum(ratios * cross, axis=0)


def general_gradients(
    apply: Apply, parameters: Any, rows: jax.Array, rules: Rules = PAPER
) -> tuple[Any, jax.Array]:
    """Return each player's gradient of its own utility, and the utilities (k,)."""

    def total(parameters: Any) -> tuple[jax.Array, jax.Array]:
        own = outputs(apply, parameters, rows)
        each = output_utilities(own, jax.lax.stop_gradient(own), rules)
        return jnp.sum(each), each

    gradients, each = jax.grad(total, has_aux=True)(parameters)
    return gradients, each


class Played(NamedTuple):
    """Parameters after the game, and the utilities (rounds, k) on the way."""

    parameters: Any
    utilities: jax.Array


def mlp(parameters: Sequence[jax.Array], rows: jax.Array) -> jax.Array:
    """Return the outputs (m,) of a network without biases: tanh between linear layers."""
    hidden = rows
    for weights in parameters[:-1]:
        hidden = jnp.tanh(hidden @ weights)
    return (hidden @ parameters[-1])[:, 0]


def mlp_players(seed: int, k: int, widths: Sequence[int]) -> list[jax.Array]:
    """Return parameters for k networks: widths are (d, hidden, ..., 1); (d, 1) is linear."""
    _check.whole("k", k)
    if len(widths) < 2 or widths[-1] != 1:
        raise ValueError(f"widths={tuple(widths)}: give (features, hidden sizes, ..., 1).")
    keys = jax.random.split(jax.random.key(seed), len(widths) - 1)
    shapes = pairwise(widths)
    layers = [jax.random.normal(key, (k, *shape)) for key, shape in zip(keys, shapes, strict=True)]
    return into_lipschitz_ball(layers, fill=True)


def into_lipschitz_ball(parameters: Sequence[jax.Array], *, fill: bool = False) -> list[jax.Array]:
    r"""Return weights whose layers stretch nothing: spectral norm at most 1.

    The general form of $\|\hat v_i\| \le 1$ (footnote of Design Decisions): for a linear player it is
    just that. With `fill` the norm is made exactly 1.
    """

    def shrink(weights: jax.Array) -> jax.Array:
        size = jnp.linalg.norm(weights, ord=2, axis=(-2, -1), keepdims=True)
        return weights / (size if fill else jnp.maximum(size, 1))

    return [shrink(weights) for weights in parameters]


@partial(jax.jit, static_argnames=("apply", "rounds"))
def play_general(
    rows: jax.Array,
    parameters: Any,
    *,
    apply: Apply = mlp,
    step_size: float = 1e-3,
    rounds: int = 1000,
) -> Played:
    """Play the game with general players: gradient ascent, each player kept 1-Lipschitz.

    Parameters
    ----------
    rows : array of shape (m, d)
    parameters : tree with a leading axis of k
        For example `mlp_players(seed, k, (d, 16, 1))`.
    apply : function
        One player's outputs from its parameters and the rows.
    step_size : float
        Step along each player's gradient.
    rounds : int
        Updates, each on all the rows.
    """

    def one(parameters: Any, _: None) -> tuple[Any, jax.Array]:
        gradients, utilities = general_gradients(apply, parameters, rows)
        moved = jax.tree.map(lambda p, g: p + step_size * g, parameters, gradients)
        return into_lipschitz_ball(moved), utilities

    return Played(*jax.lax.scan(one, parameters, None, length=rounds))
