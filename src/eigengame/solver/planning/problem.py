"""Data and options of a fit, before anything is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eigengame.solver.planning.options import Options
from eigengame.sources import Source


@dataclass(frozen=True)
class Problem:
    """Data and options of a fit, before anything is decided.

    Attributes
    ----------
    source : Source
    options : Options
    weights : array of shape (n,) or None
    algorithm : str
        "auto", "exact" or a name of the registry.
    batch_size : int or "auto"
    mesh : dict, str, Mesh or None
    """

    source: Source
    options: Options
    weights: np.ndarray | None = None
    algorithm: str = "remembered"
    batch_size: int | Literal["auto"] = "auto"
    mesh: object = None
