r"""EigenGame$^R$-Sequential (Alg. 1): each player learns to its threshold before its child begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import LONGEST, Info
from eigengame.game import sphere, theory
from eigengame.game.rows import Rows
from eigengame.game.utilities import coefficients, penalties, rewards
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product


class SequentialState(NamedTuple):
    """Players, whose turn it is, and what ends that turn.

    Attributes
    ----------
    players : array of shape (k, d)
    active : int32
        The player that learns; k when all have learnt.
    taken : int32
        Iterations that the active player has had.
    budget : scalar
        $t_i$, set from the gradient of the active player's first iteration; may be infinite.
    target : scalar
        The gradient norm that ends the turn early, where that is asked for.
    step : int32
        Updates made so far.
    """

    players: jax.Array
    active: jax.Array
    taken: jax.Array
    budget: jax.Array
    target: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class Sequential:
    r"""Alg. 1 with the constants of Theorem ui_suff_conv.

    Step size $1/(2L)$; player $i$ is given $t_i$ iterations, from $\rho_i$ and the norm of its first
    Riemannian gradient, and its children answer to where it stopped. Made for full batches.

    Parameters
    ----------
    eigenvalues : sequence of k + 1 floats, largest first
        The spectrum (or an estimate): $\rho_i$ and $L$ are made of $\Lambda_{11}$ and the gaps.
    theta_tol : float
        The angle wanted, in radians.
    rule : {"scale-free", "literal"}
        $t_i = \lceil 5L^2/\min(\|\nabla\|/2,\rho_i)^2\rceil$, or $\lceil\frac54/\min(\cdot)^2\rceil$ as
        printed, which changes when the data is rescaled and stops far too soon on large data.
    cap : int
        No turn is longer: the theorem's $t_i$ are worst cases and soon beyond reach.
    stop_on_gradient : bool
        End a turn when $\|\nabla^R\| \le \min(\|\nabla^R_0\|/2, \rho_i)$, which is all the proof needs,
        or when it is within the rounding of the dtype, below which no player can go.
    """

    eigenvalues: tuple[float, ...]
    theta_tol: float = 0.1
    rule: Literal["scale-free", "literal"] = "scale-free"
    cap: int = 100_000
    stop_on_gradient: bool = True

    def __post_init__(self) -> None:
        # A tuple of floats, whatever came in: configurations must hash.
        spectrum = _check.spectrum("eigenvalues", self.eigenvalues, at_least=2)
        object.__setattr__(self, "eigenvalues", tuple(float(x) for x in spectrum))
        _check.one_of("rule", self.rule, ("scale-free", "literal"))
        _check.whole("cap", self.cap)
        theory.thresholds(self.eigenvalues, 1, self.theta_tol)

    def init(self, players: jax.Array) -> SequentialState:
        """Return the players where they start, the first one to move."""
        theory.thresholds(self.eigenvalues, players.shape[0], self.theta_tol)
        zero, unknown = jnp.zeros((), jnp.int32), jnp.zeros((), players.dtype)
        return SequentialState(players, zero, zero, unknown, unknown, zero)

    def update(self, rows: Rows, state: SequentialState) -> tuple[SequentialState, Info]:
        """Give the active player one iteration; pass the turn on if it is done."""
        players, k = state.players, state.players.shape[0]
        learning = state.active < k
        i = jnp.minimum(state.active, k - 1)
        gram, gradient = self._riemannian_gradient(rows, players, i)
        norm = safe_norms(gradient)

        first = state.taken == 0
        budget, target = self._turn(k, i, norm)
        budget = jnp.where(first, budget, state.budget)
        target = jnp.where(first, target, state.target)
        there = (norm <= target) & self.stop_on_gradient
        passes = learning & (there | (state.taken + 1 >= budget))

        step_size = 1 / (2 * theory.lipschitz(self.eigenvalues, k))
        moved = sphere.retract(players[i] + step_size * gradient)
        info = Info(rewards(gram), penalties(gram), jnp.where(jnp.arange(k) == i, norm, 0))
        return (
            SequentialState(
                players=players.at[i].set(jnp.where(learning & ~there, moved, players[i])),
                active=state.active + passes.astype(jnp.int32),
                taken=jnp.where(passes, 0, state.taken + 1),
                budget=budget,
                target=target,
                step=state.step + 1,
            ),
            info,
        )

    def components(self, state: SequentialState) -> jax.Array:
        """Return the players; those from `state.active` on have not had their turn."""
        return state.players

    def _riemannian_gradient(
        self, rows: Rows, players: jax.Array, i: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        r"""Return the gram of all scores and $\nabla^R_{\hat v_i} u_i$, shape (d,), of one player."""
        scores = rows.scores(players)
        gram = rows.gram(scores, scores)
        column = jax.lax.dynamic_slice_in_dim(coefficients(gram), i, 1, axis=1)
        gradient = 2 * rows.directions(full_product(scores, column))
        return gram, sphere.project_tangent(players[i][None, :], gradient)[0]

    def _turn(self, k: int, i: jax.Array, norm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return $t_i$, capped, and the gradient norm to reach, from the first gradient's norm."""
        rho = jnp.asarray(theory.thresholds(self.eigenvalues, k, self.theta_tol).rho, norm.dtype)[i]
        target = jnp.minimum(norm / 2, rho)
        lipschitz = theory.lipschitz(self.eigenvalues, k)
        # In units of L the square cannot overflow where the ratio itself is in range.
        unit = lipschitz if self.rule == "scale-free" else 0.5
        ratio = unit / jnp.maximum(target, jnp.finfo(norm.dtype).tiny)
        budget = jnp.minimum(jnp.ceil(5 * jnp.square(ratio)), float(min(self.cap, LONGEST)))
        # A gradient is a difference of terms of up to L / (2 k), each rounded: less is not seen.
        return budget, jnp.maximum(target, 8 * float(jnp.finfo(norm.dtype).eps) * lipschitz)
