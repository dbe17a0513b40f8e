r"""What devices tell each other in an update: the written cost model behind `mesh="auto"`.

With batches of m rows, K players and d features, told in numbers that each device is left with:

* devices that share **features** add up scores, $mK$, and grams, $K^2$: nothing of width d travels. A gradient
  step does so once; the remembered game twice, for the players and for their fresh directions.
* devices that share **rows** add up directions, $Kd$. In the remembered game all devices hold all players, and
  XLA lets each turn a part of them and gathers the parts again: eight times $Kd$, with centring.
* devices that share **players** gather them, $Kd$, the paper's broadcast; where an algorithm needs no more than
  the others' scores, as `alpha`, XLA gathers those instead, $mK$.

Shares divide each other's: with features in f parts, directions are $Kd/f$. What compiled programs exchange is
in `collectives`; a test holds one against the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from eigengame.parallel.layout import Layout

NARROWEST = 64
"""Features that a device should at least have: below that, products wait more than they work."""


def bytes_exchanged(
    layout: Layout, m: int, players: int, d: int, itemsize: int = 4, *, remembered: bool = True
) -> int:
    """Return the bytes that the exchanges of one update leave on each device.

    Parameters
    ----------
    layout : Layout
    m, players, d : int
        Rows of a batch, players K, features.
    itemsize : int
        Bytes of a number.
    remembered : bool
        For the remembered game in score space, or for one gradient step such as `alpha`'s.
    """
    rows, k, width = m / layout.data, players, d / layout.features
    total = 0.0
    if layout.features > 1:
        total += 2 * rows * k + 2 * k**2 + k if remembered else rows * k + 3 * k
    if layout.data > 1:
        total += 8 * k * width if remembered else k * width + k**2
    if layout.players > 1:
        total += 4 * k * width if remembered else 2 * rows * k
    return int(total * itemsize)


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
            return min(fit, key=lambda one: (bytes_exchanged(one, m, players, d, itemsize), one))
    return Layout()


def _layouts(devices: int) -> Iterator[Layout]:
    """Give the ways to share rows and features between some devices."""
    for features in range(1, devices + 1):
        if devices % features == 0:
            yield Layout(data=devices // features, features=features)
