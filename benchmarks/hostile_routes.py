"""The routes to a certificate: each fits one problem and returns the claims of the certificate.

Mesh routes need several devices, so they run in a child process with virtual CPU devices. Claims are plain data
that can be pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import jax.numpy as jnp
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.hostile_claims import Claim, Route, claim, estimator, tolerance
from benchmarks.hostile_problems import Problem
from benchmarks.hostile_streams import STREAM_ROUTES
from eigengame.estimator import pca
from eigengame.sharding.placement import Placement
from eigengame.solver.lanczos import dense_problem, lanczos
from eigengame.solver.planning import make_plan, routes
from eigengame.solver.planning.plan import COARSE
from eigengame.solver.refinement import refine
from eigengame.solver.refinement.float32_products import measurable
from eigengame.solver.refinement.goal import Goal
from eigengame.sources.device_array import DeviceArray

MOST_INNER_PRODUCTS = 1200
"""Largest number of rows whose inner products are solved."""


@dataclass(frozen=True)
class Attempt:
    """The result of one problem on one route: claims, or the reason why there are none.

    Attributes
    ----------
    claims : tuple of Claim
    refused : str
        The message of a refusal (a `ValueError` that this package or scikit-learn's checks raise), or "".
    failed : str
        The type and message of any other error, or "".
    """

    claims: tuple[Claim, ...] = ()
    refused: str = ""
    failed: str = ""


def by_tol(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem)).fit(problem.rows)
    return [claim("plain", pca)]


def by_passes(problem: Problem) -> list[Claim]:
    pca = estimator(problem, passes=8).fit(problem.rows)
    after_fit = claim("plain", pca)
    pca.certify(problem.rows)
    return [after_fit, claim("plain", pca)]


def one_pass(problem: Problem) -> list[Claim]:
    return [claim("plain", estimator(problem).fit(problem.rows))]


def by_covariance(problem: Problem) -> list[Claim]:
    pca = estimator(problem, algorithm="auto", tol=tolerance(problem)).fit(problem.rows)
    return [claim("plain", pca)]


def by_float32_covariance(problem: Problem) -> list[Claim]:
    """Solve by the covariance in float32, although the data is small enough for float64."""
    return _in_float32(problem, routes.COVARIANCE)


def by_float32_inner_products(problem: Problem) -> list[Claim]:
    """Solve by the inner products of the rows in float32; many rows by the covariance."""
    few = problem.setting.rows <= MOST_INNER_PRODUCTS
    return _in_float32(problem, routes.ROW_GRAM if few else routes.COVARIANCE)


def by_dense_lanczos(problem: Problem) -> list[Claim]:
    """Fit dense rows by Lanczos' method in float32, however few they are, in small blocks for few features."""
    with (
        mock.patch.object(dense_problem, "lanczos_block", return_value=8),
        mock.patch.object(lanczos, "SPARE", 2),
    ):
        return _in_float32(problem, routes.LANCZOS)


def _in_float32(problem: Problem, route: str) -> list[Claim]:
    """Return the claims of a route that uses float32 with measured errors."""
    with (
        mock.patch.object(pca, "SMALL", 0),
        mock.patch.object(make_plan, "route_of", return_value=route),
    ):
        tol = max(tolerance(problem), COARSE)  # with a smaller one float32 is not tried
        fit = partial(estimator, problem, algorithm="auto", tol=tol, dtype="float32")
        return [
            claim("plain", fit().fit(problem.rows)),
            claim("uncentred", fit(center=False).fit(problem.rows)),
            claim("weighted", fit().fit(problem.rows, sample_weight=problem.weights)),
        ]


def by_inner_products(problem: Problem) -> list[Claim]:
    """Solve by the inner products of the rows, although features are fewer; many rows by the covariance."""
    exact = partial(estimator, problem, algorithm="exact")
    if problem.setting.rows > MOST_INNER_PRODUCTS:
        return [claim("plain", exact().fit(problem.rows))]
    with mock.patch.object(routes, "exact_route", return_value=routes.ROW_GRAM):
        return [
            claim("plain", exact().fit(problem.rows)),
            claim("uncentred", exact(center=False).fit(problem.rows)),
            claim("weighted", exact().fit(problem.rows, sample_weight=problem.weights)),
        ]


def by_sparse(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem)).fit(sparse.csr_array(problem.rows))
    return [claim("plain", pca)]


def sparse_in_one_pass(problem: Problem) -> list[Claim]:
    return [claim("plain", estimator(problem).fit(sparse.csr_array(problem.rows)))]


