"""Runs that survive: the carry of every pass on disk, written whole or not at all.

A run is a sequence of passes, each a fold of pure steps. So it is enough to keep the carries: one file
for every pass that was made, one for the pass under way with the row it has reached. Going on means
to run the same program again, recalling instead of reading; the result is the same to the last bit.

Files are safetensors: no pickle, one flat file that any tool can open, written under another name, synced
and renamed, so that a crash or a full disk leaves the last good one. Orbax keeps sharded arrays in
folders of many files, for which one machine has no use and a rename no meaning.
"""

from __future__ import annotations

import copy
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from eigengame._system.files import written_whole
from eigengame._system.folder_lock import FolderLock, InUse, alive
from eigengame._system.sealed import DIGEST, read_arrays, refuse_unless_sealed, write_arrays
from eigengame.sharding.gather import any_distributed, gather
from eigengame.sharding.hosts import broadcast_from_first
from eigengame.solver.run_record import FORMAT, read_facts, refuse_other_run, sealed_facts
from eigengame.solver.run_record import CheckpointError as CheckpointError
from eigengame.solver.run_record import CheckpointWarning as CheckpointWarning

DRAFT = re.compile(r"\.(?:run\.json|(?:pass|k\d+)-\d{4,}\.safetensors)\.(\d+)")
"""Names of files that a run was writing, with the id of its process: see `written_whole`."""

EVERY = 60.0
"""Seconds between two checkpoints."""


