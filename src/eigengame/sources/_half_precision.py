"""How outputs of a network were rounded to half precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

HALVES = ("bfloat16", "float16")

CENTRED = "centred first"


def describe_rounding(computed: Iterable[Any], rows: Any, *, centred: bool) -> str | None:
    """Return how the numbers of rows were rounded to half precision; None if they were not.

    Parameters
    ----------
    computed : iterable of dtypes
        Of the outputs of the layers, as the network computed them.
    rows : dtype
        Of the rows.
    centred : bool
        Whether an origin near the mean was subtracted before.
    """
    names = {dtype_name(one) for one in computed}
    by_network = sorted(names & set(HALVES))
    if by_network:
        return f"{by_network[0]} by the network"
    if dtype_name(rows) not in HALVES:
        return None
    return f"{dtype_name(rows)}, {CENTRED}" if centred else dtype_name(rows)


def computed_as(computed: Iterable[Any], rows: Any) -> bool:
    """Return whether a network computed all outputs in the dtype of the rows, given their dtypes."""
    return {dtype_name(one) for one in computed} <= {dtype_name(rows)}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype of NumPy, JAX or torch."""
    return str(dtype).rpartition(".")[2]
