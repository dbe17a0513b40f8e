"""`eigengame algorithms`: what --algorithm can name."""

from __future__ import annotations

import sys

from eigengame.cli.options import Json
from eigengame.cli.running import guarded
from eigengame.cli.showing import show, show_json, show_table

EXAMPLES = (
    "eigengame algorithms",
    "eigengame fit data.npy -k 16 --algorithm auto",
)

AUTO = (
    "The covariance in one pass where features are few (the route `covariance`), else remembered."
)


@guarded
def algorithms(json: Json = False) -> None:
    """List the algorithms that `fit` can play, with a line on each."""
    from eigengame.algorithms import REGISTRY

    lines = {"auto": AUTO} | {name: _line(made.__module__) for name, made in REGISTRY.items()}
    if json:
        show_json({"algorithms": lines, "default": "remembered"})
        return
    show_table(("--algorithm", "what it is"), lines.items())
    show("The default is remembered: one pass, no step size, models that merge and go on.")


def _line(module: str) -> str:
    """Return the first sentence of the file that holds an algorithm, without its maths signs."""
    return (sys.modules[module].__doc__ or "").strip().splitlines()[0].replace("$", "")
