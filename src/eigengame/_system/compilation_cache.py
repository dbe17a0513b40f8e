"""Compiled updates kept on disk, so that the next process starts without compiling."""

from __future__ import annotations

import os
from pathlib import Path

import jax


def keep_compilations(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keep what JAX compiles in a folder, and take it from there: call once, before fitting.

    Parameters
    ----------
    folder : path, optional
        `~/.cache/eigengame` by default, or what the variable `EIGENGAME_CACHE` names.
    """
    named = folder or os.environ.get("EIGENGAME_CACHE")
    chosen = Path(named) if named else Path.home() / ".cache" / "eigengame"
    chosen.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    # Ours are many small programs: each is worth keeping, however quickly it was compiled.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return chosen
