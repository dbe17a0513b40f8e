"""Reproduction of the paper: one experiment for each figure or group of claims.

    python -m reproduction NAME... [--quick]

An experiment is a module of `reproduction.experiments`. Its `measure` runs the algorithms and returns plain
numbers. Claims, figures and text are computed from these numbers alone, so they can be updated without a new
run, and no number is written by hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from eigengame import _check
from reproduction.base import Experiment

EXPERIMENTS: Mapping[str, str] = MappingProxyType(
    {
        "synthetic": "streak at pi/8 on a 50 x 50 matrix, linear and exponential spectrum",
        "strict": "the same at pi/32",
        "bubble": "the same with eigenvalues 10 to 19 made equal",
        "ablation": "the game without its order, and without order and normaliser",
        "mnist": "60000 handwritten digits, batches of 1024, 512 and 256",
        "bias": "bias of each game's update direction against batch size and memory",
        "errors": "optimum of a child against the error of its parents",
        "dag": "whose vector changes whose utility, and a parent that never broadcasts",
        "riemann": "the gradient, its tangential part and the retraction, on the 2-sphere",
        "instability": "steps near the optimum, with and without the projection",
        "sphere": "three players on diag(3, 2, 1), moving on the unit sphere",
        "sequential": "Alg. 1 compared with its own bounds",
        "frequent-directions": "sharded Frequent Directions compared with EigenGame",
        "scree": "Rayleigh quotients and utilities on MNIST",
        "resnet": "32 components of a ResNet-50 on 1000 photographs, with a certificate",
        "small-resnet": "deflation, EigenGame and Frequent Directions on a ResNet-50",
        "decentralised": "delayed or lost broadcasts, and a separate batch for each player",
        "general": "non-linear players on data that linear components do not separate",
    }
)
"""All experiments by name, each with a one-line description. The module has the same name."""


def experiment(name: str) -> Experiment:
    """Import an experiment by name."""
    _check.one_of("NAME", name, tuple(EXPERIMENTS))
    return importlib.import_module(f"{__name__}.experiments.{name.replace('-', '_')}")
