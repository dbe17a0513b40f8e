"""Checkpoints: the carry of each pass on disk.

A run is a sequence of passes, each a fold of pure steps. So a checkpoint consists of carries: one file for each
pass that was made, and one for the current pass with the row it has reached. To resume, the same program runs
again and reads carries instead of data. The result is the same to the last bit.

Files are safetensors: no pickle, one flat file that any tool can open. Each is written under a temporary name,
synced and renamed, so a crash or a full disk leaves the previous one intact. Orbax stores sharded arrays in
folders of many files, which a single rename cannot replace.
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

from eigengame._system.array_file import DIGEST, read_arrays, verify_checksum, write_arrays
from eigengame._system.atomic_write import atomic_write
from eigengame._system.folder_lock import FolderInUse, FolderLock, may_be_running
from eigengame.sharding.gather import any_distributed, gather
from eigengame.sharding.hosts import broadcast_from_first
from eigengame.solver.passes.run_record import (
    CHANGED,
    FORMAT,
    WITH_PROBES,
    read_facts,
    refuse_other_run,
    sealed_facts,
)
from eigengame.solver.passes.run_record import CheckpointError as CheckpointError
from eigengame.solver.passes.run_record import CheckpointWarning as CheckpointWarning

DRAFT = re.compile(r"\.(?:run\.json|(?:pass|k\d+)-\d{4,}\.safetensors)\.(\d+)(?:-[0-9a-f]{8})?")
"""Names of temporary files, with the id of the process that writes them: see `atomic_write`."""

EVERY = 60.0
"""Seconds between two checkpoints."""


class Interrupted(KeyboardInterrupt):
    """A run that was interrupted and saved."""

    def __init__(self, folder: Path, number: int, row: int) -> None:
        super().__init__(
            f"interrupted in pass {number} after {row} rows and saved in {folder}: make the same call again, "
            "with the same checkpoint, to continue."
        )


@dataclass(frozen=True)
class Checkpoint:
    """Folder to store a run in, and how often.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two checkpoints.
    trust_source : bool
        Skip the digest of the data: the caller ensures that the same rows come again in the same order. Needed for
        data without a digest, such as a generator; for other data it saves the time to read it. Shape, dtype,
        options, file sizes and times are compared in any case.
    """

    folder: str | os.PathLike[str]
    every: float = EVERY
    trust_source: bool = False


class CheckpointStore:
    """Stores the passes of one run in a folder.

    Of several processes that run together, the first writes and all read. The folder is locked until `close`.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    configuration : mapping
        Parameters of the run, as plain JSON. A run with other parameters cannot be resumed from this folder.
    source : mapping
        Fingerprint of the data, and digest of its content.
    every : float
        Seconds between two checkpoints.
    seed : int
        Seed of a new run. A run that is resumed has its own.
    trust_source : bool
        Whether to skip the check of the content of the data.
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
        """Return the lock of the folder, which the first process holds for all processes."""
        lock, owner = None, None
        try:
            lock = FolderLock(self.folder) if self._writes else None
        except FolderInUse as error:
            owner = str(error)
        refused = owner is not None
        if broadcast_from_first(refused) if jax.process_count() > 1 else refused:
            raise CheckpointError(
                f"{self.folder} is in use by another run ({owner or 'see process 0'}): wait until it ends, "
                "or give another folder."
            )
        return lock

    def _begin(self, facts: dict[str, Any], trust_source: bool) -> None:
        """Resume the run in the folder, or record a new one."""
        about = self.folder / "run.json"
        # Without a lock another run may be writing them, perhaps on another machine.
        if self._lock is not None and self._lock.held:
            _remove_drafts(self.folder)
        if about.exists():
            kept = read_facts(about)
            self.seed = kept["seed"]
            refuse_other_run(kept, facts, self.folder, trust_source)
        else:
            kept = facts | {"seed": self.seed}
            if self._writes:
                with atomic_write(about, CheckpointError) as draft:
                    draft.write_text(json.dumps(sealed_facts(kept), indent=2))
        self._run, self._format = sealed_facts(kept)[DIGEST], kept["format"]

    @property
    def of_earlier_version(self) -> bool:
        """Whether the run was started by an earlier version, whose first pass has no probes."""
        return bool(self._format < WITH_PROBES)

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.close()

    def part(self, name: str) -> CheckpointStore:
        """Return a store for one of the fits of a run that takes several."""
        other = copy.copy(self)
        other._name = name
        return other

    def due(self, carry: Any = None) -> bool:
        """Return whether it is time for another checkpoint.

        A carry that is shared by processes is gathered by all of them, so the clock of the first one decides.
        """
        now = time.monotonic() - self._last >= self.every
        return broadcast_from_first(now) if any_distributed(carry) else now

    def write(self, number: int, carry: Any, row: int, *, ended: bool = False) -> None:
        """Write the carry of a pass and the row it has reached."""
        together = any_distributed(carry)
        arrays = {
            str(i): gather(leaf)
            for i, leaf in enumerate(jax.tree.leaves(carry) if self._writes or together else ())
        }
        if self._writes:
            about = {"row": str(row), "ended": str(int(ended))} | self._about(number)
            write_arrays(self._path(number), arrays, about, CheckpointError)
        self._last = time.monotonic()

    def read(self, number: int, start: Any, task: str = "") -> tuple[Any, int, bool]:
        """Return the carry of a pass, the row it had reached and whether it had ended; without a file, `start`."""
        path = self._path(number)
        if not path.exists():
            return start, 0, False
        leaves, tree = jax.tree.flatten(start)
        try:
            arrays, about = read_arrays(path)
            if "format" in about or DIGEST in about:
                verify_checksum(arrays, about)
                for name, expected in self._about(number).items():
                    if about.get(name) != expected:
                        raise ValueError(f"its {name} is {about.get(name)}, not {expected}")
            kept = [arrays[str(i)] for i in range(len(arrays))]
            other = [one.shape for one in kept] != [*map(np.shape, leaves)]
            if self._format < FORMAT and (other or task in CHANGED):
                return start, 0, False  # an earlier version made it in another way
            pairs = zip(leaves, kept, strict=True)
            carry = jax.tree.unflatten(tree, [_like(a, b) for a, b in pairs])
            return carry, int(about["row"]), about["ended"] == "1"
        except (KeyError, TypeError, ValueError, OSError) as error:
            raise CheckpointError(
                f"{path} is damaged, or not a checkpoint of this run ({error}): remove it to repeat that pass, "
                "or remove the folder to start again."
            ) from None

    def _about(self, number: int) -> dict[str, str]:
        """Return the metadata of a file: which pass of which run it is."""
        about = {"format": self._format, "run": self._run, "part": self._name, "number": number}
        return {name: str(value) for name, value in about.items()}

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._name}-{number:04d}.safetensors"


def _like(start: Any, found: np.ndarray) -> Any:
    """Return an array that was read as the kind of value that the pass started with.

    Some begin without features, such as snapshots of players.
    """
    shape = np.shape(start)
    begun_empty = len(shape) == 2 == found.ndim and shape[1] == 0 and shape[0] == len(found)
    if shape != found.shape and not begun_empty:
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
    """Remove temporary files of processes that have ended; no other file is touched."""
    for path in folder.iterdir():
        draft = DRAFT.fullmatch(path.name)
        if draft and (int(draft[1]) == os.getpid() or not may_be_running(int(draft[1]))):
            path.unlink(missing_ok=True)
