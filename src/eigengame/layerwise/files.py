"""Model files of the fits of all layers: one file for all, or a folder with one for each layer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigengame import model_file
from eigengame._system.array_file import read_arrays, verify_checksum, write_arrays
from eigengame._version import __version__
from eigengame.estimator import EigenGamePCA

KEY = "eigengame-layers"
"""Metadata key of a file with all layers."""

FORMAT = 1

SUFFIX = ".safetensors"


def save_layers(fits: Mapping[str, EigenGamePCA], path: Any) -> Path:
    """Write all fits to one `.safetensors` file, or to a folder with one model file for each layer."""
    target = Path(path)
    if target.suffix != SUFFIX:
        return _save_folder(fits, target)
    if not target.parent.is_dir():
        raise model_file.ModelFileError(f"{target.parent} is not a folder: make it first.")
    arrays: dict[str, np.ndarray] = {}
    entries = []
    for i, (name, pca) in enumerate(fits.items()):
        own, facts = model_file.contents(pca)
        arrays |= {f"{i}/{key}": array for key, array in own.items()}
        entries.append({"name": name, "model": facts})
    about = {"format": FORMAT, "version": __version__, "layers": entries}
    write_arrays(target, arrays, {KEY: json.dumps(about)})
    return target


def _save_folder(fits: Mapping[str, EigenGamePCA], folder: Path) -> Path:
    """Write one model file for each layer, numbered in their order."""
    if folder.exists() and not folder.is_dir():
        raise model_file.ModelFileError(
            f"{folder} is a file: give a folder, or a name that ends in {SUFFIX} for one file."
        )
    folder.mkdir(exist_ok=True)
    for i, (name, pca) in enumerate(fits.items()):
        pca.save(folder / f"{i:03d}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}{SUFFIX}")
    return folder


def load_layers(path: Any) -> dict[str, EigenGamePCA]:
    """Read what `save_layers` wrote."""
    target = Path(path)
    if target.is_dir():
        models = [EigenGamePCA.load(one) for one in sorted(target.glob(f"*{SUFFIX}"))]
        if not models:
            raise model_file.ModelFileError(f"{target} has no model files ({SUFFIX}).")
        return {_layer_name(one, target): one for one in models}
    if not target.is_file():
        raise model_file.ModelFileError(
            f"{target} does not exist: check the path (from {Path.cwd()})."
        )
    try:
        arrays, about = read_arrays(target)
        if KEY not in about:
            raise model_file.ModelFileError(
                f"{target} does not contain fits of layers: give a file or folder that fit_layers wrote; "
                "EigenGamePCA.load reads single models."
            )
        verify_checksum(arrays, about)
        facts = json.loads(about[KEY])
        if facts["format"] > FORMAT:
            raise model_file.ModelFileError(
                f"{target} has format {facts['format']}, written by eigengame {facts.get('version')}: upgrade "
                "eigengame."
            )
        entries = [(str(one["name"]), one["model"]) for one in facts["layers"]]
    except model_file.ModelFileError:
        raise
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise model_file.ModelFileError(
            f"{target} is damaged or not a safetensors file ({error}): copy or write it again."
        ) from None
    found = {}
    for i, (name, model) in enumerate(entries):
        own = {
            key.partition("/")[2]: array for key, array in arrays.items() if key.startswith(f"{i}/")
        }
        found[name] = model_file.rebuild(EigenGamePCA, target, own, model)
    return found


def _layer_name(pca: EigenGamePCA, folder: Path) -> str:
    """Return the name of the only layer of a model."""
    if pca.layers_ is None or len(pca.layers_) != 1:
        raise model_file.ModelFileError(f"{folder} has a model that is not one of a single layer.")
    return pca.layers_.names[0]
