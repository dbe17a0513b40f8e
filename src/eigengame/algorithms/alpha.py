r"""EigenGame and EigenGame$^R$ (Alg. 2): each player ascends the gradient of its utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import (
    MAX_COUNT,
    Info,
    Optimizer,
    StepSize,
    move,
    optimizer_axes,
)
from eigengame.game import sphere
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import Rows
from eigengame.game.utilities import PAPER, Rules, overlap_ratios, rules_of
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product


class AlphaState(NamedTuple):
    """Players, and their last broadcasts.

    Attributes
    ----------
    players : array of shape (k, d)
    broadcast : array of shape (k, d) or None
        Each player as last broadcast to its children; None if every update is broadcast.
    key : random key data or None
        Random key of the next dropped broadcasts.
    optimizer_state : any
    step : int32
        Updates so far.
    """

    players: jax.Array
    broadcast: jax.Array | None
    key: jax.Array | None
    optimizer_state: Any
    step: jax.Array

    def axes(self) -> AlphaState:
        """Return the axis names of each array."""
        return AlphaState(
            PLAYERS,
            None if self.broadcast is None else PLAYERS,
            None if self.key is None else WHOLE,
            optimizer_axes(self.optimizer_state, self.players),
            WHOLE,
        )


@dataclass(frozen=True)
class Alpha:
    r"""EigenGame: $\hat v_i \leftarrow \hat v_i + \alpha\nabla_i$, then retraction to the sphere.

    Parameters
    ----------
    step_size : float or schedule
        $\alpha$. The paper searches $10^{-3} \ldots 10^{-6}$, with $M = X_t^\top X_t$ summed over the
        batch and the factor 2 of Alg. 2 in the gradient.
    riemannian : bool
        Use $\nabla^R$, the projection of the gradient on the tangent space (EigenGame$^R$, the default), or the
        gradient itself (EigenGame).
    surface : {"sphere", "ball"}
        Constraint on players: $\|\hat v_i\| = 1$, or $\|\hat v_i\| \le 1$. The ball needs `riemannian=False`, since
        tangent steps do not increase the norm.
    rules : Rules, or pair of bools
        Rules of the game: with or without the hierarchy and the normaliser.
    own_batches : bool
        Whether each player $i$ has its own batch $X_{i,t}$: rows then have shape (k, m, d). On a mesh each device
        holds the batches of its players.
    lag : int
        Updates between broadcasts; in between, children use the last broadcast of their parents.
    dropout : float
        Probability that a player's broadcast is lost.
    seed : int
        Seed of the lost broadcasts.
    optimizer : optax gradient transformation, optional
        Replaces `step_size`.
    """

    step_size: StepSize = 1e-3
    riemannian: bool = True
    surface: Literal["sphere", "ball"] = "sphere"
    rules: Rules = PAPER
    own_batches: bool = False
    lag: int = 1
    dropout: float = 0.0
    seed: int = 0
    optimizer: Optimizer | None = None

    def __post_init__(self) -> None:
        _check.step_size("step_size", self.step_size)
        _check.one_of("surface", self.surface, ("sphere", "ball"))
        if self.surface == "ball" and self.riemannian:
            raise ValueError(
                'surface="ball" with riemannian=True: give riemannian=False, since the projection on the tangent '
                "space would keep players from growing."
            )
        object.__setattr__(self, "rules", rules_of(self.rules))
        _check.whole("lag", self.lag)
        _check.fraction("dropout", self.dropout)
        _check.seed("seed", self.seed)
        _check.optimizer("optimizer", self.optimizer)

    def init(self, players: jax.Array) -> AlphaState:
        """Return the initial state; all players are broadcast."""
        always = self.lag == 1 and self.dropout == 0
        return AlphaState(
            players=players,
            broadcast=None if always else players,
            key=jax.random.key_data(jax.random.key(self.seed)) if self.dropout else None,
            optimizer_state=None if self.optimizer is None else self.optimizer.init(players),
            step=jnp.zeros((), jnp.int32),
        )

    def update(self, rows: Rows, state: AlphaState) -> tuple[AlphaState, Info]:
        """Move every player once, in parallel."""
        if self.own_batches:
            gradient, rewards, penalties = self._on_own_batches(rows, state)
        else:
            combined, rewards, penalties = self._gradient_scores(rows, state)
            gradient = 2 * rows.directions(combined)
        if self.riemannian:
            gradient = sphere.project_tangent(state.players, gradient)
        moved, optimizer_state = move(
            gradient, state, self.step_size, self.optimizer, state.optimizer_state
        )
        players = sphere.retract(moved) if self.surface == "sphere" else sphere.into_ball(moved)
        broadcast, key = self._broadcast(players, state)
        info = Info(rewards, penalties, safe_norms(gradient))
        return AlphaState(players, broadcast, key, optimizer_state, state.step + 1), info

    def components(self, state: AlphaState) -> jax.Array:
        """Return the players."""
        return state.players

    def _gradient_scores(
        self, rows: Rows, state: AlphaState
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return half the gradients in score space (m, k), the rewards (k,) and the penalties (k,)."""
        scores = rows.scores(state.players)
        gram = rows.gram(scores, scores)
        others, cross, others_rewards = scores, gram, jnp.diag(gram)
        if state.broadcast is not None:
            others = rows.scores(state.broadcast)
            cross, others_rewards = rows.gram(others, scores), jnp.diag(rows.gram(others, others))
        ratios = overlap_ratios(cross, others_rewards, self.rules)
        combined = scores - full_product(others, ratios)
        return combined, jnp.diag(gram), jnp.sum(ratios * cross, axis=0)

    def _on_own_batches(
        self, rows: Rows, state: AlphaState
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return gradients (k, d), rewards (k,) and penalties (k,), of player i on batch i."""
        others = state.players if state.broadcast is None else state.broadcast

        def play(
            own: Rows, player: jax.Array, i: jax.Array
        ) -> tuple[jax.Array, jax.Array, jax.Array]:
            # The player is an argument of its own, so that on a mesh only the others are exchanged.
            mine = own.scores(player[None])
            scores = jax.lax.dynamic_update_slice_in_dim(own.scores(others), mine, i, axis=1)
            gram = own.gram(scores, scores)
            ratios = overlap_ratios(gram, jnp.diag(gram), self.rules)[:, i]
            combined = mine - full_product(scores, ratios[:, None])
            return 2 * own.directions(combined)[0], gram[i, i], jnp.sum(ratios * gram[:, i])

        return jax.vmap(play)(rows, state.players, jnp.arange(state.players.shape[0]))

    def _broadcast(
        self, players: jax.Array, state: AlphaState
    ) -> tuple[jax.Array | None, jax.Array | None]:
        """Return each player as last broadcast, and the random key of the next update."""
        if state.broadcast is None:
            return None, None
        arrives = jnp.full((players.shape[0], 1), (state.step + 1) % min(self.lag, MAX_COUNT) == 0)
        key = state.key
        if key is not None:
            now, later = jax.random.split(jax.random.wrap_key_data(key))
            arrives &= jax.random.bernoulli(now, 1 - self.dropout, arrives.shape)
            key = jax.random.key_data(later)
        return jnp.where(arrives, players, state.broadcast), key
