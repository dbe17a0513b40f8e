"""Runs on disk: a folder for each experiment, with its numbers, its claims and its figures."""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import eigengame
from eigengame._system.atomic_write import atomic_write
from eigengame.experiments import experiment
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._figures import save, styled

RESULTS, CLAIMS = "results.json", "claims.json"


def reproduce(name: str, folder: Path, run: Run) -> list[Claim]:
    """Run an experiment, write all that belongs to it into `folder`, and return its claims."""
    begun = time.perf_counter()
    measured = experiment(name).measure(run)
    taken = round(time.perf_counter() - begun, 1)
    results = measured | _provenance(name, run) | {"took": taken}
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / RESULTS, results)
    return present(folder)


def present(folder: Path) -> list[Claim]:
    """Write claims and figures of the results that are in `folder`; nothing is played."""
    results = read_results(folder)
    try:
        one = experiment(results["experiment"])
        claims = one.claims(results)
    except KeyError as error:
        raise ValueError(
            f"{folder / RESULTS} has no {error}, as results of another version may: run the experiment again."
        ) from None
    _write_json(folder / CLAIMS, [claim._asdict() for claim in claims])
    with styled():
        save(one.draw(results), folder)
        extras = getattr(one, "extras", None)
        if extras is not None:
            extras(results, folder)
    return claims


def read_results(folder: Path) -> Results:
    """Return the results in a folder."""
    path = folder / RESULTS
    if not path.exists():
        raise ValueError(f"{path} is not there: run eigengame reproduce {folder.name} first.")
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}): run the experiment again.") from None


def refuse_to_lose(folder: Path, *, quick: bool) -> None:
    """Raise where a quick run would write over the results of a full one."""
    if quick and (folder / RESULTS).exists() and not read_results(folder)["quick"]:
        raise ValueError(
            f"{folder} holds a full run, which a quick one would write over: give another --out, or --force."
        )


def make_room(folder: Path) -> None:
    """Make the folder for results, or say why it cannot be, before anything is played for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be made ({error.strerror}): give another --out."
        ) from None
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to: give another --out.")


def _write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    text = json.dumps(content, allow_nan=False) + "\n"
    with atomic_write(path) as draft:
        draft.write_text(text)


def _provenance(name: str, run: Run) -> Results:
    """Return what ran, when and on what."""
    return {
        "experiment": name,
        "quick": run.quick,
        "date": datetime.date.today().isoformat(),
        "versions": {one.__name__: one.__version__ for one in (eigengame, jax, np)},
        "machine": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {platform.machine()}",
    }
