"""Checks of the number of rows with a weight above 0."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from eigengame.sources import SourceError


def refuse_unless_counted(name: str, rows: int, weight: Any, least: int = 1) -> None:
    """Raise if fewer than `least` rows have a weight above 0.

    Parameters
    ----------
    name : str
        Name of the data, for the message.
    rows : int
        Rows with a weight above 0.
    weight : float
        Sum of the weights.
    least : int
    """
    if not rows or not float(weight) > 0:
        raise SourceError(
            f"{name}: no row has a weight above zero, so there is nothing to fit. Check sample_weight and the "
            "column of weights; with missing='skip' every row has a missing value: use missing='mean', or "
            "leave out the columns with missing values."
        )
    if rows < least:
        raise SourceError(
            f"{name} has {rows} row with a weight above 0: at least {least} are needed for a variance."
        )


class PrecisionWarning(UserWarning):
    """Rows that the precision of a stream is too small for."""


def warn_if_rounded_away(name: str, added: float, total: Any, dtype: Any) -> None:
    """Warn if a batch is too light to change what a stream has accumulated.

    Parameters
    ----------
    name : str
        Name of the data, for the message.
    added : float
        Sum of the weights of the batch.
    total : float
        Sum of the weights of the stream with the batch.
    dtype : dtype
        Precision of the stream.
    """
    share = added / float(total)
    if 0 < share < float(np.finfo(dtype).eps):
        warnings.warn(
            f"{name} has {share:.1e} of the weight of all rows so far, which {np.dtype(dtype)} rounds away: give "
            "larger batches, start the stream with dtype='float64', or use forget below 1.",
            PrecisionWarning,
            stacklevel=5,
        )


class TooFewRows(ValueError):
    """More components than rows with a weight above 0.

    `most` is the largest possible number of components, and `passes` the number of passes that showed it.
    """

    def __init__(self, name: str, k: int, most: int, passes: int) -> None:
        super().__init__(
            f"n_components={k} is more than {most}, the number of rows of {name} with a weight above 0: give at "
            f"most {most}."
        )
        self.most, self.passes = most, passes


def refuse_unless_enough(name: str, k: int, rows: int, weight: Any, passes: int) -> None:
    """Raise TooFewRows if there are more components than rows; a row of weight 3 counts as three rows."""
    most = max(rows, round(float(weight)))
    if k > most:
        raise TooFewRows(name, k, most, passes)
