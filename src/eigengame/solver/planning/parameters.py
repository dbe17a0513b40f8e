"""Checks of parameters that depend on each other, or on those of the start of a stream."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from jax.sharding import Mesh

from eigengame.algorithms import REGISTRY


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator with an invalid value or type."""


def _integer(low: int, high: float = math.inf) -> Callable[[Any], bool]:
    """Return a check for an integer low <= value <= high. True and False are not numbers."""
    return lambda value: (
        isinstance(value, Integral) and not _boolean(value) and low <= int(value) <= high
    )


def _real(low: float, high: float = sys.float_info.max) -> Callable[[Any], bool]:
    """Return a check for low < value <= high. True and False are not numbers."""
    return lambda value: (
        isinstance(value, Real) and not _boolean(value) and low < float(value) <= high
    )


def _auto(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value == "auto" if isinstance(value, str) else check(value)


def _optional(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _boolean(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _one_of(*choices: str) -> tuple[Callable[[Any], bool], str]:
    return (
        lambda value: isinstance(value, str) and value in choices,
        "one of " + ", ".join(map(repr, choices)),
    )


VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "n_components": (
        _optional(lambda value: _integer(1)(value) or (_real(0, 1)(value) and value != 1)),
        "an integer from 1, a share of the variance between 0 and 1, or None",
    ),
    "algorithm": _one_of("auto", "exact", *REGISTRY),
    "batch_size": (_auto(_integer(1)), "an integer from 1, or 'auto'"),
    "extra": (_auto(_integer(0)), "an integer from 0, or 'auto'"),
    "rounds": (_auto(_integer(1)), "an integer from 1, or 'auto'"),
    "probes": (_auto(_integer(0)), "an integer from 0, or 'auto'"),
    "passes": (_auto(_integer(1)), "an integer from 1, or 'auto'"),
    "tol": (_optional(_auto(_real(0))), "an angle above 0 in radians, 'auto', or None"),
    "center": (_boolean, "True or False"),
    "whiten": (_boolean, "True or False"),
    "forget": (_real(0, 1), "a number above 0 and up to 1"),
    "step_size": (_optional(_real(0)), "a number above 0, or None"),
    "dtype": _one_of("float32", "float64"),
    "mesh": (
        _optional(lambda value: isinstance(value, (dict, str, Mesh))),
        "a layout such as {'data': 2}, 'auto', a jax.sharding.Mesh, or None",
    ),
    "random_state": (
        _optional(
            lambda value: _integer(0, 2**32 - 1)(value) or isinstance(value, np.random.RandomState)
        ),
        "an integer from 0 to 2**32 - 1, a numpy.random.RandomState, or None",
    ),
}
"""For each parameter, a check of its value and a description of valid values."""

SOLVER = ("remembered", "auto", "exact")
"""Algorithms with certificates, forgetting and extra players."""

ONLY_SOLVER: Mapping[str, tuple[Any, ...]] = {
    "tol": ("auto", None),
    "forget": (1,),
    "extra": ("auto",),
    "rounds": ("auto",),
    "probes": ("auto",),
}
"""Parameters that only these use, each with the values that others accept: the default, and that without effect."""

ACCUMULATED = (
    "n_components",
    "algorithm",
    "extra",
    "rounds",
    "probes",
    "center",
    "forget",
    "dtype",
)
"""Parameters that determine what a stream accumulates: they cannot change between its batches.

`whiten`, `tol`, `passes`, `batch_size`, `mesh` and `random_state` can: they do not affect what is accumulated, or
only at the start of a stream.
"""


def check_values(given: Mapping[str, Any]) -> None:
    """Raise InvalidParameterError if a parameter has an invalid value.

    Parameters
    ----------
    given : mapping
        All parameters of the estimator by name.
    """
    for name, (valid, expected) in VALUES.items():
        if not valid(given[name]):
            raise InvalidParameterError(f"{name}={given[name]!r}: give {expected}.")


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
    for name, accepted in ONLY_SOLVER.items():
        if not solver and given[name] not in accepted:
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
            same = same or {new, old} == {"remembered", "auto"}
        if name == "n_components":  # all, or a share, may be named by its number
            same = same or (isinstance(new, Integral) and new == k)
        if not same:
            raise ValueError(
                f"{name}={new!r}, but this stream began with {name}={old!r}, which determines what it has "
                f"accumulated: set {name}={old!r} again, call fit, or clone the estimator to begin a new stream."
            )
