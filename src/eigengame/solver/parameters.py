"""Checks of parameters that depend on each other, or on those of the start of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from eigengame.algorithms import REGISTRY

SOLVER = ("remembered", "auto")
"""Algorithms with certificates, forgetting and extra players."""

ONLY_SOLVER = {"tol": None, "forget": 1, "extra": "auto", "rounds": "auto"}
"""Parameters that only these use, each with its default."""

ACCUMULATED = ("n_components", "algorithm", "extra", "rounds", "center", "forget", "dtype")
"""Parameters that determine what a stream accumulates: they cannot change between its batches.

`whiten`, `tol`, `passes`, `batch_size`, `mesh` and `random_state` can: they do not affect what is accumulated, or
only at the start of a stream.
"""


def refuse_unused(given: Mapping[str, Any]) -> None:
    """Raise if a parameter has a value that its algorithm does not use.

    Parameters
    ----------
    given : mapping
        All parameters of the estimator by name.
    """
    algorithm, solver = given["algorithm"], given["algorithm"] in SOLVER
    fields = getattr(REGISTRY.get(algorithm), "__dataclass_fields__", {})
    if given["step_size"] is not None and (solver or "step_size" not in fields):
        raise ValueError(
            f"step_size={given['step_size']!r} has no effect with algorithm={algorithm!r}, which has no step "
            "size: leave step_size out, or choose an algorithm with one, such as 'oja'."
        )
    for name, default in ONLY_SOLVER.items():
        if not solver and given[name] != default:
            raise ValueError(
                f"{name}={given[name]!r} has no effect with algorithm={algorithm!r}: leave {name} out, or use "
                "algorithm='remembered'."
            )


def accumulated(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that must not change during a stream."""
    return {name: given[name] for name in ACCUMULATED}


def refuse_changes(began: Mapping[str, Any], given: Mapping[str, Any], k: int) -> None:
    """Raise if a parameter is no longer what it was when the stream began.

    Parameters
    ----------
    began : mapping
        What `accumulated` returned then.
    given : mapping
        The parameters now.
    k : int
        Number of components of the stream.
    """
    for name, old in began.items():
        new = given[name]
        same = new == old
        if name == "algorithm":  # a stream of "auto" is one of "remembered"
            same = same or {new, old} == set(SOLVER)
        if name == "n_components":  # all, or a share, may be named by its number
            same = same or (isinstance(new, Integral) and new == k)
        if not same:
            raise ValueError(
                f"{name}={new!r}, but this stream began with {name}={old!r}, which determines what it has "
                f"accumulated: set {name}={old!r} again, call fit, or clone the estimator to begin a new stream."
            )