class Interrupted(KeyboardInterrupt):
    """A run that was stopped by hand, and saved."""

    def __init__(self, folder: Path, number: int, row: int) -> None:
        super().__init__(
            f"stopped in pass {number} after {row} rows and saved in {folder}: run the same again, with "
            "the same checkpoint, to go on."
        )


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep a run, and how often.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two checkpoints.
    trust_source : bool
        Skip the digest of the data: the caller makes sure that the same rows come again in the same order.
        Needed for data that has no digest, such as a generator; for other data it saves the time to read it.
        Shape, dtype, options, sizes and times are compared in any case.
    """

    folder: str | os.PathLike[str]
    every: float = EVERY
    trust_source: bool = False


class Keeper:
    """Keeps the passes of one run in a folder.

    Parameters
    ----------
    folder : path
        Made where it is not there.
    configuration : mapping
        What the run was asked for, as plain JSON; a run with another cannot go on from it.
    source : mapping
        The fingerprint of the data, and the digest of its content.
    every : float
        Seconds between two checkpoints.
    seed : int
        Of a new run; one that goes on has its own.
    trust_source : bool
        Whether to leave the content of the data unchecked.

    Of several processes that run together, the first writes and all read. The folder is locked until `close`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        configuration: Mapping[str, Any],
        source: Mapping[str, Any],
        every: float = EVERY,
        seed: int = 0,
        *,
        trust_source: bool = False,
    ) -> None:
        self.folder, self.every, self.seed, self._name = Path(folder), every, seed, "pass"
        self._last = time.monotonic()
        facts = {"format": FORMAT, "configuration": dict(configuration), "source": dict(source)}
        facts = json.loads(json.dumps(facts))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"checkpoint={self.folder}: {error}: give a folder.") from None
        self._writes = jax.process_index() == 0
        self._lock = self._locked()
        try:
            self._begin(facts, trust_source)
        except BaseException:
            self.close()
            raise

    def _locked(self) -> FolderLock | None:
        """Return the lock of the folder, which the first process holds for all."""
        lock, owner = None, None
        try:
            lock = FolderLock(self.folder) if self._writes else None
        except InUse as error:
            owner = str(error)
        refused = owner is not None
        if broadcast_from_first(refused) if jax.process_count() > 1 else refused:
            raise CheckpointError(
                f"{self.folder} is in use by another run ({owner or 'see process 0'}): wait until that has "
                "ended, or give another folder."
            )
        return lock

    def _begin(self, facts: dict[str, Any], trust_source: bool) -> None:
        """Go on from the run in the folder, or note down a new one."""
        about = self.folder / "run.json"
        if self._writes:
            _remove_drafts(self.folder)
        if about.exists():
            kept = read_facts(about)
            self.seed = kept["seed"]
            refuse_other_run(kept, facts, self.folder, trust_source)
        else:
            kept = facts | {"seed": self.seed}
            if self._writes:
                with written_whole(about, CheckpointError) as draft:
                    draft.write_text(json.dumps(sealed_facts(kept), indent=2))
        self._run = sealed_facts(kept)[DIGEST]

    def close(self) -> None:
        """Let another run use the folder."""
        if self._lock is not None:
            self._lock.close()

    def part(self, name: str) -> Keeper:
        """Return a keeper of the same run for one of several fits that it takes."""
        other = copy.copy(self)
        other._name = name
        return other

    def due(self, carry: Any = None) -> bool:
        """Say whether it is time for another checkpoint.

        A carry that is spread over processes is gathered by all of them: the first one's clock counts.
        """
        now = time.monotonic() - self._last >= self.every
        return broadcast_from_first(now) if any_distributed(carry) else now

    def keep(self, number: int, carry: Any, row: int, *, ended: bool = False) -> None:
        """Write the carry of a pass that has reached a row."""
        together = any_distributed(carry)
        arrays = {
            str(i): gather(leaf)
            for i, leaf in enumerate(jax.tree.leaves(carry) if self._writes or together else ())
        }
        if self._writes:
            about = {"row": str(row), "ended": str(int(ended))} | self._about(number)
            write_arrays(self._path(number), arrays, about, CheckpointError)
        self._last = time.monotonic()

    def recall(self, number: int, start: Any) -> tuple[Any, int, bool]:
        """Return the carry of a pass, the row it had reached and whether it had ended; else its start."""
        path = self._path(number)
        if not path.exists():
            return start, 0, False
        leaves, tree = jax.tree.flatten(start)
        try:
            arrays, about = read_arrays(path)
            if "format" in about or DIGEST in about:
                refuse_unless_sealed(arrays, about)
                for name, expected in self._about(number).items():
                    if about.get(name) != expected:
                        raise ValueError(f"its {name} is {about.get(name)}, not {expected}")
            pairs = zip(leaves, (arrays[str(i)] for i in range(len(arrays))), strict=True)
            carry = jax.tree.unflatten(tree, [_like(a, b) for a, b in pairs])
            return carry, int(about["row"]), about["ended"] == "1"
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise CheckpointError(
                f"{path} is damaged, or not a checkpoint of this run ({error}): remove it to repeat that pass, "
                "or the folder to start again."
            ) from None

    def _about(self, number: int) -> dict[str, str]:
        """Return what a file says of itself: which pass of which run it is."""
        about = {"format": FORMAT, "run": self._run, "part": self._name, "number": number}
        return {name: str(value) for name, value in about.items()}

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._name}-{number:04d}.safetensors"


def _like(start: Any, found: np.ndarray) -> Any:
    """Return what was found as what was there at the start: an array of its shape, or a number."""
    if np.shape(start) != found.shape:
        raise ValueError(f"shape {found.shape} where {np.shape(start)} is expected")
    if isinstance(start, int):
        return int(found)
    expected = start.dtype if isinstance(start, jax.Array) else np.asarray(start).dtype
    if found.dtype != expected:
        raise ValueError(f"{found.dtype} where {expected} is expected")
    if not isinstance(start, jax.Array):
        return found
    return jax.device_put(found, start.sharding if len(start.devices()) > 1 else None)


def _remove_drafts(folder: Path) -> None:
    """Remove what processes that were killed had begun to write here; no other file is touched."""
    for path in folder.iterdir():
        draft = DRAFT.fullmatch(path.name)
        if draft and (int(draft[1]) == os.getpid() or not alive(int(draft[1]))):
            path.unlink(missing_ok=True)
