r"""The remembered game: one pass, no step size.

There are k players and some extra ones. Their strengths summarise the rows seen so far. Each batch is combined with
this memory and played for one round by Rayleigh-Ritz; the Ritz values are the new strengths. Two memories are
merged by a singular value decomposition of the players of both, times the roots of their strengths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.algorithms._base import Info
from eigengame.game import sphere
from eigengame.game.axes import WHOLE
from eigengame.game.gram_space import (
    Coordinates,
    cheaper_in_gram_space,
    top_eigenvectors,
    update_in_span,
)
from eigengame.game.host_rows import HostRows
from eigengame.game.krylov_round import RoundScores, krylov_round
from eigengame.game.memory import Memory, RememberedRows, merge_memories
from eigengame.game.rows import DenseRows, Rows
from eigengame.linalg.library import array_namespace, cond, fori_loop
from eigengame.linalg.orthonormal import (
    orthonormalise,
    reorthonormalise,
    reorthonormalise_scores,
)
from eigengame.linalg.products import full_product
from eigengame.linalg.thin import top_singular_vectors
from eigengame.linalg.wide import ON_DEVICE, WideOperations, overlaps_of

FIRST_ROUNDS = 4
"""Minimum number of rounds on a batch that has more weight than all rows before it."""

REORTHONORMALISED = 8
"""Updates between two corrections of the players' orthonormality."""


