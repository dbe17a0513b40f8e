r"""Cost model of the communication in an update; `mesh="auto"` minimises it.

For batches of m rows, K players and d features, the numbers received by each device are:

* Devices that share **features** sum scores, $mK$, and Gram matrices, $K^2$. Nothing of width d is exchanged. A
  gradient step does this once, the remembered game twice: for the players and for their new directions.
* Devices that share **rows** sum directions, $Kd$, and Gram matrices; in the remembered game also the mean of the
  batch, d. Every device then rotates all players. Splitting that work would need further exchanges of $Kd$.
* Devices that share **players** gather them, $Kd$: the broadcast of the paper. If an algorithm needs only the
  scores of other players, as `alpha` does, XLA gathers the scores instead, $mK$. If each player has its own batch,
  the batch is on the player's device, and players are gathered, $Kd$.

In Gram space, devices that share rows first redistribute them by columns: each receives $md$ divided by the number
of devices. Products between rows, players and mean, $m^2 + mK + K^2$, are summed. Players are gathered once, $Kd$.

Layouts combine: if features are in f parts, directions have $Kd/f$ numbers. A test compares the model with the
collectives of compiled programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from eigengame.game.gram_space import cheaper_in_gram_space
from eigengame.sharding.layout import Layout

MIN_FEATURES = 64
"""Smallest number of features per device; with fewer, latency dominates the products."""


Update = Literal["score", "gram", "gradient"]
"""Kind of update: the remembered game in score space or in Gram space, or a gradient step as in `alpha`."""


EXCHANGES: Mapping[Update, Mapping[str, int]] = MappingProxyType(
    {
        "score": {"features": 3, "data": 5},
        "gram": {"features": 2, "data": 6},
        "gradient": {"features": 4, "data": 2},
    }
)
"""Number of collectives in an update, by the axis that devices share. On a slow network the latency of these counts
more than the bytes of small products."""


def bytes_exchanged(
    layout: Layout, m: int, players: int, d: int, *, update: Update = "score"
) -> int:
    """Return the bytes that each device receives in one update, in float32.

    Parameters
    ----------
    layout : Layout
    m, players, d : int
        Rows of a batch, players K, features.
    update : {"score", "gram", "gradient"}
        Kind of update. Rows of the remembered game ("score", "gram") are centred.
    """
    by_axis = {"score": _score_space, "gram": _gram_space, "gradient": _gradient}[update]
    numbers = by_axis(m / layout.data, players, d / layout.features, m)
    pairs = zip((layout.features, layout.data, layout.players), numbers, strict=True)
    total = sum(count for devices, count in pairs if devices > 1)
    if update == "gram" and max(layout.data, layout.features) > 1:
        # Products of rows, players and mean are summed once, whichever devices hold the columns.
        total += m**2 + m * (players + 1) + (players + 1) ** 2
    return 4 * int(total)


def _score_space(rows: float, k: int, width: float, _: int) -> tuple[float, float, float]:
    """Return the numbers received when devices share features, rows and players: the remembered game."""
    return 2 * rows * k + 2 * k**2 + 3 * k, (k + 1) * width + 3 * k**2 + 3 * k, 4 * k * width


def _gram_space(rows: float, k: int, width: float, m: int) -> tuple[float, float, float]:
    """Like `_score_space`, for Gram space and without the products between all rows."""
    return 0.0, rows * width + (k + 1) * width + m, 4 * k * width


def _gradient(rows: float, k: int, width: float, _: int) -> tuple[float, float, float]:
    """Like `_score_space`, for a gradient step."""
    return rows * k + 5 * k, k * width + k**2, 2 * rows * k


def best_layout(devices: int, m: int, players: int, d: int) -> Layout:
    """Return the layout that exchanges the fewest bytes in an update.

    Players are not split, because strengths and rotations depend on all of them. The layout uses all devices,
    unless some would have too few rows or features; then it uses as many as possible.
    """
    update: Update = "gram" if cheaper_in_gram_space(m, players, d) else "score"
    for count in range(devices, 0, -1):
        layouts = [
            layout
            for layout in _layouts(count)
            if layout.data <= max(m // 8, 1) and layout.features <= max(d // MIN_FEATURES, 1)
        ]
        if layouts:
            return min(
                layouts, key=lambda one: (bytes_exchanged(one, m, players, d, update=update), one)
            )
    return Layout()


def _layouts(devices: int) -> Iterator[Layout]:
    """Yield the layouts in which this many devices share rows and features."""
    for features in range(1, devices + 1):
        if devices % features == 0:
            yield Layout(data=devices // features, features=features)
