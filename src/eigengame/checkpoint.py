"""Runs that survive: the carry of every pass on disk, written whole or not at all.

A run is a sequence of passes, each a fold of pure steps. So it is enough to keep the carries: one file
for every pass that was made, one for the pass under way with the row it has reached. Going on means
to run the same program again, recalling instead of reading; the result is the same to the last bit.

Files are safetensors: no pickle, one flat file that any tool can open, written under another name, synced
and renamed, so that a crash or a full disk leaves the last good one. Orbax keeps sharded arrays in
folders of many files, for which one machine has no use and a rename no meaning.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from eigengame.parallel.gather import any_spread, whole
from eigengame.parallel.hosts import first_says

FORMAT = 1
EVERY = 60.0
"""Seconds between two checkpoints."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be written, read, or gone on from; says which and what to do."""


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
    """

    folder: str | os.PathLike[str]
    every: float = EVERY


class Keeper:
    """Keeps the passes of one run in a folder.

    Parameters
    ----------
    folder : path
        Made where it is not there.
    configuration : mapping
        What the run was asked for, as plain JSON; a run with another cannot go on from it.
    source : mapping
        The fingerprint of the data.
    every : float
        Seconds between two checkpoints.
    seed : int
        Of a new run; one that goes on has its own.

    Of several processes that run together, the first writes and all read.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        configuration: Mapping[str, Any],
        source: Mapping[str, Any],
        every: float = EVERY,
        seed: int = 0,
    ) -> None:
        self.folder, self.every, self.seed, self._name = Path(folder), every, seed, "pass"
        self._last = time.monotonic()
        facts = {"format": FORMAT, "configuration": dict(configuration), "source": dict(source)}
        facts = json.loads(json.dumps(facts))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"checkpoint={self.folder}: {error}: give a folder.") from None
        about = self.folder / "run.json"
        self._writes = jax.process_index() == 0
        for left in self.folder.glob(".*.safetensors.*") if self._writes else ():
            left.unlink(missing_ok=True)  # of a process that was killed while writing
        if about.exists():
            kept = _read_json(about)
            self.seed = int(kept.pop("seed", seed))
            _same_run(kept, facts, self.folder)
        elif self._writes:
            with written_whole(about) as draft:
                draft.write_text(json.dumps(facts | {"seed": seed}, indent=2))

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
        return first_says(now) if any_spread(carry) else now

    def keep(self, number: int, carry: Any, row: int, *, ended: bool = False) -> None:
        """Write the carry of a pass that has reached a row."""
        together = any_spread(carry)
        arrays = {
            str(i): whole(leaf)
            for i, leaf in enumerate(jax.tree.leaves(carry) if self._writes or together else ())
        }
        if self._writes:
            about = {"row": str(row), "ended": str(int(ended)), "number": str(number)}
            write_arrays(self._path(number), arrays, about)
        self._last = time.monotonic()

    def recall(self, number: int, start: Any) -> tuple[Any, int, bool]:
        """Return the carry of a pass, the row it had reached and whether it had ended; else its start."""
        path = self._path(number)
        if not path.exists():
            return start, 0, False
        from safetensors import SafetensorError, safe_open

        leaves, tree = jax.tree.flatten(start)
        try:
            with safe_open(path, framework="np") as file:
                about = file.metadata()
                found = [file.get_tensor(str(i)) for i in range(len(leaves))]
            pairs = zip(leaves, found, strict=True)
            carry = jax.tree.unflatten(tree, [_like(a, b) for a, b in pairs])
            return carry, int(about["row"]), about["ended"] == "1"
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise CheckpointError(
                f"{path} is not a checkpoint of this run ({error}): remove it to repeat that pass, or the "
                "folder to begin anew."
            ) from None

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._name}-{number:04d}.safetensors"


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> None:
    """Write arrays with facts about them as one safetensors file, whole or not at all."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with written_whole(path) as draft:
        try:
            flat = {name: np.asarray(array, order="C") for name, array in arrays.items()}
            save_file(flat, draft, metadata=dict(about))
        except SafetensorError as error:  # its own name for what the system refuses
            raise OSError(str(error)) from None


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give another name to write to, and put the file in its place only when it is whole and on disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(
            draft, 0o666 & ~_umask()
        )  # as any file is made; some libraries make theirs private
        os.replace(draft, path)
    except OSError as error:
        raise CheckpointError(
            f"{path} could not be written ({error.strerror or error}): what was written before is still "
            "good; make room or give another place, and run again."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _umask() -> int:
    """Return the rights that new files are not given; to be asked for, they must be set."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} cannot be read ({error}): remove the folder to begin anew."
        ) from None


def _same_run(kept: Mapping[str, Any], asked: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on from another run, naming every difference."""
    before, now = dict(_flat(kept)), dict(_flat(asked))
    differences = [
        f"{name} was {before.get(name)!r}, is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"{folder} belongs to another run: {'; '.join(differences)}. Give the same data and options to "
            "go on, or another folder to begin anew."
        )


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
