"""Rows of a batch on a mesh: `DenseRows` with a sharding constraint on each product.

Without constraints, XLA splits the players after each sum over devices and gathers them again, which moves several
times the width of the data. The constraints keep scores with their rows, and replicate players, directions and
small products on the devices that share rows. An update then exchanges one sum of directions and small products.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.game.rows import DenseRows


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ShardedRows(DenseRows):
    """Dense rows on a mesh: rows are split over `data`, features over `features`.

    Parameters
    ----------
    mesh : Mesh
        With the axes of `eigengame.sharding.layout`.
    """

    mesh: Mesh | None = field(default=None, metadata={"static": True})

    @property
    def parts(self) -> int:
        """Number of devices that share the rows."""
        assert self.mesh is not None
        return int(self.mesh.shape["data"])

    @property
    def one_device(self) -> bool:
        """False: kernels are for one device, so rows on a mesh use plain products."""
        return False

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$ of shape (m, k), split like the rows."""
        players = self._constrain(players, self._players, "features")
        return self._constrain(super().scores(players), "data", self._players)

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores, replicated over the rows' devices."""
        return self._constrain(super().gram(left, right), self._players, self._players)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$ of shape (k, d), summed over all rows and replicated over the rows' devices."""
        return self._constrain(super().directions(scores), self._players, "features")

    def small(self, products: jax.Array) -> jax.Array:
        """Return small products, replicated on every device."""
        return self._constrain(products, *(None for _ in products.shape))

    def dense(self) -> jax.Array:
        """Return $Z$ split by columns, for products between rows."""
        return self.columns(self.values)

    def columns(self, values: jax.Array) -> jax.Array:
        """Return an array (k, d) split by columns over all devices that share rows or features."""
        return self._constrain(values, None, ("features", "data"))

    @property
    def _players(self) -> object:
        """Constraint on an axis of players: none if devices share players, else replicated."""
        assert self.mesh is not None
        return P.UNCONSTRAINED if self.mesh.shape["players"] > 1 else None

    def _constrain(self, values: jax.Array, *axes: object) -> jax.Array:
        """Return an array with a sharding constraint."""
        assert self.mesh is not None
        return jax.lax.with_sharding_constraint(values, NamedSharding(self.mesh, P(*axes)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ShardedOwnRows(ShardedRows):
    """One batch for each player, (k, m, d), on a mesh: batches are split over `players`, as their players are.

    An algorithm applies `jax.vmap` to the batches, so that the products are those of one batch (m, d), and XLA
    splits the mapped axis like that of `values`. Each batch is multiplied with all other players: these are
    gathered, and the batches remain on their devices.
    """

    @property
    def _players(self) -> object:
        """Constraint on an axis of players: every device has all parents of its players."""
        return None
