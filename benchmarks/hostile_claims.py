"""Claims of certificates as plain data, and the estimators of hostile problems that make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hostile_problems import Problem
from eigengame import EigenGamePCA

TOLERANCES = (1e-3, 1e-2, 1e-6)
"""Values of `tol`, used in turn; only the last refines near-ties far enough."""


class Group(NamedTuple):
    """A cluster of the certificate: the indices of its members, and the bound on the angle of their span."""

    members: tuple[int, ...]
    angle: float


@dataclass(frozen=True)
class Claim:
    """The claims of one certificate about stored components.

    Attributes
    ----------
    target : str
        The data whose components are claimed, a name of `Problem.target`.
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
    game = {"algorithm": "remembered", "tol": None}
    options = game | {"batch_size": s.batch, "dtype": s.play} | options
    return EigenGamePCA(s.k, random_state=problem.random_state, **options)


def tolerance(problem: Problem) -> float:
    """Return the value of `tol` for a problem."""
    return TOLERANCES[problem.index % len(TOLERANCES)]
