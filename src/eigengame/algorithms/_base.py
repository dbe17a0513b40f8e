"""The interface of all algorithms: a frozen configuration with `init` and `update` over a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.game import utilities
from eigengame.game.axes import FEATURES, PLAYERS, WHOLE
from eigengame.game.rows import Rows
from eigengame.linalg.orthonormal import safe_norms

MAX_COUNT = 2**31 - 1
"""The largest int32, the dtype of update counters: options are capped at it."""

StepSize = float | Callable[[jax.Array], jax.Array | float]
"""A step size: a number, or a schedule that maps the number of previous updates to one."""


class Info(NamedTuple):
    """Measurements of an update, taken before players move. No algorithm uses them.

    Attributes
    ----------
    rewards : array of shape (k,)
        Each player's reward on the rows of this update.
    penalties : array of shape (k,)
        Each player's penalty for its overlap with its parents.
    direction_norms : array of shape (k,)
        The length of each player's direction, before the step size.
    """

    rewards: jax.Array
    penalties: jax.Array
    direction_norms: jax.Array

    @property
    def utilities(self) -> jax.Array:
        """Each player's utility: reward minus penalty."""
        return self.rewards - self.penalties


class Algorithm(Protocol):
    """The protocol of `eigengame.algorithms`.

    An algorithm is a frozen dataclass: equal configurations are equal and have the same hash, so that a jitted
    `update` is compiled once for each configuration and shape. Its functions are pure.

    A state is a pytree. To be placed on a mesh it needs a method `axes` that returns a tree like the state with the
    axis names of each array (see `eigengame.game.axes`).
    """

    def init(self, players: jax.Array) -> Any:
        """Return the initial state.

        Parameters
        ----------
        players : array of shape (k, d)
            Initial players; their dtype is the precision of the whole run.
        """
        ...

    def update(self, rows: Rows, state: Any) -> tuple[Any, Info]:
        """Return the state after one update on the rows, and its measurements.

        The new state has the tree, shapes and dtypes of the old one.
        """
        ...

    def components(self, state: Any) -> jax.Array:
        """Return the current components, shape (k, d), in order."""
        ...


class PlayersState(NamedTuple):
    """Players (k, d) and the number of updates so far."""

    players: jax.Array
    step: jax.Array

    def axes(self) -> PlayersState:
        """Return the axis names of each array."""
        return PlayersState(PLAYERS, WHOLE)


@dataclass(frozen=True)
class PlayersAlgorithm:
    """Base class of algorithms with a step size whose state is `PlayersState`; subclasses define `update`."""

    step_size: StepSize = 1e-3

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)

    def init(self, players: jax.Array) -> PlayersState:
        """Return the initial state."""
        return PlayersState(players, jnp.zeros((), jnp.int32))

    def components(self, state: PlayersState) -> jax.Array:
        """Return the players."""
        return state.players


def step_at(step_size: StepSize, state: Any) -> jax.Array:
    """Return the step size of this update, in the dtype of the players."""
    value = step_size(state.step) if callable(step_size) else step_size
    return jnp.asarray(value, state.players.dtype)


class Optimizer(Protocol):
    """Any optax gradient transformation."""

    @property
    def init(self) -> Callable[..., Any]:
        """Create the optimizer state from the players."""
        ...

    @property
    def update(self) -> Callable[..., Any]:
        """Convert a gradient to an update of the players."""
        ...


def optimizer_axes(optimizer_state: Any, players: jax.Array) -> Any:
    """Return the axis names of each array of an optimizer state.

    Optimizers keep arrays like the players. An array whose last axis has the size of the players' last axis has
    features.
    """

    def axes(leaf: jax.Array) -> Any:
        if leaf.shape[-1:] != players.shape[-1:]:
            return WHOLE
        return FEATURES if leaf.ndim == 1 else PLAYERS

    return jax.tree.map(axes, optimizer_state)


def move(
    direction: jax.Array,
    state: Any,
    step_size: StepSize,
    optimizer: Optimizer | None = None,
    optimizer_state: Any = None,
) -> tuple[jax.Array, Any]:
    """Move the players along their directions; return them and the new optimizer state.

    An `optimizer` replaces the step size: `optax.sgd(s)` is the step size `s`. Players keep their dtype, also if
    the dtype of the rows gives directions another.
    """
    direction = direction.astype(state.players.dtype)
    if optimizer is None:
        return state.players + step_at(step_size, state) * direction, optimizer_state
    # Optimizers minimise, so they get the negative direction.
    updates, optimizer_state = optimizer.update(-direction, optimizer_state, state.players)
    return state.players + updates.astype(state.players.dtype), optimizer_state


def info_from(gram: jax.Array, direction: jax.Array) -> Info:
    """Return the `Info` of the paper's rules from the gram of the players' scores."""
    return Info(utilities.rewards(gram), utilities.penalties(gram), safe_norms(direction))
