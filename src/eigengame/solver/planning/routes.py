"""Which route a fit takes: the remembered game, an exact solution of a small problem, or another algorithm."""

from __future__ import annotations

import jax

from eigengame._system.memory import free_memory
from eigengame.solver.certificates.counted_eigenvalues import SPARE
from eigengame.solver.passes.limits import AUTO_PASSES
from eigengame.solver.planning.lanczos_basis import basis_bytes, lanczos_block, largest_basis
from eigengame.solver.planning.memory import available
from eigengame.solver.planning.options import PROBES
from eigengame.sources import Source

REMEMBERED = "remembered"
"""The route of the remembered game, refined if more passes are allowed."""

LANCZOS = "lanczos"
"""The route of rows in memory: players by Lanczos' method, which often certifies them by itself."""

COVARIANCE = "covariance"
"""The route that accumulates M in one pass and solves its eigenproblem: for few features."""

ROW_GRAM = "row gram"
"""The route that solves the eigenproblem of the inner products of all rows: for few rows."""

EXACT_ROUTES = (COVARIANCE, ROW_GRAM)

REFINED = (REMEMBERED, LANCZOS)
"""Routes whose players are refined by further passes."""

EXACT = "exact"
"""The algorithm that chooses one of these two routes."""

MOST_SOLVED = 8192
"""Largest size of the eigenproblem of an exact route."""

USUAL_PASSES = 3
"""Passes that a certificate takes on data with many rows and features."""

LEAST_TRIED = 6
"""Passes of a refinement before an exact route is taken, however cheap that is."""

MANY_ROWS = 8
"""Ratio of the number of sparse rows to that of players from which Lanczos' method takes less time than the
eigenproblem of all inner products."""

SMALL = 1024
"""Size of an eigenproblem that takes little time and memory."""

START_UP = 1e11
"""Operations in the time that the programs of the game take to compile, or to be loaded from the cache."""

EIGENPROBLEM = 15
"""Operations of an eigenproblem of size m, divided by the cube of m."""


PASS_COST = 18
"""What a pass over dense rows costs beside its products, in vectors: rows are loaded and packed."""

MEASURING = 25
"""What the products in float64 of the first pass cost, in vectors."""

