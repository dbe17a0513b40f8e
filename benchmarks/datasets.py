"""The data sets: their sizes, their files, and how they are opened.

    python -m benchmarks.datasets NAME [--scale small]     builds one

Each is built once, under $EIGENGAME_BENCH (default /tmp/eigengame-bench), and kept.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse

from benchmarks import dataset_builders
from benchmarks.dataset_builders import Builder, DataUnavailable, Size, Truth

VERSION = 1  # increase it when a builder changes, so that old files are not used


@dataclass(frozen=True)
class DataSet:
    """A data set in two sizes, and the form in which peers receive it: array, memmap or CSR."""

    build: Builder
    store: Literal["memory", "memmap", "sparse"]
    full: Size
    small: Size

    def size(self, scale: str) -> Size:
        """Return the size at this scale."""
        return self.small if scale == "small" else self.full


MID, MID_SMALL = Size(60000, 784, 16, 1024), Size(3000, 784, 16, 256)
TALL, TALL_SMALL = Size(100000, 4096, 32, 1024), Size(5000, 4096, 32, 512)
DATA_SETS = {
    "mnist": DataSet(dataset_builders.mnist, "memory", MID, MID_SMALL),
    "harmonic": DataSet(dataset_builders.harmonic, "memory", MID, MID_SMALL),
    "exponential": DataSet(dataset_builders.exponential, "memory", MID, MID_SMALL),
    "tall-harmonic": DataSet(dataset_builders.harmonic, "memmap", TALL, TALL_SMALL),
    "tall-exponential": DataSet(dataset_builders.exponential, "memmap", TALL, TALL_SMALL),
    "wide": DataSet(
        dataset_builders.wide, "memmap", Size(4000, 250000, 32, 1000), Size(1000, 50000, 32, 128)
    ),
    # Both sides are smaller: with fewer rows alone, no topic would rise above the noise.
    "sparse": DataSet(
        dataset_builders.sparse, "sparse", Size(20000, 50000, 16, 1024), Size(4000, 12500, 16, 256)
    ),
    "text": DataSet(
        dataset_builders.text,
        "sparse",
        Size(18000, 100000, 100, 1024),
        Size(2000, 10000, 20, 256),
    ),
}


def prepare(name: str, scale: str) -> Path:
    """Build a data set if it does not exist, and return its folder.

    If two processes call this at once, one builds and the other waits. A folder is complete or absent.
    """
    root = Path(os.environ.get("EIGENGAME_BENCH", "/tmp/eigengame-bench"))
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{name}-{scale}-v{VERSION}"
    with open(root / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = root / f"{folder.name}.draft"
            shutil.rmtree(draft, ignore_errors=True)  # left by a builder that was killed
            draft.mkdir()
            truth = DATA_SETS[name].build(DATA_SETS[name].size(scale), draft)
            np.save(draft / "values.npy", truth.values)
            np.save(draft / "components.npy", truth.components)
            draft.rename(folder)
    return folder


def open_data(name: str, folder: Path) -> Any:
    """Return the rows in the form that peers receive: an array, a read-only memmap, or a CSR array."""
    store = DATA_SETS[name].store
    if store == "sparse":
        return scipy.sparse.csr_array(scipy.sparse.load_npz(folder / "data.npz"))
    if store == "memory":
        return np.load(folder / "data.npy")
    read_through(folder / "data.npy")
    return np.load(folder / "data.npy", mmap_mode="r")


def open_truth(folder: Path) -> Truth:
    """Return the exact eigenvalues and components."""
    return Truth(np.load(folder / "values.npy"), np.load(folder / "components.npy"))


def read_through(path: Path) -> None:
    """Read a file to its end, so that it is in the page cache for every peer."""
    buffer = bytearray(2**24)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def main() -> None:
    """Build one data set; exit with code 3 and the reason if its data is not available."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=DATA_SETS)
    parser.add_argument("--scale", choices=("small", "full"), default="full")
    options = parser.parse_args()
    try:
        print(prepare(options.name, options.scale))
    except DataUnavailable as reason:
        print(reason, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
