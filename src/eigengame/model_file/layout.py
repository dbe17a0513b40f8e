"""Format of a model file, and the names of its entries."""

from __future__ import annotations

from typing import Any

FORMAT = 2
"""Files of format 1 have no digest."""

KEY = "eigengame"

POSITIONS, SAMPLES = "snps.positions", "samples.ids"
"""Names of the arrays of genotypes."""

ARRAYS = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "var_",
)
NUMBERS = (
    "noise_variance_",
    "n_components_",
    "n_samples_seen_",
    "n_features_in_",
    "n_players_",
    "n_passes_",
)


class ModelFileError(ValueError):
    """A file that is not a complete model; the message says which and what to do."""


def selects(steps: list[dict[str, Any]]) -> bool:
    """Return whether one of the steps of a preparation selects columns."""
    return any(step.get("kind") == "columns" for step in steps)
