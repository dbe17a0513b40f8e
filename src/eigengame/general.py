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
from eigengame.game.rows import floating
from eigengame.game.utilities import PAPER, Rules, overlap_ratios
from eigengame.linalg.products import full_product

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
    cross = full_product(known.T, own)
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


class GeneralPlayed(NamedTuple):
    """Parameters after the game, and the utilities (rounds, k) on the way."""

    parameters: Any
    utilities: jax.Array


def mlp(parameters: Sequence[jax.Array], rows: jax.Array) -> jax.Array:
    """Return the outputs (m,) of a network without biases: tanh between linear layers.

    `parameters` is a list or tuple of layers, each (inputs, outputs).
    """
    hidden = rows
    for weights in parameters[:-1]:
        hidden = jnp.tanh(hidden @ weights)
    return (hidden @ parameters[-1])[:, 0]


def mlp_players(seed: int, k: int, widths: Sequence[int]) -> list[jax.Array]:
    """Return parameters for k networks: widths are (d, hidden, ..., 1); (d, 1) is linear."""
    _check.whole("k", k)
    if len(widths) < 2 or widths[-1] != 1:
        raise ValueError(f"widths={tuple(widths)}: give (features, hidden sizes, ..., 1).")
    keys = jax.random.split(jax.random.key(_check.seed("seed", seed)), len(widths) - 1)
    shapes = pairwise(widths)
    layers = [jax.random.normal(key, (k, *shape)) for key, shape in zip(keys, shapes, strict=True)]
    return into_lipschitz_ball(layers, fill=True)


def into_lipschitz_ball(parameters: Any, *, fill: bool = False) -> Any:
    r"""Return the parameters with layers that stretch nothing: spectral norm at most 1.

    The general form of $\|\hat v_i\| \le 1$ (footnote of Design Decisions): for a linear player it is
    just that. Layers are the leaves with three axes, (k, inputs, outputs); others, such as biases,
    stretch nothing and stay as they are. With `fill` the norm is made exactly 1.
    """

    def shrink(weights: jax.Array) -> jax.Array:
        if weights.ndim != 3:
            return weights
        size = jnp.linalg.norm(weights, ord=2, axis=(-2, -1), keepdims=True)
        return weights / (jnp.where(size > 0, size, 1) if fill else jnp.maximum(size, 1))

    return jax.tree.map(shrink, parameters)


def play_general(
    rows: Any,
    parameters: Any,
    *,
    apply: Apply = mlp,
    step_size: float = 1e-3,
    rounds: int = 1000,
) -> GeneralPlayed:
    """Play the game with general players: gradient ascent, each player kept 1-Lipschitz.

    Parameters
    ----------
    rows : array of shape (m, d)
    parameters : tree of arrays with a leading axis of k
        For example `mlp_players(seed, k, (d, 16, 1))`. Leaves with three axes are layers, which are
        kept from stretching.
    apply : function
        One player's outputs (m,) from its parameters and the rows.
    step_size : float
        Step along each player's gradient.
    rounds : int
        Updates, each on all the rows.
    """
    data = floating("rows", _check.matrix("rows", rows))
    _check.positive("step_size", step_size)
    _check.whole("rounds", rounds)
    parameters = jax.tree.map(
        lambda leaf: floating("parameters", _check.numbers("parameters", leaf)), parameters
    )
    _fit(apply, parameters, data)
    return _play_general(data, parameters, step_size, apply, int(rounds))


def _fit(apply: Apply, parameters: Any, rows: jax.Array) -> None:
    """Accept parameters of k players whose outputs on the rows are one number each."""
    leaves = jax.tree.leaves(parameters)
    counts = {leaf.shape[:1] for leaf in leaves}
    if len(counts) != 1 or counts == {()}:
        raise ValueError(
            f"parameters have shapes {[leaf.shape for leaf in leaves]}: "
            "give every array a leading axis of k, the number of players."
        )
    for leaf in leaves:
        _check.finite("parameters", leaf)
    ((k,),) = counts
    fix = "give players that take rows of this width and return one output for each row."
    try:
        shape = jax.eval_shape(partial(outputs, apply), parameters, rows).shape
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"apply fails on rows of shape {rows.shape} ({error}): {fix}") from None
    if shape != (len(rows), k):
        raise ValueError(f"apply has outputs {shape[:1] + shape[2:]} for {len(rows)} rows: {fix}")


@partial(jax.jit, static_argnums=(3, 4))
def _play_general(
    rows: jax.Array, parameters: Any, step_size: jax.Array, apply: Apply, rounds: int
) -> GeneralPlayed:
    """Play, everything having been checked."""

    def one(parameters: Any, _: None) -> tuple[Any, jax.Array]:
        gradients, utilities = general_gradients(apply, parameters, rows)
        moved = jax.tree.map(
            lambda p, g: p + jnp.asarray(step_size, p.dtype) * g, parameters, gradients
        )
        return into_lipschitz_ball(moved), utilities

    return GeneralPlayed(*jax.lax.scan(one, parameters, None, length=rounds))
