r"""Rows under a memory: what the players have seen before, as rows of the same game.

A batch alone gives noisy, biased utilities. Here every batch is played together with a memory of all
rows before it: $K$ orthonormal players $V$ with strengths $\lambda$, a count $n$ and a mean, so that

$$Z = [\sqrt\lambda\,V;\; X - \mathbf 1\bar x^\top;\; \sqrt{nm/(n+m)}\,(\mu - \bar x)^\top]$$

has $Z^\top Z \approx$ the scatter of everything seen so far about its mean; the last row makes the
centring exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from eigengame.game.rows import OperatorRows
from eigengame.linalg.products import full_product


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


class Centring(NamedTuple):
    """What it takes to play a batch about the mean of everything seen so far.

    Attributes
    ----------
    unit : array of shape (m, 1)
        The batch's constant scores.
    share : array of shape (m, 1)
        How the rows combine to their mean.
    mean : array of shape (d,)
        Of the batch.
    bridge : array of shape (d,)
        The row between the memory's mean and the batch's.
    """

    unit: jax.Array
    share: jax.Array
    mean: jax.Array
    bridge: jax.Array


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
    past : array of shape (p, d)
        The rows of the memory, $\sqrt\lambda V$: all K, or none for a round that needs none of them
        (see `joint_round`).
    centring : Centring or None
        Where rows are centred.
    """

    rows: Any
    memory: Memory
    weight: jax.Array
    past: jax.Array
    centring: Centring | None = None

    @classmethod
    def of(cls, rows: Any, memory: Memory, *, center: bool) -> RememberedRows:
        """Return what is new, centred about the mean of memory and batch where asked.

        The memory's own rows are left out: `recalled` adds them.
        """
        none, constant = memory.players[:0], getattr(rows, "constant", None)
        if constant is None:
            if center:
                raise ValueError(
                    "center=True needs rows: a matrix cannot be centred; give as_rows(X)."
                )
            return cls(rows, memory, jnp.ones_like(memory.weight), none)
        unit = constant()
        weight = jnp.sum(jnp.square(unit)).astype(memory.weight.dtype)
        if not center:
            return cls(rows, memory, weight, none)
        share = unit / jnp.where(weight > 0, weight, 1)
        known = getattr(rows, "mean", None)
        mean = rows.directions(share)[0] if known is None else known
        total = jnp.where(memory.weight + weight > 0, memory.weight + weight, 1)
        # n * (m / (n + m)), not (n * m) / (n + m): the product of two counts may overflow float32.
        spread = jnp.sqrt(memory.weight * (weight / total))
        bridge = spread * (memory.mean - mean)
        return cls(rows, memory, weight, none, Centring(unit, share, mean, bridge))

    def recalled(self) -> RememberedRows:
        r"""Return the same with the memory's own rows $\sqrt\lambda V$ before what is new."""
        return replace(self, past=jnp.sqrt(self.memory.strengths)[:, None] * self.memory.players)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.rows.width)

    @property
    def _pieces(self) -> int:
        """In how many pieces the batch lies."""
        return getattr(self.rows, "parts", 1)

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return the scores on the memory (p), on the batch (m) and on the bridge (1), stacked."""
        batch, centring = self.rows.scores(players), self.centring
        past = [full_product(self.past, players.T)] if len(self.past) else []
        if centring is None:
            return jnp.concatenate([*past, batch])
        # The batch's mean is a combination of its rows: its scores are the same one of theirs.
        batch = batch - centring.unit * self.rows.gram(centring.share, batch)
        bridge = full_product(players, centring.bridge[:, None]).T
        return jnp.concatenate([*past, _with_one_more(batch, bridge, self._pieces)])

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores."""
        if not isinstance(self.rows, OperatorRows):
            # Plain scores, of which the memory's and the bridge's are further rows.
            return self.rows.gram(left, right)
        p = len(self.past)
        return full_product(left[:p].T, right[:p]) + self.rows.gram(left[p:], right[p:])

    def directions(self, scores: jax.Array) -> jax.Array:
        """Return what memory, batch and bridge tell each player back."""
        p, centring = len(self.past), self.centring
        if centring is None:
            told = self.rows.directions(scores[p:])
        else:
            batch, bridge = _without_the_last(scores[p:], self._pieces)
            # Centred scores have no mean themselves: rows that are not centred tell the same.
            told = self.rows.directions(batch) + bridge[:, None] * centring.bridge[None, :]
        return told + full_product(scores[:p].T, self.past) if p else told

    def mean_and_weight(self) -> tuple[jax.Array, jax.Array]:
        """Return the mean (d,) and total weight of memory and batch together."""
        memory = self.memory
        total = memory.weight + self.weight
        if self.centring is None:
            return memory.mean, total
        share = self.weight / jnp.where(total > 0, total, 1)
        return memory.mean + share * (self.centring.mean - memory.mean), total


def _with_one_more(batch: jax.Array, row: jax.Array, pieces: int) -> jax.Array:
    """Return the scores of a batch (m, k) and of one more row (1, k).

    A batch in pieces gets a row for each of them, of which all but one are zero: so pieces stay alike, and no row
    goes from one device to another to make room.
    """
    if pieces == 1:
        return jnp.concatenate([batch, row])
    m, k = batch.shape
    rows = jnp.zeros((pieces, 1, k), batch.dtype).at[-1].set(row)
    return jnp.concatenate([batch.reshape(pieces, m // pieces, k), rows], axis=1).reshape(-1, k)


def _without_the_last(scores: jax.Array, pieces: int) -> tuple[jax.Array, jax.Array]:
    """Return the scores of the batch (m, k) and of the one more row (k,) again."""
    if pieces == 1:
        return scores[:-1], scores[-1]
    k = scores.shape[1]
    parted = scores.reshape(pieces, -1, k)
    return parted[:, :-1].reshape(-1, k), jnp.sum(parted[:, -1], axis=0)
