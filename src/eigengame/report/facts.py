"""What is known of a fit, as plain JSON: the numbers of each component, and the words about them."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from eigengame._version import __version__
from eigengame.model_file import provenance
from eigengame.solver.certificate import Certificate

EXPLAINED = {
    "certified": (
        "Every component was measured on the whole data in float64, and it was checked that no larger direction "
        "was missed."
    ),
    "conditional": (
        "The whole data was read again to measure every component, but nothing looked for larger "
        "directions: the bounds hold if none was missed."
    ),
    "estimate": (
        "The data was read once, with no second look, so no bound was measured. Fit with tol or passes, "
        "or call certify(data), to measure one."
    ),
}
"""What each kind of certificate means, for people."""


def components(model: Any) -> dict[str, list[float | None]]:
    """Return the figures of every component; what was not measured is None."""
    sure = model.certificate_
    return {
        "variance": listed(model.explained_variance_),
        "share": listed(model.explained_variance_ratio_),
        "residual": listed(sure.residual),
        "gap": listed(sure.gap),
        "angle": listed(sure.angle),
        "paper": listed(sure.gradient_angle),
        "penalty": listed(sure.penalty_ratio),
    }


def certificate(sure: Certificate) -> dict[str, Any]:
    """Return the kind of a certificate, and what it means in words."""
    words = str(sure).splitlines()[0]
    return {
        "kind": sure.kind,
        "measured": sure.kind != "estimate",
        "words": words[0].upper() + words[1:],
        "explained": EXPLAINED[sure.kind],
        "notes": [note[0].upper() + note[1:] + "." for note in sure.notes()],
    }


def outcome(model: Any) -> dict[str, str]:
    """Return how the fit ended, and what to change."""
    ended = str(model.outcome_.status)
    return {
        "name": model.outcome_.status.name.lower(),
        "happened": ended[0].upper() + ended[1:],
        "advice": model.outcome_.advice,
    }


def run(model: Any) -> list[list[str]]:
    """Return the facts of the run, as pairs of what and how much."""
    sure, came = model.certificate_, provenance(model)
    pairs: list[tuple[str, Any]] = [
        ("Rows read", f"{model.n_samples_seen_:,}"),
        ("Features", f"{model.n_features_in_:,}"),
        ("Components", f"{model.n_components_:,} ({model.n_players_:,} players)"),
        ("Passes over the data", model.n_passes_),
        ("Route", model.outcome_.route),
        ("Outcome", model.outcome_.status),
        ("Certificate", str(sure).splitlines()[0]),
        ("Variance of any missed direction", _missed(sure)),
        ("Mean variance left over", _number(model.noise_variance_)),
        *_source(came.get("source")),
        (
            "Model written",
            _day(came["written"]) if getattr(model, "_provenance", None) else "not saved yet",
        ),
        ("Report written", _day(now())),
        (
            "Versions",
            f"eigengame {__version__}, JAX {came['jax']}, Python {came['python']}",
        ),
        ("Device", came["device"]),
        ("Parameters", ", ".join(f"{name}={value!r}" for name, value in _changed(model))),
    ]
    return [[name, str(value)] for name, value in pairs if value not in (None, "")]


def fingerprint(model: Any) -> dict[str, Any] | None:
    """Return the fingerprint of what the model was fitted to, where it is known."""
    found: dict[str, Any] | None = provenance(model).get("source")
    return found


def source_name(model: Any) -> str | None:
    """Return the name of what the model was fitted to; an array in memory has none."""
    name = (fingerprint(model) or {}).get("name")
    return None if name in (None, "", "X") else str(name)


def listed(values: Any) -> list[float | None]:
    """Return numbers for JSON, which has no NaN: five digits, and None for what is not finite."""
    return [
        float(f"{value:.5g}") if math.isfinite(value) else None
        for value in np.asarray(values, np.float64)
    ]


def now() -> str:
    """Return the time, as model files write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _source(source: Any) -> list[tuple[str, Any]]:
    """Return what is known of the data itself."""
    if not source:
        return [("Source", "not recorded")]
    shape = " x ".join("?" if size is None else f"{size:,}" for size in source.get("shape", []))
    about = ", ".join(text for text in (shape, str(source.get("dtype", ""))) if text)
    return [("Source", f"{source.get('name', 'data')} ({about})" if about else source.get("name"))]


def _missed(sure: Certificate) -> str | None:
    """Return the most variance that a missed direction can have, where probes looked for one."""
    return f"at most {_number(sure.level)}" if sure.kind == "certified" else None


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _day(written: str) -> str:
    """Return a moment as people write it."""
    return written.replace("T", " ").replace("Z", " UTC")


def _changed(model: Any) -> list[tuple[str, Any]]:
    """Return the parameters that differ from their defaults."""
    usual = type(model)().get_params()
    return [(name, value) for name, value in model.get_params().items() if value != usual[name]]
