"""What a command shows: tables for people, or one JSON object for scripts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

MOST = 32
"""Rows of a table: what goes beyond is in the JSON."""

UNKNOWN = math.pi / 2
"""The angle bound of a component about which nothing can be said."""


def show(text: str = "") -> None:
    """Print a line of results."""
    print(text)


def show_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(plain(facts), allow_nan=False))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns of numbers are aligned; its length is limited."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        numbers = all(row[i][:1] in "0123456789-~≤" for row in rows if row[i])
        table.add_column(heading, justify="right" if numbers else "left")
    for row in rows[:MOST]:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
    if len(rows) > MOST:
        show(f"... and {len(rows) - MOST} more: --json prints them all.")


def show_components(model: Any) -> None:
    """Print the components of a model, and how far to trust them."""
    certificate = model.certificate_
    sign = "~" if certificate.kind == "estimate" else "≤"
    angles = [
        "unknown" if angle >= UNKNOWN else f"{sign} {angle:.2g}" for angle in certificate.angle
    ]
    show_table(
        ("component", "variance", "share", "in all", "angle (rad)"),
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
    show(f"Angles: {str(certificate).splitlines()[0]}.")
    for note in certificate.notes():
        show(f"Note: {note}.")


def show_ending(model: Any) -> None:
    """Print how a fit ended, and what to do next."""
    show(f"Ended: {model.outcome_}.")
    show(f"Next: {model.outcome_.advice}")


def facts_of(model: Any) -> dict[str, Any]:
    """Return a model's figures, for JSON."""
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


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, null for what is not finite."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
