"""The record of a run in its checkpoint folder, `run.json`: the data and all options that the result depends on."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eigengame._system.array_file import DIGEST, add_checksum
from eigengame._system.atomic_write import StorageError
from eigengame._version import __version__
from eigengame.solver.passes.limits import MAX_PASSES

FORMAT = 5
"""Format of a folder. Folders of format 1 have no digests, neither of the data nor of the files. Up to format 4,
passes of a refinement multiply other blocks than now, and up to format 3 sums on the host are others: such passes
are repeated."""

CHANGED = ("refinement", "probes")
"""Passes that earlier formats made with other blocks, which may have the shape of the present ones."""

WITH_PROBES = 3
"""First format whose first pass has probes."""

CONTENT = "source.content"
"""Name of the digest of the data in a flattened record."""


class CheckpointError(StorageError):
    """A checkpoint that cannot be written, read or resumed; the message says which and what to do."""


class CheckpointWarning(UserWarning):
    """A checkpoint that is used although not everything about it could be checked."""


def sealed_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its digest."""
    plain = {name: value for name, value in facts.items() if name != DIGEST}
    return plain | {DIGEST: add_checksum({}, {"facts": json.dumps(plain, sort_keys=True)})[DIGEST]}


def read_facts(path: Path) -> dict[str, Any]:
    """Read the record of the run that a folder belongs to."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if not (isinstance(kept, dict) and {"format", "configuration", "source"} <= kept.keys()):
            raise ValueError("it does not describe a run")
        if not isinstance(kept["format"], int):
            raise ValueError("its format is not a number")
        if (kept["format"] != 1 or DIGEST in kept) and kept != sealed_facts(kept):
            raise ValueError("its checksum does not match its content")
        if not isinstance(kept.get("seed"), int):
            raise ValueError("it has no seed")
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}): remove the folder to start again."
        ) from None
    if kept["format"] > FORMAT:
        raise CheckpointError(
            f"{path} has format {kept['format']}, written by a newer version: this is eigengame {__version__}, "
            f"which reads up to {FORMAT}; upgrade eigengame, or give another folder to start again."
        )
    return kept


def refuse_other_run(
    kept: Mapping[str, Any], asked: Mapping[str, Any], folder: Path, trust_source: bool
) -> None:
    """Refuse to resume another run, with all differences."""
    before, now = (
        {name: value for name, value in _flat(one) if name not in ("seed", DIGEST)}
        for one in (kept, asked)
    )
    given = before.get("configuration.tol") is not None and before.get("configuration.passes") == 1
    if kept["format"] < 3 and given:  # before `passes` was "auto", 1 stood for it
        before["configuration.passes"] = MAX_PASSES
    if kept["format"] != now["format"]:  # an earlier version, with fewer parameters
        now = {name: now[name] for name in now if name in before} | {"format": before["format"]}
    if kept["format"] > 1 and trust_source:
        before[CONTENT] = now.get(CONTENT)
    elif kept["format"] > 1 and before.get(CONTENT) is None and now.get(CONTENT) is not None:
        raise CheckpointError(
            f"{folder} was started with trust_source=True, so the content of its data is unknown: pass "
            "trust_source=True to continue, or another folder to start again."
        )
    differences = [
        f"{name} was {before.get(name)!r}, is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"{folder} belongs to another run: {'; '.join(differences)}. Use the same data and options to "
            "continue, or another folder to start again."
        )
    if kept["format"] == 1 and not trust_source:
        warnings.warn(
            f"{folder} was written by an earlier version, without a digest of the data: the run continues, but "
            "if the data or the weights have changed since, the result is wrong.",
            CheckpointWarning,
            stacklevel=2,
        )


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
