r"""Any algorithm with its updates computed in Gram space, for very wide rows.

The game is invariant under rotations, and an update stays in the span of its players and its batch. So the
algorithm runs on coordinates of both in an orthonormal basis of that span, a few hundred numbers per row for any
$d$, and the result is converted to combinations of players and rows. An update reads the data twice, reads the
players twice and writes them once (`eigengame.game.gram_space`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.algorithms._base import Algorithm, Info
from eigengame.game.axes import WHOLE
from eigengame.game.gram_space import Coordinates, update_in_span
from eigengame.game.rows import DenseRows, Rows
from eigengame.linalg.wide import kernels_fit, overlaps_of, remeasured_overlaps

REMEASURED = 32
"""Updates between two measurements of the overlaps; in between they are computed from the moves."""


def current_overlaps(
    wide: Sequence[jax.Array], rows: DenseRows, known: jax.Array, step: jax.Array
) -> jax.Array:
    """Return the overlaps of the vectors of an update: measured, or with kernels mostly the known ones.

    With kernels a measurement reads the players once more, so it is made every `REMEASURED` updates.
    """
    if not kernels_fit(wide, rows.values):
        return overlaps_of(wide)
    return jax.lax.cond(
        step % REMEASURED == 0, lambda: remeasured_overlaps(wide, known), lambda: known
    )


class SpanState(NamedTuple):
    """The state of an algorithm, with the overlaps of its vectors.

    Attributes
    ----------
    state : state of the algorithm
    overlaps : array of shape (K, K)
        Inner products of all vectors of width d in the state.
    step : int32
        Updates so far.
    """

    state: Any
    overlaps: jax.Array
    step: jax.Array

    def axes(self) -> SpanState:
        """Return the axis names of each array."""
        return SpanState(self.state.axes(), WHOLE, WHOLE)


@dataclass(frozen=True)
class InGramSpace:
    """An algorithm with its updates computed in Gram space.

    The result is that of the algorithm itself up to rounding. It is faster for large d, if a batch has at most a
    few times as many rows as there are players.

    Parameters
    ----------
    algorithm : Algorithm
        One that is invariant under rotations: any in the registry, with a step size and without optimizer.
    """

    algorithm: Algorithm

    def __post_init__(self) -> None:
        if getattr(self.algorithm, "optimizer", None) is not None:
            raise ValueError(
                "optimizer in Gram space: an optimizer may treat each feature separately, which is not invariant "
                "under rotations. Give a step_size, or use the algorithm itself."
            )
        if getattr(self.algorithm, "own_batches", False):
            raise ValueError("own_batches=True in Gram space: give one batch for all players.")

    def init(self, players: jax.Array) -> SpanState:
        """Return the initial state of the algorithm, with its overlaps."""
        state = self.algorithm.init(players)
        return SpanState(state, overlaps_of(_wide(state)), jax.device_put(jnp.zeros((), jnp.int32)))

    def update(self, rows: Rows, state: SpanState) -> tuple[SpanState, Info]:
        """Run one update of the algorithm."""
        if not isinstance(rows, DenseRows):
            raise ValueError(
                "Gram space needs dense rows: give as_rows(X), or use the algorithm itself."
            )
        wide = _wide(state.state)
        if not rows.one_device:
            # Only kernels, which are for one device, read rows in half precision.
            rows = replace(rows, values=rows.values.astype(wide[0].dtype))
        overlaps = current_overlaps(wide, rows, state.overlaps, state.step)
        moved, (after, info), overlaps = update_in_span(
            self._update_coordinates, state.state, wide, rows, overlaps
        )
        return SpanState(_replace_wide(after, moved), overlaps, state.step + 1), info

    def _update_coordinates(
        self, small: Coordinates, state: Any
    ) -> tuple[list[jax.Array], tuple[Any, Info]]:
        """Run the algorithm on coordinates; return the new vectors, the new state and the info."""
        after, info = self.algorithm.update(small.rows, _replace_wide(state, small.wide))
        return _wide(after), (after, info)

    def components(self, state: SpanState) -> jax.Array:
        """Return the components of the algorithm."""
        return self.algorithm.components(state.state)


def _wide(state: Any) -> list[jax.Array]:
    """Return the arrays of a state that have features, as rows (K_i, d)."""
    pairs = zip(jax.tree.leaves(state), jax.tree.leaves(state.axes()), strict=True)
    return [leaf.reshape(-1, leaf.shape[-1]) for leaf, axes in pairs if axes != WHOLE]


def _replace_wide(state: Any, wide: Sequence[jax.Array]) -> Any:
    """Return a state with other arrays (K_i, r) in place of those that have features."""
    new = iter(wide)

    def replaced(leaf: jax.Array, axes: Any) -> jax.Array:
        return leaf if axes == WHOLE else next(new).reshape(*leaf.shape[:-1], -1)

    return jax.tree.map(replaced, state, state.axes())
