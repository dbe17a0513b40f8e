"""Overlap of reading and computing: the time of a fit compared with the slower of the two, and its memory.

    python -m benchmarks.reading [--cores 2] [--platform cpu] [--kinds npy,hdf5,zarr,parquet] [--out FILE]

The rows of `tall-exponential` (100000 x 4096 float32) as .npy memory map, HDF5, Zarr and Parquet. Each format is
measured in its own process. Files are in the page cache, so that reading does not wait for a disk:

    read      reading alone: blocks become batches on the device, without updates
    compute   updates alone: as many updates with one batch that is already on the device
    fit       both: a warm `EigenGamePCA.fit` of the path
    ratio     fit divided by the slower of read and compute; the aim is at most 1.15
    memory    peak of anonymous memory minus that before the fit, at four lengths of the same data
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.datasets import prepare

KINDS = ("npy", "hdf5", "zarr", "parquet")
ENDINGS = {"npy": ".npy", "hdf5": ".h5", "zarr": ".zarr", "parquet": ".parquet"}
K, BATCH = 32, 1024

TIMED = """
import json, sys, threading, time
import jax, numpy as np
from threadpoolctl import threadpool_limits
from eigengame import EigenGamePCA, as_source
from eigengame.solver.streams import batch_step
from eigengame.solver.rows.batches import Batches

path, k, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

def fit():
    return EigenGamePCA(k, batch_size=batch, random_state=0, algorithm="remembered", tol=None).fit(path)

def clock(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began

jax.block_until_ready(jax.numpy.ones(3) + 1)
before, peak, over = anonymous(), [0.0], threading.Event()
def look():
    while not over.is_set():
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.01)
threading.Thread(target=look, daemon=True).start()
pca = fit()
over.set()
source = as_source(path)
n, d = source.shape
dtype = np.dtype("float32")

def read():
    for made in Batches(source, batch, dtype)():
        jax.block_until_ready(made.rows)

def compute():
    game = pca._result.options.game()
    rows = Batches(source, batch, dtype).first()
    now = batch_step.begin(game, k, d, dtype, 0)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(-(-n // batch)):
            now, before = batch_step.take(game, now, rows, batch), now
            jax.block_until_ready(before.state.step)
        jax.block_until_ready(now.state)

times = {}
for name, work in (("read", read), ("compute", compute), ("fit", fit)):
    times[name] = min(clock(work) for _ in range(3))
print(json.dumps(times | {"rows": n, "memory": peak[0] - before}))
"""


def write(kind: str, data: np.ndarray, path: Path) -> None:
    """Write the rows in one format, in chunks of 1024 rows."""
    if kind == "npy":
        np.save(path, data)
    elif kind == "hdf5":
        import h5py

        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=data, chunks=(BATCH, data.shape[1]))
    elif kind == "zarr":
        import zarr

        array = zarr.create_array(
            store=str(path),
            shape=data.shape,
            chunks=(BATCH, data.shape[1]),
            dtype=data.dtype,
            compressors=None,
        )
        for begin in range(0, len(data), BATCH):
            array[begin : begin + BATCH] = data[begin : begin + BATCH]
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        d = data.shape[1]
        schema = pa.schema([("row", pa.list_(pa.float32(), d))])
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
            for begin in range(0, len(data), BATCH):
                block = np.ascontiguousarray(data[begin : begin + BATCH])
                rows = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), d)
                writer.write_table(pa.table([rows], schema=schema), row_group_size=BATCH)


def measure(path: Path, cores: int, platform: str) -> dict[str, float]:
    """Return the times and the memory for one file, measured in its own process."""
    chosen = set(sorted(os.sched_getaffinity(0))[:cores])
    completed = subprocess.run(
        [sys.executable, "-c", TIMED, str(path), str(K), str(BATCH)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(cores), "JAX_PLATFORMS": platform},
        preexec_fn=lambda: os.sched_setaffinity(0, chosen),
    )
    return dict(json.loads(completed.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--platform", default="cpu", help="cpu or cuda")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/reading.txt")
    options = parser.parse_args()
    folder = prepare("tall-exponential", "full")
    data = np.load(folder / "data.npy", mmap_mode="r")[: options.rows]
    lines = [
        f"{options.cores} cores, {options.platform}",
        f"{'format':8} {'rows':>7} {'read s':>7} {'compute s':>9} {'fit s':>6} {'ratio':>6} {'MB':>5}",
    ]
    print("\n".join(lines), flush=True)
    for kind in options.kinds.split(","):
        for n in (len(data) // 8, len(data) // 4, len(data) // 2, len(data)):
            path = folder.parent / f"reading-{n}{ENDINGS[kind]}"
            try:
                write(kind, data[:n], path)
                found = measure(path, options.cores, options.platform)
            finally:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            ratio = found["fit"] / max(found["read"], found["compute"])
            lines.append(
                f"{kind:8} {n:7} {found['read']:7.2f} {found['compute']:9.2f} {found['fit']:6.2f} "
                f"{ratio:6.2f} {found['memory']:5.0f}"
            )
            print(lines[-1], flush=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
