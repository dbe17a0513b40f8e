"""Names of the axes of arrays in an algorithm's state, for sharding.

The method `axes` of each state class returns a tree like the state with one of these values for each array.
Only the last axis can be features.
"""

from __future__ import annotations

from typing import Any

from jax.sharding import PartitionSpec

# Typed as Any: they take the place of arrays in state classes.
PLAYERS: Any = PartitionSpec("players", "features")
"""An array of shape (k, d), one row for each player."""

FEATURES: Any = PartitionSpec("features")
"""An array of shape (d,), one value for each feature."""

WHOLE: Any = PartitionSpec()
"""An array without features: small, and copied to every device."""
