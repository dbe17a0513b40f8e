"""Where the arrays of a game lie on a mesh: annotations, and nothing else.

Rows of a batch are split over `data` and `features`, players over `players` and `features`; whatever is small is
everywhere. What an algorithm does is not touched: XLA sees where its arrays lie and puts the exchanges in. Widths
that do not divide are filled up: features with columns of zeros, in which a player that starts at zero stays
there, and batches with rows of weight zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.game.axes import PLAYERS, WHOLE
from eigengame.game.rows import DenseRows, Rows, SymmetricRows
from eigengame.sharding.cost import best_layout
from eigengame.sharding.gather import whole
from eigengame.sharding.layout import Layout, mesh_of
from eigengame.sharding.own_part import in_pieces, own_parts, processes_of, put_own
from eigengame.sharding.padding import filled, up
from eigengame.sharding.shared_rows import SharedRows


@dataclass(frozen=True)
class Placement:
    """Places arrays on a mesh, or on the one device that JAX takes by itself.

    Parameters
    ----------
    mesh : Mesh or None
        With the axes of `eigengame.sharding.layout`.
    """

    mesh: Mesh | None = None

    @property
    def layout(self) -> Layout:
        """How many devices share what."""
        return Layout() if self.mesh is None else Layout(*self.mesh.devices.shape)

    def width(self, d: int) -> int:
        """Return d filled up to a multiple of the devices that share features."""
        return up(d, self.layout.features)

    def height(self, m: int) -> int:
        """Return m rows filled up to a multiple of the devices that share them."""
        return up(m, self.layout.data)

    @property
    def processes(self) -> int:
        """How many processes share the mesh; each brings its own rows and columns of a batch."""
        return 1 if self.mesh is None else len(np.unique(processes_of(self.mesh)))

    def own_rows(self, m: int) -> tuple[int, int]:
        """Return where in a batch of m rows this process's own begin, and how many they are, filled up."""
        first, last = self._own_parts("data")
        each = self.height(m) // self.layout.data
        return first * each, (last - first) * each

    def own_columns(self, d: int) -> tuple[int, int]:
        """Return where among d features this process's own begin and end: none where it only fills up."""
        each = self.width(d) // self.layout.features
        first, last = (min(part * each, d) for part in self._own_parts("features"))
        return first, last

    def batch(self, values: Any, d: int | None = None) -> jax.Array:
        """Place rows, this process's own rows and columns of them, filled up in both ways.

        `d` are the features of all processes; not needed where this one has them all.
        """
        first, last = self._own_parts("features")
        wide = self.width(values.shape[1] if d is None else d) // self.layout.features
        shape = (self._own(len(values)), (last - first) * wide)
        return self._put_own(filled(values, shape), "data", "features")

    def per_row(self, values: Any) -> jax.Array:
        """Place one number for each row of a batch (m,), this process's own; rows filled up have 0."""
        return self._put_own(filled(values, (self._own(len(values)),)), "data")

    def _own(self, m: int) -> int:
        """Return how many rows this process brings where it has m of them."""
        first, last = self._own_parts("data")
        return up(m, last - first)

    def _own_parts(self, axis: str) -> tuple[int, int]:
        """Return the first of the parts along an axis that this process has, and the one after its last."""
        if self.mesh is None or self.processes == 1:
            return 0, getattr(self.layout, axis)
        return own_parts(self.mesh, axis)

    def _put_own(self, values: Any, *axes: str) -> jax.Array:
        """Place what this process has read of an array that is split along these axes."""
        if self.mesh is None or self.processes == 1:
            return self._put(values, P(*axes))
        return put_own(self.mesh, values, axes)

    def players(self, values: Any) -> jax.Array:
        """Place players (k, d): features filled up, players split where their number divides."""
        k, d = values.shape
        return self._put(filled(values, (k, self.width(d))), self._players_spec(k))

    def per_feature(self, values: Any) -> jax.Array:
        """Place one number for each feature (d,), filled up with zeros."""
        return self._put(filled(values, (self.width(len(values)),)), P("features"))

    def square(self, matrix: Any) -> jax.Array:
        """Place a matrix of features by features (d, d), filled up in both ways."""
        wide = self.width(len(matrix))
        return self._put(filled(matrix, (wide, wide)), P(None, "features"))

    def everywhere(self, values: Any) -> jax.Array:
        """Place a small array on every device."""
        return self._put(values, P())

    def dense(self, values: jax.Array, roots: jax.Array) -> DenseRows:
        """Return placed values and roots of their weights as rows of the game."""
        return (
            DenseRows(values, roots)
            if self.mesh is None
            else SharedRows(values, roots, mesh=self.mesh)
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
            first, last = self.own_columns(d)
            own = rows.values if last - first == d else rows.values[:, first:last]
            return SharedRows(
                self.batch(own, d),
                None if roots is None else self.per_row(roots),
                None if rows.mean is None else self.per_feature(rows.mean),
                self.mesh,
            )
        if isinstance(rows, SymmetricRows):
            return SymmetricRows(self.square(rows.matrix))
        return jax.tree.map(self.everywhere, rows)

    def state(self, state: Any) -> Any:
        """Place the state of an algorithm."""
        return state if self.mesh is None else jax.tree.map(self._leaf, state, state.axes())

    def described(
        self, algorithm: Any, m: int, k: int, d: int, dtype: Any = jnp.float32
    ) -> tuple[DenseRows, Any]:
        """Return rows and state of a game in shape only: what it takes to compile an update without data."""

        def array(shape: tuple[int, ...], spec: P) -> Any:
            sharding = None if self.mesh is None else self._sharding(spec)
            return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

        def leaf(one: Any, axes: P) -> Any:
            sharding = None if self.mesh is None else self._sharding(self._spec(one, axes))
            return jax.ShapeDtypeStruct(self._shape(one, axes), one.dtype, sharding=sharding)

        rows = self.dense(
            array((self.height(m), self.width(d)), P("data", "features")),
            array((self.height(m),), P("data")),
        )
        state = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, d), dtype))
        return rows, jax.tree.map(leaf, state, state.axes())

    def gathered(self, values: jax.Array, *shape: int) -> jax.Array:
        """Return an array on one device, without what it was filled up with beyond `shape`."""
        if self.mesh is None:
            return values
        cut = tuple(slice(size) for size in shape)
        return jax.device_put(whole(values)[cut])

    def all_columns(self, values: np.ndarray, d: int) -> np.ndarray:
        """Return one number for each of d features, of which each process knows those of its own columns."""
        first, last = self._own_parts("features")
        if last - first == self.layout.features:
            return values
        wide = (last - first) * (self.width(d) // self.layout.features)
        return whole(self._put_own(filled(values, (wide,)), "features"))[:d]

    def kept(self, state: Any) -> Any:
        """Return a state, within jit, that stays where `state` puts it.

        Each new place would be a new compilation.
        """
        if self.mesh is None:
            return state

        def keep(leaf: jax.Array, axes: P) -> jax.Array:
            return jax.lax.with_sharding_constraint(leaf, self._sharding(self._spec(leaf, axes)))

        return jax.tree.map(keep, state, state.axes())

    def kept_features(self, values: jax.Array) -> jax.Array:
        """Return one number for each feature (d,), within jit, that stay where `per_feature` puts them."""
        if self.mesh is None:
            return values
        return jax.lax.with_sharding_constraint(values, self._sharding(P("features")))

    def _leaf(self, leaf: jax.Array, axes: P) -> jax.Array:
        """Place one array of a state."""
        return self._put(filled(leaf, self._shape(leaf, axes)), self._spec(leaf, axes))

    def _shape(self, leaf: jax.Array, axes: P) -> tuple[int, ...]:
        """Return the shape of an array of a state with its features filled up."""
        return leaf.shape if axes == WHOLE else (*leaf.shape[:-1], self.width(leaf.shape[-1]))

    def _spec(self, leaf: jax.Array, axes: P) -> P:
        """Return how an array of a state is split."""
        return self._players_spec(leaf.shape[0]) if axes == PLAYERS else axes

    def _players_spec(self, count: int) -> P:
        """Return how players are split: as a whole where their number does not divide."""
        return P("players" if count % self.layout.players == 0 else None, "features")

    def _sharding(self, spec: P) -> NamedSharding:
        assert self.mesh is not None
        return NamedSharding(self.mesh, spec)

    def _put(self, values: Any, spec: P) -> jax.Array:
        if self.mesh is None:
            return jax.device_put(values)
        if self.processes == 1:
            return jax.device_put(values, self._sharding(spec))
        # Not device_put, by which processes would compare what they have: a thread that reads ahead must not
        # talk to others while the main one does.
        held = np.asarray(values)
        return jax.make_array_from_callback(
            held.shape, self._sharding(spec), lambda index: held[index]
        )


ONE_DEVICE = Placement()
"""Everything on the one device that JAX takes by itself."""


def placement_of(mesh: Any, m: int = 1, players: int = 1, d: int = 1) -> Placement:
    """Return the placement that is meant by None, by "auto" or by anything that `mesh_of` takes.

    `m`, `players` and `d` are the rows of a batch, the players and the features, by which "auto" decides.
    """
    if jax.process_count() > 1:
        return _between_processes(mesh, m, players, d)
    if mesh is None:
        return ONE_DEVICE
    if isinstance(mesh, str) and mesh == "auto":
        layout = best_layout(jax.device_count(), m, players, d)
        return ONE_DEVICE if layout.devices == 1 else Placement(mesh_of(layout))
    return Placement(mesh_of(mesh))


def _between_processes(mesh: Any, m: int, players: int, d: int) -> Placement:
    """Return a placement on all devices of all processes, each with rows and columns in one piece."""
    devices = jax.device_count()
    if mesh is None:
        return Placement(mesh_of(Layout(data=devices)))
    if isinstance(mesh, str) and mesh == "auto":
        best = best_layout(devices, m, players, d)
        # Where the data is too small for all there is nobody to leave out: rows are shared, some empty.
        found = mesh_of(best if best.devices == devices else Layout(data=devices))
        return Placement(found if in_pieces(processes_of(found)) else mesh_of(Layout(data=devices)))
    asked = mesh_of(mesh)
    if asked.size != devices or not in_pieces(processes_of(asked)):
        raise ValueError(
            f"mesh={Placement(asked).layout} between {jax.process_count()} processes with {devices} devices: "
            "take all devices, and sizes by which each process has rows and columns in one piece, for "
            f'example "data={devices}" or "features={devices}".'
        )
    return Placement(asked)
