r"""General players: $X\hat v_i \to f_i(X)$ (Design Decisions).

Utilities only depend on inner products of the players' outputs, so a player can be any function of the rows. Here
each player is a small network, trained by the same game; linear networks give the linear game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame._rounds import block_of_rounds, run_rounds
from eigengame.game.rows import floating
from eigengame.game.utilities import PAPER, Rules, overlap_ratios
from eigengame.linalg.products import full_product

Apply = Callable[[Any, jax.Array], jax.Array]
"""A player: a function of parameters and rows (m, d) with outputs (m,)."""


def outputs(apply: Apply, parameters: Any, rows: jax.Array) -> jax.Array:
    """Return every player's outputs, shape (m, k); parameters have a leading axis of length k."""
    return jax.vmap(apply, in_axes=(0, None), out_axes=1)(parameters, rows)


def output_utilities(own: jax.Array, others: jax.Array, rules: Rules = PAPER) -> jax.Array:
    """Return each player's utility (k,): eq. obj with outputs $f_i(X)$ instead of scores.

    `own` and `others` are both the outputs (m, k) of all players. Gradients with respect to `own` are those of each
    player's own utility, with the other players fixed.
    """
    cross = full_product(others.T, own)
    ratios = overlap_ratios(cross, jnp.sum(jnp.square(others), axis=0), rules)
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
    """Final parameters, and the utilities (rounds, k) before each update."""

    parameters: Any
    utilities: jax.Array


def mlp(parameters: Sequence[jax.Array], rows: jax.Array) -> jax.Array:
    """Return the outputs (m,) of a network of linear layers without biases, with tanh between them.

    `parameters` is a list or tuple of weights, each of shape (inputs, outputs).
    """
    hidden = rows
    for weights in parameters[:-1]:
        hidden = jnp.tanh(hidden @ weights)
    return (hidden @ parameters[-1])[:, 0]


def mlp_players(seed: int, k: int, widths: Sequence[int]) -> list[jax.Array]:
    """Return random parameters of k networks with layer widths (d, hidden, ..., 1); (d, 1) is linear."""
    _check.whole("k", k)
    if len(widths) < 2 or widths[-1] != 1:
        raise ValueError(f"widths={tuple(widths)}: give (features, hidden sizes, ..., 1).")
    keys = jax.random.split(jax.random.key(_check.seed("seed", seed)), len(widths) - 1)
    shapes = pairwise(widths)
    layers = [jax.random.normal(key, (k, *shape)) for key, shape in zip(keys, shapes, strict=True)]
    return into_lipschitz_ball(layers, fill=True)


def into_lipschitz_ball(parameters: Any, *, fill: bool = False) -> Any:
    r"""Scale layers to a spectral norm of at most 1, or with `fill` of exactly 1.

    This generalises $\|\hat v_i\| \le 1$ (footnote of Design Decisions), to which it reduces for a linear player.
    Layers are the leaves with three axes, (k, inputs, outputs); others, such as biases, stay the same.
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
    """Play the game with general players: gradient ascent, with 1-Lipschitz players.

    Parameters
    ----------
    rows : array of shape (m, d)
    parameters : tree of arrays with a leading axis of length k
        For example `mlp_players(seed, k, (d, 16, 1))`. Leaves with three axes are layers: see
        `into_lipschitz_ball`.
    apply : function
        Outputs (m,) of one player from its parameters and the rows.
    step_size : float
        Step along each player's gradient.
    rounds : int
        Number of updates, each on all rows.
    """
    data = floating("rows", _check.matrix("rows", rows))
    _check.positive("step_size", step_size)
    _check.whole("rounds", rounds)
    parameters = jax.tree.map(
        lambda leaf: floating("parameters", _check.numbers("parameters", leaf)), parameters
    )
    _check_parameters(apply, parameters, data)
    block = partial(_block, apply, data, step_size)
    return GeneralPlayed(*run_rounds(block, parameters, rounds))


def _check_parameters(apply: Apply, parameters: Any, rows: jax.Array) -> None:
    """Raise unless these are parameters of k players with one output for each row."""
    leaves = jax.tree.leaves(parameters)
    counts = {leaf.shape[:1] for leaf in leaves}
    if len(counts) != 1 or counts == {()}:
        raise ValueError(
            f"parameters have shapes {[leaf.shape for leaf in leaves]}: "
            "give every array a leading axis of length k, the number of players."
        )
    for leaf in leaves:
        _check.finite("parameters", leaf)
    ((k,),) = counts
    fix = "give players that accept rows of this width and return one output for each row."
    try:
        shape = jax.eval_shape(partial(outputs, apply), parameters, rows).shape
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise ValueError(f"apply fails on rows of shape {rows.shape} ({error}): {fix}") from None
    if shape != (len(rows), k):
        raise ValueError(f"apply has outputs {shape[:1] + shape[2:]} for {len(rows)} rows: {fix}")


@partial(jax.jit, static_argnums=0)
def _block(
    apply: Apply, rows: jax.Array, step_size: jax.Array, parameters: Any, count: jax.Array
) -> tuple[Any, jax.Array]:
    """Run `count` updates (see `block_of_rounds`)."""

    def update(parameters: Any) -> tuple[Any, jax.Array]:
        gradients, utilities = general_gradients(apply, parameters, rows)
        moved = jax.tree.map(
            lambda p, g: p + jnp.asarray(step_size, p.dtype) * g, parameters, gradients
        )
        return into_lipschitz_ball(moved), utilities

    return block_of_rounds(update, parameters, count)
