"""Check of the facts and arrays of a model file: types, sizes and whether they belong together.

A checksum detects damage, but not a file that another program wrote or changed. Without this check such a file
would fail later, in the middle of a transform or a report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eigengame.solver.planning.parameters import VALUES
from eigengame.solver.results.outcome import Status

Check = Callable[[Any], bool]


def check_facts(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if a fact has another type than a fit gives, or an array another shape."""
    k, d = _shape_of_components(arrays)
    _check_arrays(arrays, k, d)
    _check("facts", facts, _facts(d, prepared=facts.get("preparation") is not None))
    _check("numbers", facts["numbers"], NUMBERS)
    for name, expected in (("n_components_", k), ("n_features_in_", d)):
        if facts["numbers"][name] != expected:
            raise ValueError(
                f"numbers: {name} is {facts['numbers'][name]}, but components_ has {k, d}"
            )
    steps = facts.get("preparation")
    if (
        steps
        and all(step.get("kind") not in ("columns", "grid cells") for step in steps)
        and facts["features_before"] != d
    ):
        raise ValueError(
            f"features_before is {facts['features_before']}, but components_ has {k, d}"
        )
    before = facts.get("feature_names_before")
    if before is not None and len(before) != facts["features_before"]:
        raise ValueError(
            f"feature_names_before has {len(before)} names, but features_before is {facts['features_before']}"
        )
    for name, (valid, described) in VALUES.items():
        if name in facts["parameters"] and not valid(facts["parameters"][name]):
            given = _shown(facts["parameters"][name])
            raise ValueError(f"parameters: {name} is {given}, not {described}")
    _check("outcome", facts["outcome"], OUTCOME)
    _check("certificate", facts["certificate"], _certificate(k))
    if facts["certificate"]["kind"] == "certified" and facts["certificate"]["level"] is None:
        raise ValueError("certificate: level is missing")
    for cluster in facts["certificate"].get("clusters", ()):
        _check("clusters", cluster, CLUSTER)
    _check("provenance", facts["provenance"], PROVENANCE)
    source = facts["provenance"].get("source")
    if source is not None:
        _check("source", source, SOURCE)
    layers = facts.get("layers") or ()
    for layer in layers:
        _check("layers", layer, LAYER)
    if layers and sum(math.prod(layer["shape"]) for layer in layers) != d:
        raise ValueError(f"layers do not have {d} features together")


def _check(where: str, facts: Any, checks: Mapping[str, tuple[bool, Check]]) -> None:
    """Raise if a dict lacks a required fact, or a fact does not pass its check."""
    if not isinstance(facts, dict):
        raise ValueError(f"{where} is {_shown(facts)}")
    for name, (required, passes) in checks.items():
        if name not in facts:
            if required:
                raise ValueError(f"{where}: {name} is missing")
        elif not passes(facts[name]):
            raise ValueError(f"{where}: {name} is {_shown(facts[name])}")


