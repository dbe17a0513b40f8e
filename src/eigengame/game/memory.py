r"""A batch together with a summary of all rows before it, as rows of one game.

The utilities of a single batch are noisy and biased. Here each batch is combined with a memory of all rows before
it: $K$ orthonormal players $V$ with strengths $\lambda$, a total weight $n$ and a mean $\mu$. For a batch $X$ of
weight $m$ with mean $\bar x$,

$$Z = [\sqrt\lambda\,V;\; X - \mathbf 1\bar x^\top;\; \sqrt{nm/(n+m)}\,(\mu - \bar x)^\top]$$

has $Z^\top Z \approx$ the scatter of all rows so far about their common mean. The last row accounts for the
difference between the two means, so that centring is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.axes import FEATURES, PLAYERS, WHOLE
from eigengame.game.rows import Rows, are_samples
from eigengame.linalg.library import array_namespace
from eigengame.linalg.products import full_product
from eigengame.linalg.thin import top_singular_vectors


class Memory(NamedTuple):
    r"""Summary of the rows seen so far.

    Attributes
    ----------
    players : array of shape (K, d)
        Orthonormal.
    strengths : array of shape (K,)
        $\lambda \ge 0$: the scatter along each player, largest first.
    mean : array of shape (d,)
        The mean of the rows; zero if rows are not centred.
    weight : scalar array
        The total weight $n$ of the rows: their number if they are not weighted.
    """

    players: jax.Array
    strengths: jax.Array
    mean: jax.Array
    weight: jax.Array

    def axes(self) -> Memory:
        """Return the axis names of each array."""
        return Memory(PLAYERS, WHOLE, FEATURES, WHOLE)


def merge_memories(one: Memory, other: Memory, xp: Any = jnp) -> Memory:
    r"""Return the memory of the rows of both.

    Its players are the first $K$ right singular vectors of

    $$[\sqrt{\lambda}\,V;\; \sqrt{\lambda'}\,V';\; \sqrt{nn'/(n+n')}\,(\mu' - \mu)^\top].$$

    Players of both memories may be nearly parallel, so the rows are factorised by QR, not by their inner products.

    Parameters
    ----------
    one, other : Memory
        With the same numbers of players and features.
    xp : module
        `jax.numpy`, or `numpy` for arrays of the host; the result is in the dtype of the means.
    """
    total = one.weight + other.weight
    share = other.weight / xp.where(total > 0, total, 1)
    step = other.mean - one.mean
    # n * (m / (n + m)), not (n * m) / (n + m): the product of two counts may overflow float32.
    bridge = xp.sqrt(one.weight * share) * step
    strengths = xp.concatenate([one.strengths, other.strengths, xp.ones_like(one.strengths[:1])])
    players, sizes = top_singular_vectors(
        [one.players, other.players, bridge[None, :]],
        xp.sqrt(strengths),
        len(one.strengths),
        xp,
    )
    mean = common_mean(one.mean, one.weight, other.mean, other.weight)
    return Memory(players, sizes**2, mean, total)


def common_mean(one: Any, weight: Any, other: Any, other_weight: Any) -> Any:
    """Return the mean (d,) of two sets of rows from their means and weights.

    It is a step from the mean of the heavier set. That of a light one may be far away, and would be rounded in
    proportion to its size.
    """
    total = weight + other_weight
    xp = array_namespace(total)
    safe, step = xp.where(total > 0, total, 1), other - one
    from_one, from_other = one + (other_weight / safe) * step, other - (weight / safe) * step
    return xp.where(other_weight <= weight, from_one, from_other)


class Centring(NamedTuple):
    """Terms that centre a batch about the mean of memory and batch.

    Attributes
    ----------
    unit : array of shape (m, 1)
        The scores of a constant feature on the batch.
    share : array of shape (m, 1)
        Coefficients that combine the rows to their mean.
    mean : array of shape (d,)
        The mean of the batch.
    bridge : array of shape (d,) or None
        The row for the difference between the means of memory and batch; None if the memory has no rows.
    """

    unit: jax.Array
    share: jax.Array
    mean: jax.Array
    bridge: jax.Array | None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RememberedRows:
    r"""A batch of rows with a memory; implements `Rows`.

    Parameters
    ----------
    rows : Rows
        The batch, with m rows.
    memory : Memory
        The summary of all rows before it.
    weight : scalar array
        The total weight of the batch: m if it is not weighted, 1 for a matrix.
    past : array of shape (p, d)
        The rows $\sqrt\lambda V$ of the memory: all K, or none for a round that does not need them
        (see `krylov_round`).
    centring : Centring or None
        None if rows are not centred.
    """

    rows: Rows
    memory: Memory
    weight: jax.Array
    past: jax.Array
    centring: Centring | None = None

    @classmethod
    def of(cls, rows: Any, memory: Memory, *, center: bool, empty: bool = False) -> RememberedRows:
        """Combine a batch with a memory, without the rows of the memory: `with_past` adds these.

        With `center`, rows are centred about the mean of memory and batch. With `empty`, the memory is known to
        have no rows, and scores need no further row.
        """
        none = memory.players[:0]
        if not are_samples(rows):
            if center:
                raise ValueError(
                    "center=True but rows is a matrix, which cannot be centred: give as_rows(X), or center=False."
                )
            return cls(rows, memory, jnp.ones_like(memory.weight), none)
        unit = rows.constant()
        xp = array_namespace(unit)
        weight = xp.sum(xp.square(unit)).astype(memory.weight.dtype)
        if not center:
            return cls(rows, memory, weight, none)
        share = unit / xp.where(weight > 0, weight, 1)
        mean = rows.directions(share)[0] if rows.mean is None else rows.mean
        if empty:
            return cls(rows, memory, weight, none, Centring(unit, share, mean, None))
        total = xp.where(memory.weight + weight > 0, memory.weight + weight, 1)
        # n * (m / (n + m)), not (n * m) / (n + m): the product of two counts may overflow float32.
        spread = xp.sqrt(memory.weight * (weight / total))
        bridge = spread * (memory.mean - mean)
        return cls(rows, memory, weight, none, Centring(unit, share, mean, bridge))

    def with_past(self) -> RememberedRows:
        r"""Return these rows preceded by the rows $\sqrt\lambda V$ of the memory."""
        strengths, players = self.memory.strengths, self.memory.players
        return replace(self, past=array_namespace(players).sqrt(strengths)[:, None] * players)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.rows.width)

    @property
    def _parts(self) -> int:
        """The number of parts that the rows of the batch are split into."""
        return self.rows.parts if are_samples(self.rows) else 1

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return the scores on the memory (p), on the batch (m) and on the bridge (1), stacked."""
        rows: Any = self.rows
        batch, centring = rows.scores(players), self.centring
        xp = array_namespace(players)
        if centring is not None:
            batch = rows.centre(batch, centring.unit, centring.share)
            if centring.bridge is not None:
                bridge = full_product(players, centring.bridge[:, None]).T
                batch = rows.with_row(batch, bridge)
        if not len(self.past):
            return batch
        return xp.concatenate([full_product(self.past, players.T), batch])

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two arrays of scores."""
        if are_samples(self.rows):
            return self.rows.gram(left, right)
        p = len(self.past)
        return full_product(left[:p].T, right[:p]) + self.rows.gram(left[p:], right[p:])

    def directions(self, scores: jax.Array) -> jax.Array:
        """Return the directions from memory, batch and bridge."""
        p, centring = len(self.past), self.centring
        if centring is None or centring.bridge is None:
            # Centred scores sum to 0, so rows need not be centred as well.
            new = self.rows.directions(scores[p:])
        else:
            batch, bridge = _split_row(scores[p:], self._parts)
            new = self.rows.directions(batch) + bridge[:, None] * centring.bridge[None, :]
        return new + full_product(scores[:p].T, self.past) if p else new

    def mean_and_weight(self) -> tuple[jax.Array, jax.Array]:
        """Return the mean (d,) and total weight of memory and batch together."""
        memory = self.memory
        total = memory.weight + self.weight
        if self.centring is None:
            return memory.mean, total
        mean = common_mean(memory.mean, memory.weight, self.centring.mean, self.weight)
        return mean, total


def _split_row(scores: jax.Array, parts: int) -> tuple[jax.Array, jax.Array]:
    """Invert `SampleRows.with_row`: return the scores of the batch (m, k) and of the appended row (k,)."""
    if parts == 1:
        return scores[:-1], scores[-1]
    k = scores.shape[1]
    split = scores.reshape(parts, -1, k)
    return split[:, :-1].reshape(-1, k), jnp.sum(split[:, -1], axis=0)
