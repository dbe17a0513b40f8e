"""Comparison of claims with true angles: which bounds hold, by how much, and how often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from benchmarks.hostile_claims import Claim
from benchmarks.hostile_problems import Problem
from benchmarks.hostile_routes import Attempt

CERTIFIED = "certified"
ROUNDING = 1e-12
"""Relative rounding of an angle that is computed to 50 digits and then stored in float64."""

DECIDED = 0.1
"""A bound is tested if the error of the true angle is at most this share of it."""

FAR = 1e-3
"""True angles in float64 are used if their error is at most this share of the bound, and `DECIDED` of the angle."""

LEVEL = 0.95
"""Level of the confidence bounds on the rate of violations."""


@dataclass(frozen=True)
class Check:
    """One bound compared with the true angle.

    Attributes
    ----------
    kind : {"component", "cluster"}
    first, last : int
        Indices of the component or of the group.
    bound, true : float
        Radians; a bound of pi/2 claims nothing.
    verdict : {"silent", "held", "violated", "undecided"}
    gap : float
        Distance of the eigenvalues to all others, relative to the first of them.
    error : float
        Bound on the error of `true`; 0 if nothing was compared.
    """

    kind: str
    first: int
    last: int
    bound: float
    true: float
    verdict: str
    gap: float
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """The bound divided by the true angle; NaN if there is nothing to compare."""
        usable = self.verdict in ("held", "violated") and self.true > 1e-14
        return self.bound / self.true if usable else math.nan


@dataclass(frozen=True)
class Case:
    """The result of one problem on one route.

    Attributes
    ----------
    family, route, setting, order, text : str
        The names of the problem and of the route, and the description of the rows.
    seed, index : int
        Together with the names they determine the problem.
    refused, failed : str
        The message of a refusal or of another error, or "".
    certificates : list of (float, list of Check)
        For each certificate of kind "certified": its confidence and its checks.
    """

    family: str
    route: str
    setting: str
    order: str
    seed: int
    index: int
    text: str
    refused: str
    failed: str
    certificates: list[tuple[float, list[Check]]] = field(default_factory=list)

    def checks(self, kind: str) -> list[Check]:
        """Return the checks of all certificates of a case."""
        return [check for _, checks in self.certificates for check in checks if check.kind == kind]


def case_of(problem: Problem, route: str, attempt: Attempt) -> Case:
    """Return the claims of an attempt, compared with the true components."""
    certificates = [
        (claim.confidence, list(checked(problem, claim)))
        for claim in attempt.claims
        if claim.kind == CERTIFIED
    ]
    names = problem.family, route, problem.setting.name, problem.order
    return Case(
        *names,
        problem.seed,
        problem.index,
        problem.made[1],
        attempt.refused,
        attempt.failed,
        certificates,
    )


def checked(problem: Problem, claim: Claim) -> Iterator[Check]:
    """Yield every bound of a certificate with its check."""
    for i, bound in enumerate(claim.angle):
        yield _check(
            problem, claim, "component", float(bound), (i, i), [claim.components[i : i + 1]]
        )
    k = len(claim.components)
    for group in claim.clusters:
        members = sorted(group.members)
        span = members[0], members[-1]
        returned = claim.components[[i for i in members if i < k]]
        # If all members were returned, spans are compared, else each component with the span of the group.
        parts = [returned] if members[-1] < k else [row[None] for row in returned]
        if parts:
            yield _check(problem, claim, "cluster", group.angle, span, parts)


def _check(
    problem: Problem,
    claim: Claim,
    kind: str,
    bound: float,
    span: tuple[int, int],
    parts: list[np.ndarray],
) -> Check:
    """Compare a bound with the largest angle of any part; a violation is computed a second time."""
    if bound >= math.pi / 2:
        return Check(kind, *span, bound, math.nan, "silent", math.nan)
    quick = _quick_check(problem, claim, kind, bound, span, parts)
    if quick is not None:
        return quick
    truth = problem.truth(claim.target)
    if truth is None:  # all rows are equal: no direction is determined
        return Check(kind, *span, bound, math.pi / 2, "violated", 0.0)
    true = max(truth.angle(part, *span) for part in parts)
    gap = truth.gap(*span) / max(float(truth.values[span[0]]), 1e-300)
    # A tied direction is not determined, whatever the precision.
    error = truth.error(*span) if gap > 0 else 0.0
    if math.isfinite(bound) and error > DECIDED * bound:
        return Check(kind, *span, bound, true, "undecided", gap, error)
    if true <= bound * (1 + ROUNDING):
        return Check(kind, *span, bound, true, "held", gap, error)
    second = problem.second_truth(claim.target)
    again = max(second.angle(part, *span) for part in parts)
    if math.isfinite(true) and not math.isclose(again, true, rel_tol=1e-6):
        raise ArithmeticError(
            f"{problem.family} {problem.setting.name} seed={problem.seed} index={problem.index}, {kind} {span}: "
            f"two computations of the true angle give {true} and {again}; fix benchmarks/exact_eigen.py."
        )
    return Check(kind, *span, bound, true, "violated", gap, error)


def _quick_check(
    problem: Problem,
    claim: Claim,
    kind: str,
    bound: float,
    span: tuple[int, int],
    parts: list[np.ndarray],
) -> Check | None:
    """Return a check of a bound that holds if float64 decides it, else None; violations need 50 digits."""
    truth = problem.quick_truth(claim.target)
    if truth is None:
        return None
    error = truth.error(*span)
    if not error <= FAR * bound:  # also if the bound is not a number
        return None
    true = max(truth.angle(part, *span) for part in parts)
    if not (error <= DECIDED * true and true + error <= bound):
        return None
    gap = truth.gap(*span) / max(float(truth.values[span[0]]), 1e-300)
    return Check(kind, *span, bound, true, "held", gap, error)


@dataclass(frozen=True)
class Tally:
    """Counts over some cases, for components or for clusters.

    Attributes
    ----------
    fits, refused, failed : int
    certificates, broken : int
        Certificates of kind "certified", and those with at least one violated bound.
    bounds, informative, violated, grossly, undecided : int
        Bounds of these certificates: all, those below pi/2, those below the true angle, those below half of it,
        those not decidable.
    error : float
        The largest error of a true angle that was compared.
    worst : float
        The largest ratio of true angle to bound among violations; NaN if there are none.
    median : float
        Median of bound / true angle.
    """

    fits: int
    refused: int
    failed: int
    certificates: int
    broken: int
    bounds: int
    informative: int
    violated: int
    grossly: int
    undecided: int
    error: float
    worst: float
    median: float


def tally(cases: Iterable[Case], kind: str = "component") -> Tally:
    """Return the counts over some cases."""
    cases = list(cases)
    held = [
        [c for c in checks if c.kind == kind] for case in cases for _, checks in case.certificates
    ]
    checks = [check for checks in held for check in checks]
    violated = [check for check in checks if check.verdict == "violated"]
    ratios = [check.ratio for check in checks if not math.isnan(check.ratio)]
    worst = [excess(check) for check in violated]
    return Tally(
        fits=len(cases),
        refused=sum(bool(case.refused) for case in cases),
        failed=sum(bool(case.failed) for case in cases),
        certificates=len(held),
        broken=sum(any(check.verdict == "violated" for check in checks) for checks in held),
        bounds=len(checks),
        informative=sum(check.verdict != "silent" for check in checks),
        violated=len(violated),
        grossly=sum(ratio > 2 for ratio in worst),
        undecided=sum(check.verdict == "undecided" for check in checks),
        error=max((check.error for check in checks if check.verdict != "undecided"), default=0.0),
        worst=max(worst, default=math.nan),
        median=float(np.median(ratios)) if ratios else math.nan,
    )


def excess(check: Check) -> float:
    """Return the true angle over a violated bound; infinite for a bound of zero or NaN."""
    return check.true / check.bound if check.bound > 0 and check.true > 0 else math.inf


@dataclass(frozen=True)
class Rate:
    """The rate of certificates with a violated bound, and the risk that they state.

    Attributes
    ----------
    broken, certificates : int
        Certificates with a violated bound, and all.
    low, high : float
        One-sided Clopper-Pearson bounds on the rate, each at `LEVEL`.
    stated : float
        Mean of the risks that the certificates state.
    sure : int
        Broken certificates that state a probability of 1.
    """

    broken: int
    certificates: int
    low: float
    high: float
    stated: float
    sure: int

    @property
    def exceeded(self) -> bool:
        """Whether there are more violations than the stated probability allows."""
        return self.sure > 0 or self.low > self.stated


def rate(cases: Iterable[Case]) -> Rate:
    """Return the rate of certificates with a violated bound, of a component or cluster, and the stated risk."""
    risks, broken = [], []
    for case in cases:
        for confidence, checks in case.certificates:
            risks.append(max(1 - confidence, 0.0))
            broken.append(any(check.verdict == "violated" for check in checks))
    n, x = len(broken), sum(broken)
    low = stats.beta.ppf(1 - LEVEL, x, n - x + 1) if x else 0.0
    high = stats.beta.ppf(LEVEL, x + 1, n - x) if x < n else 1.0
    sure = sum(bad for bad, risk in zip(broken, risks, strict=True) if risk == 0)
    return Rate(x, n, float(low), float(high), float(np.mean(risks)) if risks else 0.0, sure)
