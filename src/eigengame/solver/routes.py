"""Which route a fit takes: the remembered game, an exact solution of a small problem, or another algorithm."""

from __future__ import annotations

import jax

from eigengame.solver.memory import available
from eigengame.sources import Source

COVARIANCE = "covariance"
"""The route that accumulates M in one pass and solves its eigenproblem: for few features."""

ROW_GRAM = "row gram"
"""The route that solves the eigenproblem of the inner products of all rows: for few rows."""

EXACT = "exact"
"""The algorithm that chooses one of these two routes."""

MOST_SOLVED = 8192
"""Largest size of the eigenproblem of an exact route."""

EXPECTED_PASSES = 16
"""Passes that a certificate may take on wide data with a flat spectrum: the exact route may cost as much."""


MOST_COVARIANCE = 1024
"""Largest number of features for which M of rows on a GPU is cheaper than a certified remembered game."""


def route_of(
    algorithm: str,
    source: Source,
    players: int,
    rows: int | None,
    *,
    forget: float = 1.0,
    shared: bool = False,
) -> str:
    """Return the route of an algorithm.

    Parameters
    ----------
    algorithm : str
        "auto", "exact" or a name of the registry.
    source : Source
    players : int
    rows : int or None
        Rows of the source, if known.
    forget : float
    shared : bool
        Whether several devices or workers share the data.
    """
    if algorithm == EXACT:
        return exact_route(source, rows, forget=forget, shared=shared)
    if algorithm == "auto":
        plain = forget == 1
        # M takes n d^2 once, the remembered game about 3 n K d in each pass.
        most = MOST_COVARIANCE if source.on_device and _fast_float64() else 0
        if plain and not source.sparse and source.shape[1] <= max(3 * players, most):
            return COVARIANCE
        # The inner products take n^2 d once. Rows that a network computes cost more than these.
        most = MOST_SOLVED if source.on_device and source.slow else EXPECTED_PASSES * 3 * players
        if plain and not shared and rows is not None and rows <= most and _rows_fit(source):
            return ROW_GRAM
        return "remembered"
    if algorithm != "remembered" and source.sparse:
        raise ValueError(
            f"algorithm={algorithm!r} needs dense rows, but {source.name} is sparse: use 'remembered'."
        )
    return algorithm


def exact_route(source: Source, rows: int | None, *, forget: float, shared: bool) -> str:
    """Return the cheaper exact route, or raise ValueError with the reason why there is none."""
    d = source.shape[1]
    if forget < 1:
        raise ValueError(
            "algorithm='exact' weighs all rows by their sample weights, and forgets none: leave forget out, or "
            "use algorithm='remembered'."
        )
    few_features = d <= MOST_SOLVED and not source.sparse
    few_rows = rows is not None and rows <= MOST_SOLVED and not shared and _rows_fit(source)
    if few_rows and rows is not None and (rows < d or not few_features):
        return ROW_GRAM
    if few_features:
        return COVARIANCE
    count = "an unknown number of" if rows is None else f"{rows:,}"
    reason = (
        f"{source.name} has {count} rows of {d:,} features: algorithm='exact' needs at most {MOST_SOLVED:,} of "
        "either; with few rows they must fit into memory, on one device"
    )
    if source.sparse:
        reason += ", and sparse rows must be few"
    raise ValueError(f"{reason}. Use algorithm='remembered' with tol=0.01.")


def _fast_float64() -> bool:
    """Return whether the GPU multiplies float64 about as fast as float32: those of data centres do.

    Their compute capabilities are whole numbers, such as 8.0 (A100) and 9.0 (H100).
    """
    if jax.default_backend() != "gpu":
        return False
    return str(getattr(jax.devices()[0], "compute_capability", "")).endswith(".0")


def _rows_fit(source: Source) -> bool:
    """Return whether a copy of all rows fits into half of the free memory, or they are on the device already."""
    n, d = source.shape
    if source.sparse or (source.on_device and source.views):
        return True
    free = available()
    return n is not None and (free is None or n * d * source.dtype.itemsize <= free / 2)
