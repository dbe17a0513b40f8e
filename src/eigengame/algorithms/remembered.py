r"""The remembered game: one pass, no step size.

Beside the k players wanted there are some extra; all remember what they have seen by their strengths.
Each batch is played together with that memory, starting from where the players are, for a round in
which they answer each other to equilibrium; then strengths are what the players earn. Two memories
merge by playing one on the other.
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
from eigengame.game.gram_space import Small, cheaper_in_gram_space, equilibrium_of_all, in_span
from eigengame.game.joint_round import joint_round
from eigengame.game.memory import Memory, RememberedRows
from eigengame.game.rows import DenseRows, Rows
from eigengame.linalg.orthonormal import nearly_orthonormal, orthonormalise, tidied
from eigengame.linalg.products import full_product
from eigengame.linalg.wide import ON_DEVICE, Touches, overlaps_of

FIRST_ROUNDS = 4
"""Rounds on a batch that outweighs all before it: players that know little need more than one."""

TIDY = 8
"""Updates between two corrections of the players' orthonormality."""


def default_extra(k: int) -> int:
    """Return how many players to add to k: as measured, see the table in the documentation."""
    return max(k, 8)


class RememberedState(NamedTuple):
    """The memory of K = k + extra players.

    Attributes
    ----------
    memory : Memory
        Players (K, d), strengths (K,), mean (d,) and count.
    like : array of shape (k, 0)
        Says how many components are wanted; holds nothing.
    step : int32
        Updates made so far.
    """

    memory: Memory
    like: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class Remembered:
    r"""The remembered game.

    Parameters
    ----------
    extra : int or "auto"
        Players beyond those wanted: they carry what may yet become important.
    rounds : int
        Rounds for each batch; one that outweighs all before it gets at least four.
    center : bool
        Whether to play on the rows less their mean, exactly, as the mean becomes known.
    forget : float
        Forgetting factor in (0, 1]: each new row multiplies the weight of all earlier rows by it. 1 remembers
        everything, $1 - 1/N$ about the last $N$ rows.
    space : {"auto", "score", "gram"}
        Where to play a batch: by a cost model, in score space, or in Gram space.
    seed : int
        Seed of the extra players.
    """

    extra: int | Literal["auto"] = "auto"
    rounds: int = 1
    center: bool = False
    forget: float = 1.0
    space: Literal["auto", "score", "gram"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.extra != "auto":
            _check.whole("extra", self.extra, low=0)
        _check.whole("rounds", self.rounds)
        _check.one_of("space", self.space, ("auto", "score", "gram"))
        if not (isinstance(self.forget, (int, float)) and 0 < self.forget <= 1):
            raise ValueError(f"forget={self.forget!r}: give a number above 0 and up to 1.")

    def init(self, players: jax.Array) -> RememberedState:
        """Return an empty memory whose first k players are those given, made orthonormal."""
        k, d = players.shape
        more = self.players_for(k, d) - k
        if more:
            others = sphere.random_players(self.seed, more, d, players.dtype)
            players = jnp.concatenate([players, others])
        return self.remember_nothing(orthonormalise(players), k)

    def players_for(self, k: int, d: int) -> int:
        """Return K, the number of players for k components of d features."""
        return min(d, k + (default_extra(k) if self.extra == "auto" else self.extra))

    def remember_nothing(self, players: Any, k: int) -> RememberedState:
        """Return an empty memory of K orthonormal players, of which the first k are wanted."""
        dtype = players.dtype
        count, d = players.shape
        nothing = Memory(
            players=players,
            strengths=jax.device_put(np.zeros(count, dtype)),
            mean=jax.device_put(np.zeros(d, dtype)),
            weight=jax.device_put(np.zeros((), dtype)),
        )
        like, step = np.zeros((k, 0), dtype), np.zeros((), np.int32)
        return RememberedState(nothing, jax.device_put(like), jax.device_put(step))

    def update(self, rows: Rows, state: RememberedState) -> tuple[RememberedState, Info]:
        """Play one batch under the memory of all before it."""
        memory = state.memory
        if self.forget != 1:
            rows, keep = self.fade(rows, memory.strengths.dtype)
            memory = memory._replace(strengths=keep * memory.strengths, weight=keep * memory.weight)
        if isinstance(rows, DenseRows) and self._in_gram_space(rows, memory.players):
            memory = self._in_units(rows, memory)
        else:
            memory = memory._replace(players=_tidied(state))
            new = RememberedRows.of(rows, memory, center=self.center)
            memory = Memory(*self._rounds(new), *new.mean_and_weight())
        return RememberedState(memory, state.like, state.step + 1), _seen(memory, state)

    def components(self, state: RememberedState) -> jax.Array:
        """Return the first k players."""
        return state.memory.players[: state.like.shape[0]]

    def merge(self, one: RememberedState, other: RememberedState) -> RememberedState:
        """Return the memory of both streams: one memory's strengths are rows to the other."""
        theirs, mine = other.memory, one.memory
        strong = jnp.sqrt(theirs.strengths)[:, None] * theirs.players
        total = jnp.where(mine.weight + theirs.weight > 0, mine.weight + theirs.weight, 1)
        bridge = jnp.sqrt(mine.weight * (theirs.weight / total)) * (mine.mean - theirs.mean)
        plain = Remembered()
        rows = DenseRows(jnp.concatenate([strong, bridge[None, :]]))
        players, strengths, *_ = plain._in_units(rows, mine)
        mean = mine.mean + (theirs.weight / total) * (theirs.mean - mine.mean)
        memory = Memory(players, strengths, mean, mine.weight + theirs.weight)
        return RememberedState(memory, one.like, one.step + other.step)

    def update_in_span(
        self,
        rows: DenseRows,
        state: RememberedState,
        overlaps: jax.Array,
        touch: Touches = ON_DEVICE,
    ) -> tuple[RememberedState, jax.Array]:
        r"""Play one batch in Gram space, with the overlaps of players and mean known.

        Parameters
        ----------
        rows : DenseRows
        state : RememberedState
        overlaps : array of shape (K, K), or (K + 1, K + 1) with the mean last where rows are centred
            What `overlaps` measures, or the update before has returned.
        touch : Touches
            How width d is touched.

        Returns
        -------
        state : RememberedState
        overlaps : array of the same shape
        """
        memory, overlaps = self._equilibrium(rows, state.memory, overlaps, touch)
        return RememberedState(memory, state.like, state.step + 1), overlaps

    def overlaps(self, state: RememberedState, touch: Touches = ON_DEVICE) -> jax.Array:
        """Return the overlaps of players and, where rows are centred, the mean, measured."""
        return touch.overlaps(self.wide(state))

    def wide(self, state: RememberedState) -> list[jax.Array]:
        """Return what an update starts from: players (K, d) and, where rows are centred, the mean (1, d)."""
        return self._wide(state.memory)

    def _wide(self, memory: Memory) -> list[jax.Array]:
        """Return the same of a memory."""
        return [memory.players, memory.mean[None, :]] if self.center else [memory.players]

    def _in_units(self, rows: DenseRows, memory: Memory) -> Memory:
        """Return the memory after one batch, played in Gram space in units of the largest number.

        So squares stay in range over the whole range of the dtype.
        """
        # By the rows themselves: a basis leaves out what is within rounding of the rest, a mean does not.
        exact, _ = RememberedRows.of(rows, memory, center=self.center).mean_and_weight()
        values = rows.dense().astype(memory.players.dtype)
        size = jnp.max(jnp.abs(values))
        if self.center:
            size = jnp.maximum(size, jnp.max(jnp.abs(memory.mean)))
        size = jnp.where(size > 0, size, 1)
        scaled = memory._replace(strengths=memory.strengths / size / size, mean=memory.mean / size)
        rows = replace(rows, values=values / size, mean=None)
        overlaps = overlaps_of(list(map(rows.columns, self._wide(scaled))))
        after, _ = self._equilibrium(rows, scaled, overlaps, ON_DEVICE)
        return after._replace(strengths=after.strengths * size * size, mean=exact)

    def _equilibrium(
        self, rows: DenseRows, memory: Memory, overlaps: jax.Array, touch: Touches
    ) -> tuple[Memory, jax.Array]:
        """Return the memory after one batch, played to equilibrium in Gram space, and its overlaps."""
        given = memory.strengths, memory.weight
        wide, after, overlaps = in_span(
            self._played, given, self._wide(memory), rows, overlaps, touch
        )
        centre = wide[1][0] if self.center else memory.mean
        return after._replace(players=wide[0], mean=centre), overlaps

    def _played(
        self, small: Small, given: tuple[jax.Array, jax.Array]
    ) -> tuple[list[jax.Array], Memory]:
        """Return the vectors and the memory after one batch, in the small space of both."""
        (players, *mean), (strengths, weight) = small.wide, given
        centre = mean[0][0] if mean else jnp.zeros_like(players[0])
        now = Memory(players, strengths, centre, weight)
        new = RememberedRows.of(small.rows, now, center=self.center)
        moved, strengths = equilibrium_of_all(players, strengths, _new_rows(new), small.empty)
        after = Memory(moved, strengths, *new.mean_and_weight())
        return self._wide(after), after

    def _rounds(self, new: RememberedRows) -> tuple[jax.Array, jax.Array]:
        """Return players and strengths after the rounds that a batch is due."""
        memory = new.memory
        first = joint_round(new, memory.players, new.scores(memory.players), memory.strengths)
        rounds = jnp.where(memory.weight < new.weight, max(FIRST_ROUNDS, self.rounds), self.rounds)

        def further(now: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            players, scores, strengths = now
            # The players have left the memory's own: its rows are now rows like any other.
            whole = new.recalled()
            past = full_product(whole.past, players.T)
            start = (players, jnp.concatenate([past, scores]), strengths)
            # Rounds on a first batch move players far: what they lose of being orthonormal in one would
            # grow in the next.
            players, _, strengths = jax.lax.fori_loop(
                1, rounds, lambda _, one: joint_round(whole, *tidied(one[0], one[1])), start
            )
            return nearly_orthonormal(players), strengths

        return jax.lax.cond(rounds > 1, further, lambda now: (now[0], now[2]), first)

    def _in_gram_space(self, rows: DenseRows, players: jax.Array) -> bool:
        """Say where this batch is played; static, so that each shape is compiled for one space."""
        if self.space != "auto":
            return self.space == "gram"
        return cheaper_in_gram_space(rows.values.shape[0], *players.shape)

    def fade(self, rows: Rows, dtype: Any) -> tuple[DenseRows, jax.Array]:
        """Return the rows with the weights that forgetting leaves them, and what the past keeps.

        Row by row, also within the batch: how a stream is cut makes no difference. Padding (weight 0)
        takes no time: only rows that count make the others older.
        """
        if not isinstance(rows, DenseRows):
            raise ValueError("forget < 1 needs dense rows one by one: give as_rows(X).")
        roots = rows.constant()[:, 0]
        counts = (roots > 0).astype(dtype)
        after = jnp.cumsum(counts[::-1])[::-1]
        # By its logarithm: a factor near 1 would be rounded to another rate of forgetting, or to 1.
        rate = jnp.asarray(math.log(self.forget), dtype)
        fading = jnp.exp(rate / 2 * (after - counts))
        faded = replace(rows, values=fading[:, None] * rows.values, roots=fading * roots, mean=None)
        return faded, jnp.exp(rate * after[0])


def _tidied(state: RememberedState) -> jax.Array:
    """Return the players, every few updates freed of the rounding that has added up."""
    return jax.lax.cond(
        state.step % TIDY == 0, nearly_orthonormal, lambda players: players, state.memory.players
    )


def _seen(memory: Memory, state: RememberedState) -> Info:
    """Return what the wanted players earn."""
    strengths = memory.strengths[: state.like.shape[0]]
    return Info(strengths, jnp.zeros_like(strengths), jnp.zeros_like(strengths))


def _new_rows(new: RememberedRows) -> jax.Array:
    """Return the batch as plain rows: weighted, centred, and with the bridge between means."""
    batch: DenseRows = new.rows
    if new.centring is None:
        return batch.dense()
    centred = batch.centred(new.centring.mean)
    return jnp.concatenate([centred.dense(), new.centring.bridge[None, :]])
