"""Facts about a fit for the page, as plain JSON: numbers of each component, certificate, outcome, run."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from eigengame._version import __version__
from eigengame.model_file import provenance
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.certificate_text import counts, meaning
from eigengame.solver.certificates.tolerance import Tolerance

PENALISED = ("alpha", "sequential")
"""The algorithms of the paper: each player pays a penalty for its overlap with earlier ones (Alg. 1 and 2)."""

EXPLANATIONS = {
    "certified": (
        "The bounds are measured on all rows, and include directions of larger variance that may have been missed. "
        "A component without a bound has only an estimate, which guarantees nothing."
    ),
    "conditional": (
        "The bounds are measured on all rows, but there was no search for directions of larger variance: they hold "
        "if none was missed."
    ),
    "estimate": (
        "The data was read only once, without random probes, so no bound was measured. Estimates guarantee nothing."
    ),
}
"""Explanation of each kind of certificate."""


def components(model: Any) -> dict[str, list[Any]]:
    """Return the numbers of each component, None if not measured, and the kind of its bound."""
    bounds = model.certificate_
    found = bounds.findings()
    guesses = bounds.angle if bounds.kind == "estimate" else bounds.estimate
    missing = [math.nan] * len(found)
    return {
        "variance": json_numbers(model.explained_variance_),
        "share": json_numbers(model.explained_variance_ratio_),
        "residual": json_numbers(bounds.residual),
        "gap": json_numbers(np.where(bounds.gap > 0, bounds.gap, math.nan)),
        "angle": json_numbers([one.angle if one.bounded else math.nan for one in found]),
        "estimate": json_numbers(
            missing if guesses is None else np.where(guesses < math.pi / 2, guesses, math.nan)
        ),
        "span": [one.span for one in found],
        "kind": [one.kind for one in found],
        "reason": [_sentence(one.reason) for one in found],
        "paper": json_numbers(bounds.gradient_angle),
        "penalty": json_numbers(bounds.penalty_ratio),
    }


def certificate(bounds: Certificate, tolerance: Tolerance) -> dict[str, Any]:
    """Return the kind of a certificate, its explanation, and how many components are within the tolerance."""
    return {
        "kind": bounds.kind,
        "measured": bounds.kind != "estimate",
        "words": f"{_sentence(meaning(bounds))} {_sentence(counts(bounds, tolerance.angle))}",
        "tol": tolerance.angle,
        "requested": tolerance.requested,
        "judged": tolerance.sentence(),
        "explained": EXPLANATIONS[bounds.kind],
        "notes": [_sentence(note) for note in bounds.notes()],
        "advice": bounds.advice,
    }


def has_penalties(model: Any) -> bool:
    """Return whether the model was fitted by an algorithm whose utilities have the penalties of the paper."""
    return str(model.outcome_.route) in PENALISED


def outcome(model: Any) -> dict[str, str]:
    """Return the outcome of the fit and the advice that belongs to it."""
    status = str(model.outcome_.status)
    return {
        "name": model.outcome_.status.name.lower(),
        "happened": status[0].upper() + status[1:],
        "advice": model.outcome_.advice,
    }


def run(model: Any) -> list[list[str]]:
    """Return the facts of the run as pairs of name and value."""
    bounds, origin = model.certificate_, provenance(model)
    pairs: list[tuple[str, Any]] = [
        ("Rows read", f"{model.n_samples_seen_:,}"),
        ("Features", f"{model.n_features_in_:,}"),
        ("Components", f"{model.n_components_:,} ({model.n_players_:,} players)"),
        ("Passes over the data", model.n_passes_),
        ("Route", model.outcome_.route),
        ("Outcome", model.outcome_.status),
        ("Certificate", meaning(bounds)),
        ("Variance of any missed direction", _missed_variance(bounds)),
        ("Mean residual variance", _format_number(model.noise_variance_)),
        *_source(origin.get("source")),
        (
            "Model written",
            _format_time(origin["written"])
            if getattr(model, "_provenance", None)
            else "not saved yet",
        ),
        ("Report written", _format_time(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))),
        (
            "Versions",
            f"eigengame {__version__}, JAX {origin['jax']}, Python {origin['python']}",
        ),
        ("Device", origin["device"]),
        (
            "Parameters",
            ", ".join(f"{name}={value!r}" for name, value in _changed_parameters(model)),
        ),
    ]
    return [[name, str(value)] for name, value in pairs if value not in (None, "")]


def fingerprint(model: Any) -> dict[str, Any] | None:
    """Return the fingerprint of the data that the model was fitted to, if known."""
    found: dict[str, Any] | None = provenance(model).get("source")
    return found


def source_name(model: Any) -> str | None:
    """Return the name of the data that the model was fitted to, or None for an array in memory."""
    name = (fingerprint(model) or {}).get("name")
    return None if name in (None, "", "X") else str(name)


def json_numbers(values: Any, digits: int = 9) -> list[float | None]:
    """Return numbers for JSON, rounded to some digits; None for NaN and infinity."""
    return [
        float(f"{value:.{digits}g}") if math.isfinite(value) else None
        for value in np.asarray(values, np.float64)
    ]


def _sentence(text: str) -> str:
    """Return a text as a sentence; an empty one stays empty."""
    return text and f"{text[0].upper()}{text[1:]}."


def _source(source: Any) -> list[tuple[str, Any]]:
    """Return the name, shape and dtype of the data, if recorded."""
    if not source:
        return [("Source", "not recorded")]
    shape = " x ".join("?" if size is None else f"{size:,}" for size in source.get("shape", []))
    details = ", ".join(text for text in (shape, str(source.get("dtype", ""))) if text)
    return [
        ("Source", f"{source.get('name', 'data')} ({details})" if details else source.get("name"))
    ]


def _missed_variance(bounds: Certificate) -> str | None:
    """Return the bound on the variance of a missed direction, if probes measured one."""
    return f"at most {_format_number(bounds.level)}" if bounds.kind == "certified" else None


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _format_time(written: str) -> str:
    """Return a time stamp in a readable form."""
    return written.replace("T", " ").replace("Z", " UTC")


def _changed_parameters(model: Any) -> list[tuple[str, Any]]:
    """Return the parameters that differ from their defaults."""
    defaults = type(model)().get_params()
    return [(name, value) for name, value in model.get_params().items() if value != defaults[name]]
