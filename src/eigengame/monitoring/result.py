"""The result of monitoring: statistics, alarms and contributions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eigengame import _check
from eigengame.monitoring.limits import ControlLimits
from eigengame.solver.certificates.certificate_text import ranks

Statistic = Literal["t2", "spe"]


@dataclass(frozen=True, eq=False)
class Monitoring:
    r"""Statistics of n rows with d features under a model with k components. Arrays are read-only.

    Attributes
    ----------
    t2 : array of shape (n,)
        Hotelling's $T^2 = \sum_i t_i^2/\lambda_i$: distance from the mean within the components.
    spe : array of shape (n,)
        Squared prediction error (Q): squared distance from the components. Rows that the preparation skips have
        NaN in both, and are never alarms.
    t2_contributions, spe_contributions : arrays of shape (n, d)
        Contribution of each feature, at least 0. Their sum over the features is the statistic.
    limits : ControlLimits or None
    angles : array of shape (k,) or None
        Angle of each component to that of the reference, in radians.
    subspace_angle : float or None
        Largest principal angle between the spans of both sets of components. It is small if components of nearly
        equal variance only exchanged their places.
    unused : tuple of int
        Components without variance, up to the rounding of the fit, numbered from 0. They are not part of T2; what
        rows have along them is part of SPE.
    uncertified : tuple of int
        Components of T2 that are not certified within the tolerance of the model: their part of T2 is uncertain.
    tolerance : float
        This tolerance, in radians.
    feature_names : sequence of str or None
    """

    t2: np.ndarray
    spe: np.ndarray
    t2_contributions: np.ndarray
    spe_contributions: np.ndarray
    limits: ControlLimits | None
    angles: np.ndarray | None
    subspace_angle: float | None
    unused: tuple[int, ...]
    uncertified: tuple[int, ...]
    tolerance: float
    feature_names: Sequence[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for array in (self.t2, self.spe, self.t2_contributions, self.spe_contributions):
            array.flags.writeable = False
        if self.angles is not None:
            self.angles.flags.writeable = False

    def __len__(self) -> int:
        return len(self.t2)

    @property
    def t2_alarms(self) -> np.ndarray:
        """Whether T2 of each row is above its limit, shape (n,)."""
        return self.t2 > self._limits().t2

    @property
    def spe_alarms(self) -> np.ndarray:
        """Whether SPE of each row is above its limit, shape (n,)."""
        return self.spe > self._limits().spe

    @property
    def alarms(self) -> np.ndarray:
        """Whether one of the statistics of each row is above its limit, shape (n,)."""
        return self.t2_alarms | self.spe_alarms

    def top_features(
        self, row: int, statistic: Statistic | None = None, count: int = 3
    ) -> list[tuple[str, float]]:
        """Return the features that contribute most to a statistic of a row, with their shares of it.

        Parameters
        ----------
        row : int
        statistic : {"t2", "spe"}, optional
            Default: the statistic that is larger relative to its limit; SPE without limits.
        count : int
            Largest number of features.
        """
        statistic = self._larger(row) if statistic is None else statistic
        _check.one_of("statistic", statistic, ("t2", "spe"))
        contributions = getattr(self, f"{statistic}_contributions")[row]
        total = float(contributions.sum())
        if not total > 0:  # also a row that was skipped
            return []
        order = np.argsort(-contributions, kind="stable")[:count]
        return [(self._name(i), float(contributions[i] / total)) for i in order.tolist()]

    def notes(self) -> list[str]:
        """Return sentences about what the statistics do not cover or do not know."""
        found = []
        skipped = int(np.isnan(self.t2).sum())
        if skipped:
            found.append(
                f"{skipped:,} rows were skipped by the preparation and have no statistics."
            )
        if self.unused:
            verb = "has" if len(self.unused) == 1 else "have"
            found.append(
                f"{ranks(np.array(self.unused))} {verb} no variance: not part of T2, but of SPE."
            )
        if self.uncertified:
            verb = "is" if len(self.uncertified) == 1 else "are"
            found.append(
                f"{ranks(np.array(self.uncertified))} {verb} not certified within {self.tolerance:g} rad: this "
                "part of T2, and what SPE does not contain, is uncertain. certify(data) measures it."
            )
        return found

    def __str__(self) -> str:
        lines = [f"{len(self):,} rows"]
        if self.limits is not None:
            lines[0] += (
                f", {int(self.alarms.sum()):,} alarms: T2 {int(self.t2_alarms.sum()):,}, "
                f"SPE {int(self.spe_alarms.sum()):,}"
            )
            lines.append(f"limits: {self.limits}")
        if self.angles is not None:
            lines.append(
                f"angles since the reference: {', '.join(f'{one:.3g}' for one in self.angles[:8])}"
                f"{', ...' if len(self.angles) > 8 else ''} rad; of the span {self.subspace_angle:.3g} rad"
            )
        return "\n".join(lines + self.notes())

    def _limits(self) -> ControlLimits:
        if self.limits is None:
            raise ValueError("there are no alarms without limits: call monitor with limits.")
        return self.limits

    def _larger(self, row: int) -> Statistic:
        """Return the statistic that is larger relative to its limit."""
        limits = self.limits
        if limits is None:
            return "spe"
        return "t2" if self.t2[row] * limits.spe > self.spe[row] * limits.t2 else "spe"

    def _name(self, feature: int) -> str:
        """Return the name of a feature, or its column number."""
        names = self.feature_names
        return f"column {feature}" if names is None else str(names[feature])