def by_lanczos(problem: Problem) -> list[Claim]:
    """Fit sparse rows by Lanczos' method, however few they are."""
    rows = sparse.csr_array(problem.rows)

    def fit(**options: Any) -> Any:
        return estimator(problem, algorithm="auto", tol=tolerance(problem), **options)

    with mock.patch.object(routes, "_cheapest", return_value=routes.LANCZOS):
        return [
            claim("plain", fit().fit(rows)),
            claim("uncentred", fit(center=False).fit(rows)),
            claim("weighted", fit().fit(rows, sample_weight=problem.weights)),
        ]


def by_measured_products(problem: Problem) -> list[Claim]:
    """Refine by products in float32 whose errors are measured, although their bounds may be small enough."""

    def measured(goal: Goal, values: Any) -> str:
        return "measured" if measurable(goal) else "float64"

    tol = max(tolerance(problem), COARSE)  # with a smaller one float32 is not tried
    fit = partial(estimator, problem, tol=tol, dtype="float32")
    with (
        mock.patch.object(pca, "SMALL", 0),
        mock.patch.object(refine, "first_precision", measured),
    ):
        return [
            claim("plain", fit().fit(problem.rows)),
            claim("uncentred", fit(center=False).fit(problem.rows)),
            claim("weighted", fit().fit(problem.rows, sample_weight=problem.weights)),
        ]


def by_samples(problem: Problem) -> list[Claim]:
    """Play long batches from a sample of the first one, in one pass."""
    return _from_samples(problem)


def by_refined_samples(problem: Problem) -> list[Claim]:
    """Play long batches from a sample of the first one, and refine the components."""
    return _from_samples(problem, tol=tolerance(problem))


def _from_samples(problem: Problem, **options: Any) -> list[Claim]:
    """Return the claims of the mode for long batches on a GPU, on a CPU and with batches of any length.

    Rows in float32 are an array on the device, others are converted on the host. One fit has a single batch, and
    the others have several.
    """
    rows = problem.rows
    data = DeviceArray(jnp.asarray(rows)) if rows.dtype == np.float32 else rows
    fit = partial(estimator, problem, dtype="float32", **options)
    with (
        mock.patch.object(pca, "SMALL", 0),
        mock.patch.object(make_plan, "_sampled", _always_sampled),
    ):
        return [
            claim("plain", fit(batch_size=len(rows)).fit(data)),
            claim("plain", fit().fit(data)),
            claim("uncentred", fit(batch_size=len(rows), center=False).fit(data)),
            claim("weighted", fit().fit(data, sample_weight=problem.weights)),
        ]


def _always_sampled(problem: Any, batch: int, players: int, placement: Placement) -> bool:
    """Version of `make_plan._sampled` for any device and any length of batches."""
    options, alone = problem.options, placement.mesh is None and not problem.source.sparse
    return alone and np.dtype(options.dtype) == np.float32 and options.forget == 1


def by_weights(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem))
    return [claim("weighted", pca.fit(problem.rows, sample_weight=problem.weights))]


def weights_in_one_pass(problem: Problem) -> list[Claim]:
    pca = estimator(problem).fit(problem.rows, sample_weight=problem.weights)
    return [claim("weighted", pca)]


def weights_solved_exactly(problem: Problem) -> list[Claim]:
    pca = estimator(problem, algorithm="exact")
    return [claim("weighted", pca.fit(problem.rows, sample_weight=problem.weights))]


def uncentred(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), center=False).fit(problem.rows)
    return [claim("uncentred", pca)]


def uncentred_in_one_pass(problem: Problem) -> list[Claim]:
    return [claim("uncentred", estimator(problem, center=False).fit(problem.rows))]


def by_forgetting(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), forget=problem.forget).fit(problem.rows)
    return [claim("faded", pca)]


def forgetting_in_one_pass(problem: Problem) -> list[Claim]:
    return [claim("faded", estimator(problem, forget=problem.forget).fit(problem.rows))]


def by_dask(problem: Problem) -> list[Claim]:
    return [_on_dask(problem, tol=tolerance(problem))]


def dask_in_one_pass(problem: Problem) -> list[Claim]:
    return [_on_dask(problem)]


def _on_dask(problem: Problem, **options: Any) -> Claim:
    """Return the claim of a fit on four partitions."""
    import dask
    import dask.array

    chunks = (-(-len(problem.rows) // 4), problem.setting.columns)
    with dask.config.set(scheduler="threads"):
        data = dask.array.from_array(problem.rows, chunks=chunks)
        return claim("plain", estimator(problem, **options).fit(data))


def on_two_devices(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), mesh={"data": 2})
    return [claim("plain", pca.fit(problem.rows))]


def on_four_devices(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), mesh={"data": 2, "features": 2})
    return [claim("plain", pca.fit(problem.rows))]


