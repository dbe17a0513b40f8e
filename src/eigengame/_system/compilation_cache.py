"""On-disk cache of compiled programs, so that later processes start without compiling."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

OFF = ("off", "0", "no", "false")
"""Values of the environment variable `EIGENGAME_CACHE` that turn the cache off."""

ON = ("on", "1", "yes", "true")
"""Values that leave it in the user's cache folder, as does an empty one."""

MOST_BYTES = 2**30
"""Size of the folder beyond which the programs that were not used for the longest time are deleted."""

EVERYTHING = {
    # The package compiles many small programs: by default JAX would not cache them.
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""Settings of JAX with which every program is cached."""

_lock = threading.Lock()
_inside: list[dict[str, Any]] = []


def keep_compilations(folder: str | os.PathLike[str] | None = None) -> Path:
    """Cache all compiled JAX programs of this process in a folder, and return it.

    Fits do so by themselves for the programs that they compile. Call this function before the first fit to choose
    the folder, or to cache your own programs too.

    Parameters
    ----------
    folder : path, optional
        By default the environment variable `EIGENGAME_CACHE`, or `eigengame` in the user's cache folder if it is
        not set.
    """
    chosen = Path(folder) if folder else default_folder()
    if chosen is None:
        raise ValueError(
            f"EIGENGAME_CACHE={os.environ['EIGENGAME_CACHE']!r} turns the cache off: give a folder, or unset it."
        )
    chosen.mkdir(parents=True, exist_ok=True)
    # The size of a folder of the user is not limited.
    limit = {"jax_compilation_cache_max_size": -1 if folder else MOST_BYTES}
    for name, value in {"jax_compilation_cache_dir": str(chosen), **EVERYTHING, **limit}.items():
        jax.config.update(name, value)
    return chosen


def default_folder() -> Path | None:
    """Return the folder of the cache; None if the user has turned it off."""
    named = os.environ.get("EIGENGAME_CACHE")
    if named is not None and named.lower() in OFF:
        return None
    if named is not None and named.lower() in ON:
        named = None
    user = os.environ.get("XDG_CACHE_HOME")
    folder = (
        Path(named) if named else (Path(user) if user else Path.home() / ".cache") / "eigengame"
    )
    # A folder of its own: JAX warns of programs that were cached without a limit of the size.
    return folder / "programs"


@contextmanager
def cached_compilations() -> Iterator[None]:
    """Cache the programs that are compiled within, unless JAX already has a cache or the user wants none.

    Settings of JAX belong to the whole process, so they are restored afterwards. JAX goes on to use the folder for
    programs that take longer than a second to compile.
    """
    with _lock:
        _inside.append(_begin() if not _inside else {})
    try:
        yield
    finally:
        with _lock:
            # What the first to begin has changed is at the bottom: the last to end restores it.
            before = _inside.pop()
            for name, value in before.items():
                jax.config.update(name, value)


def _begin() -> dict[str, Any]:
    """Turn the cache on if that is wanted and possible; return the settings to restore."""
    folder = default_folder()
    if folder is None or not _setting("jax_enable_compilation_cache"):
        return {}
    if _setting("jax_compilation_cache_dir") not in (None, str(folder)):
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return {}
    except OSError:  # no home, or one that cannot be written to: fits work without a cache
        return {}
    wanted = EVERYTHING | {"jax_compilation_cache_max_size": MOST_BYTES}
    before = {name: _setting(name) for name in wanted}
    for name, value in {"jax_compilation_cache_dir": str(folder), **wanted}.items():
        jax.config.update(name, value)
    return before


def _setting(name: str) -> Any:
    """Return a setting of JAX."""
    return getattr(jax.config, name)
