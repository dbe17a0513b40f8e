r"""Rows under a memory: what the players have seen before, as rows of the same game.

A batch alone gives noisy, biased utilities. Here every batch is played together with a memory of all
rows before it: $K$ orthonormal players $V$ with strengths $\lambda$, a count $n$ and a mean, so that

$$Z = [\sqrt\lambda\,V;\; \sqrt{nm/(n+m)}\,(\mu - \bar x)^\top;\; X - \mathbf 1\bar x^\top]$$

has $Z^\top Z \approx$ the scatter of everything seen so far about its mean; the middle row makes the
centring exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.rows import OperatorRows, full_product


class Memory(NamedTuple):
    r"""What is kept of the rows seen so far.

    Attributes
    ----------
    players : array of shape (K, d)
        Orthonormal.
    strengths : array of shape (K,)
        $\lambda \ge 0$: the scatter remembered along each player, largest first.
    mean : array of shape (d,)
        The mean of the rows; stays zero where rows are not centred.
    weight : scalar array
        The rows' total weight $n$: their number, where none is weighted.
    """

    players: jax.Array
    strengths: jax.Array
    mean: jax.Array
    weight: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RememberedRows:
    r"""A batch of rows under a memory; itself rows, so that any round can be played on it.

    Parameters
    ----------
    rows : Rows
        The batch, with m rows.
    memory : Memory
        What came before.
    weight : scalar array
        The batch's total weight: m, where no row is weighted; 1 for a matrix, which has no rows.
    frame : array of shape (K, d) or (K + 2, d)
        The rows of the memory, $\sqrt\lambda V$; where rows are centred also the batch's mean and the
        bridge between the two means. Kept together: one product with it instead of three.
    unit : array of shape (m, 1) or None
        The batch's constant scores, where rows are centred.
    """

    rows: Any
    memory: Memory
    weight: jax.Array
    frame: jax.Array
    unit: jax.Array | None = None

    @classmethod
    def of(cls, rows: Any, memory: Memory, *, center: bool) -> RememberedRows:
        """Return the batch under the memory, centred about the mean of both where asked."""
        past = jnp.sqrt(memory.strengths)[:, None] * memory.players
        constant = getattr(rows, "constant", None)
        if constant is None:
            if center:
                raise ValueError(
                    "center=True needs rows: a matrix cannot be centred; give as_rows(X)."
                )
            return cls(rows, memory, jnp.ones_like(memory.weight), past)
        unit = constant()
        weight = jnp.sum(jnp.square(unit)).astype(memory.weight.dtype)
        if not center:
            return cls(rows, memory, weight, past)
        known = getattr(rows, "mean", None)
        sums = rows.directions(unit) if known is None else weight * known[None, :]
        batch_mean = sums / jnp.where(weight > 0, weight, 1)
        total = jnp.where(memory.weight + weight > 0, memory.weight + weight, 1)
        # n * (m / (n + m)), not (n * m) / (n + m): the product of two counts may overflow float32.
        spread = jnp.sqrt(memory.weight * (weight / total))
        bridge = spread * (memory.mean[None, :] - batch_mean)
        return cls(rows, memory, weight, jnp.concatenate([past, batch_mean, bridge]), unit)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.rows.width)

    @property
    def batch_mean(self) -> jax.Array | None:
        """The batch's own mean (d,), where rows are centred."""
        return None if self.unit is None else self.frame[-2]

    @property
    def bridge(self) -> jax.Array | None:
        """The row between the two means (d,), where rows are centred."""
        return None if self.unit is None else self.frame[-1]

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return the scores on the memory (K), on the bridge (1) and on the batch (m), stacked."""
        batch, frame = self.rows.scores(players), full_product(self.frame, players.T)
        if self.unit is None:
            return jnp.concatenate([frame, batch])
        return jnp.concatenate([frame[:-2], frame[-1:], batch - self.unit * frame[-2:-1]])

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores."""
        if not isinstance(self.rows, OperatorRows):
            return full_product(left.T, right)
        k = self.frame.shape[0]
        return full_product(left[:k].T, right[:k]) + self.rows.gram(left[k:], right[k:])

    def directions(self, scores: jax.Array) -> jax.Array:
        """Return what memory, bridge and batch tell each player back."""
        k = self.memory.strengths.shape[0]
        if self.unit is None:
            return full_product(scores[:k].T, self.frame) + self.rows.directions(scores[k:])
        batch = scores[k + 1 :]
        off_centre = full_product(self.unit.T, batch)
        small = jnp.concatenate([scores[:k], -off_centre, scores[k : k + 1]])
        return full_product(small.T, self.frame) + self.rows.directions(batch)

    def mean_and_weight(self) -> tuple[jax.Array, jax.Array]:
        """Return the mean (d,) and total weight of memory and batch together."""
        memory, batch_mean = self.memory, self.batch_mean
        total = memory.weight + self.weight
        if batch_mean is None:
            return memory.mean, total
        share = self.weight / jnp.where(total > 0, total, 1)
        return memory.mean + share * (batch_mean - memory.mean), total