def default_extra(k: int) -> int:
    """Return the default number of extra players for k components: see the table in the documentation."""
    return max(k + k // 2, 8)


class RememberedState(NamedTuple):
    """The memory of K = k + extra players.

    Attributes
    ----------
    memory : Memory
        Players (K, d), strengths (K,), mean (d,) and total weight.
    like : array of shape (k, 0)
        Empty; its shape stores the number of components. Checkpoints contain it.
    step : int32
        Updates so far.
    """

    memory: Memory
    like: jax.Array
    step: jax.Array

    @property
    def k(self) -> int:
        """The number of components."""
        return self.like.shape[0]

    def axes(self) -> RememberedState:
        """Return the axis names of each array."""
        return RememberedState(self.memory.axes(), WHOLE, WHOLE)


@dataclass(frozen=True)
class Remembered:
    r"""The remembered game.

    Parameters
    ----------
    extra : int or "auto"
        Number of players beyond the k components. They keep directions that later rows may make important.
    rounds : int
        Rounds per batch. A batch with more weight than all rows before it gets at least `first_rounds`.
    center : bool
        Whether to subtract the mean of all rows so far; exact at every batch.
    forget : float
        Forgetting factor in (0, 1]: each new row multiplies the weight of all earlier rows by it. 1 forgets
        nothing; $1 - 1/N$ keeps about the last $N$ rows.
    space : {"auto", "score", "gram"}
        Where updates are computed: "auto" chooses score space or Gram space by a cost model.
    seed : int
        Seed of the extra players.
    first_rounds : int
        Least number of rounds on a batch that has more weight than all rows before it, in score space.
    """

    extra: int | Literal["auto"] = "auto"
    rounds: int = 1
    center: bool = False
    forget: float = 1.0
    space: Literal["auto", "score", "gram"] = "auto"
    seed: int = 0
    first_rounds: int = FIRST_ROUNDS

    def __post_init__(self) -> None:
        if self.extra != "auto":
            _check.whole("extra", self.extra, low=0)
        _check.whole("rounds", self.rounds)
        _check.whole("first_rounds", self.first_rounds)
        _check.one_of("space", self.space, ("auto", "score", "gram"))
        if not (isinstance(self.forget, (int, float)) and 0 < self.forget <= 1):
            raise ValueError(f"forget={self.forget!r}: give a number above 0 and up to 1.")

    def init(self, players: jax.Array) -> RememberedState:
        """Return an empty memory with the given players and the extra ones, orthonormalised."""
        k, d = players.shape
        extra = self.players_for(k, d) - k
        if extra:
            others = sphere.random_players(self.seed, extra, d, players.dtype)
            players = jnp.concatenate([players, others])
        return self.empty_state(orthonormalise(players), k)

    def players_for(self, k: int, d: int) -> int:
        """Return K, the number of players for k components of d features."""
        return min(d, k + (default_extra(k) if self.extra == "auto" else self.extra))

    def empty_state(self, players: Any, k: int) -> RememberedState:
        """Return an empty memory of K orthonormal players, for k components."""
        dtype = players.dtype
        count, d = players.shape
        memory = Memory(
            players=players,
            strengths=jax.device_put(np.zeros(count, dtype)),
            mean=jax.device_put(np.zeros(d, dtype)),
            weight=jax.device_put(np.zeros((), dtype)),
        )
        like, step = np.zeros((k, 0), dtype), np.zeros((), np.int32)
        return RememberedState(memory, jax.device_put(like), jax.device_put(step))

    def update(
        self, rows: Rows, state: RememberedState, *, empty: bool = False
    ) -> tuple[RememberedState, Info]:
        """Play one batch together with the memory of all rows before it.

        `empty` is whether it is known that there are none, which saves a little.
        """
        memory = state.memory
        if self.forget != 1:
            rows, keep = self.fade(rows, memory.strengths.dtype)
            memory = memory._replace(strengths=keep * memory.strengths, weight=keep * memory.weight)
        if isinstance(rows, DenseRows) and self._in_gram_space(rows, memory.players):
            memory = self._update_in_units(rows, memory)
        elif isinstance(rows, HostRows) and self._in_gram_space(rows, memory.players):
            memory = self._update_by_singular_vectors(rows, memory)
        else:
            memory = memory._replace(players=_corrected_players(state))
            new = RememberedRows.of(rows, memory, center=self.center, empty=empty)
            memory = Memory(*self._rounds(new), *new.mean_and_weight())
        return RememberedState(memory, state.like, state.step + 1), _info(memory, state.k)

    def components(self, state: RememberedState) -> jax.Array:
        """Return the first k players."""
        return state.memory.players[: state.k]

    def merge(self, one: RememberedState, other: RememberedState) -> RememberedState:
        """Merge the memories of two streams, in their dtype; `merge_on_host` does it in float64."""
        memory = merge_memories(one.memory, other.memory)
        return RememberedState(memory, one.like, one.step + other.step)

    def merge_on_host(self, one: RememberedState, other: RememberedState) -> RememberedState:
        """Merge the memories of two streams in float64 on the host, and round the result once to their dtype."""
        memory = merge_memories(_on_host(one.memory), _on_host(other.memory), np)
        dtype = one.memory.players.dtype
        rounded = Memory(*(jax.device_put(np.asarray(leaf, dtype)) for leaf in memory))
        return RememberedState(rounded, one.like, one.step + other.step)

    def update_in_span(
        self,
        rows: DenseRows,
        state: RememberedState,
        overlaps: jax.Array,
        operations: WideOperations = ON_DEVICE,
    ) -> tuple[RememberedState, jax.Array]:
        r"""Play one batch in Gram space, given the overlaps of players and mean.

        Parameters
        ----------
        rows : DenseRows
        state : RememberedState
        overlaps : array of shape (K, K), or (K + 1, K + 1) with the mean last if rows are centred
            From the method `overlaps`, or from the previous update.
        operations : WideOperations
            The operations over width d.

        Returns
        -------
        state : RememberedState
        overlaps : array of the same shape
        """
        memory, overlaps = self._update_memory(rows, state.memory, overlaps, operations)
        return RememberedState(memory, state.like, state.step + 1), overlaps

    def overlaps(self, state: RememberedState, operations: WideOperations = ON_DEVICE) -> jax.Array:
        """Measure the overlaps of the players and, if rows are centred, the mean."""
        return operations.overlaps(self.wide(state))

    def wide(self, state: RememberedState) -> list[jax.Array]:
        """Return the vectors of an update: players (K, d) and, if rows are centred, the mean (1, d)."""
        return self._wide(state.memory)

    def _wide(self, memory: Memory) -> list[jax.Array]:
        """Return the vectors of `wide` from a memory."""
        return [memory.players, memory.mean[None, :]] if self.center else [memory.players]

    def _update_in_units(self, rows: DenseRows, memory: Memory) -> Memory:
        """Return the memory after one batch, computed in Gram space on data scaled by its largest entry.

        The scale keeps squares within the range of the dtype.
        """
        # The mean comes from the rows: a basis omits directions within rounding of the others.
        exact, _ = RememberedRows.of(rows, memory, center=self.center).mean_and_weight()
        values = rows.dense().astype(memory.players.dtype)
        size = jnp.max(jnp.abs(values))
        if self.center:
            size = jnp.maximum(size, jnp.max(jnp.abs(memory.mean)))
        size = jnp.where(size > 0, size, 1)
        scaled = memory._replace(strengths=memory.strengths / size / size, mean=memory.mean / size)
        rows = replace(rows, values=values / size, mean=None)
        overlaps = overlaps_of(list(map(rows.columns, self._wide(scaled))))
        after, _ = self._update_memory(rows, scaled, overlaps, ON_DEVICE)
        return after._replace(strengths=after.strengths * size * size, mean=exact)

    def _update_by_singular_vectors(self, rows: HostRows, memory: Memory) -> Memory:
        """Return the memory after one batch of few rows on the host: players at equilibrium, as in Gram space.

        They are the singular vectors of the rows of the memory and of the batch together.
        """
        new = RememberedRows.of(rows, memory, center=self.center)
        others: list[Any] = [rows.dense()]
        if new.centring is not None:
            others = [rows.dense() - rows.constant() * new.centring.mean[None, :]]
            if new.centring.bridge is not None:
                others.append(new.centring.bridge[None, :])
        ones = np.ones(sum(map(len, others)), memory.strengths.dtype)
        sizes = np.concatenate([np.sqrt(memory.strengths), ones])
        count = len(memory.strengths)
        players, values = top_singular_vectors([memory.players, *others], sizes, count, np)
        return Memory(players, values**2, *new.mean_and_weight())

    def _update_memory(
        self, rows: DenseRows, memory: Memory, overlaps: jax.Array, operations: WideOperations
    ) -> tuple[Memory, jax.Array]:
        """Return the memory after one batch, computed in Gram space, and its overlaps."""
        inputs = memory.strengths, memory.weight
        wide, after, overlaps = update_in_span(
            self._update_coordinates, inputs, self._wide(memory), rows, overlaps, operations
        )
        mean = wide[1][0] if self.center else memory.mean
        return after._replace(players=wide[0], mean=mean), overlaps

    def _update_coordinates(
        self, small: Coordinates, inputs: tuple[jax.Array, jax.Array]
    ) -> tuple[list[jax.Array], Memory]:
        """Return the vectors and the memory after one batch, in coordinates."""
        (players, *centred), (strengths, weight) = small.wide, inputs
        mean = centred[0][0] if centred else jnp.zeros_like(players[0])
        now = Memory(players, strengths, mean, weight)
        new = RememberedRows.of(small.rows, now, center=self.center)
        moved, strengths = top_eigenvectors(players, strengths, _new_rows(new), small.empty)
        after = Memory(moved, strengths, *new.mean_and_weight())
        return self._wide(after), after

    def _rounds(self, new: RememberedRows) -> tuple[jax.Array, jax.Array]:
        """Return players and strengths after the rounds on a batch."""
        memory = new.memory
        xp = array_namespace(memory.players)
        first = krylov_round(new, memory.players, new.scores(memory.players), memory.strengths)
        most = max(self.first_rounds, self.rounds)
        always = most == self.rounds
        rounds = most if always else xp.where(memory.weight < new.weight, most, self.rounds)

        def further(now: tuple[jax.Array, RoundScores, jax.Array]) -> tuple[jax.Array, jax.Array]:
            players, scores, strengths = now
            # The players have moved, so the rows of the memory are no longer along them.
            whole = new.with_past()
            past = full_product(whole.past, players.T)
            start = (players, xp.concatenate([past, scores.combined()]), strengths)

            def play(_: int, one: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                # Players move far on a first batch, and errors of orthonormality would grow from round to round.
                moved, after, values = krylov_round(whole, *reorthonormalise_scores(one[0], one[1]))
                return moved, after.combined(), values

            players, _, strengths = fori_loop(1, rounds, play, start)
            return reorthonormalise(players), strengths

        if always:
            return further(first) if most > 1 else (first[0], first[2])
        return cond(rounds > 1, further, lambda now: (now[0], now[2]), first)

    def _in_gram_space(self, rows: DenseRows | HostRows, players: jax.Array) -> bool:
        """Return whether to use Gram space; static, so that each shape is compiled for one space."""
        if self.space != "auto":
            return self.space == "gram"
        return cheaper_in_gram_space(rows.values.shape[0], *players.shape)

    def fade(self, rows: Rows, dtype: Any) -> tuple[DenseRows | HostRows, jax.Array]:
        """Return the rows with their weights after forgetting, and the factor for all earlier rows.

        Each row reduces the weights of the rows before it in the same batch too, so the batch size does not matter.
        Padding (weight 0) reduces no weights.
        """
        if not isinstance(rows, DenseRows | HostRows):
            raise ValueError(
                f"forget={self.forget} needs dense rows, but rows is {type(rows).__name__}: "
                "give as_rows(X), or forget=1."
            )
        roots: Any = rows.constant()[:, 0]
        xp = array_namespace(roots)
        counts = (roots > 0).astype(dtype)
        after = xp.cumsum(counts[::-1])[::-1]
        # By the logarithm: in float32, powers of a factor near 1 would be inaccurate.
        rate = xp.asarray(math.log(self.forget), dtype)
        fading = xp.exp(rate / 2 * (after - counts))
        values: Any = fading[:, None] * rows.values
        faded = replace(rows, values=values, roots=fading * roots, mean=None)
        return faded, xp.exp(rate * after[0])


def _on_host(memory: Memory) -> Memory:
    """Return a memory in float64 on the host, except for the players, which `merge_memories` converts in chunks."""
    players: Any = np.asarray(memory.players)
    others: list[Any] = [np.asarray(leaf, np.float64) for leaf in memory[1:]]
    return Memory(players, *others)


def _corrected_players(state: RememberedState) -> jax.Array:
    """Return the players, reorthonormalised every few updates."""
    return cond(
        state.step % REORTHONORMALISED == 0,
        reorthonormalise,
        lambda players: players,
        state.memory.players,
    )


def _info(memory: Memory, k: int) -> Info:
    """Return the strengths of the first k players as rewards."""
    strengths = memory.strengths[:k]
    none = array_namespace(strengths).zeros_like(strengths)
    return Info(strengths, none, none)


def _new_rows(new: RememberedRows) -> jax.Array:
    """Return the rows of the batch as an array: weighted, centred, and with the bridge between means."""
    batch = new.rows
    assert isinstance(batch, DenseRows)
    if new.centring is None or new.centring.bridge is None:
        return batch.centred(None if new.centring is None else new.centring.mean).dense()
    centred = batch.centred(new.centring.mean)
    return jnp.concatenate([centred.dense(), new.centring.bridge[None, :]])
