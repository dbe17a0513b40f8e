r"""EigenGame and EigenGame$^R$ (Alg. 2): every player follows the gradient of its utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import LONGEST, Info, Optimizer, StepSize, move
from eigengame.game import sphere
from eigengame.game.rows import Rows
from eigengame.game.utilities import PAPER, Rules, overlap_ratios, rules_of
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product


class AlphaState(NamedTuple):
    """Players, and what they know of each other.

    Attributes
    ----------
    players : array of shape (k, d)
    heard : array of shape (k, d) or None
        Each player as last broadcast; None where every update is broadcast.
    key : random key data or None
        Which broadcasts are dropped next.
    memory : any
        The optimiser's own state.
    step : int32
        Updates made so far.
    """

    players: jax.Array
    heard: jax.Array | None
    key: jax.Array | None
    memory: Any
    step: jax.Array


@dataclass(frozen=True)
class Alpha:
    r"""EigenGame: $\hat v_i \leftarrow \hat v_i + \alpha\nabla_i$, then back to the sphere.

    Parameters
    ----------
    step_size : float or schedule
        $\alpha$. The paper searches $10^{-3} \ldots 10^{-6}$, with $M = X_t^\top X_t$ summed over the
        batch and the factor 2 of Alg. 2 in the gradient.
    riemannian : bool
        Follow $\nabla^R$, the gradient's projection on the tangent space (EigenGame$^R$, the
        default), or the gradient itself (EigenGame).
    surface : {"sphere", "ball"}
        Where players live: $\|\hat v_i\| = 1$, or $\|\hat v_i\| \le 1$. On the ball they need
        `riemannian=False`: the tangent of the sphere leads nobody outwards.
    rules : Rules, or pair of bools
        Which game: with or without the hierarchy and the normaliser.
    own_batches : bool
        Whether player $i$ sees its own batch $X_{i,t}$: rows then have shape (k, m, d).
    lag : int
        Broadcast every `lag` updates; in between, children answer to where their parents were.
    dropout : float
        Probability that a player's broadcast is lost.
    seed : int
        Seed of the lost broadcasts.
    optimizer : optax gradient transformation, optional
        Takes the place of `step_size`.
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
                'surface="ball" with riemannian=True: give riemannian=False; players inside the ball '
                "have no tangent space, and the projection would keep them from growing."
            )
        object.__setattr__(self, "rules", rules_of(self.rules))
        _check.whole("lag", self.lag)
        _check.fraction("dropout", self.dropout)
        _check.seed("seed", self.seed)
        _check.optimizer("optimizer", self.optimizer)

    def init(self, players: jax.Array) -> AlphaState:
        """Return the players where they start, all of them known to all."""
        unheard = self.lag == 1 and self.dropout == 0
        return AlphaState(
            players=players,
            heard=None if unheard else players,
            key=jax.random.key_data(jax.random.key(self.seed)) if self.dropout else None,
            memory=None if self.optimizer is None else self.optimizer.init(players),
            step=jnp.zeros((), jnp.int32),
        )

    def update(self, rows: Rows, state: AlphaState) -> tuple[AlphaState, Info]:
        """Move every player once, in parallel."""
        play = self._each_on_its_own if self.own_batches else self._all_on_the_same
        gradient, rewards, penalties = play(rows, state)
        if self.riemannian:
            gradient = sphere.project_tangent(state.players, gradient)
        moved, memory = move(gradient, state, self.step_size, self.optimizer, state.memory)
        players = sphere.retract(moved) if self.surface == "sphere" else sphere.into_ball(moved)
        heard, key = self._broadcast(players, state)
        info = Info(rewards, penalties, safe_norms(gradient))
        return AlphaState(players, heard, key, memory, state.step + 1), info

    def components(self, state: AlphaState) -> jax.Array:
        """Return the players."""
        return state.players

    def _answers(self, rows: Rows, state: AlphaState) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return rewards less penalties in score space (m, k), and both as numbers (k,)."""
        scores = rows.scores(state.players)
        gram = rows.gram(scores, scores)
        told, cross, worth = scores, gram, jnp.diag(gram)
        if state.heard is not None:
            told = rows.scores(state.heard)
            cross, worth = rows.gram(told, scores), jnp.diag(rows.gram(told, told))
        ratios = overlap_ratios(cross, worth, self.rules)
        answers = scores - full_product(told, ratios)
        return answers, jnp.diag(gram), jnp.sum(ratios * cross, axis=0)

    def _all_on_the_same(
        self, rows: Rows, state: AlphaState
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return gradient, rewards and penalties of every player on one batch."""
        answers, rewards, penalties = self._answers(rows, state)
        return 2 * rows.directions(answers), rewards, penalties

    def _each_on_its_own(
        self, rows: Rows, state: AlphaState
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return gradient, rewards and penalties of player i on batch i."""

        def play(own: Rows, i: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            answers, rewards, penalties = self._answers(own, state)
            mine = jax.lax.dynamic_slice_in_dim(answers, i, 1, axis=1)
            return 2 * own.directions(mine)[0], rewards[i], penalties[i]

        return jax.vmap(play)(rows, jnp.arange(state.players.shape[0]))

    def _broadcast(
        self, players: jax.Array, state: AlphaState
    ) -> tuple[jax.Array | None, jax.Array | None]:
        """Return what every player is now known as, and the key for the next losses."""
        if state.heard is None:
            return None, None
        arrives = jnp.full((players.shape[0], 1), (state.step + 1) % min(self.lag, LONGEST) == 0)
        key = state.key
        if key is not None:
            now, later = jax.random.split(jax.random.wrap_key_data(key))
            arrives &= jax.random.bernoulli(now, 1 - self.dropout, arrives.shape)
            key = jax.random.key_data(later)
        return jnp.where(arrives, players, state.heard), key
