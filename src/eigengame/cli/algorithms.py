"""`eigengame algorithms`: list the values of --algorithm."""

from __future__ import annotations

import sys

from eigengame.cli.errors import handle_errors, import_jax
from eigengame.cli.options import Json
from eigengame.cli.output import print_json, print_table

EXAMPLES = (
    "eigengame algorithms",
    "eigengame fit data.npy -k 16 --algorithm remembered",
)

CHOICES = {
    "auto": (
        "Exact if that is cheaper, because there are few features or few rows, or if the game does not certify all "
        "components; else Lanczos' method for rows in memory, or remembered."
    ),
    "exact": (
        "Eigenproblem of the covariance matrix (route `covariance`) or of the inner products of all rows (route "
        "`row gram`), in float64 and one pass."
    ),
}


@handle_errors
def algorithms(json: Json = False) -> None:
    """List the algorithms, with a one-line description of each."""
    import_jax()
    from eigengame.algorithms import REGISTRY

    lines = CHOICES | {name: _summary(made.__module__) for name, made in REGISTRY.items()}
    if json:
        print_json({"algorithms": lines, "default": "auto"})
        return
    print_table(("--algorithm", "description"), lines.items())
    print(
        "The default is auto. Models of auto, exact and remembered are certified, and can be merged and updated."
    )


def _summary(module: str) -> str:
    """Return the first docstring line of an algorithm's module, without dollar signs."""
    return (sys.modules[module].__doc__ or "").strip().splitlines()[0].replace("$", "")
