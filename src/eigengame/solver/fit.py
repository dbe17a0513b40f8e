"""One call of `fit`: how many components, by which route, in which batches. Values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from eigengame.sharding.hosts import agree
from eigengame.sharding.placement import Placement, placement_of
from eigengame.solver import routes
from eigengame.solver.batches import Feed
from eigengame.solver.checkpoint import Keeper
from eigengame.solver.events import call
from eigengame.solver.frame import Frame, frame_of
from eigengame.solver.passes import Reading
from eigengame.solver.plan import plan, refuse_unless_fits
from eigengame.solver.routes import Options
from eigengame.sources import Source

BATCH_BYTES = 2**30
"""The most that a batch takes, where its size is left to us."""


class Fit(NamedTuple):
    """What was found of k components, in the frame of the rows."""

    fitted: routes.Fitted
    k: int
    frame: Frame


@dataclass(frozen=True)
class Run:
    """What is read, what is asked for, and who keeps and watches it.

    Attributes
    ----------
    source : Source
    weights : array of shape (n,) or None
    options : Options
    algorithm : str
        "auto" or a name of the registry.
    batch_size : int or "auto"
    keeper : Keeper or None
    watchers : sequence of Watcher
    mesh : dict, str, Mesh or None
        The devices it runs on.
    """

    source: Source
    weights: np.ndarray | None
    options: Options
    algorithm: str
    batch_size: int | Literal["auto"]
    keeper: Keeper | None = None
    watchers: Sequence[Any] = ()
    mesh: Any = None

    def components(self, k: int) -> Fit:
        """Return k components."""
        source, options = self.source, self.options
        if source.on_device and jax.default_backend() == "gpu":
            options = options.on_device(k)
        players, d = options.players(k, source.shape[1]), source.shape[1]
        batch = batch_rows(self.batch_size, source.shape, players, options.dtype, source.block_rows)
        place = placement_of(self.mesh, batch, players, d)
        if place.processes > 1:
            agree("random_state", options.seed % 2**31, "the same number")
        frame = _frame(source, options, place)
        feed = Feed(source, batch, options.dtype, self.weights, frame, place=place)
        options = self._planned(feed, players, options)
        # A fit by share takes several: each keeps its own passes.
        keeper = None if self.keeper is None else self.keeper.part(f"k{k}")
        reading = Reading(feed, self.watchers, keeper)
        return Fit(routes.fit_by(self._route(k), reading, k, options), k, frame)

    def _planned(self, feed: Feed, players: int, options: Options) -> Options:
        """Return the options of a run that fits: told to the watchers, or refused before it begins.

        Where rows are computed on a device that has no room for the players too, these stay on the host.
        """
        source, place, passes = feed.source, feed.place, options.most_passes()
        made = partial(
            plan,
            (0 if source.sparse else feed.size, feed.shape[1]),
            players,
            options.dtype.itemsize,
            feed.held,
            passes=passes,
            place=place,
            own=source.dtype.itemsize if source.on_device else None,
        )
        planned = made()
        try:
            refuse_unless_fits(planned, feed.size, players, apart=source.free_bytes())
        except MemoryError:
            alone = source.on_device and place.mesh is None and jax.default_backend() != "cpu"
            plain = self.algorithm in ("auto", "remembered") and options.forget == 1
            if not (alone and plain and passes == 1):
                raise
            planned, options = made(hosted=True), replace(options, hosted=True)
            refuse_unless_fits(planned, feed.size, players, apart=source.free_bytes())
        call(self.watchers, "plan", planned)
        return options

    def all_components(self, most: int) -> Fit:
        """Return all components that have any variance: a second time without those that have none."""
        found = self.components(most)
        strengths = found.fitted.found.strengths
        least = 1e3 * np.finfo(self.options.dtype).eps * strengths[0]
        rank = int(np.sum(strengths > least))
        return self.components(rank) if 0 < rank < most else found

    def share(self, most: int, share: float) -> Fit:
        """Return as many components as explain this share of the variance: more and more until they do."""
        k = min(16, most)
        found = self.components(k)
        while k < most and found.fitted.ratios(self.options).sum() < share:
            k = min(2 * k, most)
            found = self.components(k)
        needed = int(np.searchsorted(np.cumsum(found.fitted.ratios(self.options)), share)) + 1
        return self.components(needed) if needed < k else found

    def _route(self, k: int) -> str:
        """Return the route: for "auto" the covariance, where it takes fewer multiplications."""
        dense, d = not self.source.sparse, self.source.shape[1]
        if self.algorithm == "auto":
            # M takes n d^2 once, the remembered game about 3 n K d a pass.
            few = d <= 3 * self.options.players(k, d)
            return routes.COVARIANCE if dense and few and self.options.forget == 1 else "remembered"
        if self.algorithm != "remembered" and not dense:
            raise ValueError(
                f"algorithm={self.algorithm!r} needs dense rows: use 'remembered' for sparse ones."
            )
        return self.algorithm


def _frame(source: Source, options: Options, place: Placement) -> Frame:
    """Return the frame of the rows; processes that share features read only their own columns."""
    d = source.shape[1]
    own = place.own_columns(d)
    if own == (0, d):
        return frame_of(source, options.dtype, center=options.center)
    return frame_of(
        source,
        options.dtype,
        center=options.center,
        columns=own,
        of_all=lambda values: place.all_columns(values, d),
    )


def batch_rows(
    asked: int | str,
    shape: tuple[int | None, int],
    players: int,
    dtype: np.dtype,
    given: int | None = None,
) -> int:
    """Return the rows for each batch: enough to keep products busy, at most 1 GiB of them.

    Batches as even as can be, in eights: little padding. A source that has rows come `given` at a time
    gives whole multiples of them, as few as there are players.
    """
    n, d = shape
    if not isinstance(asked, str):
        return int(asked) if n is None else min(int(asked), n)
    if given is not None:
        whole = given * -(-players // given)
        return whole if n is None else min(whole, n)
    fits = max(1, BATCH_BYTES // (d * dtype.itemsize))
    most = max(2 * players, min(1024, fits))
    if n is None:
        return most
    even = -(-n // -(-n // most))
    return min(n, -(-even // 8) * 8)
