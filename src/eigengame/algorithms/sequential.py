r"""EigenGame$^R$-Sequential (Alg. 1): players learn one after another, each up to its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from eigengame import _check
from eigengame.algorithms._base import MAX_COUNT, Info
from eigengame.game import sphere, theory
from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import Rows
from eigengame.game.utilities import coefficients, penalties, rewards
from eigengame.linalg.orthonormal import safe_norms
from eigengame.linalg.products import full_product


class SequentialState(NamedTuple):
    """Players, the active player, and the end of its turn.

    Attributes
    ----------
    players : array of shape (k, d)
    active : int32
        Index of the player that learns; k when all have finished.
    taken : int32
        Iterations of the active player.
    budget : scalar
        $t_i$, set from the gradient of the active player's first iteration; may be infinite.
    target : scalar
        The gradient norm that ends the turn early with `stop_on_gradient`.
    step : int32
        Updates so far.
    """

    players: jax.Array
    active: jax.Array
    taken: jax.Array
    budget: jax.Array
    target: jax.Array
    step: jax.Array

    def axes(self) -> SequentialState:
        """Return the axis names of each array."""
        return SequentialState(PLAYERS, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE)


@dataclass(frozen=True)
class Sequential:
    r"""Alg. 1 with the constants of Theorem ui_suff_conv.

    The step size is $1/(2L)$. Player $i$ learns for $t_i$ iterations, computed from $\rho_i$ and the norm of its
    first gradient; its children then use its final vector. Meant for full batches.

    Alg. 1 exactly as printed is `rule="literal"`, `start_norm="ambient"`, `stop_on_gradient=False`, with a large
    `cap`.

    Parameters
    ----------
    eigenvalues : sequence of k + 1 floats, largest first
        The spectrum, or an estimate: $\rho_i$ and $L$ are computed from $\Lambda_{11}$ and the gaps.
    theta_tol : float
        Angular tolerance in radians.
    rule : {"scale-free", "literal"}
        $t_i = \lceil 5L^2/\min(\|\nabla\|/2,\rho_i)^2\rceil$, or $\lceil\frac54/\min(\cdot)^2\rceil$ as printed in
        the paper, which depends on the scale of the data and stops far too early on large data.
    cap : int
        Maximum number of iterations in a turn. The $t_i$ of the theorem are worst cases, and often too large to
        run.
    stop_on_gradient : bool
        End a turn when $\|\nabla^R\| \le \min(\|\nabla_0\|/2, \rho_i)$, or when it is within rounding of 0. From
        a start within $\pi/4$ of the optimum this is sufficient for the proof. A start almost orthogonal to it may
        pass a saddle, the next component, where the gradient is small as well and the turn ends.
    start_norm : {"riemannian", "ambient"}
        The norm of the first gradient $\nabla_0$ in these rules: that of $\nabla^R$, as in the proof of Theorem
        ui_suff_conv, or that of $\nabla$, as printed in Alg. 1, which is not small near a critical point.
    """

    eigenvalues: tuple[float, ...]
    theta_tol: float = 0.1
    rule: Literal["scale-free", "literal"] = "scale-free"
    cap: int = 100_000
    stop_on_gradient: bool = True
    start_norm: Literal["riemannian", "ambient"] = "riemannian"

    def __post_init__(self) -> None:
        # A tuple of floats, since configurations must be hashable.
        spectrum = _check.spectrum("eigenvalues", self.eigenvalues, at_least=2)
        object.__setattr__(self, "eigenvalues", tuple(float(x) for x in spectrum))
        _check.one_of("rule", self.rule, ("scale-free", "literal"))
        _check.one_of("start_norm", self.start_norm, ("riemannian", "ambient"))
        _check.whole("cap", self.cap)
        theory.thresholds(self.eigenvalues, 1, self.theta_tol)

    def init(self, players: jax.Array) -> SequentialState:
        """Return the initial state; the first player is active."""
        theory.thresholds(self.eigenvalues, players.shape[0], self.theta_tol)
        zero, unknown = jnp.zeros((), jnp.int32), jnp.zeros((), players.dtype)
        return SequentialState(players, zero, zero, unknown, unknown, zero)

    def update(self, rows: Rows, state: SequentialState) -> tuple[SequentialState, Info]:
        """Move the active player once; activate the next one if its turn is over."""
        players, k = state.players, state.players.shape[0]
        learning = state.active < k
        i = jnp.minimum(state.active, k - 1)
        gram, ambient = self._gradient(rows, players, i)
        gradient = sphere.project_tangent(players[i][None, :], ambient[None, :])[0]
        norm = safe_norms(gradient)

        first = state.taken == 0
        budget, target = self._turn(
            k, i, norm if self.start_norm == "riemannian" else safe_norms(ambient)
        )
        budget = jnp.where(first, budget, state.budget)
        target = jnp.where(first, target, state.target)
        reached = (norm <= target) & self.stop_on_gradient
        passes = learning & (reached | (state.taken + 1 >= budget))

        step_size = 1 / (2 * theory.lipschitz(self.eigenvalues, k))
        moved = sphere.retract(players[i] + step_size * gradient)
        info = Info(rewards(gram), penalties(gram), jnp.where(jnp.arange(k) == i, norm, 0))
        return (
            SequentialState(
                players=players.at[i].set(jnp.where(learning & ~reached, moved, players[i])),
                active=state.active + passes.astype(jnp.int32),
                taken=jnp.where(passes, 0, state.taken + 1),
                budget=budget,
                target=target,
                step=state.step + 1,
            ),
            info,
        )

    def components(self, state: SequentialState) -> jax.Array:
        """Return the players; those from `state.active` on have not finished."""
        return state.players

    def _gradient(
        self, rows: Rows, players: jax.Array, i: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        r"""Return the gram of all scores, and $\nabla_{\hat v_i} u_i$ of one player, shape (d,)."""
        scores = rows.scores(players)
        gram = rows.gram(scores, scores)
        column = jax.lax.dynamic_slice_in_dim(coefficients(gram), i, 1, axis=1)
        return gram, 2 * rows.directions(full_product(scores, column))[0]

    def _turn(self, k: int, i: jax.Array, norm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return $t_i$, at most `cap`, and the target gradient norm, from the norm of the first gradient."""
        rho = jnp.asarray(theory.thresholds(self.eigenvalues, k, self.theta_tol).rho, norm.dtype)[i]
        target = jnp.minimum(norm / 2, rho)
        lipschitz = theory.lipschitz(self.eigenvalues, k)
        # The square is taken of a ratio, which is more often in range than the squares of its terms.
        unit = lipschitz if self.rule == "scale-free" else 0.5
        ratio = unit / jnp.maximum(target, jnp.finfo(norm.dtype).tiny)
        budget = jnp.minimum(jnp.ceil(5 * jnp.square(ratio)), float(min(self.cap, MAX_COUNT)))
        # A gradient is a difference of rounded terms of up to L / (2 k): smaller norms are rounding errors.
        return budget, jnp.maximum(target, 8 * float(jnp.finfo(norm.dtype).eps) * lipschitz)
