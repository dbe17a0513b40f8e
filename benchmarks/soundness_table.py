"""The results of the soundness benchmark as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.soundness_score import LEVEL, Case, Tally, excess, rate, tally

HEADINGS = (
    "fits",
    "refused",
    "failed",
    "certificates",
    "bounds",
    "informative",
    "share",
    "violated",
    "by 2 times",
    "worst true / bound",
    "median bound / true",
)
MOST_LISTED = 25


def page(cases: Sequence[Case], title: str) -> str:
    """Return the report as Markdown."""
    parts = [f"# Soundness of certificates\n\n{title}", totals(cases)]
    for kind in ("component", "cluster"):
        if kind == "cluster" and not any(case.checks(kind) for case in cases):
            parts.append("## Clusters\n\nNo certificate named a cluster.")
            continue
        parts.append(f"## {kind.capitalize()}s by route\n\n{_table(cases, kind, ('route',))}")
        parts.append(f"## {kind.capitalize()}s by family\n\n{_table(cases, kind, ('family',))}")
        parts.append(f"## {kind.capitalize()}s by setting\n\n{_table(cases, kind, ('setting',))}")
        parts.append(f"## {kind.capitalize()}s by order\n\n{_table(cases, kind, ('order',))}")
        both = _table(cases, kind, ("family", "route"))
        parts.append(f"## {kind.capitalize()}s by family and route\n\n{both}")
    parts.append(f"## Largest violations\n\n{_violations(cases)}")
    parts.append(f"## Refusals and failures\n\n{_messages(cases)}")
    return "\n\n".join(parts) + "\n"


def totals(cases: Sequence[Case]) -> str:
    """Return the totals, with confidence bounds on the rate of violations."""
    found = rate(cases)
    lines = []
    for kind in ("component", "cluster"):
        all_of = tally(cases, kind)
        lines.append(
            f"{kind.capitalize()}s: {all_of.violated} of {all_of.informative} informative bounds violated, "
            f"{all_of.grossly} of them by more than 2 times, {all_of.undecided} undecided; {_share(all_of)} of "
            f"{all_of.bounds} bounds are informative. Error of the true angles: at most {all_of.error:.1g}."
        )
    lines.append(
        f"Certificates with a violated bound: {found.broken} of {found.certificates}. The rate is at least "
        f"{found.low:.2g} and at most {found.high:.2g} (Clopper-Pearson, each with {LEVEL:.0%} confidence); the "
        f"certificates state {found.stated:.2g} on average. {found.sure} of the broken ones state a probability "
        "of 1."
    )
    lines.append(
        "**More violations than the stated probability allows.**"
        if found.exceeded
        else "This is within the stated probability."
    )
    return "\n\n".join(lines)


def _table(cases: Sequence[Case], kind: str, by: tuple[str, ...]) -> str:
    """Return one row for each value of some fields of the cases, by name."""
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(tuple(getattr(case, name) for name in by), []).append(case)
    rows = [[*names, *_cells(tally(group, kind))] for names, group in sorted(groups.items())]
    return _markdown([*by, *HEADINGS], rows)


def _cells(one: Tally) -> list[str]:
    """Return the cells of a tally."""
    return [
        str(one.fits),
        str(one.refused),
        str(one.failed),
        str(one.certificates),
        str(one.bounds),
        str(one.informative),
        _share(one),
        str(one.violated),
        str(one.grossly),
        _number(one.worst),
        _number(one.median),
    ]


def _violations(cases: Sequence[Case]) -> str:
    """Return the violations with the largest ratio of true angle to bound, and how to draw them again."""
    found = [
        (case, check)
        for case in cases
        for kind in ("component", "cluster")
        for check in case.checks(kind)
        if check.verdict == "violated"
    ]
    if not found:
        return "None."
    found.sort(key=lambda pair: -excess(pair[1]))
    rows = [
        [
            case.family,
            case.route,
            case.setting,
            case.order,
            f"{case.seed}/{case.index}",
            f"{check.kind} {check.first}" + (f"-{check.last}" if check.last > check.first else ""),
            _number(check.bound),
            _number(check.true),
            _number(check.gap),
            case.text,
        ]
        for case, check in found[:MOST_LISTED]
    ]
    headings = [
        "family",
        "route",
        "setting",
        "order",
        "seed/index",
        "what",
        "bound",
        "true",
        "gap",
        "problem",
    ]
    return _markdown(headings, rows)


def _messages(cases: Iterable[Case]) -> str:
    """Return the first words of refusals and failures, with counts."""
    counts = Counter(
        (case.route, "refused" if case.refused else "failed", (case.refused or case.failed)[:110])
        for case in cases
        if case.refused or case.failed
    )
    if not counts:
        return "None."
    rows = [[*names, str(count)] for names, count in counts.most_common(MOST_LISTED)]
    return _markdown(["route", "what", "message", "fits"], rows)


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [headings, ["---"] * len(headings), *rows]
    safe = [[" ".join(cell.split()).replace("|", "/") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in safe)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2g}"


def _share(one: Tally) -> str:
    return f"{one.informative / one.bounds:.0%}" if one.bounds else "-"
