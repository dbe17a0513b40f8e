"""Rows that were rounded to half precision: how, and whether that matters."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from eigengame.solver.results.result import Result
from eigengame.sources import Source
from eigengame.sources._half_precision import CENTRED

DIGITS = {"bfloat16": 2.0**-9, "float16": 2.0**-12}
"""Unit roundoff of each precision."""

NOISE = 0.01
"""Rounding error of a number, as a share of its spread, from which components may differ visibly."""


class HalfPrecisionWarning(UserWarning):
    """Rows in half precision whose mean is much larger than their spread: their digits describe the mean."""


def with_rounding(result: Result, source: Source) -> Result:
    """Return a result that records how its source rounded numbers to half precision."""
    rounding = source.rounding(centred=result.frame.origin is not None)
    return replace(result, outcome=replace(result.outcome, rounding=rounding))


def warn_if_mean_dominates(name: str, rounding: str | None, mean: Any, variance: Any) -> None:
    """Warn if rows were rounded before they were centred, and their mean is much larger than their spread.

    Parameters
    ----------
    name : str
        Name of the data, for the message.
    rounding : str or None
        How numbers were rounded (`Source.rounding`).
    mean, variance : arrays of shape (d,)
    """
    if rounding is None or rounding.endswith(CENTRED):
        return
    spread = float(np.sqrt(np.sum(variance, dtype=np.float64)))
    ratio = float(np.linalg.norm(np.asarray(mean, np.float64))) / spread if spread > 0 else 0.0
    kind = rounding.split()[0]
    if ratio * DIGITS[kind] > NOISE:
        warnings.warn(
            f"{name}: numbers were rounded to {rounding}, and their mean is {ratio:.0f} times as large as their "
            "spread, so that most of their digits describe the mean: run the network in float32 (network_dtype or "
            'dtype "float32"), or in float16, which has more digits.',
            HalfPrecisionWarning,
            stacklevel=4,
        )
