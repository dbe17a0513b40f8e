"""Principal components as the Nash equilibrium of a game."""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from eigengame._version import __version__ as __version__

if TYPE_CHECKING:
    from eigengame._public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a public name, bringing them all in when the first is asked for.

    Importing JAX takes a second, and the command line answers `--help` without it.
    """
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        # A module is no reason to bring in all names: what they need may be what is being imported.
        if importlib.util.find_spec(f"{__name__}.{name}") is not None:
            return importlib.import_module(f"{__name__}.{name}")
        from eigengame import _public

        if hasattr(_public, name):
            return getattr(_public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    from eigengame import _public

    return sorted(name for name in vars(_public) if not name.startswith("_"))
