"""Solvers of this package, with the interface of `other_solvers.py`: the estimator and algorithms of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.other_solvers import Found, Solver, entry

STEP_SIZES = (1e-3, 1e-4, 1e-5, 1e-6)
"""Step sizes that the paper searches."""


def one_pass(data: Any, k: int, batch: int, seed: int) -> Found:
    """EigenGamePCA, one pass over the rows, in batches of its own choice."""
    return fitted({"passes": 1}, data, k, seed, declared=1)


def refined(data: Any, k: int, batch: int, seed: int) -> Found:
    """EigenGamePCA, up to 8 passes, until certified at pi/32."""
    return fitted({"passes": 8, "tol": math.pi / 32}, data, k, seed, declared=8)


def automatic(data: Any, k: int, batch: int, seed: int) -> Found:
    """EigenGamePCA with its defaults: every component certified within 0.05 rad."""
    return fitted({"algorithm": "auto", "tol": "auto"}, data, k, seed, declared=None)


def certified(data: Any, k: int, batch: int, seed: int) -> Found:
    """EigenGamePCA with a tolerance of pi/32, by the route that it chooses."""
    return fitted({"algorithm": "auto", "tol": math.pi / 32}, data, k, seed, declared=None)


def fitted(options: dict[str, Any], data: Any, k: int, seed: int, declared: int | None) -> Found:
    """Return the components and the outcome of the estimator with these options."""
    from eigengame import EigenGamePCA

    if scipy.sparse.issparse(data):
        options["center"] = False
    estimator = EigenGamePCA(k, **{"algorithm": "remembered", "tol": None} | options)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    estimator.fit(data)
    return Found(
        np.asarray(estimator.components_),
        getattr(estimator, "n_passes_", declared),
        players=getattr(estimator, "n_players_", k),
        note=str(getattr(estimator, "outcome_", "")),
    )


def frequent_directions(data: Any, k: int, batch: int, seed: int) -> Found:
    """Frequent Directions with the paper's sketch of 5k rows, one pass."""
    import eigengame as eg

    played = eg.play_stream(
        eg.algorithms.FrequentDirections(), stream(data, batch, 1, None), k=k, seed=seed
    )
    return Found(np.asarray(played.components), 1)


def searched(data: Any, k: int, batch: int, seed: int, algorithm: str, passes: int = 3) -> Found:
    """Run an algorithm of the paper, with the paper's search for a step size.

    The time includes the search. The best run is the one with the largest sum of utilities over the last
    tenth of its batches; the true components are not used.
    """
    import eigengame as eg

    best, best_utility, best_step = None, -math.inf, math.nan
    for step_size in STEP_SIZES:
        game = eg.make(algorithm, step_size=step_size)
        played = eg.play_stream(game, stream(data, batch, passes, seed), k=k, seed=seed)
        utilities = np.asarray(played.info.utilities)
        late = utilities[-max(1, len(utilities) // 10) :].sum(axis=1).mean()
        if late > best_utility:  # false if the run diverged, because NaN compares as false
            best, best_utility, best_step = played, late, step_size
    if best is None:
        raise FloatingPointError(f"every step size of {STEP_SIZES} diverged")
    read = passes * len(STEP_SIZES)
    return Found(np.asarray(best.components), read, players=k, note=f"step size {best_step:g}")


def stream(data: Any, batch: int, passes: int, seed: int | None) -> Iterator[Any]:
    """Return batches of dense rows, shuffled for each pass if there is a seed."""
    import eigengame as eg

    if not scipy.sparse.issparse(data):
        return eg.game.batches(data, batch, passes=passes, seed=seed)
    return sparse_stream(data, batch, passes, seed)


def sparse_stream(data: Any, batch: int, passes: int, seed: int | None) -> Iterator[np.ndarray]:
    """Yield dense batches of one shape."""
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        order = np.arange(data.shape[0]) if seed is None else rng.permutation(data.shape[0])
        for begin in range(0, len(order), batch):
            block = np.zeros((batch, data.shape[1]), data.dtype)
            chosen = data[order[begin : begin + batch]]
            block[: chosen.shape[0]] = chosen.toarray()
            yield block


OWN_SOLVERS: dict[str, Solver] = {
    "eigengame": entry(one_pass, "eigengame:EigenGamePCA", "eigengame"),
    "eigengame-refined": entry(refined, "eigengame:EigenGamePCA", "eigengame"),
    "eigengame-auto": entry(automatic, "eigengame:EigenGamePCA", "eigengame"),
    "eigengame-certified": entry(certified, "eigengame:EigenGamePCA", "eigengame"),
    "frequent-directions": entry(frequent_directions, "eigengame", "eigengame"),
    "alpha": entry(searched, "eigengame", "eigengame", algorithm="alpha"),
    "mu": entry(searched, "eigengame", "eigengame", algorithm="mu"),
    "oja": entry(searched, "eigengame", "eigengame", algorithm="oja"),
}
"""Solvers of this package by their names in the tables."""
