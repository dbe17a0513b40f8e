"""Records on disk: one folder per experiment, with its numbers, arrays, claims and figures.

`measure` returns plain numbers, which are stored as JSON. Pictures are too large for that: an experiment may also
return a dictionary of arrays under the key "arrays", which is stored as a compressed `.npz` file.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import numpy as np

import eigengame
from eigengame._system.atomic_write import atomic_write
from reproduction import experiment
from reproduction.base import Claim, Results, Run
from reproduction.figures import save, styled

RESULTS, CLAIMS, ARRAYS = "results.json", "claims.json", "arrays.npz"


def reproduce(name: str, folder: Path, run: Run) -> list[Claim]:
    """Run an experiment, write its record into `folder`, and return its claims."""
    begun = time.perf_counter()
    measured = dict(experiment(name).measure(run))
    taken = round(time.perf_counter() - begun, 1)
    arrays = measured.pop("arrays", None)
    results = measured | _provenance(name, run) | {"took": taken}
    folder.mkdir(parents=True, exist_ok=True)
    _write_arrays(folder / ARRAYS, arrays)
    _write_json(folder / RESULTS, results)
    return redraw(folder)


def redraw(folder: Path) -> list[Claim]:
    """Write claims and figures from the stored results, without a new run."""
    results = read_results(folder)
    try:
        module = experiment(results["experiment"])
        claims = module.claims(results)
        with styled():
            figure = module.draw(results)
    except KeyError as error:
        raise ValueError(
            f"{folder / RESULTS} has no {error}; it may be from another version: run the experiment again."
        ) from None
    _write_json(folder / CLAIMS, [claim._asdict() for claim in claims])
    with styled():
        save(figure, folder)
        extras = getattr(module, "extras", None)
        if extras is not None:
            extras(results, folder)
    return claims


def read_results(folder: Path) -> Results:
    """Read the results in a folder, with the arrays under "arrays" if there are any."""
    path = folder / RESULTS
    if not path.exists():
        raise ValueError(f"{path} does not exist: run python -m reproduction {folder.name} first.")
    try:
        results: Results = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}): run the experiment again.") from None
    arrays = folder / ARRAYS
    if arrays.exists():
        try:
            with np.load(arrays) as file:
                results["arrays"] = dict(file)
        except (ValueError, OSError, BadZipFile) as error:
            raise ValueError(
                f"{arrays} is not a file of arrays ({error}): run the experiment again."
            ) from None
    return results


def check_overwrite(folder: Path, *, quick: bool) -> None:
    """Raise if a quick run would overwrite the results of a full run."""
    if quick and (folder / RESULTS).exists() and not read_results(folder)["quick"]:
        raise ValueError(
            f"{folder} has results of a full run, which a quick run would overwrite: give another --out, or "
            "--force."
        )


def make_folder(folder: Path) -> None:
    """Create the output folder, or raise before any experiment is run for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"cannot create {folder} ({error.strerror}): give another --out."
        ) from None
    if not os.access(folder, os.W_OK):
        raise ValueError(f"cannot write to {folder}: give another --out.")


def _write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    text = json.dumps(content, allow_nan=False) + "\n"
    with atomic_write(path) as draft:
        draft.write_text(text)


def _write_arrays(path: Path, arrays: dict[str, Any] | None) -> None:
    """Write arrays atomically as a compressed file, or remove those of an earlier run."""
    if not arrays:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _provenance(name: str, run: Run) -> Results:
    """Return name, date, versions and machine of a run."""
    return {
        "experiment": name,
        "quick": run.quick,
        "date": datetime.date.today().isoformat(),
        "versions": {one.__name__: one.__version__ for one in (eigengame, jax, np)},
        "machine": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {platform.machine()}",
    }
