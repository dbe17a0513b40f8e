r"""Any algorithm played in Gram space: for rows so wide that every touch of $d$ counts.

The game does not change when everything is turned, and an update stays in the span of its players and its
batch. So the algorithm is given both in an orthonormal basis of that span, a few hundred numbers a row whatever
$d$ is, and plays as it always does; what it finds is combined of players and rows at the end. Data is read
twice, players are read twice and written once (`eigengame.game.gram_space`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.algorithms._base import Algorithm, Info, features_of
from eigengame.game.gram_space import Small, in_span
from eigengame.game.rows import DenseRows, Rows
from eigengame.linalg.wide import kernels_fit, overlaps_again, overlaps_of

REMEASURED = 32
"""Updates after which overlaps are measured again; in between they follow from the moves, to rounding."""


def overlaps_now(
    wide: Sequence[jax.Array], rows: DenseRows, known: jax.Array, step: jax.Array
) -> jax.Array:
    """Return the overlaps of an update's vectors: those known, or measured where it is time to or costs little.

    Kernels take no overlaps: there measuring is another reading of the players.
    """
    if not kernels_fit(wide, rows.values):
        return overlaps_of(wide)
    return jax.lax.cond(step % REMEASURED == 0, lambda: overlaps_again(wide, known), lambda: known)


class SpanState(NamedTuple):
    """An algorithm's state, with what is known of its vectors.

    Attributes
    ----------
    state : state of the algorithm
    overlaps : array of shape (K, K)
        Inner products of all vectors of width d in the state.
    step : int32
        Updates made so far.
    """

    state: Any
    overlaps: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class InGramSpace:
    """An algorithm of which every update is played in Gram space.

    The same as the algorithm itself but for rounding. It gains where a batch has at most a few times as many rows
    as there are players, and where d is large.

    Parameters
    ----------
    algorithm : Algorithm
        One that treats all directions alike: any of the registry's, with a step size and no optimiser.
    """

    algorithm: Algorithm

    def __post_init__(self) -> None:
        if getattr(self.algorithm, "optimizer", None) is not None:
            raise ValueError(
                "optimizer in Gram space: an optimiser may treat each feature on its own, which turns do not "
                "keep. Give a step_size, or play the algorithm itself."
            )
        if getattr(self.algorithm, "own_batches", False):
            raise ValueError("own_batches=True in Gram space: give one batch for all players.")

    def init(self, players: jax.Array) -> SpanState:
        """Return the algorithm's state where it starts, measured."""
        state = self.algorithm.init(players)
        return SpanState(
            state, overlaps_of(self._wide(state)), jax.device_put(jnp.zeros((), jnp.int32))
        )

    def update(self, rows: Rows, state: SpanState) -> tuple[SpanState, Info]:
        """Play one update of the algorithm."""
        if not isinstance(rows, DenseRows):
            raise ValueError(
                "Gram space needs dense rows: give as_rows(X), or play the algorithm itself."
            )
        inner = state.state
        wide = self._wide(inner)
        if type(rows) is not DenseRows:
            # Kernels are for one device, and take rows in half precision alone.
            rows = replace(rows, values=rows.values.astype(wide[0].dtype))
        overlaps = overlaps_now(wide, rows, state.overlaps, state.step)

        moved, (after, info), overlaps = in_span(self._played, inner, wide, rows, overlaps)
        return SpanState(self._with(after, moved), overlaps, state.step + 1), info

    def _played(self, small: Small, inner: Any) -> tuple[list[jax.Array], tuple[Any, Info]]:
        """Return the algorithm's update of a state in the small space: its vectors, all of it, and the info."""
        after, info = self.algorithm.update(small.rows, self._with(inner, small.wide))
        return self._wide(after), (after, info)

    def components(self, state: SpanState) -> jax.Array:
        """Return the algorithm's components."""
        return self.algorithm.components(state.state)

    def _wide(self, state: Any) -> list[jax.Array]:
        """Return the arrays of a state that have features, as rows (K_i, d)."""
        leaves, flags = jax.tree.leaves(state), self._flags(state)
        return [
            leaf.reshape(-1, leaf.shape[-1])
            for leaf, wide in zip(leaves, flags, strict=True)
            if wide
        ]

    def _with(self, state: Any, wide: list[jax.Array]) -> Any:
        """Return a state with other arrays in the place of those that have features."""
        leaves, tree = jax.tree.flatten(state)
        given = iter(wide)
        swapped = []
        for leaf, flag in zip(leaves, self._flags(state), strict=True):
            if flag:
                rows = next(given)
                leaf = rows.reshape(*leaf.shape[:-1], rows.shape[-1])
            swapped.append(leaf)
        return jax.tree.unflatten(tree, swapped)

    def _flags(self, state: Any) -> list[bool]:
        """Say of each array of a state whether it has features."""
        k = jax.eval_shape(self.algorithm.components, state).shape[0]
        return jax.tree.leaves(features_of(self.algorithm, state, k))
