"""Certificates in words: what is known of each component, why a bound is missing, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from eigengame.solver.certificates.tolerance import DEFAULT_TOL

if TYPE_CHECKING:
    from eigengame.solver.certificates.certificate import Certificate

LEADING = 32
"""Number of leading components that a table always shows."""

Known = Literal["certified", "conditional", "estimate", "unknown"]
Cause = Literal["", "level", "gap", "neighbour", "rank", "skew", "probes"]

SHORT = {
    "level": " (level)",
    "gap": " (gap)",
    "neighbour": " (gap)",
    "rank": " (rank)",
    "skew": " (skew)",
    "probes": "",
}
"""Causes in tables. Without probes all components have the same cause, and one sentence is enough."""


@dataclass(frozen=True)
class Finding:
    """What a certificate says about one component.

    Attributes
    ----------
    known : {"certified", "conditional", "estimate", "unknown"}
        Kind of the angle: a bound with a probability, a bound that holds if no larger direction was missed, an
        estimate that guarantees nothing, or no information.
    angle : float
        The bound or the estimate, in radians; pi/2 if unknown.
    span : bool
        Whether the bound is for the span of the cluster that contains the component.
    cause : str
        Why there is no bound; empty if there is one.
    reason : str
        The same as a sentence.
    """

    known: Known
    angle: float
    span: bool = False
    cause: Cause = ""
    reason: str = ""

    @property
    def bounded(self) -> bool:
        """Whether the angle is a bound."""
        return not self.cause

    @property
    def kind(self) -> str:
        """The kind in a few words: "certified", "certified span", "estimate (gap)", "no bound (level)"."""
        if self.bounded:
            return f"{self.known} span" if self.span else self.known
        word = "estimate" if self.known == "estimate" else "no bound"
        return word + SHORT[self.cause]

    def angle_text(self, at_most: str = "<=") -> str:
        """Return the angle with two digits, after `at_most` for a bound and ``~`` for an estimate."""
        if self.known == "unknown":
            return "unknown"
        return f"{at_most if self.bounded else '~'} {self.angle:.2g}"


def findings(found: Certificate) -> list[Finding]:
    """Return what the certificate says about each component."""
    bounds, missing = found.group_angle, math.pi / 2
    if found.kind == "estimate":
        guesses, bounds = found.angle, np.full(len(found.angle), missing)
    else:
        guesses = np.full(len(bounds), missing) if found.estimate is None else found.estimate
    listed = []
    for i, (bound, guess) in enumerate(zip(bounds.tolist(), guesses.tolist(), strict=True)):
        if bound < missing:
            known: Known = "conditional" if found.kind == "conditional" else "certified"
            listed.append(Finding(known, bound, span=bool(bound < found.angle[i])))
            continue
        cause = _cause(found, i)
        known = "estimate" if guess < missing else "unknown"
        listed.append(Finding(known, guess, False, cause, _reason(found, cause, i)))
    return listed


def meaning(found: Certificate) -> str:
    """Return what the bounds of the certificate guarantee."""
    # An exact route leaves nothing to chance: its bounds are those of rounding.
    sure = "exact up to rounding, certified"
    return {
        "certified": sure
        if found.confidence == 1
        else f"certified with probability {found.confidence:.4g}",
        "conditional": "measured (holds if no larger direction was missed)",
        "estimate": "estimates from one pass (nothing is guaranteed)",
    }[found.kind]


def counts(found: Certificate, tol: float = DEFAULT_TOL) -> str:
    """Return how many components have which bound."""
    listed = findings(found)
    k = len(listed)
    bounded = [one for one in listed if one.bounded]
    within = [one for one in bounded if one.angle <= tol]
    near, spans = len(within), sum(one.span for one in within)
    parts = [f"{near} of {k} component{'s'[: k - 1]} within {tol:g} rad"] if bounded else []
    if spans:
        parts[0] += f" ({spans} of them only as part of a span)"
    if wider := len(bounded) - near:
        parts.append(f"{wider} within a larger angle")
    if missing := k - len(bounded):
        parts.append(f"{missing} without a bound" if bounded else "no component has a bound")
    return ", ".join(parts)


def notes(found: Certificate) -> list[str]:
    """Return a sentence about each cluster, and about each cause of missing bounds."""
    said = [cluster.describe(len(found.angle)) for cluster in found.clusters]
    listed = findings(found)
    causes = dict.fromkeys(one.cause for one in listed if not one.bounded)
    for cause in causes:
        which = [i for i, one in enumerate(listed) if one.cause == cause]
        reason = _reason(found, cause, which[0] if len(which) == 1 else None)
        said.append(f"{ranks(which)} without a bound: {reason}")
    if "probes" in causes and any(one.known == "estimate" for one in listed):
        said.append(
            "the estimates are rotations during the second half of the rows, which can be much too large"
        )
    if "probes" in causes:
        said.append(
            "merged models keep their probes if these were drawn with the same random_state"
        )
    return said


def shortfall(found: Certificate, which: Iterable[int]) -> str:
    """Return how far some components, numbered from 0, are from being certified, and why."""
    listed, which = findings(found), list(which)
    wide = {i: listed[i].angle for i in which if listed[i].bounded}
    parts = []
    if wide:
        worst = max(wide, key=wide.__getitem__)
        most = "bound" if len(wide) == 1 else f"{len(wide)} bounds of at most"
        gap = max(float(found.gap[worst] / found.rayleigh[worst]), 0.0)
        parts.append(
            f"{most} {wide[worst]:.2g} rad, with a gap of {gap:.2g} times its variance to the nearest one"
        )
    missing = [i for i in which if not listed[i].bounded]
    if missing:
        one = missing[0] if len(missing) == 1 else None
        count = f"{len(missing)} without a" if wide else "no"
        parts.append(f"{count} bound: {_reason(found, listed[missing[0]].cause, one)}")
    return "; ".join(parts)


def advice(found: Certificate) -> str:
    """Return what to do about missing bounds after one pass; empty if there is nothing to say."""
    again = "read the data again (tol, passes or certify)"
    if found.kind == "estimate":
        return f"Fit with probes=48, or {again}, to have bounds."
    if found.estimate is None or all(one.bounded for one in findings(found)):
        return ""
    return (
        f"{again.capitalize()}, or fit with more extra players (extra), to bound more components."
    )


def table(found: Certificate) -> str:
    """Return the certificate as text: one line for each component, then notes and advice."""
    listed = findings(found)
    estimates = found.angle if found.kind == "estimate" else found.estimate
    headings = f"{'component':>9} {'variance':>11} {'residual':>9} {'gap':>9} {'bound':>9}"
    lines = [
        f"angles in radians, {meaning(found)}: {counts(found)}",
        headings + ("" if estimates is None else f" {'estimate':>9}") + "  kind",
    ]
    shown, last = shown_components(listed), -1
    for i in shown:
        if i > last + 1:
            lines.append(f"{'...':>9}")
        one, last = listed[i], i
        values = [found.residual[i], found.gap[i], one.angle if one.bounded else math.nan]
        if estimates is not None:
            values.append(estimates[i] if estimates[i] < math.pi / 2 else math.nan)
        cells = "".join(f" {_number(value):>9}" for value in values)
        lines.append(f"{i + 1:>9} {found.rayleigh[i]:>11.4g}{cells}  {one.kind}")
    if left := len(listed) - len(shown):
        lines.append(f"{left} components are not shown: the attributes have all of them")
    return "\n".join([*lines, *notes(found), advice(found)]).rstrip("\n")


def shown_components(listed: list[Finding], tol: float = DEFAULT_TOL) -> list[int]:
    """Return the components that a table shows: the leading ones, and all without a bound within `tol`."""
    uncertain = (i for i, one in enumerate(listed) if not (one.bounded and one.angle <= tol))
    return sorted({*range(min(len(listed), LEADING)), *uncertain})


def ranks(which: Iterable[int]) -> str:
    """Return components in words, numbered from 1."""
    numbers = np.fromiter(which, int) + 1
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    parts = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"component{'s' if len(numbers) > 1 else ''} {', '.join(parts)}"


def _cause(found: Certificate, i: int) -> Cause:
    """Return why component i has no bound."""
    if found.kind == "estimate":
        return "probes"
    if math.isnan(found.residual[i]):
        return "skew"
    variance = float(found.rayleigh[i])
    if variance <= 0:
        return "rank"
    if found.separated is None:
        return "level" if variance - found.residual[i] <= found.level else "neighbour"
    # The conditions of `one_pass`: first that of the level, then those of the gaps.
    if variance <= found.level + 3 * found.coupling and found.level > 0:
        return "level"
    if variance <= found.coupling:
        return "rank"
    return "gap" if i >= found.separated else "neighbour"


def _reason(found: Certificate, cause: Cause, i: int | None) -> str:
    """Return a cause as a sentence; about component i, or about several components without i."""
    once = " in one pass" if found.estimate is not None else ""
    error = f"variances are known to within {found.coupling:.2g}"
    one = i is not None
    if cause == "level":
        missed = (
            f"a direction of variance up to {found.level + 2 * found.coupling:.3g} may have been "
            f"missed{once}"
        )
        return f"{missed}, and {error}" if found.coupling > 0 else missed
    if cause == "gap":
        return f"{error}{once}, too coarse to separate {'it' if one else 'them'} from the next ones"
    if cause == "neighbour":
        size = f" ({_number(found.gap[i])})" if i is not None else ""
        return f"the gap to the nearest variance{size} is too small for the residuals{once}"
    return {
        "rank": "a variance of 0 up to rounding does not determine a component",
        "skew": "the components are too far from orthonormal",
        "probes": "without probes, one pass measures no angle",
        "": "",
    }[cause]


def _number(value: float) -> str:
    """Return a positive number with two digits, else a dash."""
    return f"{value:.2g}" if value > 0 else "-"
