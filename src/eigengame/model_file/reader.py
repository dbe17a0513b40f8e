"""Read a fitted estimator from a model file."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import numpy as np

from eigengame._system.array_file import DIGEST, array_to_lines, read_arrays, verify_checksum
from eigengame._version import __version__
from eigengame.algorithms import REGISTRY
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import Memory
from eigengame.model_file.facts import check_facts
from eigengame.model_file.layout import (
    ARRAYS,
    FORMAT,
    KEY,
    POSITIONS,
    SAMPLES,
    ModelFileError,
    selects,
)
from eigengame.preparation import Preparation
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.clusters import Cluster
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.parameters import accumulated
from eigengame.solver.results.outcome import Outcome, Status
from eigengame.solver.results.result import Result
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.probe_sums import ProbeSums
from eigengame.solver.streams.stream import Stream
from eigengame.sources import Layers

SKEW = 1e-2
"""Largest error of the inner products of components: far above rounding."""


def load(kind: type, path: Any) -> Any:
    """Read an estimator of this class."""
    target = Path(path)
    return rebuild(kind, target, *read(target))


def rebuild(kind: type, target: Path, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Any:
    """Return the estimator of this class from the contents of a file."""
    try:
        check_facts(facts, arrays)
        return _rebuilt(kind, arrays, facts)
    except (KeyError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelFileError(
            f"{target} lacks part of a model, or has a part that does not belong to it ({_described(error)}): it "
            f"was written by eigengame {facts.get('version')}; write it again."
        ) from None


def _described(error: Exception) -> str:
    """Return the text of an error in one line, with its type if the text alone is not a sentence."""
    lines = str(error).strip().splitlines() or [""]
    return lines[0] if type(error) is ValueError else f"{type(error).__name__} {lines[0]}".strip()


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the facts of a model file, checked."""
    if not path.is_file():
        raise ModelFileError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    try:
        arrays, about = read_arrays(path)
        if KEY not in about:
            raise ModelFileError(f"{path} is a safetensors file, but not an eigengame model.")
        facts = json.loads(about[KEY])
        if not isinstance(facts, dict) or not isinstance(facts.get("format"), int):
            raise ValueError("its format is missing")
        if facts["format"] > FORMAT:
            raise ModelFileError(
                f"{path} has format {facts['format']}, written by eigengame {facts.get('version')}: this is "
                f"{__version__}, which reads up to {FORMAT}; upgrade eigengame."
            )
        if facts["format"] > 1 or DIGEST in about:
            verify_checksum(arrays, about)
        _refuse_implausible(arrays, facts)
    except ModelFileError:
        raise
    except (ValueError, OSError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is damaged or not a safetensors file ({error}): copy or write it again."
        ) from None
    return arrays, facts


def _refuse_implausible(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
    """Raise ValueError if the arrays of a file cannot be the result of a fit. Missing arrays are found later."""
    for name in ARRAYS:
        if name in arrays and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "var_"):
        if name in arrays and (arrays[name] < 0).any():
            raise ValueError(f"{name} holds numbers below 0")
    components = arrays.get("components_", np.zeros((0, 1)))
    if components.ndim != 2:
        raise ValueError(f"components_ has shape {components.shape}")
    outcome = facts.get("outcome")
    route = str(outcome.get("route") if isinstance(outcome, dict) else None)
    if route.split(",")[0] in REGISTRY.keys() - {"remembered"}:
        return  # the components of these algorithms are only nearly orthonormal
    products = components.astype(np.float64) @ components.T.astype(np.float64)
    skew = np.abs(products - np.eye(len(components))).max(initial=0)
    if not skew <= SKEW:
        raise ValueError(f"components_ are not orthonormal: products are off by {skew:.2g}")


