"""Clusters: components that rounding keeps from being separated, and the angle of their span."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eigengame.solver.certificates.bounds import Block, angle_bounds, span_bound

INSEPARABLE = math.pi / 8
"""Angle above which neighbours count as inseparable if no tolerance is given."""


@dataclass(frozen=True)
class Cluster:
    """Components that cannot be separated, and how well their span is determined.

    Attributes
    ----------
    members : tuple of int
        Ranks of the group, from 0. They may exceed the number of components: then only the span of the whole group
        is determined, and the components are some directions of it.
    angle : float
        Bound on the largest angle between the span of these players and the eigenspace of the same ranks, radians.
    gap : float
        Distance of the group's variances to the nearest other one, in the unit of variances.
    spread : float
        Relative difference between the largest and the smallest variance of the group.
    """

    members: tuple[int, ...]
    angle: float
    gap: float
    spread: float

    def describe(self, k: int) -> str:
        """Return a sentence about the group, of which the first k ranks are components."""
        shown = [i + 1 for i in self.members if i < k]
        beyond = len(self.members) - len(shown)
        names = (
            f"component {shown[0]}" if len(shown) == 1 else f"components {shown[0]} to {shown[-1]}"
        )
        if len(shown) == 2:
            names = f"components {shown[0]} and {shown[1]}"
        others = f" from {beyond} further direction{'s'[: beyond - 1]}" if beyond else ""
        whose = "the span of all of them" if beyond else "their span"
        whole = f": {self.members[-1] + 1} components would contain it" if beyond else ""
        return (
            f"{names} cannot be separated{others} (variances agree to {self.spread:.1g}); "
            f"{whose} is within {self.angle:.2g} rad{whole}"
        )


def find_clusters(
    block: Block, best: Block, angle: np.ndarray, limit: float, scale: float
) -> Iterator[Cluster]:
    """Iterate over groups that rounding keeps from being separated within `limit`, but whose span is bounded.

    Parameters
    ----------
    block : Block
        As measured.
    best : Block
        With rounding errors only.
    angle : array of shape (k,)
        Bounds of the components.
    limit : float
    scale : float
    """
    values, lower, upper = block.values, block.lower, block.upper
    groups: list[tuple[int, int]] = []
    too_wide = angle > limit
    if not too_wide.any():
        return
    inseparable = too_wide & (angle_bounds(best, len(angle)) > limit)
    for i in map(int, np.flatnonzero(inseparable)):
        if groups and i <= groups[-1][1]:
            continue
        if (group := _grow(best, i, limit)) is None:
            continue
        while groups and groups[-1][1] >= group[0]:
            group = (min(groups.pop()[0], group[0]), group[1])
        groups.append(group)
    for first, last in groups:
        bound = span_bound(block, first, last)
        if bound >= angle[first : last + 1].max(initial=0):
            continue
        above = math.inf if first == 0 else lower[first - 1] - upper[first]
        below = lower[last] - (upper[last + 1] if last + 1 < len(values) else block.level)
        yield Cluster(
            members=tuple(range(first, last + 1)),
            angle=bound,
            gap=min(above, below) / scale,
            spread=float((values[first] - values[last]) / max(abs(values[first]), 1e-300)),
        )


def _grow(best: Block, i: int, limit: float) -> tuple[int, int] | None:
    """Return the smallest group around i whose span is within the limit up to rounding; None if there is none."""
    first = last = i
    values, count = best.values, best.values.size
    while span_bound(best, first, last) > limit:
        up = values[first - 1] - values[first] if first > 0 else math.inf
        down = values[last] - values[last + 1] if last + 1 < count else math.inf
        if math.isinf(up) and math.isinf(down):
            return None
        first, last = (first - 1, last) if up <= down else (first, last + 1)
    return first, last
