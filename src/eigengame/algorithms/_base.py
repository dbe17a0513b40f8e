"""What every algorithm is: a frozen configuration with an `init` / `update` pair over a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from eigengame.game import utilities
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import safe_norms

LONGEST = 2**31 - 1
"""The most updates an int32 can count: options that are longer than that mean the same."""

StepSize = float | Callable[[jax.Array], jax.Array | float]
"""A step size: a number, or a schedule from the number of updates made so far to one."""


class Info(NamedTuple):
    """What an update saw, before it moved: for people and reports, not for the next update.

    Attributes
    ----------
    rewards : array of shape (k,)
        Each player's reward on the rows of this update.
    penalties : array of shape (k,)
        Each player's penalty for overlapping those it answers to.
    direction_norms : array of shape (k,)
        The length of the direction each player took, before the step size.
    """

    rewards: jax.Array
    penalties: jax.Array
    direction_norms: jax.Array

    @property
    def utilities(self) -> jax.Array:
        """Each player's utility: reward less penalty."""
        return self.rewards - self.penalties


class Algorithm(Protocol):
    """The contract of `eigengame.algorithms`.

    An algorithm is a frozen dataclass: equal configurations are equal and hash alike, so that a
    jitted `update` is compiled once for each configuration and shape. Its three functions are pure.
    """

    def init(self, players: jax.Array) -> Any:
        """Return the state before the first update.

        Parameters
        ----------
        players : array of shape (k, d)
            Where the players start; their dtype is the precision of the whole run.
        """
        ...

    def update(self, rows: Rows, state: Any) -> tuple[Any, Info]:
        """Return the state after all players met the rows once, and what was seen.

        The new state has the same tree, shapes and dtypes as the old one.
        """
        ...

    def components(self, state: Any) -> jax.Array:
        """Return the components found so far, shape (k, d), in their order."""
        ...


class PlayersState(NamedTuple):
    """The state of an algorithm that needs its players and the time, nothing more."""

    players: jax.Array
    step: jax.Array


def start(players: jax.Array) -> PlayersState:
    """Return players at time zero."""
    return PlayersState(players, jnp.zeros((), jnp.int32))


def step_at(step_size: StepSize, state: Any) -> jax.Array:
    """Return the step size for this update, in the players' dtype."""
    value = step_size(state.step) if callable(step_size) else step_size
    return jnp.asarray(value, state.players.dtype)


class Optimizer(Protocol):
    """Any optax gradient transformation (which descends, so it is fed minus the direction)."""

    @property
    def init(self) -> Callable[..., Any]:
        """Make the optimiser's own state from the players."""
        ...

    @property
    def update(self) -> Callable[..., Any]:
        """Turn a gradient into a move."""
        ...


def move(
    direction: jax.Array,
    state: Any,
    step_size: StepSize,
    optimizer: Optimizer | None = None,
    memory: Any = None,
) -> tuple[jax.Array, Any]:
    """Return where the players go along their directions, and the optimiser's new memory.

    `optimizer` replaces the step size: `optax.sgd(s)` is the step size `s`. Players keep their dtype,
    whatever that of the rows made of their directions.
    """
    direction = direction.astype(state.players.dtype)
    if optimizer is None:
        return state.players + step_at(step_size, state) * direction, memory
    updates, memory = optimizer.update(-direction, memory, state.players)
    return state.players + updates.astype(state.players.dtype), memory


def info_from(gram: jax.Array, direction: jax.Array) -> Info:
    """Return an `Info` by the paper's rules from the gram of the players' scores."""
    return Info(
        utilities.rewards(gram),
        utilities.penalties(gram),
        safe_norms(direction),
    )


MANY = 1_000_003
"""A width that nothing else has."""


def features_of(algorithm: Any, state: Any, k: int) -> Any:
    """Return a tree like the state that says which arrays have features as their last axis.

    Found by making a state for very many features, in shape only, and seeing where they are.
    """
    made = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, MANY), jnp.float32))
    wide = [leaf.shape[-1:] == (MANY,) for leaf in jax.tree.leaves(made)]
    return jax.tree.unflatten(jax.tree.structure(state), wide)
