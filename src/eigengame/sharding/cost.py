r"""What devices tell each other in an update: the written cost model behind `mesh="auto"`.

With batches of m rows, K players and d features, told in numbers that each device is left with:

* devices that share **features** add up scores, $mK$, and grams, $K^2$: nothing of width d travels. A gradient
  step does so once; the remembered game twice, for the players and for their fresh directions.
* devices that share **rows** add up directions, $Kd$, and grams; in the remembered game also the batch's mean, d.
  Every device then turns all players: work that is done as often as there are devices, and spares $Kd$ numbers for
  each time it would be shared out.
* devices that share **players** gather them, $Kd$, the paper's broadcast; where an algorithm needs no more than
  the others' scores, as `alpha`, XLA gathers those instead, $mK$.

In Gram space the whole batch meets itself: devices that share rows turn them into columns first, each keeping
$md$ divided by all devices, and products between rows, players and mean, $m^2 + mK + K^2$, are added up; players
are gathered once, $Kd$.

Shares divide each other's: with features in f parts, directions are $Kd/f$. What compiled programs exchange is
in `collectives`; a test holds one against the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from eigengame.game.gram_space import cheaper_in_gram_space
from eigengame.sharding.layout import Layout

NARROWEST = 64
"""Features that a device should at least have: below that, products wait more than they work."""


Update = Literal["score", "gram", "gradient"]
"""What an update is: of the remembered game in score space or in Gram space, or a step such as `alpha`'s."""


EXCHANGES: Mapping[Update, Mapping[str, int]] = MappingProxyType(
    {
        "score": {"features": 3, "data": 5},
        "gram": {"features": 2, "data": 6},
        "gradient": {"features": 4, "data": 2},
    }
)
"""How often devices wait for each other in an update, where they share one thing: on a slow network it is this that
counts, and not the bytes of small products."""


def bytes_exchanged(
    layout: Layout, m: int, players: int, d: int, itemsize: int = 4, *, update: Update = "score"
) -> int:
    """Return the bytes that the exchanges of one update leave on each device.

    Parameters
    ----------
    layout : Layout
    m, players, d : int
        Rows of a batch, players K, features.
    itemsize : int
        Bytes of a number.
    update : {"score", "gram", "gradient"}
        Those of the remembered game are centred.
    """
    shares = {"score": _score_space, "gram": _gram_space, "gradient": _gradient}[update]
    width = d / layout.features
    told = shares(m / layout.data, players, width, m)
    pairs = zip((layout.features, layout.data, layout.players), told, strict=True)
    total = sum(numbers for devices, numbers in pairs if devices > 1)
    if update == "gram" and max(layout.data, layout.features) > 1:
        # Once, whoever has the columns: products of rows, players and mean.
        total += m**2 + m * (players + 1) + (players + 1) ** 2
    return int(total * itemsize)


def _score_space(rows: float, k: int, width: float, _: int) -> tuple[float, float, float]:
    """Return the numbers by which features, rows and players are shared."""
    return 2 * rows * k + 2 * k**2 + 3 * k, (k + 1) * width + 3 * k**2 + 3 * k, 4 * k * width


def _gram_space(rows: float, k: int, width: float, m: int) -> tuple[float, float, float]:
    """Return the same of the remembered game in Gram space, less the products between all rows."""
    return 0.0, rows * width + (k + 1) * width + m, 4 * k * width


def _gradient(rows: float, k: int, width: float, _: int) -> tuple[float, float, float]:
    """Return the same of a gradient step."""
    return rows * k + 5 * k, k * width + k**2, 2 * rows * k


def best_layout(devices: int, m: int, players: int, d: int, itemsize: int = 4) -> Layout:
    """Return the layout of all devices whose updates exchange the least.

    Players are left together: their strengths and rotations are a joint matter of all. Every device should have
    something to do, rows where it shares rows and features where it shares features: where no layout of all
    devices is such, fewer are taken.
    """
    for count in range(devices, 0, -1):
        fit = [
            layout
            for layout in _layouts(count)
            if layout.data <= max(m // 8, 1) and layout.features <= max(d // NARROWEST, 1)
        ]
        if fit:
            space: Update = "gram" if cheaper_in_gram_space(m, players, d) else "score"
            return min(
                fit,
                key=lambda one: (bytes_exchanged(one, m, players, d, itemsize, update=space), one),
            )
    return Layout()


def _layouts(devices: int) -> Iterator[Layout]:
    """Give the ways to share rows and features between some devices."""
    for features in range(1, devices + 1):
        if devices % features == 0:
            yield Layout(data=devices // features, features=features)