def _rebuilt(kind: type, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Any:
    """Return the estimator of a file."""
    estimator = kind(**facts["parameters"])
    estimator._set_result(_result(arrays, facts))
    for name, value in facts["numbers"].items():
        setattr(estimator, name, value)
    if facts["features"] is not None:
        estimator.feature_names_in_ = np.asarray(facts["features"], dtype=object)
    estimator._alleles, estimator._layer = facts.get("alleles"), facts.get("layer")
    _set_genotypes(estimator, arrays)
    layers = facts.get("layers")
    estimator.layers_ = None if layers is None else Layers.from_facts(layers)
    # Files of earlier versions lack this entry, or the probes: use the parameters at the time of writing.
    written = {"probes": "auto"} | facts["parameters"]
    estimator._began = {"probes": "auto"} | facts.get("began", accumulated(written))
    estimator._provenance = facts["provenance"]
    if facts.get("preparation") is not None:
        estimator._preparation = _preparation(arrays, facts)
    return estimator


def _set_genotypes(estimator: Any, arrays: dict[str, np.ndarray]) -> None:
    """Set what `_genotype_arrays` stored. Files of earlier versions have neither."""
    if POSITIONS in arrays:
        estimator._positions = array_to_lines(arrays[POSITIONS])
        if len(estimator._positions) != estimator.n_features_in_:
            raise ValueError(f"{POSITIONS} has {len(estimator._positions)} lines")
    if SAMPLES in arrays:
        ids = [line.split("\t") for line in array_to_lines(arrays[SAMPLES])]
        if any(len(one) != 2 for one in ids):
            raise ValueError(f"{SAMPLES} does not have two columns")
        estimator.sample_ids_ = np.array(ids, dtype=object)


def _result(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Result:
    """Return the result of a fit from its file."""
    known = {field.name for field in fields(Options)}  # earlier versions wrote more
    given = {name: value for name, value in facts["options"].items() if name in known}
    options = Options(**given | {"dtype": np.dtype(given["dtype"])})
    stream = None
    if "stream.0" in arrays:
        with jax.enable_x64(options.dtype == np.float64):
            stream = _stream(arrays)
    ended = facts["outcome"]
    return Result(
        **{name.rstrip("_"): arrays[name] for name in ARRAYS},
        noise_variance=facts["numbers"]["noise_variance_"],
        rows=facts["numbers"]["n_samples_seen_"],
        certificate=_certificate(facts["certificate"]),
        outcome=Outcome(
            Status[ended["outcome"]], ended["route"], ended["passes"], ended.get("rounding")
        ),
        players=arrays["players"],
        options=options,
        frame=Frame(arrays.get("origin"), float(facts.get("unit", 1.0))),
        stream=stream,
    )


def _preparation(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Preparation:
    """Return the preparation of the data."""
    own = {
        name.partition(".")[2]: array
        for name, array in arrays.items()
        if name.startswith("preparation.")
    }
    # Without a selection the names are those of the features of the model.
    names = facts["features"] if not selects(facts["preparation"]) else None
    names = facts.get("feature_names_before") or names
    preparation = Preparation.from_facts(facts["preparation"], own, facts["features_before"], names)
    width = preparation.width
    for step in preparation.steps:
        width = step.width(width)
    if width != arrays["components_"].shape[1]:
        raise ValueError(f"the preparation gives {width} features")
    return preparation


def _stream(arrays: dict[str, np.ndarray]) -> Stream:
    """Return the stream from its leaves, in the order of JAX."""
    nothing: Any = 0
    shell = Stream(
        RememberedState(Memory(*[nothing] * 4), nothing, nothing),
        Moments(*[nothing] * 3),
        0,
        ((0, nothing), (0, nothing)),
        probes=ProbeSums(*[nothing] * 6) if "stream.17" in arrays else None,
    )
    leaves, tree = jax.tree.flatten(shell)
    found = [jax.device_put(arrays[f"stream.{i}"]) for i in range(len(leaves))]
    stream: Stream = jax.tree.unflatten(tree, found)
    (one, first), (two, second) = stream.snapshots
    snapshots = ((int(one), first), (int(two), second))
    return stream._replace(rows=int(stream.rows), snapshots=snapshots)


def _certificate(facts: dict[str, Any]) -> Certificate:
    """Return a certificate from its JSON."""
    known = {field.name for field in fields(Certificate)}
    arrays: dict[str, Any] = {
        name: np.asarray([math.nan if one is None else one for one in value], np.float64)
        if isinstance(value, list)
        else value
        for name, value in facts.items()
        if name in known and name != "clusters"
    }
    clusters = tuple(
        Cluster(**{**one, "members": tuple(one["members"])}) for one in facts.get("clusters", ())
    )
    return Certificate(**arrays | {"clusters": clusters})
