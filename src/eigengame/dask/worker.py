"""What Dask runs where the data is: a game on one part, its frame, and two carries made one.

Everything here is sent to a worker by pickle, with nothing of the scheduler in it.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.dask.merge import merged, packed, unpacked
from eigengame.dask.partitions import Parts, opened_part
from eigengame.solver.batches import Feed, refuse_unless_finite
from eigengame.solver.frame import Frame, frame_of
from eigengame.solver.passes import Step
from eigengame.sources import Source, SourceError


class NoRows(Exception):
    """A part that was to choose the frame has no rows."""


@dataclass(frozen=True)
class PartFold:
    """What is done to every part, as it is sent: the step, and how rows are read.

    Attributes
    ----------
    step : bytes
        The step and the carry it begins from, pickled: they are opened in the precision of play.
    dtype : dtype
    size : int
        Rows for each batch.
    ragged : bool
        Whether parts do not know their rows: then a short one makes batches of the next power of two.
    name : str
    width : int
        Features after preparation.
    sparse : bool
    steps : tuple of Step
        The preparation.
    options : dict
        How a block is opened.
    raw : bool
        Whether rows are sent as they are, to be widened on the device.
    """

    step: bytes
    dtype: np.dtype
    size: int
    ragged: bool
    name: str
    width: int
    sparse: bool
    steps: tuple[Any, ...]
    options: dict[str, Any]
    raw: bool = False

    @classmethod
    def of(cls, feed: Feed, parts: Parts, game: Remembered, step: Step, start: Any) -> PartFold:
        """Return what a pass with this step does with each of the parts of a feed."""
        return cls(
            step=pickle.dumps((step, packed(start), game)),
            dtype=feed.dtype,
            size=feed.size,
            ragged=parts.lengths is None,
            name=feed.source.name,
            width=feed.source.shape[1],
            sparse=feed.source.sparse,
            steps=parts.steps,
            options=parts.options or {},
            raw=feed.raw,
        )

    def opened(self, data: Any, number: int) -> Source:
        """Return the source of one part, or say what is wrong with it."""
        source = opened_part(data, f"{self.name}, block {number}", self.steps, self.options)
        source = source.in_float64() if self.dtype == np.float64 else source
        if source.shape[1] != self.width:
            raise SourceError(
                f"{source.name} has {source.shape[1]} features, but {self.width} were expected: give blocks "
                "with the same columns."
            )
        if source.sparse != self.sparse:
            kinds = ("sparse", "dense") if source.sparse else ("dense", "sparse")
            raise SourceError(
                f"{source.name} is {kinds[0]}, but Dask takes it for {kinds[1]}: say what blocks are by "
                "meta=, for example map_blocks(csr_array, meta=csr_array((0, 0)))."
            )
        return source


def part_game(
    fold: PartFold, data: Any, number: int, frame: Frame, weights: np.ndarray | None
) -> tuple[int, Any]:
    """Return the rows of one part and the carry after them, packed. Runs where Dask puts it."""
    # The switch belongs to a thread: what is pickled in float64 is opened in it.
    with jax.enable_x64(fold.dtype == np.float64):
        step, told, game = pickle.loads(fold.step)
        if _is_empty(data):
            return 0, told
        source, size = fold.opened(data, number), fold.size
        if fold.ragged and source.shape[0] is not None:
            size = min(size, max(8, 1 << (source.shape[0] - 1).bit_length()))
        feed = Feed(source, size, fold.dtype, weights, frame, raw=fold.raw)
        carry, rows = unpacked(game, told), 0
        for batch in feed():
            carry, rows = step(carry, batch.rows, batch.counted), rows + batch.read
        refuse_unless_finite(feed, bad_or_zero(carry))
        return rows, packed(carry)


def part_frame(fold: PartFold, data: Any, center: bool) -> Frame:
    """Return the frame of all rows, by the first rows of one part."""
    if _is_empty(data):
        raise NoRows
    return frame_of(fold.opened(data, 0), fold.dtype, center=center)


def merged_pair(game: Remembered, dtype: np.dtype, one: Any, other: Any) -> Any:
    """Return what two parts tell together, packed. Runs where Dask puts it."""
    with jax.enable_x64(dtype == np.float64):
        return packed(merged(game, unpacked(game, one), unpacked(game, other)))


def bad_or_zero(carry: Any) -> np.ndarray:
    """Return the first array of a carry that is not finite, or a zero."""
    for leaf in jax.tree.leaves(carry):
        array = np.asarray(leaf)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return array
    return np.zeros(1)


def _is_empty(data: Any) -> bool:
    """Say whether a block has no rows."""
    return bool(data.shape[0] == 0)
