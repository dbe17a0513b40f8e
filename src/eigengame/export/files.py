"""Fitted components in files of other libraries, chosen by the ending of the path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.atomic_write import StorageError, atomic_write
from eigengame.export.scikit_learn import to_sklearn
from eigengame.export.torch_modules import state_dict
from eigengame.model import Model

NAMES = (
    "components",
    "explained_variance",
    "explained_variance_ratio",
    "singular_values",
    "mean",
    "var",
    "noise_variance",
    "n_samples_seen",
)
"""Arrays of an `.npz` file: the attributes of the estimator, without the underscore."""


def export(estimator: Any, model: Model, path: Any) -> Path:
    """Write a fitted estimator to `path` and return it; see `EigenGamePCA.export`."""
    target = Path(path)
    if target.suffix not in WRITERS:
        raise ValueError(f"{target}: give a file name that ends in {', '.join(WRITERS)}.")
    if not target.parent.is_dir():
        raise StorageError(f"{target.parent} is not a folder: create it first.")
    with atomic_write(target) as draft:
        WRITERS[target.suffix](estimator, model, draft)
    return target


def _write_npz(estimator: Any, model: Model, path: Path) -> None:
    """Write arrays, and the affine map from rows to scores."""
    arrays: dict[str, Any] = {name: np.asarray(getattr(estimator, f"{name}_")) for name in NAMES}
    weight, bias = model.affine(whiten=estimator.whiten)
    kind = arrays["components"].dtype
    arrays |= {"weight": weight.astype(kind), "bias": bias, "whiten": np.asarray(estimator.whiten)}
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        # As text, not as objects, which NumPy reads only with allow_pickle=True.
        arrays["feature_names"] = np.array([str(one) for one in names])
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _write_state_dict(estimator: Any, model: Model, path: Path) -> None:
    """Write the state dict of `whitener` or `projector`."""
    state = state_dict(
        model, whiten=estimator.whiten
    )  # raises with the remedy if torch is not installed
    import torch

    torch.save(state, path)


def _write_sklearn(estimator: Any, model: Model, path: Path) -> None:
    """Write a fitted `sklearn.decomposition.PCA`, pickled by joblib."""
    import joblib  # type: ignore[import-untyped]

    joblib.dump(to_sklearn(estimator), path)


WRITERS: Mapping[str, Callable[[Any, Model, Path], None]] = {
    ".npz": _write_npz,
    ".pt": _write_state_dict,
    ".joblib": _write_sklearn,
}
"""Function that writes a file, by its ending."""