def _shape_of_components(arrays: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """Return the number of components and features."""
    components = arrays.get("components_")
    if components is None or components.ndim != 2 or 0 in components.shape:
        raise ValueError("components_ is missing or has no rows")
    return components.shape[0], components.shape[1]


def _check_arrays(arrays: Mapping[str, np.ndarray], k: int, d: int) -> None:
    """Raise if an array of the model is missing, or is not real numbers of the right shape."""
    shapes: dict[str, tuple[int, ...]] = {
        "components_": (k, d),
        "explained_variance_": (k,),
        "explained_variance_ratio_": (k,),
        "singular_values_": (k,),
        "mean_": (d,),
        "var_": (d,),
    }
    for name, shape in shapes.items():
        found = arrays.get(name)
        if found is None or found.shape != shape or found.dtype.kind != "f":
            described = "missing" if found is None else f"{found.dtype} of shape {found.shape}"
            raise ValueError(f"{name} is {described}, not numbers of shape {shape}")
    players = arrays.get("players")
    if players is None or players.ndim != 2 or players.shape[1] != d or len(players) < k:
        raise ValueError("players is missing, or does not have the features of components_")
    if not np.isfinite(players).all():
        raise ValueError("players holds numbers that are not finite")
    origin = arrays.get("origin")
    if origin is not None and (origin.shape != (d,) or not np.isfinite(origin).all()):
        raise ValueError(f"origin has shape {origin.shape}, or is not finite")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


# ---------------------------------------------------------------- checks of single values


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _not_negative(value: Any) -> bool:
    return _real(value) and value >= 0


def _positive(value: Any) -> bool:
    return _real(value) and value > 0


def _number(value: Any) -> bool:
    """Return whether a value is a number; infinity is the gap of a component without a neighbour."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _text(value: Any) -> bool:
    """Return whether a value is text. JSON can hold half a character, which no file can be written with."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or _text(value)


def _dict(value: Any) -> bool:
    return isinstance(value, dict)


def _or_none(passes: Check) -> Check:
    return lambda value: value is None or passes(value)


def _list(passes: Check, length: int | None = None) -> Check:
    return lambda value: (
        isinstance(value, list)
        and (length is None or len(value) == length)
        and all(passes(one) for one in value)
    )


def _facts(d: int, *, prepared: bool) -> dict[str, tuple[bool, Check]]:
    names = _or_none(_list(_text, d))
    return {
        "parameters": (
            True,
            lambda value: _dict(value) and all(map(_plain, value.values())),
        ),
        "numbers": (True, _dict),
        "options": (True, _dict),
        "certificate": (True, _dict),
        "outcome": (True, _dict),
        "provenance": (True, _dict),
        "began": (False, _dict),
        "features": (True, names),
        "alleles": (False, names),
        "layer": (False, _or_none(_text)),
        "layers": (False, lambda value: value is None or (value != [] and _list(_dict)(value))),
        "unit": (False, _positive),
        "preparation": (False, _or_none(_list(_dict))),
        "feature_names_before": (False, _or_none(_list(_text))),
        "features_before": (prepared, _or_none(_count) if not prepared else _positive_count),
    }


def _positive_count(value: Any) -> bool:
    return _count(value) and value > 0


def _certificate(k: int) -> dict[str, tuple[bool, Check]]:
    numbers = _list(_or_none(_number), k)
    return {
        "kind": (True, lambda value: value in ("certified", "conditional", "estimate")),
        **dict.fromkeys(("rayleigh", "residual", "gap", "angle"), (True, numbers)),
        **dict.fromkeys(("gradient_angle", "penalty_ratio"), (True, numbers)),
        "level": (True, _or_none(_number)),
        "confidence": (True, _number),
        "probes": (False, _count),
        "powers": (False, _count),
        "clusters": (False, _list(_dict)),
        "estimate": (False, _or_none(numbers)),
        "coupling": (False, _number),
        "separated": (False, _or_none(_count)),
    }


NUMBERS: dict[str, tuple[bool, Check]] = {
    "noise_variance_": (True, _not_negative),
    **dict.fromkeys(("n_components_", "n_features_in_"), (True, _count)),
    "n_samples_seen_": (True, _positive_count),
    **dict.fromkeys(("n_players_", "n_passes_"), (True, _count)),
}
OUTCOME: dict[str, tuple[bool, Check]] = {
    "outcome": (True, lambda value: isinstance(value, str) and value in Status.__members__),
    "route": (True, _text),
    "passes": (True, _count),
    "rounding": (False, _or_none(_text)),
}
CLUSTER: dict[str, tuple[bool, Check]] = {
    "members": (True, _list(_count)),
    **dict.fromkeys(("angle", "gap", "spread"), (True, _number)),
}
PROVENANCE: dict[str, tuple[bool, Check]] = {
    **dict.fromkeys(("written", "jax", "device", "python"), (True, _text)),
    "source": (False, _or_none(_dict)),
}
SOURCE: dict[str, tuple[bool, Check]] = {
    "name": (False, _text),
    "shape": (False, _list(_or_none(_count))),
    "dtype": (False, _text),
    "image_shape": (False, _or_none(_list(_count))),
}
LAYER: dict[str, tuple[bool, Check]] = {
    "name": (True, _text),
    "shape": (True, _list(_count)),
    "channels_last": (True, lambda value: isinstance(value, bool)),
    "side": (False, lambda value: value in ("outputs", "inputs")),
}
"""Facts of each part of a model file: whether they are required, and the check of their value."""
