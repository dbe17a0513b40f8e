"""Fits on Dask: a game for each block of rows where it lies, states merged in a tree.

Every pass of a fit is one graph: each part is folded where Dask puts it, carries are merged in pairs, neighbour by
neighbour, and the last two here. So the result depends on the data and its blocks alone, not on who computed what
when; a lost worker costs its blocks, which Dask computes again. Rows never travel for the sake of a fit:

* down to each part: the carry to begin from, $K(d + 1) + 2d$ numbers; for a further pass the directions to multiply
  by M and zeros to add to, $2K(d + 1)$; and, where the data is far from zero, its origin (d,);
* up the tree: for the remembered pass $K(d + 1) + 2d$ numbers and four counts (see `merging`); for a further pass
  $K(d + 1)$, products with M and sums of scores; for the route by the covariance $d(d + 2)$.

Dask is imported when it is needed.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.dask.merge import merged, unpacked
from eigengame.dask.partitions import split_up
from eigengame.dask.worker import (
    NoRows,
    PartFold,
    bad_or_zero,
    merged_pair,
    part_frame,
    part_game,
)
from eigengame.preparation import PreparedSource
from eigengame.solver import routes
from eigengame.solver.batches import Feed
from eigengame.solver.events import Progress, Watcher
from eigengame.solver.fit import Fit, Run, batch_rows
from eigengame.solver.frame import Frame
from eigengame.solver.passes import OverFeed, Record, Step, Tell
from eigengame.sources import Source, SourceError
from eigengame.sources.dask_blocks import DaskSource

NAME = "dask"
"""What `engine` may be for whichever scheduler is there."""


@dataclass(frozen=True)
class DaskEngine:
    """A Dask scheduler: a distributed client, or whichever is there where that is None."""

    client: Any = None

    def compute(self, nodes: Sequence[Any]) -> Sequence[Any]:
        """Return the results of delayed nodes, in order."""
        import dask

        # Players are part of the graph, for the scheduler to keep when a worker is lost: no news to warn of.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1GiB"}
        with dask.config.set(quiet if "distributed" in sys.modules else {}):
            if self.client is None:
                return dask.compute(*nodes)
            return self.client.gather(self.client.compute(nodes))


def engine_for(source: Source, asked: Any, checkpoint: Any = None) -> DaskEngine | None:
    """Return the engine that a fit runs on: the one asked for, Dask for data of Dask, else None."""
    lazy = isinstance(source.source if isinstance(source, PreparedSource) else source, DaskSource)
    if asked is None and not lazy:
        return None
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint={checkpoint!r} keeps a pass of one reader, and here there are many: leave it out; "
            "Dask itself computes again what is lost."
        )
    try:
        import dask  # noqa: F401
    except ImportError:
        raise ImportError(f'engine={asked!r} needs Dask: pip install "eigengame[dask]"') from None
    if asked is None or asked == NAME:
        return DaskEngine()
    if not (hasattr(asked, "compute") and hasattr(asked, "gather") and hasattr(asked, "status")):
        raise ValueError(f"engine={asked!r}: give a distributed.Client, or {NAME!r}.")
    if asked.status != "running":
        raise ValueError(
            f"engine={asked!r} is {asked.status}: give a client that is connected, and not asynchronous."
        )
    return DaskEngine(asked)


@dataclass(frozen=True)
class DaskRun(Run):
    """One call of `fit` on Dask: as any other, but that passes are trees.

    Attributes
    ----------
    engine : DaskEngine
    """

    engine: DaskEngine = field(default_factory=DaskEngine)

    def __post_init__(self) -> None:
        if self.algorithm not in ("remembered", "auto"):
            raise ValueError(
                f"algorithm={self.algorithm!r} plays batch after batch, and here blocks are played side by "
                "side: use 'remembered' or 'auto'."
            )
        if self.options.forget != 1:
            raise ValueError(
                f"forget={self.options.forget} is by the order of rows, and here blocks are played side by "
                "side: give forget=1."
            )
        if self.mesh is not None:
            raise ValueError(
                f"mesh={self.mesh!r}: on Dask each worker plays on its own device; leave mesh out."
            )

    def components(self, k: int) -> Fit:
        """Return k components."""
        options = self.options
        reading = DaskReading(
            self.engine,
            self.source,
            options.game(),
            options.dtype,
            batch_size=self.batch_size,
            players=options.players(k, self.source.shape[1]),
            weights=self.weights,
            watchers=self.watchers,
        )
        fitted = routes.fit_by(self._route(k), reading, k, options)  # type: ignore[arg-type]
        return Fit(fitted, k, reading.frame or Frame())


class DaskReading(OverFeed):
    """Passes over the parts of a source: each one a tree.

    Parameters
    ----------
    engine : DaskEngine
    source : Source
    game : Remembered
        By which states merge.
    dtype : dtype
        Precision of play.
    batch_size : int or "auto"
        Rows for each batch of a part; parts that end within one are filled up, so all are compiled once.
    players : int
    weights : array of shape (n,), optional
        How often each row counts.
    frame : Frame, optional
        Origin and unit of the rows. By default the first pass chooses it, in the first part that has rows.
    watchers : sequence of Watcher
        Told after every pass: within one, Dask's own dashboard shows how far it is.
    """

    def __init__(
        self,
        engine: DaskEngine,
        source: Source,
        game: Remembered,
        dtype: Any,
        *,
        batch_size: Any,
        players: int,
        weights: np.ndarray | None = None,
        frame: Frame | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.engine, self.game, self.watchers = engine, game, watchers
        self.parts, self.weights = split_up(source), weights
        lengths = self.parts.lengths
        longest = None if lengths is None else max(lengths, default=1)
        size = batch_rows(batch_size, (longest, source.shape[1]), players, np.dtype(dtype))
        self.feed = Feed(source, size, np.dtype(dtype))
        self.frame = frame
        self._chosen: Callable[[Frame], None] = lambda chosen: None
        self._record = Record()

    def in_float64(self, mean: np.ndarray | None) -> DaskReading:
        """Return passes over the same rows in float64; watched and counted like those of this one."""
        other = copy.copy(self)
        feed = replace(self.feed, frame=self.frame or Frame()).in_float64(mean)
        # Without a first pass there is no frame yet: this one chooses it.
        other.feed, other.frame = feed, None if self.frame is None else feed.frame
        other._chosen = lambda chosen: setattr(self, "frame", chosen)
        return other

    def put(self, block: np.ndarray) -> Any:
        """Return an array of shape (K, d) to be sent to where the rows are."""
        return jax.device_put(block)

    everywhere = put

    def fold(self, step: Step, start: Any, *, task: str, tell: Tell | None = None) -> Any:
        """Return the carry after one pass: of every part from `start`, which is empty, then merged."""
        carries = self._carries(PartFold.of(self.feed, self.parts, self.game, step, start))
        rows, carry = carries[0] if len(carries) == 1 else merged(self.game, *carries)
        if not rows:
            raise SourceError(f"{self.feed.source.name} has no rows: give some.")
        if not np.isfinite(bad_or_zero(carry)).all():  # every part was finite
            largest = np.finfo(self.feed.dtype).max
            raise ValueError(
                f"{self.feed.source.name} has numbers whose squares add up to more than {largest:.2g}: "
                "divide by the largest."
            )
        self._record.made += 1
        at = Progress(
            task,
            self._record.made,
            rows,
            rows,
            ended=True,
            tell=lambda: tell(carry) if tell else {},
        )
        asked = [watcher.batch(at) for watcher in self.watchers]
        self._record.stopped = self.stopped or any(asked)
        return carry

    def _carries(self, fold: PartFold) -> list[Any]:
        """Return the last one or two carries of the tree, each with its number of rows."""
        if self.frame is not None:
            return self._computed(fold, self.frame)[1]
        lengths = self.parts.lengths or [1] * len(self.parts.data)
        for number, rows in enumerate(lengths):
            try:
                if rows:
                    self.frame, carries = self._computed(fold, number)
                    self._chosen(self.frame)
                    return carries
            except NoRows:
                continue
        raise SourceError(f"{self.feed.source.name} has no rows: give some.")

    def _computed(self, fold: PartFold, frame: Any) -> tuple[Any, list[Any]]:
        """Compute the tree; `frame` is a Frame, or the number of the part that chooses it."""
        import dask

        data, weights = self.parts.data, self.parts.weights(self.weights)
        shared = dask.delayed(fold, traverse=False)
        if isinstance(frame, int):
            frame = _delayed(part_frame)(shared, data[frame], self.game.center)
        else:
            frame = dask.delayed(frame, traverse=False)
        carries = [
            _delayed(part_game)(shared, one, number, frame, weights[number])
            for number, one in enumerate(data)
        ]
        join = _delayed(partial(merged_pair, self.game, self.feed.dtype))
        found, *told = self.engine.compute([frame, *tree(join, carries)])
        return found, [unpacked(self.game, one) for one in told]


def tree(join: Callable[[Any, Any], Any], leaves: Sequence[Any], most: int = 2) -> list[Any]:
    """Return at most so many nodes: neighbours joined in pairs, again and again."""
    nodes = list(leaves)
    while len(nodes) > most:
        pairs = [join(*nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[len(pairs) * 2 :]
    return nodes


def _delayed(function: Callable[..., Any]) -> Any:
    import dask

    return dask.delayed(function, pure=False)
