"""Rows in the precision of their source, to be converted to float64 on the device."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from eigengame.game.rows import DenseRows
from eigengame.sharding.sharded_rows import ShardedRows


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RawRows:
    """Rows in the precision of their source, with the origin, unit and weights to convert them.

    Converting on the device, a group of rows at a time, transfers half the bytes of float64 rows.

    Parameters
    ----------
    values : array of shape (m, d)
    roots : array of shape (m,)
        Roots of the weights; 0 for a row of padding.
    origin : array of shape (d,)
        Subtracted first.
    unit : array of shape ()
        A power of two to divide by.
    mesh : Mesh or None
        Devices that share the rows.
    """

    values: jax.Array
    roots: jax.Array
    origin: jax.Array
    unit: jax.Array
    mesh: Mesh | None = field(default=None, metadata={"static": True})

    def widened(self) -> DenseRows:
        """Return the rows in float64, with one rounding for the subtraction and one for the weight."""
        away = (self.values.astype(self.origin.dtype) - self.origin[None, :]) / self.unit
        weighted = away * self.roots[:, None]
        if self.mesh is None:
            return DenseRows(weighted, self.roots)
        return ShardedRows(weighted, self.roots, mesh=self.mesh)

    def on_host(
        self, part: slice = slice(None), out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows as `widened` has them and the roots of their weights, as arrays of NumPy.

        Nothing is compiled. `out` has room for the rows in float64, at least as many as are asked for.
        """
        return self.columns_on_host(part, slice(None), out), np.asarray(self.roots)[part]

    def columns_on_host(
        self, part: slice, columns: slice, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return some columns of some rows as `widened` has them, as an array of NumPy."""
        given, roots = np.asarray(self.values)[part, columns], np.asarray(self.roots)[part]
        origin, unit = np.asarray(self.origin)[columns], float(self.unit)
        values = np.empty(given.shape) if out is None else out[: len(given)]
        if origin.any():
            np.subtract(given, origin, out=values, casting="unsafe")
        else:
            np.copyto(values, given, casting="unsafe")  # faster
        return _scaled(values, unit, roots)

    def is_plain_float32(self, part: slice) -> bool:
        """Return whether some rows are in float32 as they are: without origin, unit and weights."""
        plain = self.values.dtype == np.float32 and float(self.unit) == 1
        return plain and not np.asarray(self.origin).any() and bool((self.roots[part] == 1).all())

    def in_float32(self, part: slice, out: np.ndarray) -> np.ndarray:
        """Return some rows as `widened` has them, rounded to float32, in an array with room for them."""
        given, roots = np.asarray(self.values)[part], np.asarray(self.roots)[part]
        origin, unit, values = np.asarray(self.origin), float(self.unit), out[: len(given)]
        if origin.any():
            narrow = origin.astype(np.float32)
            # Float32 minus float32 is rounded once, as in float64.
            exact = given.dtype == np.float32 and bool((narrow == origin).all())
            np.subtract(given, narrow if exact else origin, out=values, casting="unsafe")
        else:
            np.copyto(values, given, casting="unsafe")
        return _scaled(values, unit, roots)

    def groups(self, size: int) -> RawRows:
        """Return the rows in groups of at most `size`, along a new first axis."""
        count = -(-len(self.roots) // size)
        missing = count * size - len(self.roots)
        values = jnp.pad(self.values, ((0, missing), (0, 0))).reshape(count, size, -1)
        roots = jnp.pad(self.roots, (0, missing)).reshape(count, size)
        origin = jnp.broadcast_to(self.origin, (count, *self.origin.shape))
        return RawRows(values, roots, origin, jnp.broadcast_to(self.unit, (count,)), self.mesh)


def _scaled(values: np.ndarray, unit: float, roots: np.ndarray) -> np.ndarray:
    """Divide rows (m, d) by a unit and multiply them by the roots of their weights (m,), in place."""
    if unit != 1:
        values /= unit
    if (roots != 1).any():
        values *= roots[:, None]
    return values
