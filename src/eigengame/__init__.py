"""Principal components as the Nash equilibrium of a game.

`PUBLIC` lists the names of this package and where each is defined. They are imported on first use, because
importing JAX takes a second and the command line answers ``--help`` without it. Everything else is reached through
`eigengame.algorithms`, `eigengame.game`, `eigengame.metrics`, `eigengame.sources` and `eigengame.testing`.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from eigengame._version import __version__ as __version__

if TYPE_CHECKING:
    from eigengame._play import play as play
    from eigengame._play import play_stream as play_stream
    from eigengame._system.compilation_cache import keep_compilations as keep_compilations
    from eigengame.algorithms import make as make
    from eigengame.estimator import EigenGamePCA as EigenGamePCA
    from eigengame.estimator.uncertified import UncertifiedWarning as UncertifiedWarning
    from eigengame.layerwise import LayerFits as LayerFits
    from eigengame.layerwise import fit_layers as fit_layers
    from eigengame.preparation import prepare as prepare
    from eigengame.report import write_report as write_report
    from eigengame.solver.certificates.certificate import Certificate as Certificate
    from eigengame.solver.passes.checkpoint import Checkpoint as Checkpoint
    from eigengame.solver.passes.checkpoint import Interrupted as Interrupted
    from eigengame.solver.results.outcome import Outcome as Outcome
    from eigengame.solver.results.outcome import Status as Status
    from eigengame.sources import Source as Source
    from eigengame.sources import SourceError as SourceError
    from eigengame.sources import as_source as as_source
    from eigengame.sources.activations import activations as activations
    from eigengame.sources.gradients import gradients as gradients
    from eigengame.sources.shuffle import shuffled as shuffled

PUBLIC = {
    "Certificate": "solver.certificates.certificate",
    "Checkpoint": "solver.passes.checkpoint",
    "EigenGamePCA": "estimator",
    "Interrupted": "solver.passes.checkpoint",
    "LayerFits": "layerwise",
    "Outcome": "solver.results.outcome",
    "Source": "sources",
    "SourceError": "sources",
    "Status": "solver.results.outcome",
    "UncertifiedWarning": "estimator.uncertified",
    "activations": "sources.activations",
    "as_source": "sources",
    "fit_layers": "layerwise",
    "gradients": "sources.gradients",
    "keep_compilations": "_system.compilation_cache",
    "make": "algorithms",
    "play": "_play",
    "play_stream": "_play",
    "prepare": "preparation",
    "shuffled": "sources.shuffle",
    "write_report": "report",
}

__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    """Return a public name or a subpackage, importing what defines it."""
    if name in PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{PUBLIC[name]}"), name)
    if not name.startswith("_"):
        if importlib.util.find_spec(f"{__name__}.{name}") is not None:
            return importlib.import_module(f"{__name__}.{name}")
        for room in ("algorithms", "game", "sources"):
            if hasattr(importlib.import_module(f"{__name__}.{room}"), name):
                raise AttributeError(
                    f"module {__name__!r} has no attribute {name!r}: it is {__name__}.{room}.{name}"
                )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(PUBLIC)