def compiled(route: Route) -> Route:
    """Return a route whose updates are compiled programs, as those of more data are."""

    def run(problem: Problem) -> list[Claim]:
        with mock.patch.object(make_plan, "LITTLE_WORK", 0):
            return route(problem)

    return run


COMPILED = ("passes", "one-pass", "weights", "uncentred", "ragged", "tree4", "forget-stream")
"""Routes that are also taken with compiled programs."""

IN_PROCESS: dict[str, Route] = {
    "tol": by_tol,
    "passes": by_passes,
    "one-pass": one_pass,
    "auto": by_covariance,
    "float32-covariance": by_float32_covariance,
    "float32-exact": by_float32_inner_products,
    "dense-lanczos": by_dense_lanczos,
    "exact": by_inner_products,
    "sparse": by_sparse,
    "sparse-one-pass": sparse_in_one_pass,
    "lanczos": by_lanczos,
    "measured-products": by_measured_products,
    "sampled": by_samples,
    "sampled-refined": by_refined_samples,
    "weights": by_weights,
    "weights-one-pass": weights_in_one_pass,
    "weights-exact": weights_solved_exactly,
    "uncentred": uncentred,
    "uncentred-one-pass": uncentred_in_one_pass,
    **STREAM_ROUTES,
    "forget": by_forgetting,
    "forget-one-pass": forgetting_in_one_pass,
    "dask": by_dask,
    "dask-one-pass": dask_in_one_pass,
}

ROUTES: dict[str, Route] = IN_PROCESS | {
    f"{name}-compiled": compiled(IN_PROCESS[name]) for name in COMPILED
}

MESH_ROUTES: dict[str, Route] = {"mesh2": on_two_devices, "mesh4": on_four_devices}

EVERY = {"dask": 3, "dask-one-pass": 3, "mesh2": 2, "mesh4": 3, "forget": 2, "forget-one-pass": 2}
"""Slow routes are used for every n-th problem only."""


def routes_for(problem: Problem, names: Sequence[str], each: int | None = None) -> list[str]:
    """Return the routes for a problem: all of them, slow ones not always, or `each` of them at random."""
    if each is not None and each < len(names):
        rng = np.random.default_rng([problem.random_state])
        return [names[place] for place in sorted(rng.choice(len(names), each, replace=False))]
    return [name for name in names if problem.index % EVERY.get(name, 1) == 0]


def attempt(problem: Problem, route: str) -> Attempt:
    """Return the result of a problem on a route. Warnings are ignored, and errors are part of the result."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return Attempt(tuple((ROUTES | MESH_ROUTES)[route](problem)))
    except np.linalg.LinAlgError as error:  # a subclass of ValueError, but not a refusal
        return Attempt(failed=f"{type(error).__name__}: {error}")
    except ValueError as error:
        if _raised_elsewhere(error):
            return Attempt(failed=f"{type(error).__name__}: {error}")
        return Attempt(refused=str(error))
    except Exception as error:
        return Attempt(failed=f"{type(error).__name__}: {error}")


def _raised_elsewhere(error: Exception) -> bool:
    """Return whether an error comes from inside another library: then it is not a refusal of this package."""
    places = Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts
    if "site-packages" not in places:
        return False
    return places[places.index("site-packages") + 1] not in ("eigengame", "sklearn")


def attempts_in_child(tasks: Sequence[tuple[Problem, str]]) -> list[Attempt]:
    """Return the results of tasks in a child process with four virtual devices."""
    if not tasks:
        return []
    root = Path(__file__).parents[1]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    environment = {"XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    # Problems are sent by name and drawn again, so that rows need not be sent.
    names = [(replace(p), route) for p, route in tasks]
    with tempfile.TemporaryDirectory() as folder:
        sent, returned = Path(folder) / "tasks", Path(folder) / "attempts"
        sent.write_bytes(pickle.dumps(names))
        command = [sys.executable, "-m", "benchmarks.hostile_routes", str(sent), str(returned)]
        subprocess.run(command, check=True, cwd=root, env=os.environ | environment)
        return list(pickle.loads(returned.read_bytes()))


def main(sent: str, returned: str) -> None:
    tasks = pickle.loads(Path(sent).read_bytes())
    with threadpool_limits(1, user_api="blas"):
        attempts = [attempt(problem, route) for problem, route in tasks]
    Path(returned).write_bytes(pickle.dumps(attempts))


if __name__ == "__main__":
    # Pickled classes belong to the module by its name, not to __main__.
    from benchmarks import hostile_routes

    hostile_routes.main(*sys.argv[1:])
