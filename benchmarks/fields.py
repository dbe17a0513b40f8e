"""Components of a field in a Zarr store: this package and xeofs, on the same lazy array and the same threads.

    python -m benchmarks.fields [--times 8000] [--threads 2] [--folder /tmp/fields] [--only xeofs]
        [--keep] [--feature-chunks]

8000 x 180 x 360 float32 values (2.1 GB), k = 10, weighted by latitude: 300 smooth patterns with variances
1 / i, and white noise. Zarr chunks contain 200 whole maps; with `--feature-chunks` 1000 times of 45 x 90 cells.
Each run is a process of its own, one after the other, on the same cores. The true components are those of the
stored values, from the inner products of all samples in float64.

    seconds   from opening the store to components in memory, including compilation
    processor processor time of the process in seconds, which other processes on the machine disturb less
    angle     largest angle between the k components and the true ones, in radians
    memory    peak resident memory of the process

The store is deleted at the end, unless `--keep`.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.score import angles

K, HEIGHT, WIDTH, PATTERNS, BLOCK = 10, 180, 360, 300, 200
LATITUDES = np.linspace(89.5, -89.5, HEIGHT)
RUNS = {
    "eigengame, default (0.05 rad)": ("eigengame", "auto"),
    "eigengame, tol=1e-3": ("eigengame", "1e-3"),
    "xeofs, 1 power iteration": ("xeofs", "1"),
    "xeofs, default (4 power iterations)": ("xeofs", "4"),
    "xeofs, 8 power iterations": ("xeofs", "8"),
}


def main() -> None:
    """Write the store, run all solvers, and print a table."""
    options = arguments()
    machine.pin(options.threads)
    if options.solver is not None:
        print(json.dumps(run(options)))
        return
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_store(folder, options.times, feature_chunks=options.feature_chunks)
        truth = true_components(folder)
        print(f"{options.times} x {HEIGHT} x {WIDTH} float32, {options.threads} threads")
        print(
            "| solver | seconds | processor | angle | memory, GB |\n|---|---|---|---|---|",
            flush=True,
        )
        for name, (solver, setting) in RUNS.items():
            if options.only not in name:
                continue
            row = measure(options, solver, setting, truth)
            print(f"| {name} | {row} |", flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=8_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/eigengame_fields"))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--feature-chunks", action="store_true")
    parser.add_argument("--only", default="", help="run solvers whose name contains this text")
    parser.add_argument("--timeout", type=float, default=3600)
    parser.add_argument("--solver", choices=("eigengame", "xeofs"), help=argparse.SUPPRESS)
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_store(folder: Path, times: int, *, feature_chunks: bool) -> None:
    """Write the field, block by block, unless it exists."""
    import zarr

    if (folder / "complete").exists():
        return
    rng = np.random.default_rng(0)
    patterns = smooth_patterns(rng)
    chunks = (1000, 45, 90) if feature_chunks else (BLOCK, HEIGHT, WIDTH)
    group = zarr.open_group(folder / "field.zarr", mode="w", zarr_format=2)
    array = group.create_array(
        "t", shape=(times, HEIGHT, WIDTH), chunks=chunks, dtype="float32", compressors=None
    )
    array.attrs["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]
    coordinates = {"time": np.arange(times), "lat": LATITUDES, "lon": np.arange(0.5, WIDTH)}
    for name, values in coordinates.items():
        group.create_array(name, data=values).attrs["_ARRAY_DIMENSIONS"] = [name]
    sizes = np.sqrt(1 / np.arange(1, PATTERNS + 1)).astype(np.float32)
    step = chunks[0]
    for begin in range(0, times, step):
        count = min(step, times - begin)
        factors = rng.standard_normal((count, PATTERNS), dtype=np.float32) * sizes
        noise = 0.002 * rng.standard_normal((count, HEIGHT * WIDTH), dtype=np.float32)
        array[begin : begin + count] = (factors @ patterns + noise + 1).reshape(
            count, HEIGHT, WIDTH
        )
    (folder / "complete").touch()


def smooth_patterns(rng: np.random.Generator) -> np.ndarray:
    """Return smooth patterns of unit length that are nearly orthogonal, shape (PATTERNS, cells)."""
    from scipy.ndimage import gaussian_filter

    raw = rng.standard_normal((PATTERNS, HEIGHT, WIDTH))
    smooth = np.stack([gaussian_filter(one, 3, mode=("nearest", "wrap")) for one in raw])
    basis = np.linalg.qr(smooth.reshape(PATTERNS, -1).T)[0]
    return np.ascontiguousarray(basis.T, dtype=np.float32)


def weights() -> np.ndarray:
    """Return the weight of each cell, shape (cells,)."""
    return np.repeat(np.sqrt(np.cos(np.deg2rad(LATITUDES))), WIDTH)


def true_components(folder: Path) -> np.ndarray:
    """Return the components of the stored values in float64, shape (K, cells); kept in the folder."""
    import scipy.linalg
    import zarr

    kept = folder / "truth.npy"
    if kept.exists():
        return np.load(kept)
    array = zarr.open_group(folder / "field.zarr", mode="r")["t"]
    n, step = array.shape[0], 1000
    starts = range(0, n, step)
    mean = sum(array[i : i + step].sum(axis=0, dtype=np.float64) for i in starts).ravel() / n

    def centred(begin: int) -> np.ndarray:
        rows = array[begin : begin + step].reshape(-1, HEIGHT * WIDTH).astype(np.float64)
        return (rows - mean) * weights()

    gram = np.empty((n, n))
    for i in starts:
        rows = centred(i)
        for j in range(0, i + 1, step):
            part = rows @ (rows if i == j else centred(j)).T
            gram[i : i + step, j : j + step] = part
            gram[j : j + step, i : i + step] = part.T
    _, left = scipy.linalg.eigh(gram, subset_by_index=[n - K, n - 1], overwrite_a=True)
    found = sum(left[i : i + step, ::-1].T @ centred(i) for i in starts)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    np.save(kept, found)
    return found


def measure(options: argparse.Namespace, solver: str, setting: str, truth: np.ndarray) -> str:
    """Run a solver in a process of its own, and return the cells of its row."""
    command = [sys.executable, "-m", "benchmarks.fields", "--solver", solver, "--setting", setting]
    command += ["--folder", str(options.folder), "--threads", str(options.threads)]
    try:
        ended = subprocess.run(
            command,
            env=machine.thread_environment(options.threads),
            capture_output=True,
            text=True,
            timeout=options.timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"more than {options.timeout:g} | - | - | -"
    if ended.returncode:
        return f"failed: {ended.stderr.strip().splitlines()[-1]} | - | - | -"
    row = json.loads(ended.stdout.strip().splitlines()[-1])
    found = np.load(options.folder / f"{solver}-{setting}.npy")
    worst = float(angles(found, truth).max())
    times = f"{row['seconds']:.1f} | {row['processor']:.1f}"
    return f"{times} | {worst:.2g} | {row['peak'] / 1e9:.2f}"


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Fit by one solver, and write its components."""
    import dask
    import xarray

    dask.config.set(scheduler="threads", num_workers=options.threads)
    solve = by_xeofs if options.solver == "xeofs" else by_eigengame
    began = time.perf_counter()
    field = xarray.open_zarr(options.folder / "field.zarr", consolidated=False).t
    found = solve(field, options.setting)
    seconds = time.perf_counter() - began
    # A solver may sort the coordinates.
    found = found.sel(lat=field.lat, lon=field.lon)
    found = found.transpose("mode", "lat", "lon").values.reshape(K, -1)
    np.save(options.folder / f"{options.solver}-{options.setting}.npy", found)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime,
        "peak": 1024 * used.ru_maxrss,
    }


def by_eigengame(field: Any, tol: str) -> Any:
    """Return components by this package."""
    import eigengame.xarray

    given = "auto" if tol == "auto" else float(tol)
    model = eigengame.xarray.fit(field, K, weights="coslat", tol=given, random_state=0)
    return model.components()


def by_xeofs(field: Any, iterations: str) -> Any:
    """Return components by xeofs."""
    import xeofs

    model = xeofs.single.EOF(
        n_modes=K,
        use_coslat=True,
        random_state=0,
        solver_kwargs={"n_power_iter": int(iterations)},
    )
    model.fit(field, dim="time")
    return model.components().compute()


if __name__ == "__main__":
    main()
