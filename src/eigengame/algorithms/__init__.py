"""The algorithms, one file each, and a registry of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from eigengame import _check
from eigengame.algorithms._base import Algorithm as Algorithm
from eigengame.algorithms._base import Info as Info
from eigengame.algorithms.alpha import Alpha as Alpha
from eigengame.algorithms.best_response import BestResponse as BestResponse
from eigengame.algorithms.frequent_directions import FrequentDirections as FrequentDirections
from eigengame.algorithms.frequent_directions import recover_components as recover_components
from eigengame.algorithms.gha import GHA as GHA
from eigengame.algorithms.hebb_deflation import HebbDeflation as HebbDeflation
from eigengame.algorithms.in_gram_space import InGramSpace as InGramSpace
from eigengame.algorithms.krasulina import Krasulina as Krasulina
from eigengame.algorithms.mu import Mu as Mu
from eigengame.algorithms.oja import Oja as Oja
from eigengame.algorithms.remembered import Remembered as Remembered
from eigengame.algorithms.sequential import Sequential as Sequential

REGISTRY: Mapping[str, Callable[..., Algorithm]] = MappingProxyType(
    {
        "remembered": Remembered,
        "best_response": BestResponse,
        "alpha": Alpha,
        "sequential": Sequential,
        "mu": Mu,
        "oja": Oja,
        "hebb_deflation": HebbDeflation,
        "gha": GHA,
        "krasulina": Krasulina,
        "frequent_directions": FrequentDirections,
    }
)
"""All algorithms by name: functions from options to an algorithm."""


def make(name: str, **options: Any) -> Algorithm:
    """Create an algorithm by name.

    Examples
    --------
    >>> make("oja", step_size=0.1)
    Oja(step_size=0.1)
    """
    factory = REGISTRY[_check.one_of("algorithm", name, tuple(REGISTRY))]
    try:
        return factory(**options)
    except TypeError as error:
        raise ValueError(
            f"algorithm={name!r}: {error}; see help(eigengame.algorithms.{factory.__name__})."
        ) from None


def name_of(algorithm: Algorithm) -> str:
    """Return the name of an algorithm in the registry, or the name of its class if it is not registered."""
    kind = type(algorithm)
    return next((name for name, known in REGISTRY.items() if known is kind), kind.__name__)
