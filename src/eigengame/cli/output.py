"""Results on stdout: tables, or one JSON object for scripts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

MAX_ROWS = 32
"""Maximum number of rows in a table that does not choose its rows; JSON output is complete."""


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(_as_json(facts), allow_nan=False))


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], most: int = MAX_ROWS
) -> None:
    """Print at most `most` rows as a table, with columns of numbers aligned right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        numbers = all(row[i][:1] in "0123456789.-~≤" for row in rows if row[i])
        table.add_column(heading, justify="right" if numbers else "left")
    for row in rows[:most]:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
    if len(rows) > most:
        print(f"... and {len(rows) - most} more: --json prints all of them.")


def print_components(model: Any) -> None:
    """Print variance, share, angle and kind of bound of each component, and what the kinds mean."""
    from eigengame.solver.certificates.certificate_text import counts, meaning, shown_components
    from eigengame.solver.certificates.tolerance import judged_tolerance

    certificate, tolerance = model.certificate_, judged_tolerance(model)
    findings = certificate.findings()
    share = model.explained_variance_ratio_
    total = share.cumsum()
    shown = shown_components(findings, tolerance.angle)
    rows, last = [], -1
    for i in shown:
        if i > last + 1:
            rows.append(("...", "", "", "", "", ""))
        rows.append(
            (
                str(i + 1),
                f"{model.explained_variance_[i]:.4g}",
                f"{share[i]:.2%}",
                f"{total[i]:.2%}",
                findings[i].angle_text("≤"),
                findings[i].kind,
            )
        )
        last = i
    headings = ("component", "variance", "share", "cumulative", "angle (rad)", "kind")
    print_table(headings, rows, most=len(rows))
    if left := len(findings) - len(shown):
        print(f"{left} components are not shown: --json prints all of them.")
    print(f"Angles: {meaning(certificate)}; {counts(certificate, tolerance.angle)}.")
    print(tolerance.sentence())
    if certificate.kind != "estimate" and any(one.known == "estimate" for one in findings):
        print("~ is an estimate, which guarantees nothing.")
    for note in certificate.notes():
        print(f"Note: {note}.")


def print_outcome(model: Any) -> None:
    """Print the outcome of a fit and what to do next."""
    print(f"Outcome: {model.outcome_}.")
    print(f"Next: {model.certificate_.advice or model.outcome_.advice}")


def model_summary(model: Any) -> dict[str, Any]:
    """Return the results of a fitted model for JSON output."""
    certificate, outcome = model.certificate_, model.outcome_
    return {
        "components": model.n_components_,
        "features": model.n_features_in_,
        "rows": model.n_samples_seen_,
        "variance": model.explained_variance_,
        "share": model.explained_variance_ratio_,
        "certificate": {
            "kind": certificate.kind,
            "confidence": certificate.confidence,
            "angle": certificate.angle,
            "estimate": certificate.estimate,
            "kinds": [one.kind for one in certificate.findings()],
            "reasons": [one.reason for one in certificate.findings()],
            "notes": certificate.notes(),
            "advice": certificate.advice,
            "clusters": [asdict(cluster) for cluster in certificate.clusters],
        },
        "outcome": {
            "name": outcome.status.name.lower(),
            "said": str(outcome),
            "advice": outcome.advice,
            "route": outcome.route,
            "passes": outcome.passes,
            "tol": model.tol_,
        },
    }


def _as_json(value: Any) -> Any:
    """Convert a value for JSON: arrays to lists, NaN and infinity to null."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_as_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
