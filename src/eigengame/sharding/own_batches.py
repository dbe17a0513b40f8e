"""Placement of a game in which each player has its own batch."""

from __future__ import annotations

from typing import Any

import jax

from eigengame.sharding.layout import Layout, make_mesh
from eigengame.sharding.placement import ONE_DEVICE, Placement, choose_placement


def own_batches_placement(mesh: Any, shape: tuple[int, ...]) -> Placement:
    """Return the placement for one batch for each player, of shape (k, m, d), on one process.

    For "auto" as many devices share the players as divide their number.
    """
    k, m, d = shape
    given = f"rows has shape {shape}, one batch for each player,"
    if jax.process_count() > 1:
        raise ValueError(
            f"{given} on {jax.process_count()} processes: use one process, or rows of shape (m, d)."
        )
    if isinstance(mesh, str) and mesh == "auto":
        mesh = Layout(players=max(n for n in range(1, jax.device_count() + 1) if k % n == 0))
        return ONE_DEVICE if mesh.devices == 1 else Placement(make_mesh(mesh))
    place = choose_placement(mesh, m, k, d)
    parts = place.layout.players
    if k % parts:
        raise ValueError(
            f"{given} on mesh={place.layout}: give a multiple of {parts} batches and players, or a size of the "
            f"axis players that divides {k}."
        )
    return place
