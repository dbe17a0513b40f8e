"""Placement of arrays on a mesh.

The rows of a batch are split over `data` and `features`, players over `players` and `features`; small arrays are
replicated. Batches of single players are also split over `players`: each device has those of its players.
Algorithms are not changed: XLA derives the communication from the placement of their arrays. Sizes that the number
of devices does not divide are padded: features with columns of zeros, in which players that start at zero remain
zero, and batches with rows of weight zero. Players are not padded but replicated; batches of single players are
then refused (`own_batches.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import DenseRows, Rows, SymmetricRows
from eigengame.sharding.cost import best_layout
from eigengame.sharding.gather import gather
from eigengame.sharding.layout import Layout, make_mesh
from eigengame.sharding.padding import pad, round_up
from eigengame.sharding.process_local import is_contiguous, local_range, process_grid, put_local
from eigengame.sharding.sharded_rows import ShardedOwnRows, ShardedRows


@dataclass(frozen=True)
class Placement:
    """Places arrays on a mesh, or on the default device of JAX.

    Parameters
    ----------
    mesh : Mesh or None
        With the axes of `eigengame.sharding.layout`; None for the default device.
    """

    mesh: Mesh | None = None

    @property
    def layout(self) -> Layout:
        """The layout of the mesh."""
        return Layout() if self.mesh is None else Layout(*self.mesh.devices.shape)

    def width(self, d: int) -> int:
        """Return the number of features, padded to a multiple of the devices that share them."""
        return round_up(d, self.layout.features)

    def height(self, m: int) -> int:
        """Return the number of rows, padded to a multiple of the devices that share them."""
        return round_up(m, self.layout.data)

    @property
    def processes(self) -> int:
        """Number of processes that share the mesh; each contributes its own rows and columns of a batch."""
        return 1 if self.mesh is None else len(np.unique(process_grid(self.mesh)))

    def local_rows(self, m: int) -> tuple[int, int]:
        """Return the first row of this process in a batch of m rows, and its number of rows with padding."""
        first, last = self._local_range("data")
        part = self.height(m) // self.layout.data
        return first * part, (last - first) * part

    def local_columns(self, d: int) -> tuple[int, int]:
        """Return the range of features of this process, without padding: possibly empty."""
        part = self.width(d) // self.layout.features
        first, last = (min(at * part, d) for at in self._local_range("features"))
        return first, last

    def batch(self, values: Any, d: int | None = None) -> jax.Array:
        """Place a batch, padded in both directions.

        Parameters
        ----------
        values : array of shape (m, columns)
            The rows and columns of this process.
        d : int, optional
            Features of all processes; by default those of `values`.
        """
        first, last = self._local_range("features")
        width = self.width(values.shape[1] if d is None else d) // self.layout.features
        shape = (self._local_height(len(values)), (last - first) * width)
        return self._put_local(pad(values, shape), "data", "features")

    def per_row(self, values: Any) -> jax.Array:
        """Place one number for each row of a batch (m,), for the rows of this process, padded with zeros."""
        return self._put_local(pad(values, (self._local_height(len(values)),)), "data")

    def _local_height(self, m: int) -> int:
        """Return the number of rows, with padding, that a process with m rows contributes."""
        first, last = self._local_range("data")
        return round_up(m, last - first)

    def _local_range(self, axis: str) -> tuple[int, int]:
        """Return the range of parts along an axis that this process holds: the first, and one past the last."""
        if self.mesh is None or self.processes == 1:
            return 0, getattr(self.layout, axis)
        return local_range(self.mesh, axis)

    def _put_local(self, values: Any, *axes: str) -> jax.Array:
        """Place an array that is split along `axes`, of which this process has `values`."""
        if self.mesh is None or self.processes == 1:
            return self._put(values, P(*axes))
        return put_local(self.mesh, values, axes)

    def players(self, values: Any) -> jax.Array:
        """Place players (k, d), with padded features; split over `players` if the devices divide k."""
        k, d = values.shape
        return self._put(pad(values, (k, self.width(d))), self._players_spec(k))

    def per_feature(self, values: Any) -> jax.Array:
        """Place one number for each feature (d,), padded with zeros."""
        return self._put(pad(values, (self.width(len(values)),)), P("features"))

    def square(self, matrix: Any) -> jax.Array:
        """Place a matrix of features by features (d, d), padded in both directions."""
        width = self.width(len(matrix))
        return self._put(pad(matrix, (width, width)), P(None, "features"))

    def replicated(self, values: Any) -> jax.Array:
        """Place a copy of a small array on every device."""
        return self._put(values, P())

    def dense(self, values: jax.Array, roots: jax.Array) -> DenseRows:
        """Return rows of the game from placed values (m, d) and square roots of their weights (m,)."""
        return (
            DenseRows(values, roots)
            if self.mesh is None
            else ShardedRows(values, roots, mesh=self.mesh)
        )

    def rows(self, rows: Rows) -> Rows:
        """Place the rows of a game."""
        if self.mesh is None:
            return rows
        if isinstance(rows, DenseRows) and rows.values.ndim == 2:
            m = rows.values.shape[0]
            roots: Any = rows.roots
            if roots is None and self.height(m) > m:
                roots = np.ones(m, rows.values.dtype)
            d = rows.width
            first, last = self.local_columns(d)
            local = rows.values if last - first == d else rows.values[:, first:last]
            return ShardedRows(
                self.batch(local, d),
                None if roots is None else self.per_row(roots),
                None if rows.mean is None else self.per_feature(rows.mean),
                self.mesh,
            )
        if isinstance(rows, DenseRows):
            return self._own_batches(rows)
        if isinstance(rows, SymmetricRows):
            return SymmetricRows(self.square(rows.matrix))
        return jax.tree.map(self.replicated, rows)

    def _own_batches(self, rows: DenseRows) -> ShardedOwnRows:
        """Place one batch for each player (k, m, d): each device has only the batches of its players."""
        k, m, d = rows.values.shape
        height, width = self.height(m), self.width(d)
        roots: Any = rows.roots
        if roots is None and height > m:
            roots = np.ones((k, m), rows.values.dtype)
        return ShardedOwnRows(
            self._put(pad(rows.values, (k, height, width)), P("players", "data", "features")),
            None if roots is None else self._put(pad(roots, (k, height)), P("players", "data")),
            None
            if rows.mean is None
            else self._put(pad(rows.mean, (k, width)), P("players", "features")),
            self.mesh,
        )

    def state(self, state: Any) -> Any:
        """Place the state of an algorithm."""
        return state if self.mesh is None else jax.tree.map(self._put_leaf, state, state.axes())

    def gathered(self, values: jax.Array, *shape: int) -> jax.Array:
        """Return an array on one device, without the padding beyond `shape`."""
        if self.mesh is None:
            return values
        cut = tuple(slice(size) for size in shape)
        return jax.device_put(gather(values)[cut])

    def gathered_features(self, values: np.ndarray, d: int) -> np.ndarray:
        """Return one number for each of d features (d,), from the numbers of each process for its own columns."""
        first, last = self._local_range("features")
        if last - first == self.layout.features:
            return values
        width = (last - first) * (self.width(d) // self.layout.features)
        return gather(self._put_local(pad(values, (width,)), "features"))[:d]

    def constrain_state(self, state: Any) -> Any:
        """Return a state, within jit, with the placement of `state`: another one would compile again."""
        if self.mesh is None:
            return state

        def constrain(leaf: jax.Array, axes: P) -> jax.Array:
            sharding = self._sharding(self._leaf_spec(leaf, axes))
            return jax.lax.with_sharding_constraint(leaf, sharding)

        return jax.tree.map(constrain, state, state.axes())

    def constrain_features(self, values: jax.Array) -> jax.Array:
        """Return one number for each feature (d,), within jit, with the placement of `per_feature`."""
        if self.mesh is None:
            return values
        return jax.lax.with_sharding_constraint(values, self._sharding(P("features")))

    def _put_leaf(self, leaf: jax.Array, axes: P) -> jax.Array:
        """Place one array of a state."""
        return self._put(pad(leaf, self._leaf_shape(leaf, axes)), self._leaf_spec(leaf, axes))

    def _leaf_shape(self, leaf: Any, axes: P) -> tuple[int, ...]:
        """Return the shape of an array of a state, with padding."""
        return leaf.shape if axes == WHOLE else (*leaf.shape[:-1], self.width(leaf.shape[-1]))

    def _leaf_spec(self, leaf: Any, axes: P) -> P:
        """Return how an array of a state is split."""
        return self._players_spec(leaf.shape[0]) if axes == PLAYERS else axes

    def _players_spec(self, count: int) -> P:
        """Return how players are split: not over `players` if the devices do not divide their number."""
        return P("players" if count % self.layout.players == 0 else None, "features")

    def _sharding(self, spec: P) -> NamedSharding:
        assert self.mesh is not None
        return NamedSharding(self.mesh, spec)

    def _put(self, values: Any, spec: P) -> jax.Array:
        if self.mesh is None:
            return jax.device_put(values)
        if self.processes == 1:
            return jax.device_put(values, self._sharding(spec))
        # Not device_put: it compares the values of all processes, and the thread that reads ahead must not
        # communicate while the main thread does.
        held = np.asarray(values)
        return jax.make_array_from_callback(
            held.shape, self._sharding(spec), lambda index: held[index]
        )


ONE_DEVICE = Placement()
"""Everything on the default device of JAX."""


def choose_placement(mesh: Any, m: int = 1, players: int = 1, d: int = 1) -> Placement:
    """Return the placement for None (one device), "auto", or anything that `make_mesh` accepts.

    For "auto" the rows of a batch `m`, the players and the features `d` determine the layout.
    """
    if jax.process_count() > 1:
        return _across_processes(mesh, m, players, d)
    if mesh is None:
        return ONE_DEVICE
    if isinstance(mesh, str) and mesh == "auto":
        layout = best_layout(jax.device_count(), m, players, d)
        return ONE_DEVICE if layout.devices == 1 else Placement(make_mesh(layout))
    return Placement(make_mesh(mesh))


def _across_processes(mesh: Any, m: int, players: int, d: int) -> Placement:
    """Return a placement on the devices of all processes, with one contiguous block for each process."""
    devices = jax.device_count()
    by_rows = Layout(data=devices)
    if mesh is None:
        return Placement(make_mesh(by_rows))
    if isinstance(mesh, str) and mesh == "auto":
        best = best_layout(devices, m, players, d)
        # Data that is too small for all devices: share rows, so that some devices have none.
        found = make_mesh(best if best.devices == devices else by_rows)
        return Placement(found if is_contiguous(process_grid(found)) else make_mesh(by_rows))
    made = make_mesh(mesh)
    if made.size != devices or not is_contiguous(process_grid(made)):
        raise ValueError(
            f"mesh={Placement(made).layout} for {jax.process_count()} processes with {devices} devices: use all "
            "devices, and sizes that give each process one range of rows and one of columns, for example "
            f'"data={devices}" or "features={devices}".'
        )
    return Placement(made)
