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

from eigengame.game.rows import DenseRows, Rows, SymmetricRows
from eigengame.parallel.cost import best_layout
from eigengame.parallel.layout import Layout, mesh_of
from eigengame.parallel.shared_rows import SharedRows


@dataclass(frozen=True)
class Placement:
    """Places arrays on a mesh, or on the one device that JAX takes by itself.

    Parameters
    ----------
    mesh : Mesh or None
        With the axes of `eigengame.parallel.layout`.
    """

    mesh: Mesh | None = None

    @property
    def layout(self) -> Layout:
        """How many devices share what."""
        return Layout() if self.mesh is None else Layout(*self.mesh.devices.shape)

    def width(self, d: int) -> int:
        """Return d filled up to a multiple of the devices that share features."""
        return _up(d, self.layout.features)

    def height(self, m: int) -> int:
        """Return m rows filled up to a multiple of the devices that share them."""
        return _up(m, self.layout.data)

    @property
    def processes(self) -> int:
        """How many processes share the mesh; each brings its own rows of a batch."""
        return (
            1 if self.mesh is None else len({one.process_index for one in self.mesh.devices.flat})
        )

    def own_rows(self, m: int) -> tuple[int, int]:
        """Return where in a batch of m rows this process's own begin, and how many they are, filled up."""
        each = self.height(m) // self.processes
        return (jax.process_index() * each if self.processes > 1 else 0), each

    def batch(self, values: Any) -> jax.Array:
        """Place rows (m, d), this process's own, filled up in both ways."""
        m, d = values.shape
        return self._put_rows(_filled(values, (self._own(m), self.width(d))), P("data", "features"))

    def per_row(self, values: Any) -> jax.Array:
        """Place one number for each row of a batch (m,), this process's own; rows filled up have 0."""
        return self._put_rows(_filled(values, (self._own(len(values)),)), P("data"))

    def _own(self, m: int) -> int:
        """Return how many rows this process brings where it has m of them."""
        return _up(m, max(self.layout.data // self.processes, 1))

    def _put_rows(self, values: Any, spec: P) -> jax.Array:
        """Place rows that this process has read."""
        if self.processes == 1:
            return self._put(values, spec)
        return jax.make_array_from_process_local_data(self._sharding(spec), np.asarray(values))

    def players(self, values: Any) -> jax.Array:
        """Place players (k, d): features filled up, players split where their number divides."""
        k, d = values.shape
        return self._put(_filled(values, (k, self.width(d))), self._players_spec(k))

    def per_feature(self, values: Any) -> jax.Array:
        """Place one number for each feature (d,), filled up with zeros."""
        return self._put(_filled(values, (self.width(len(values)),)), P("features"))

    def square(self, matrix: Any) -> jax.Array:
        """Place a matrix of features by features (d, d), filled up in both ways."""
        wide = self.width(len(matrix))
        return self._put(_filled(matrix, (wide, wide)), P(None, "features"))

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
            return SharedRows(
                self.batch(rows.values),
                None if roots is None else self.per_row(roots),
                None if rows.mean is None else self.per_feature(rows.mean),
                self.mesh,
            )
        if isinstance(rows, SymmetricRows):
            return SymmetricRows(self.square(rows.matrix))
        return jax.tree.map(self.everywhere, rows)

    def state(self, algorithm: Any, state: Any, k: int) -> Any:
        """Place the state of an algorithm that was made for k players."""
        if self.mesh is None:
            return state
        return jax.tree.map(self._leaf, state, features_of(algorithm, state, k))

    def described(
        self, algorithm: Any, m: int, k: int, d: int, dtype: Any = jnp.float32
    ) -> tuple[DenseRows, Any]:
        """Return rows and state of a game in shape only: what it takes to compile an update without data."""

        def array(shape: tuple[int, ...], spec: P) -> Any:
            sharding = None if self.mesh is None else self._sharding(spec)
            return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

        def leaf(one: Any, wide: bool) -> Any:
            shape = (*one.shape[:-1], self.width(one.shape[-1])) if wide else one.shape
            sharding = None if self.mesh is None else self._sharding(self._spec(one, wide))
            return jax.ShapeDtypeStruct(shape, one.dtype, sharding=sharding)

        rows = self.dense(
            array((self.height(m), self.width(d)), P("data", "features")),
            array((self.height(m),), P("data")),
        )
        state = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, d), dtype))
        return rows, jax.tree.map(leaf, state, features_of(algorithm, state, k))

    def gathered(self, values: jax.Array, *shape: int) -> jax.Array:
        """Return an array on one device, without what it was filled up with beyond `shape`."""
        if self.mesh is None:
            return values
        cut = tuple(slice(size) for size in shape)
        return jax.device_put(np.asarray(values)[cut])

    def kept(self, algorithm: Any, state: Any, k: int) -> Any:
        """Return a state, within jit, that stays where `state` puts it.

        Each new place would be a new compilation.
        """
        if self.mesh is None:
            return state

        def keep(leaf: jax.Array, wide: bool) -> jax.Array:
            return jax.lax.with_sharding_constraint(leaf, self._sharding(self._spec(leaf, wide)))

        return jax.tree.map(keep, state, features_of(algorithm, state, k))

    def kept_features(self, values: jax.Array) -> jax.Array:
        """Return one number for each feature (d,), within jit, that stay where `per_feature` puts them."""
        if self.mesh is None:
            return values
        return jax.lax.with_sharding_constraint(values, self._sharding(P("features")))

    def _leaf(self, leaf: jax.Array, wide: bool) -> jax.Array:
        """Place one array of a state; `wide` where its last axis is features."""
        shape = (*leaf.shape[:-1], self.width(leaf.shape[-1])) if wide else leaf.shape
        return self._put(_filled(leaf, shape), self._spec(leaf, wide))

    def _spec(self, leaf: jax.Array, wide: bool) -> P:
        """Return how an array of a state is split."""
        if not wide:
            return P()
        return P("features") if leaf.ndim == 1 else self._players_spec(leaf.shape[0])

    def _players_spec(self, count: int) -> P:
        """Return how players are split: as a whole where their number does not divide."""
        return P("players" if count % self.layout.players == 0 else None, "features")

    def _sharding(self, spec: P) -> NamedSharding:
        assert self.mesh is not None
        return NamedSharding(self.mesh, spec)

    def _put(self, values: Any, spec: P) -> jax.Array:
        if self.mesh is None:
            return jax.device_put(values)
        return jax.device_put(values, self._sharding(spec))


