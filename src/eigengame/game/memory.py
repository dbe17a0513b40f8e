r"""Rows under a memory: what the players have seen before, as rows of the same game.

A batch alone gives noisy, biased utilities. Here every batch is played together with a memory of all
rows before it: $K$ orthonormal players $V$ with strengths $\lambda$, a count $n$ and a mean, so that

$$Z = [\sqrt\lambda\,V;\; X - \mathbf 1\bar x^\top;\; \sqrt{nm/(n+m)}\,(\mu - \bar x)^\top]$$

has $Z^\top Z \approx$ the scatter of everything seen so far about its mean; the last row makes the
centring exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.rows import full_product


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
    """A batch of rows under a memory; itself rows, so that any round can be played on it.

    Parameters
    ----------
    rows : Rows
        The batch, with m rows.
    memory : Memory
        What came before.
    weight : scalar array
        The batch's total weight: m, where no row is weighted; 1 for a matrix, which has no rows.
    unit : array of shape (m, 1) or None
        The batch's constant scores, where rows are centred.
    batch_mean : array of shape (1, d) or None
    bridge : array of shape (1, d) or None
        The row between the two means.
    """

    rows: Any
    memory: Memory
    weight: jax.Array
    unit: jax.Array | None = None
    batch_mean: jax.Array | None = None
    bridge: jax.Array | None = None

    @classmethod
    def of(cls, rows: Any, memory: Memory, *, center: bool) -> RememberedRows:
        """Return the batch under the memory, centred about the mean of both where asked."""
        constant = getattr(rows, "constant", None)
        if constant is None:
            if center:
                raise ValueError(
                    "center=True needs rows: a matrix cannot be centred; give as_rows(X)."
                )
            return cls(rows, memory, jnp.ones_like(memory.weight))
        unit = constant()
        weight = jnp.sum(jnp.square(unit)).astype(memory.weight.dtype)
        if not center:
            return cls(rows, memory, weight)
        known = getattr(rows, "mean", None)
        sums = rows.directions(unit) if known is None else weight * known[None, :]
        batch_mean = sums / jnp.where(weight > 0, weight, 1)
        total = jnp.where(memory.weight + weight > 0, memory.weight + weight, 1)
        # n * (m / (n + m)), not (n * m) / (n + m): the product of two counts may overflow float32.
        spread = jnp.sqrt(memory.weight * (weight / total))
        bridge = spread * (memory.mean[None, :] - batch_mean)
        return cls(rows, memory, weight, unit, batch_mean, bridge)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.rows.width)

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return the scores on the memory (K), on the batch (m), on the bridge (1), stacked."""
        memory, batch = self.memory, self.rows.scores(players)
        past = jnp.sqrt(memory.strengths)[:, None] * full_product(memory.players, players.T)
        if self.unit is None or self.batch_mean is None or self.bridge is None:
            return jnp.concatenate([past, batch])
        batch = batch - self.unit * full_product(self.batch_mean, players.T)
        return jnp.concatenate([past, batch, full_product(self.bridge, players.T)])

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores."""
        k = self.memory.strengths.shape[0]
        end = left.shape[0] if self.unit is None else left.shape[0] - 1
        return (
            full_product(left[:k].T, right[:k])
            + self.rows.gram(left[k:end], right[k:end])
            + full_product(left[end:].T, right[end:])
        )

    def directions(self, scores: jax.Array) -> jax.Array:
        """Return what memory, batch and bridge tell each player back."""
        k = self.memory.strengths.shape[0]
        past = jnp.sqrt(self.memory.strengths)[:, None] * scores[:k]
        told = full_product(past.T, self.memory.players)
        if self.unit is None or self.batch_mean is None or self.bridge is None:
            return told + self.rows.directions(scores[k:])
        batch = scores[k:-1]
        off_centre = full_product(batch.T, self.unit)
        return (
            told
            + self.rows.directions(batch)
            - off_centre * self.batch_mean
            + scores[-1][:, None] * self.bridge
        )

    def mean_and_weight(self) -> tuple[jax.Array, jax.Array]:
        """Return the mean (d,) and total weight of memory and batch together."""
        memory = self.memory
        total = memory.weight + self.weight
        if self.batch_mean is None:
            return memory.mean, total
        share = self.weight / jnp.where(total > 0, total, 1)
        return memory.mean + share * (self.batch_mean[0] - memory.mean), total
