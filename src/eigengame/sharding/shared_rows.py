"""Rows of a batch that devices share: the same products, with a word on where each of them lies.

Left to itself XLA shares out whatever follows from rows in parts: after a sum over devices it lets each of them
turn some of the players and gathers the parts again, several times the width of the data. So scores are told to
stay with their rows, and players, directions and small products to be whole wherever rows are shared: then what
travels is one sum of directions, and sums of small products.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame.game.rows import DenseRows


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SharedRows(DenseRows):
    """Dense rows on a mesh: split over `data`, and their features over `features`.

    Parameters
    ----------
    mesh : Mesh
        With the axes of `eigengame.sharding.layout`.
    """

    mesh: Mesh | None = field(default=None, metadata={"static": True})

    @property
    def parts(self) -> int:
        """How many devices share the rows."""
        assert self.mesh is not None
        return int(self.mesh.shape["data"])

    @property
    def one_device(self) -> bool:
        """Kernels are for one device: rows on a mesh use plain products."""
        return False

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$, each row's where the row is."""
        players = self._kept(players, self._players, "features")
        return self._kept(super().scores(players), "data", self._players)

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores, on every device."""
        return self._kept(super().gram(left, right), self._players, self._players)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$, of all rows, on every device that shares them."""
        return self._kept(super().directions(scores), self._players, "features")

    def small(self, products: jax.Array) -> jax.Array:
        """Return small products on every device."""
        return self._kept(products, *(None for _ in products.shape))

    def dense(self) -> jax.Array:
        """Return $Z$ itself, in columns: what is asked of whole rows is asked of products between them."""
        return self.columns(self.values)

    def columns(self, values: jax.Array) -> jax.Array:
        """Return an array (k, d) in columns, shared by all devices that share rows or features."""
        return self._kept(values, None, ("features", "data"))

    @property
    def _players(self) -> object:
        """How players are split: as XLA likes where devices share them, else not at all."""
        assert self.mesh is not None
        return P.UNCONSTRAINED if self.mesh.shape["players"] > 1 else None

    def _kept(self, values: jax.Array, *axes: object) -> jax.Array:
        """Return an array that lies as told."""
        assert self.mesh is not None
        return jax.lax.with_sharding_constraint(values, NamedSharding(self.mesh, P(*axes)))