ONE_DEVICE = Placement()
"""Everything on the one device that JAX takes by itself."""


def placement_of(mesh: Any, m: int = 1, players: int = 1, d: int = 1) -> Placement:
    """Return the placement that is meant by None, by "auto" or by anything that `mesh_of` takes.

    `m`, `players` and `d` are the rows of a batch, the players and the features, by which "auto" decides.
    """
    if jax.process_count() > 1:
        return _between_processes(mesh)
    if mesh is None:
        return ONE_DEVICE
    if isinstance(mesh, str) and mesh == "auto":
        layout = best_layout(jax.device_count(), m, players, d)
        return ONE_DEVICE if layout.devices == 1 else Placement(mesh_of(layout))
    return Placement(mesh_of(mesh))


def _between_processes(mesh: Any) -> Placement:
    """Return a placement on all devices of all processes: each process has rows of its own."""
    count = jax.process_count()
    automatic = mesh is None or (isinstance(mesh, str) and mesh == "auto")
    placed = Placement(mesh_of({"data": jax.device_count()} if automatic else mesh))
    if placed.layout.data % count or placed.layout.devices != jax.device_count():
        raise ValueError(
            f"mesh={placed.layout} between {count} processes with {jax.device_count()} devices: take all "
            f"devices, and share rows between processes: give data as a multiple of {count}."
        )
    return placed


MANY = 1_000_003
"""A width that nothing else has."""


def features_of(algorithm: Any, state: Any, k: int) -> Any:
    """Return a tree like the state that says which arrays have features as their last axis.

    Found by making a state for very many features, in shape only, and seeing where they are.
    """
    made = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, MANY), jnp.float32))
    wide = [leaf.shape[-1:] == (MANY,) for leaf in jax.tree.leaves(made)]
    return jax.tree.unflatten(jax.tree.structure(state), wide)


def _up(size: int, parts: int) -> int:
    """Return the next multiple."""
    return -(-size // parts) * parts


def _filled(values: Any, shape: tuple[int, ...]) -> Any:
    """Return an array followed by zeros along every axis up to this shape."""
    missing = [(0, want - have) for have, want in zip(values.shape, shape, strict=True)]
    if not any(after for _, after in missing):
        return values
    return np.pad(np.asarray(values), missing)
