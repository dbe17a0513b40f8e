"""Synthetic single cells in an `.h5ad` file, from counts to components: time and memory by the number of cells.

    python -m benchmarks.cells_large [--cells 10000 100000] [--genes 33000] [--folder DIR] [--out FILE]

Each file has a sparse matrix of counts (CSR, float32), written in chunks. Cells belong to 20 types, and have counts
of about 750 genes. The stages are those of a user: select 2000 genes by their dispersion, fit 50 components of the
log-normalised counts, and write the scores to `obsm` of a copy. Each size runs in a process of its own, whose peak
of anonymous memory is measured. The files are deleted afterwards.

With ``algorithm="auto"`` sparse rows of the selected genes are held in memory if there is room for all of them
(route "lanczos"). The memory of ``algorithm="remembered"`` does not depend on the number of cells.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

TYPES = 20
DRAWS = 900
"""Median number of molecules of a cell."""

COMPONENTS, SELECTED = 50, 2000
CHUNK = 2000
"""Cells that are generated at once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--genes", type=int, default=33_000)
    parser.add_argument(
        "--folder", type=Path, help="Folder for the files. Default: a temporary one."
    )
    parser.add_argument("--out", type=Path, help="Markdown file for the table.")
    parser.add_argument("--algorithms", nargs="+", default=["auto"], help="Also: remembered.")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        print(json.dumps(measure(given.measure, given.algorithms[0])))
        return
    lines = [
        "| cells | genes | entries | file (GB) | writing (s) | selection (s) | fit (s) | scores (s) | memory (MB) "
        "| route | largest bound (rad) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for cells in given.cells:
            path = Path(folder) / "cells.h5ad"
            begin = time.perf_counter()
            entries = write(path, cells, given.genes)
            written, size = time.perf_counter() - begin, path.stat().st_size / 1e9
            for algorithm in given.algorithms:
                command = [sys.executable, "-m", "benchmarks.cells_large", "--measure", str(path)]
                command += ["--algorithms", algorithm]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
                found = json.loads(done.splitlines()[-1])
                lines.append(
                    f"| {cells:,} | {given.genes:,} | {entries:,} | {size:.2f} | {written:.0f} | "
                    f"{found['selection']:.1f} | {found['fit']:.1f} | {found['scores']:.1f} | "
                    f"{found['memory']:.0f} | {found['route']} | {found['angle']:.1e} |"
                )
                print("\n".join(lines[:2] + lines[-1:]), flush=True)
            for left in Path(folder).iterdir():
                left.unlink()
    if given.out is not None:
        given.out.write_text("\n".join(lines) + "\n")


def write(path: Path, cells: int, genes: int, seed: int = 0) -> int:
    """Write a file of synthetic counts, and return the number of entries. Only one chunk is in memory."""
    import h5py

    rng = np.random.default_rng(seed)
    # Genes have very different means; each type changes a part of them.
    base = rng.lognormal(0, 2, genes)
    shares = base * np.exp(rng.standard_normal((TYPES, genes)) * (rng.random((TYPES, genes)) < 0.1))
    steps = np.cumsum(shares, axis=1)
    steps /= steps[:, -1:]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        group = file.create_group("X")
        kind = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
        group.attrs.update(kind | {"shape": np.array([cells, genes])})
        parts = {"data": np.float32, "indices": np.int32}
        arrays = {
            name: group.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(2**18,))
            for name, dtype in parts.items()
        }
        pointers = np.zeros(cells + 1, np.int64)
        for begin in range(0, cells, CHUNK):
            end = min(begin + CHUNK, cells)
            counts, columns, lengths = _cells(rng, steps, end - begin)
            pointers[begin + 1 : end + 1] = pointers[begin] + np.cumsum(lengths)
            for name, values in (("data", counts), ("indices", columns)):
                arrays[name].resize((int(pointers[end]),))
                arrays[name][int(pointers[begin]) :] = values
        group["indptr"] = pointers
        _names(file, "obs", (f"cell{i}" for i in range(cells)))
        _names(file, "var", (f"gene{i}" for i in range(genes)))
    return int(pointers[-1])


def _cells(rng: np.random.Generator, steps: np.ndarray, m: int) -> tuple[np.ndarray, ...]:
    """Return counts and genes of the entries of m cells, and the number of entries of each."""
    genes = steps.shape[1]
    draws = np.maximum(rng.lognormal(np.log(DRAWS), 0.4, m), 50).astype(np.int64)
    kinds = rng.integers(0, len(steps), m)
    keys = []
    for kind in range(len(steps)):
        rows = np.repeat(np.flatnonzero(kinds == kind), draws[kinds == kind])
        found = np.searchsorted(steps[kind], rng.random(len(rows)), side="right")
        keys.append(rows * genes + np.minimum(found, genes - 1))
    entries, counts = np.unique(np.concatenate(keys), return_counts=True)
    return counts, entries % genes, np.bincount(entries // genes, minlength=m)


def _names(file: Any, key: str, names: Any) -> None:
    """Write a table that has names of its rows only."""
    import h5py

    group = file.create_group(key)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    group.attrs.update({"_index": "_index", "column-order": np.zeros(0)})
    index = group.create_dataset("_index", data=list(names), dtype=h5py.string_dtype())
    index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


def measure(path: Path, algorithm: str = "auto") -> dict[str, Any]:
    """Return times and memory of the stages for one file."""
    from benchmarks.memory import AnonymousPeak

    peak = AnonymousPeak()  # before libraries start threads
    from eigengame import EigenGamePCA, prepare
    from eigengame.cli.h5ad_writer import write_obsm

    clock = [time.perf_counter()]
    cells = prepare(path, counts="log-normalise", top_variable=SELECTED)
    clock.append(time.perf_counter())
    model = EigenGamePCA(COMPONENTS, algorithm=algorithm, random_state=0).fit(cells)
    clock.append(time.perf_counter())
    scores = model.transform_blocks(path)
    target = path.with_name("scores.h5ad")
    write_obsm(target, scores, COMPONENTS, data=str(path), ids={})
    clock.append(time.perf_counter())
    selection, fit, written = np.diff(clock)
    return {
        "selection": selection,
        "fit": fit,
        "scores": written,
        "memory": peak.bytes() / 1e6,
        "route": model.outcome_.route,
        "angle": float(model.certificate_.group_angle.max()),
    }


if __name__ == "__main__":
    main()
