"""The routes to a certificate: each fits one problem and returns what the certificate claims.

Mesh routes need several devices, so they run in a child process with virtual CPU devices. Claims are plain data
that can be pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.hostile_problems import FORGET, Problem
from eigengame import EigenGamePCA

TOLERANCES = (1e-3, 1e-2, 1e-6)
"""Values of `tol`, in turn: near-ties are refined far enough only by the last."""


class Group(NamedTuple):
    """A cluster of the certificate: the indices of its members, and the bound on the angle of their span."""

    members: tuple[int, ...]
    angle: float


@dataclass(frozen=True)
class Claim:
    """What one certificate claims about stored components.

    Attributes
    ----------
    target : {"plain", "uncentred", "weighted", "faded"}
        Whose components they are.
    components : array of shape (k, d)
    kind : str
    angle : array of shape (k,)
    confidence : float
    clusters : tuple of Group
    """

    target: str
    components: np.ndarray
    kind: str
    angle: np.ndarray
    confidence: float
    clusters: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What came of one problem on one route: claims, or the reason why there are none.

    Attributes
    ----------
    claims : tuple of Claim
    refused : str
        The message of a refusal (`ValueError` or a subclass), or "".
    failed : str
        The type and message of any other error, or "".
    """

    claims: tuple[Claim, ...] = ()
    refused: str = ""
    failed: str = ""


Route = Callable[[Problem], list[Claim]]


def claim(target: str, pca: EigenGamePCA) -> Claim:
    """Return the claim of an estimator's certificate."""
    found = pca.certificate_
    groups = tuple(
        Group(tuple(int(i) for i in one.members), float(one.angle))
        for one in getattr(found, "clusters", ()) or ()
    )
    return Claim(
        target,
        np.array(pca.components_),
        found.kind,
        np.array(found.angle, np.float64),
        float(found.confidence),
        groups,
    )


def estimator(problem: Problem, **options: Any) -> EigenGamePCA:
    """Return an estimator for a problem, with fixed shapes and a seed of its own."""
    s = problem.setting
    options = {"batch_size": s.batch, "dtype": s.play, **options}
    return EigenGamePCA(s.k, random_state=problem.index, **options)


def tolerance(problem: Problem) -> float:
    """Return the value of `tol` for a problem."""
    return TOLERANCES[problem.index % len(TOLERANCES)]


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


def by_sparse(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem)).fit(sparse.csr_array(problem.rows))
    return [claim("plain", pca)]


def by_weights(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem))
    return [claim("weighted", pca.fit(problem.rows, sample_weight=problem.weights))]


def uncentred(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), center=False).fit(problem.rows)
    return [claim("uncentred", pca)]


def by_partial_fit(problem: Problem) -> list[Claim]:
    pca = estimator(problem)
    for begin in range(0, len(problem.rows), problem.setting.batch):
        pca.partial_fit(problem.rows[begin : begin + problem.setting.batch])
    so_far = claim("plain", pca)
    pca.certify(problem.rows)
    return [so_far, claim("plain", pca)]


def by_merge(problem: Problem) -> list[Claim]:
    half = len(problem.rows) // 2
    parts = (problem.rows[:half], problem.rows[half:])
    one, other = (estimator(problem).fit(part) for part in parts)
    pca = one.merge(other)
    merged = claim("plain", pca)
    pca.certify(problem.rows)
    return [merged, claim("plain", pca)]


def by_forgetting(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), forget=FORGET).fit(problem.rows)
    return [claim("faded", pca)]


def forgetting_in_one_pass(problem: Problem) -> list[Claim]:
    return [claim("faded", estimator(problem, forget=FORGET).fit(problem.rows))]


def by_dask(problem: Problem) -> list[Claim]:
    import dask.array

    import dask

    chunks = (-(-len(problem.rows) // 4), problem.setting.columns)
    with dask.config.set(scheduler="threads"):
        data = dask.array.from_array(problem.rows, chunks=chunks)
        pca = estimator(problem, tol=tolerance(problem)).fit(data)
    return [claim("plain", pca)]


def on_two_devices(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), mesh={"data": 2})
    return [claim("plain", pca.fit(problem.rows))]


def on_four_devices(problem: Problem) -> list[Claim]:
    pca = estimator(problem, tol=tolerance(problem), mesh={"data": 2, "features": 2})
    return [claim("plain", pca.fit(problem.rows))]


ROUTES: dict[str, Route] = {
    "tol": by_tol,
    "passes": by_passes,
    "one-pass": one_pass,
    "auto": by_covariance,
    "sparse": by_sparse,
    "weights": by_weights,
    "uncentred": uncentred,
    "partial_fit": by_partial_fit,
    "merge": by_merge,
    "forget": by_forgetting,
    "forget-one-pass": forgetting_in_one_pass,
    "dask": by_dask,
}

MESH_ROUTES: dict[str, Route] = {"mesh2": on_two_devices, "mesh4": on_four_devices}

SELDOM = {"dask": 3, "mesh2": 2, "mesh4": 3, "forget": 2, "forget-one-pass": 2}
"""Slow routes are taken by every so many problems only."""


def routes_for(problem: Problem, names: Sequence[str]) -> list[str]:
    """Return the routes that a problem takes."""
    return [name for name in names if problem.index % SELDOM.get(name, 1) == 0]


def attempt(problem: Problem, route: str) -> Attempt:
    """Return what comes of a problem on a route. Warnings are ignored, and errors are part of the result."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return Attempt(tuple((ROUTES | MESH_ROUTES)[route](problem)))
    except np.linalg.LinAlgError as error:  # a ValueError too, but nothing was refused
        return Attempt(failed=f"{type(error).__name__}: {error}")
    except ValueError as error:
        return Attempt(refused=str(error))
    except Exception as error:
        return Attempt(failed=f"{type(error).__name__}: {error}")


def attempts_in_child(tasks: Sequence[tuple[Problem, str]]) -> list[Attempt]:
    """Return what comes of tasks in a child process with four virtual devices."""
    if not tasks:
        return []
    root = Path(__file__).parents[1]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    environment = {"XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    # Problems are sent by name and drawn again: rows need not travel.
    names = [(Problem(p.family, p.setting, p.seed, p.index), route) for p, route in tasks]
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
