"""On-disk cache of compiled programs, so that later processes start without compiling."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def keep_compilations(folder: str | os.PathLike[str] | None = None) -> Path:
    """Cache compiled JAX programs in a folder and return it; call once, before fitting.

    Parameters
    ----------
    folder : path, optional
        By default the environment variable `EIGENGAME_CACHE`, or `~/.cache/eigengame` if it is not set.
    """
    named = folder or os.environ.get("EIGENGAME_CACHE")
    chosen = Path(named) if named else Path.home() / ".cache" / "eigengame"
    chosen.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    # The package compiles many small programs: by default JAX would not cache them.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return chosen
