"""Results on stdout: tables, or one JSON object for scripts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

MAX_ROWS = 32
"""Maximum number of rows in a table; JSON output is complete."""

UNKNOWN = math.pi / 2
"""Angle bound of a component for which the certificate gives no information."""


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(_as_json(facts), allow_nan=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print at most `MAX_ROWS` rows as a table, with columns of numbers aligned right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        numbers = all(row[i][:1] in "0123456789-~≤" for row in rows if row[i])
        table.add_column(heading, justify="right" if numbers else "left")
    for row in rows[:MAX_ROWS]:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
    if len(rows) > MAX_ROWS:
        print(f"... and {len(rows) - MAX_ROWS} more: --json prints all of them.")


def print_components(model: Any) -> None:
    """Print the variance, share and angle bound of each component."""
    certificate = model.certificate_
    sign = "~" if certificate.kind == "estimate" else "≤"
    guesses = certificate.angle if certificate.estimate is None else certificate.estimate
    angles = [
        f"{sign} {angle:.2g}"
        if angle < UNKNOWN
        else (f"~ {guess:.2g}" if guess < UNKNOWN else "unknown")
        for angle, guess in zip(certificate.angle, guesses, strict=True)
    ]
    print_table(
        ("component", "variance", "share", "cumulative", "angle (rad)"),
        [
            (str(i + 1), f"{variance:.4g}", f"{share:.2%}", f"{total:.2%}", angle)
            for i, (variance, share, total, angle) in enumerate(
                zip(
                    model.explained_variance_,
                    model.explained_variance_ratio_,
                    model.explained_variance_ratio_.cumsum(),
                    angles,
                    strict=True,
                )
            )
        ],
    )
    words = str(certificate).splitlines()[0]
    print(f"Angles: {words}{', ~ are estimates' if certificate.estimate is not None else ''}.")
    for note in certificate.notes():
        print(f"Note: {note}.")


def print_outcome(model: Any) -> None:
    """Print the outcome of a fit and the advice that belongs to it."""
    print(f"Outcome: {model.outcome_}.")
    print(f"Next: {model.outcome_.advice}")


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
            "notes": certificate.notes(),
            "clusters": [asdict(cluster) for cluster in certificate.clusters],
        },
        "outcome": {
            "name": outcome.status.name.lower(),
            "said": str(outcome),
            "advice": outcome.advice,
            "route": outcome.route,
            "passes": outcome.passes,
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
