"""Write a fitted estimator to a model file."""

from __future__ import annotations

import json
import math
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from eigengame._system.array_file import lines_to_array, write_arrays
from eigengame._version import __version__
from eigengame.model_file.layout import (
    ARRAYS,
    FORMAT,
    KEY,
    NUMBERS,
    POSITIONS,
    SAMPLES,
    ModelFileError,
    selects,
)
from eigengame.preparation import Preparation
from eigengame.solver.results.result import Result
from eigengame.sources._folders import without_folders


def save(estimator: Any, path: Any, *, full_paths: bool = False) -> Path:
    """Write a fitted estimator. An existing file is replaced atomically.

    Parameters
    ----------
    estimator : EigenGamePCA
    path : path
    full_paths : bool
        Whether to write the folders of the data.
    """
    target = Path(path)
    if target.suffix != ".safetensors":
        raise ModelFileError(f"{target}: give a name that ends in .safetensors.")
    if not target.parent.is_dir():
        raise ModelFileError(f"{target.parent} is not a folder: make it first.")
    arrays, facts = contents(estimator, full_paths=full_paths)
    write_arrays(target, arrays, {KEY: json.dumps(facts)})
    return target


def contents(
    estimator: Any, *, full_paths: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the facts that a file of a fitted estimator contains."""
    result: Result = estimator._result
    arrays = {name: np.asarray(getattr(estimator, name)) for name in ARRAYS}
    arrays["players"] = result.players
    if result.frame.origin is not None:
        arrays["origin"] = np.asarray(result.frame.origin)
    leaves = jax.tree.leaves(result.stream)  # none without a stream
    arrays |= {f"stream.{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    preparation = estimator._preparation
    if preparation is not None:
        arrays |= {f"preparation.{name}": array for name, array in preparation.arrays().items()}
    arrays |= _genotype_arrays(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    facts = {
        "format": FORMAT,
        "version": __version__,
        "parameters": {name: _plain(value) for name, value in estimator.get_params().items()},
        "numbers": {name: getattr(estimator, name) for name in NUMBERS},
        "options": asdict(result.options) | {"dtype": str(result.options.dtype)},
        "certificate": {
            name: _listed(value) for name, value in asdict(estimator.certificate_).items()
        },
        "outcome": {
            "outcome": estimator.outcome_.status.name,
            "route": estimator.outcome_.route,
            "passes": estimator.outcome_.passes,
            "rounding": estimator.outcome_.rounding,
        },
        "features": None if names is None else [str(name) for name in names],
        "alleles": estimator._alleles,
        "layer": estimator._layer,
        "layers": None if estimator.layers_ is None else estimator.layers_.facts(),
        "stream_shape": list(result.components.shape),
        "unit": result.frame.unit,
        "began": {name: _plain(value) for name, value in estimator._began.items()},
        "preparation": None if preparation is None else preparation.facts(),
        "features_before": None if preparation is None else preparation.width,
        "feature_names_before": _names_before(preparation),
        "provenance": provenance(estimator, full_paths=full_paths),
    }
    return arrays, facts


def _genotype_arrays(estimator: Any) -> dict[str, np.ndarray]:
    """Return positions of SNPs and ids of individuals. The size of the JSON is limited, that of arrays is not."""
    arrays = {}
    if estimator._positions is not None:
        arrays[POSITIONS] = lines_to_array(estimator._positions)
    if estimator.sample_ids_ is not None:
        arrays[SAMPLES] = lines_to_array(["\t".join(one) for one in estimator.sample_ids_])
    return arrays


def _names_before(preparation: Preparation | None) -> list[str] | None:
    """Return the names of the features before the preparation, if they are not those of the model."""
    if preparation is None or preparation.names is None or not selects(preparation.facts()):
        return None
    return list(preparation.names)


def provenance(estimator: Any, *, full_paths: bool = False) -> dict[str, Any]:
    """Return the provenance of a model: that of its file, or the present one, with or without folders."""
    source, folders = getattr(estimator, "_source", None), getattr(estimator, "_folders", ())
    return getattr(estimator, "_provenance", None) or {
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "source": source if full_paths else without_folders(source, folders),
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
    }


def _listed(value: Any) -> Any:
    """Return arrays as lists, with null for numbers that are not finite: JSON has no NaN."""
    if isinstance(value, np.ndarray):
        return [None if not math.isfinite(one) else float(one) for one in value]
    return value


def _plain(value: Any) -> Any:
    """Return a parameter as JSON; a random state that is not a number is not stored."""
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else None
