"""The paper reproduced: every figure and every claim, an experiment each.

An experiment is a file: `measure` plays the game and returns plain numbers, and all that people see is
made of those numbers: the `claims` and whether they hold, the figures that `draw` draws, the `words` that
go with them. So a page or a picture can be made again without playing again, and no number in them is
written by hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from eigengame import _check
from eigengame.experiments._base import Claim as Claim
from eigengame.experiments._base import Experiment as Experiment
from eigengame.experiments._base import Run as Run

EXPERIMENTS: Mapping[str, str] = MappingProxyType(
    {
        "synthetic": "streak at pi/8 on M of 50 x 50, linear and exponential spectrum",
        "strict": "the same at pi/32",
        "bubble": "the same with eigenvalues 10 to 19 made equal",
        "ablation": "the game without its order, and without order and normaliser",
        "mnist": "60000 handwritten digits, batches of 1024, 512 and 256",
        "bias": "the bias of each game's direction against batch size and memory",
        "errors": "a parent's error against its child's optimum",
        "instability": "steps near the optimum, with and without the projection",
        "sphere": "three players on diag(3, 2, 1), moving on the unit sphere",
        "sequential": "Alg. 1 against its own bounds",
        "frequent-directions": "Frequent Directions in shards against EigenGame",
        "scree": "Rayleigh quotients and utilities on MNIST",
        "resnet": "32 components of a ResNet-50 on 1000 photographs, with a certificate",
        "decentralised": "broadcasts that lag or are lost, and batches of one's own",
        "general": "non-linear players where linear components are not enough",
    }
)
"""Every experiment by name, with a line on what it is; its file has the same name."""


def experiment(name: str) -> Experiment:
    """Return the experiment of that name."""
    _check.one_of("name", name, tuple(EXPERIMENTS))
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
