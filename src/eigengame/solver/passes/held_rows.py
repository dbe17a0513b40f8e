"""All rows in memory, to be read by panels of columns: for data with few rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from eigengame.game.csr_rows import CSRRows
from eigengame.game.rows import DenseRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.rows.raw_rows import RawRows

PANEL_BYTES = {False: 2**23, True: 2**31}
"""Bytes of a panel of columns in float64, on a host and on a device with memory of its own."""


class Panel(NamedTuple):
    r"""Some columns of all rows in float64, multiplied by the roots of the weights.

    Attributes
    ----------
    columns : slice
    values : array of shape (n, c)
        $Z$, about the mean where rows are centred. A NumPy array on a CPU, else on the device.
    mean : array of shape (c,)
        Weighted mean in the frame of the rows, whether or not it was subtracted.
    """

    columns: slice
    values: Any
    mean: np.ndarray


class HeldRows:
    """All rows of a source, in the precision of the source.

    Parameters
    ----------
    parts : list of RawRows, DenseRows, SparseRows or CSRRows
        The batches of one pass.
    rows : int
        Rows with a weight above 0.
    width : int
        Number of features d.
    """

    def __init__(self, parts: list[Any], rows: int, width: int) -> None:
        self.parts, self.rows, self.width = parts, rows, width
        scattered = isinstance(parts[0], SparseRows | CSRRows)
        roots = [
            np.sqrt(part.weights) if isinstance(part, SparseRows) else part.roots for part in parts
        ]
        self.roots = np.concatenate([np.asarray(one, np.float64) for one in roots])
        self.weight = float(np.sum(self.roots**2))
        self.unweighted = bool((self.roots == 1).all())
        self.on_device = jax.default_backend() != "cpu" and not scattered
        self._entries = _joined(parts, width) if scattered else None

    @classmethod
    def read(cls, passes: Passes) -> HeldRows:
        """Read all rows by one pass."""
        source, batches = passes.source, passes.batches
        # Rows on a device keep their precision only if nothing is computed with them: weights and origins would be
        # applied in that of the fit.
        as_given = source.on_device and batches.weights is None and batches.as_given
        batches = batches if as_given else batches.in_float64(None)
        # Without checkpoints, which would store the data itself.
        reading = SourcePasses(batches, passes.watchers, passes.record)
        copied = source.on_device and not source.views

        def hold(carry: tuple[list[Any], int], rows: Any, count: int) -> tuple[list[Any], int]:
            kept, counted = carry
            if copied:
                # The source reuses its memory: the copy must be complete before the next block is requested.
                values = jnp.array(rows.values, copy=True).block_until_ready()
                rows = DenseRows(values, rows.roots)
            return [*kept, rows], counted + count

        parts, rows = reading.fold(hold, ([], 0), task="rows")
        return cls(parts, rows, source.shape[1])

    @property
    def scattered(self) -> bool:
        """Whether rows are sparse."""
        return self._entries is not None

    def entries(self) -> sparse.csr_array:
        """Return all sparse rows, multiplied by the roots of their weights."""
        assert self._entries is not None
        return self._entries

    def there(self, values: np.ndarray) -> Any:
        """Return an array where the panels are: on the device, or as it is."""
        return jnp.asarray(values) if self.on_device else values

    def panels(self, *, center: bool) -> Iterator[Panel]:
        """Iterate over panels of columns; rows are centred if `center`. Needs ``jax.enable_x64(True)``.

        On a host all panels have their values in the same memory: use each before the next is drawn.
        """
        n = len(self.roots)
        step = min(max(64, PANEL_BYTES[self.on_device] // (8 * n)), self.width)
        room = None if self.on_device else np.empty((n, step))
        for begin in range(0, self.width, step):
            columns = slice(begin, min(begin + step, self.width))
            values = self._on_device(columns) if room is None else self._on_host(columns, room)
            yield self._panel(columns, values, center=center)

    def _panel(self, columns: slice, values: Any, *, center: bool) -> Panel:
        """Return a panel; the mean is subtracted twice, so that its own rounding is removed."""
        roots = self.there(self.roots)
        weight = max(self.weight, np.finfo(float).tiny)
        mean = roots @ values / weight
        if center:
            values = self._shifted(values, roots, mean)
            rest = roots @ values / weight
            values, mean = self._shifted(values, roots, rest), mean + rest
        return Panel(columns, values, np.asarray(mean))

    def _shifted(self, values: Any, roots: Any, mean: Any) -> Any:
        """Return weighted rows about a mean; on a host the array itself is changed."""
        if self.on_device:
            return values - roots[:, None] * mean[None, :]
        values -= mean if self.unweighted else roots[:, None] * mean
        return values

    def _on_host(self, columns: slice, room: np.ndarray) -> np.ndarray:
        """Return these columns of all rows in float64, in the frame, times the roots, in the given memory."""
        found, begin = room[:, : columns.stop - columns.start], 0
        for part in self.parts:
            own = found[begin : begin + len(part.roots)]
            if isinstance(part, RawRows):
                part.columns_on_host(slice(None), columns, own)
            else:
                # Dense rows are multiplied by the roots already.
                np.copyto(own, np.asarray(part.values)[:, columns])
            begin += len(own)
        return found

    def _on_device(self, columns: slice) -> jax.Array:
        """Return these columns of all rows in float64, in the frame, times the roots."""
        found = []
        for part in self.parts:
            values = part.values[:, columns].astype(np.float64)
            if isinstance(part, RawRows):
                values = (values - part.origin[columns][None, :]) / part.unit * part.roots[:, None]
            found.append(values)
        return found[0] if len(found) == 1 else jnp.concatenate(found)


def _joined(parts: list[SparseRows | CSRRows], width: int) -> sparse.csr_array:
    """Return all sparse rows, multiplied by the roots of their weights, as one array without duplicate entries."""
    blocks = [
        part.values if isinstance(part, CSRRows) else _compressed(part, width) for part in parts
    ]
    return sparse.vstack(blocks, format="csr")


def _compressed(part: SparseRows, width: int) -> sparse.csr_array:
    """Return rows in compressed format, multiplied by the roots of their weights."""
    row, column = np.asarray(part.row), np.asarray(part.column)
    entries = np.asarray(part.entries) * np.sqrt(np.asarray(part.weights))[row]
    found = sparse.coo_array((entries, (row, column)), shape=(len(part.weights), width))
    return sparse.csr_array(found)
