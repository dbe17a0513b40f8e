"""Passes over a source: each one folds its batches into a carry, watched, and kept where asked.

Everything that reads data does it here: the remembered pass, images under M, the covariance, moments.
So there is one place that paces the device, tells watchers, writes checkpoints and goes on from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sharding.gather import any_distributed
from eigengame.sharding.hosts import require_equal
from eigengame.solver.batches import Feed
from eigengame.solver.checkpoint import Interrupted, Keeper
from eigengame.solver.events import Progress, Watcher
from eigengame.sources import SourceError

Step = Callable[[Any, Any, int], Any]
"""From a carry, rows of the game and how many of them count to the next carry."""

Tell = Callable[[Any], dict[str, float]]
"""From a carry to figures worth watching."""


class Passes(Protocol):
    """Something that can be read, again and again.

    Attributes
    ----------
    size : int
        Rows of a batch.
    raw : bool
        Whether batches are raw rows of one device (`RawRows`).
    """

    @property
    def size(self) -> int:
        """Rows of a batch."""
        ...

    @property
    def raw(self) -> bool:
        """Whether batches are raw rows of one device."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether a watcher has asked to end the run."""
        ...

    def fold(self, step: Step, start: Any, *, task: str, tell: Tell | None = None) -> Any:
        """Return the carry after one pass: `step` applied to it and to each batch in turn."""
        ...

    def in_float64(self, mean: np.ndarray | None) -> Passes:
        """Return passes over the same rows in float64, about a mean (d,) where rows can be shifted.

        They count as passes of this one. Its steps run under ``jax.enable_x64(True)``.
        """
        ...

    def put(self, block: np.ndarray) -> jax.Array:
        """Return an array of shape (K, d) placed as players are."""
        ...

    def everywhere(self, values: np.ndarray) -> jax.Array:
        """Return a small array that every device has."""
        ...


@dataclass
class Record:
    """Passes made, and whether a watcher has ended the run: shared by all readings of one run."""

    made: int = 0
    stopped: bool = False


class OverFeed:
    """What passes over a feed have in common, whoever makes them."""

    feed: Feed
    _record: Record

    @property
    def size(self) -> int:
        """Rows of a batch."""
        return self.feed.size

    @property
    def raw(self) -> bool:
        """Whether batches are raw rows of one device."""
        return self.feed.sends_raw

    @property
    def stopped(self) -> bool:
        """Whether a watcher has ended the run."""
        return self._record.stopped


class Reading(OverFeed):
    """Passes over a feed.

    Parameters
    ----------
    feed : Feed
    watchers : sequence of Watcher
    keeper : Keeper, optional
        Writes checkpoints, and knows the passes made before an interruption.
    """

    def __init__(
        self, feed: Feed, watchers: Sequence[Watcher] = (), keeper: Keeper | None = None
    ) -> None:
        self.feed, self.watchers, self.keeper = feed, watchers, keeper
        self._record = Record()

    def in_float64(self, mean: np.ndarray | None) -> Reading:
        """Return passes over the same rows in float64; kept, watched and counted like those of this one."""
        other = Reading(self.feed.in_float64(mean), self.watchers, self.keeper)
        other._record = self._record
        return other

    def put(self, block: np.ndarray) -> jax.Array:
        """Return an array of shape (K, d) placed as players are."""
        return self.feed.place.players(block)

    def everywhere(self, values: np.ndarray) -> jax.Array:
        """Return a small array that every device has."""
        return self.feed.place.replicated(values)

    def fold(self, step: Step, start: Any, *, task: str, tell: Tell | None = None) -> Any:
        """Return the carry after one pass.

        A pass that was made before an interruption is recalled, not made again; one that was under way
        goes on where it was. Steps are pure, so the result is the same to the last bit.
        """
        if self._record.made and not self.feed.source.again:
            raise ValueError(
                f"{self.feed.source.name} can be read once, but a second pass is needed: give "
                "passes=1 and no tol, or data that can be read again."
            )
        number = self._record.made
        self._record.made += 1
        carry, row, ended = start, 0, False
        if self.keeper is not None:
            carry, row, ended = self.keeper.recall(number, start)
            require_equal("rows to go on from", -1 if ended else row)
        if ended:
            return carry
        total, begun, before, whole = self.feed.shape[0], row, None, True
        try:
            for batch in self.feed(row):
                after = step(carry, batch.rows, batch.counted)
                # Never more than two batches at once: wait for the one before the one just sent.
                _wait_for(before)
                before, carry, row = carry, after, row + batch.read
                if self._told(Progress(task, number + 1, row, total, begun), carry, tell):
                    whole = False
                    break
                if self.keeper is not None and self.keeper.due(carry):
                    self.keeper.keep(number, carry, row)
            if row == 0:
                raise SourceError(f"{self.feed.source.name} has no rows: give some.")
            ended = whole  # a pass that a watcher ended early goes on when the run is started again
            if self.keeper is not None:
                self.keeper.keep(number, carry, row, ended=ended)
            self._told(Progress(task, number + 1, row, row, begun, ended=True), carry, tell)
        except KeyboardInterrupt:
            # What is spread over processes could only be gathered by all of them.
            if self.keeper is None or any_distributed(carry):
                raise
            self.keeper.keep(number, carry, row, ended=ended)
            raise Interrupted(self.keeper.folder, number + 1, row) from None
        return carry

    def _told(self, at: Progress, carry: Any, tell: Tell | None) -> bool:
        """Tell the watchers, and say whether one of them wants the run to end."""
        if not self.watchers:
            return False
        if tell is not None:
            at = replace(at, tell=lambda: tell(carry))
        asked = [watcher.batch(at) for watcher in self.watchers]
        self._record.stopped = self.stopped or any(asked)
        # Only a pass that tells how far it is can end early: the others' carries mean nothing by half.
        return self.stopped and tell is not None


class Given:
    """Rows already at hand, such as a matrix: a pass takes each of them once."""

    stopped = False
    raw = False

    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    @property
    def size(self) -> int:
        """Rows of a batch, or features of a matrix."""
        return max(_length(rows) for rows in self.rows)

    def in_float64(self, mean: np.ndarray | None) -> Given:
        """Return the same rows in float64, where they are."""
        with jax.enable_x64(True):
            return Given(*(jax.tree.map(_widened, rows) for rows in self.rows))

    def put(self, block: np.ndarray) -> jax.Array:
        """Return an array of shape (K, d) on the device."""
        return jax.device_put(block)

    everywhere = put

    def fold(self, step: Step, start: Any, *, task: str, tell: Tell | None = None) -> Any:
        """Return the carry after a step with each."""
        carry = start
        for rows in self.rows:
            carry = step(carry, rows, 1)
        return carry


def _length(rows: Any) -> int:
    """Return the number of rows, or the side of the matrix that stands for them."""
    with jax.enable_x64(True):
        player = jax.ShapeDtypeStruct((1, rows.width), np.float64)
        return int(jax.eval_shape(rows.scores, player).shape[0])


def _widened(leaf: jax.Array) -> jax.Array:
    """Return floating-point numbers in float64, and others as they are."""
    return leaf.astype(np.float64) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _wait_for(carry: Any) -> None:
    """Wait until one array of the carry is there."""
    for leaf in jax.tree.leaves(carry):
        if isinstance(leaf, jax.Array):
            leaf.block_until_ready()
            return