SKINNY = 0.85
"""Time of one half of a symmetric product, divided by that of as many operations of products with few vectors."""

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
    again: bool = False,
    coarse: int = 0,
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
    again : bool
        Whether the players may be refined by further passes.
    coarse : int
        Number of components, if many passes are allowed and products in float32 are likely to be accurate enough;
        else 0.
    """
    if algorithm == EXACT:
        return exact_route(source, rows, forget=forget, shared=shared)
    if algorithm == "auto":
        plain = forget == 1
        found = _cheapest(source, players, rows, plain=plain, shared=shared, again=again)
        dense = coarse > 0 and plain and not shared and rows is not None
        return LANCZOS if dense and _by_lanczos(source, coarse, rows or 0, found) else found
    if algorithm != REMEMBERED and source.sparse:
        raise ValueError(
            f"algorithm={algorithm!r} needs dense rows, but {source.name} is sparse: use 'remembered'."
        )
    return algorithm


def _cheapest(
    source: Source, players: int, rows: int | None, *, plain: bool, shared: bool, again: bool
) -> str:
    """Return the exact route that costs less than the game, or "remembered".

    Parameters
    ----------
    source : Source
    players : int
    rows : int or None
    plain : bool
        Whether no rows are forgotten.
    shared : bool
        Whether several devices or workers share the data.
    again : bool
        Whether the players may be refined by further passes.
    """
    d = source.shape[1]
    if not plain:
        return REMEMBERED
    lanczos = source.sparse and again and not shared and _in_memory(source)
    if source.sparse and not shared and rows is not None and rows < d and _solvable(rows):
        return LANCZOS if lanczos and rows > MANY_ROWS * players else ROW_GRAM
    if lanczos:
        return LANCZOS
    few = rows is not None and rows < d and not shared and _rows_fit(source)
    # M takes n d^2 once, the first pass of the game about 3 n K d.
    most = MOST_COVARIANCE if source.on_device and _fast_float64() else 3 * players
    cheap = d <= max(3 * players, most) or _solved_on_host(source, players, rows, shared)
    if not source.sparse and cheap and not few:
        return COVARIANCE
    if shared or rows is None or not (few or _rows_fit(source)):
        return REMEMBERED
    # The inner products take n^2 d once. Rows that a network computes cost more than these. Data with few rows
    # often has a flat spectrum, which takes many passes.
    computed = source.on_device and not source.views
    most = MOST_SOLVED if computed else AUTO_PASSES * 3 * players
    small = not source.sparse and (cheap or rows**2 * d + EIGENPROBLEM * rows**3 <= START_UP)
    return ROW_GRAM if (rows <= most or small) and _solvable(rows) else REMEMBERED


def _by_lanczos(source: Source, k: int, rows: int, route: str) -> bool:
    """Return whether Lanczos' method takes less time for dense rows in the memory of a CPU than another route."""
    d = source.shape[1]
    if source.sparse or not source.views or source.on_device or jax.default_backend() != "cpu":
        return False
    if source.slow and not _rows_fit(source):  # a file is read once, if memory holds it
        return False
    block = lanczos_block(k)
    needed = -(-(9 * k + 80) // (2 * block)) + 1
    if (
        largest_basis(d, k + SPARE, block) < needed * block
        or rows <= 8 * k
        or 2 * needed * block > d
    ):
        return False
    free = free_memory() if d > SMALL else None
    if free is not None and 2 * basis_bytes(d, k) > free:
        return False
    if route == REMEMBERED:
        return True
    if d <= SMALL:  # a second or less for a solution that is exact up to rounding
        return False
    own = 4 * (needed * (block + PASS_COST) + MEASURING) * rows * d
    return route == COVARIANCE and own < SKINNY * rows * d**2 + EIGENPROBLEM * d**3


def _in_memory(source: Source) -> bool:
    """Return whether copies of all sparse rows fit into the memory of a CPU."""
    n = source.shape[0]
    entries = None if n is None else source.most_entries(n)
    if entries is None or jax.default_backend() != "cpu":
        return False
    free = free_memory()
    return free is None or 64 * entries <= free


def _solved_on_host(source: Source, players: int, rows: int | None, shared: bool) -> bool:
    """Return whether a CPU accumulates and solves M in less time than the game takes.

    NumPy does it without compilation, and computes only one half of M.
    """
    d = source.shape[1]
    if shared or source.on_device or not _solvable(d) or jax.default_backend() != "cpu":
        return False
    each = 6 * players + 4 * (USUAL_PASSES - 1) * (players + PROBES)
    n = d if rows is None else rows
    return n * d**2 + EIGENPROBLEM * d**3 <= START_UP + n * d * each


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


def fallback_route(
    algorithm: str, source: Source, rows: int | None, *, forget: float, shared: bool
) -> str | None:
    """Return the exact route for components that the game does not certify; None if there is none.

    Parameters are those of `route_of`. Only ``algorithm="auto"`` changes its route.
    """
    if algorithm != "auto" or forget != 1:
        return None
    try:
        route = exact_route(source, rows, forget=forget, shared=shared)
    except ValueError:
        return None
    return route if _solvable(source.shape[1] if route == COVARIANCE else rows or 0) else None


def passes_before(route: str, source: Source, players: int, rows: int) -> int:
    """Return the number of passes of a refinement that cost as much as an exact route, at least `LEAST_TRIED`."""
    d = source.shape[1]
    size, length = (d, rows) if route == COVARIANCE else (rows, d)
    exact = length * size**2 + EIGENPROBLEM * size**3
    return max(LEAST_TRIED, exact // max(4 * rows * d * (players + PROBES), 1))


def _solvable(size: int) -> bool:
    """Return whether the eigenproblem of a matrix of this size is small enough, and fits into memory."""
    if size > MOST_SOLVED:
        return False
    # The matrix, a copy, its eigenvectors, products with these, and the work space of LAPACK.
    free = free_memory() if size > SMALL else None
    return free is None or 8 * 6 * size**2 <= free


def _rows_fit(source: Source) -> bool:
    """Return whether a copy of all rows fits into half of the free memory, or they are on the device already."""
    n, d = source.shape
    if source.sparse or (source.on_device and source.views):
        return True
    free = available()
    return n is not None and (free is None or n * d * source.dtype.itemsize <= free / 2)
