"""Components on a Dask cluster: this package and other methods, on the same workers and the same lazy array.

    python -m benchmarks.scaling_dask [--small] [--workers 2]

200000 x 2000 float32 rows with eigenvalues 1/i, k = 16 (`--small`: 20000 x 200, k = 8). Blocks are drawn from their
seed whenever they are needed, so each pass over the data costs at least the time in the first line of the table.
Two worker processes have one thread each. The true components are those of the drawn rows, by X'X in float64.

    seconds   first call, including compilation, and second call
    angle     largest angle between the k components and the true ones, in radians
    streak    leading components within pi/32
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks.machine import thread_environment
from benchmarks.score import angles, streak
from eigengame import EigenGamePCA


class Size(NamedTuple):
    """Rows, columns, components, and rows for each block."""

    n: int
    d: int
    k: int
    block: int


FULL, SMALL = Size(200_000, 2_000, 16, 10_000), Size(20_000, 200, 8, 2_000)


def draw_block(number: int, size: Size) -> np.ndarray:
    """Return one block of rows: Gaussian with variances 1/i, rotated by three reflections.

    Reflections are cheap; a product with a full basis would take longer than the methods measured.
    """
    rng = np.random.default_rng((3, number))
    rows = rng.standard_normal((size.block, size.d), dtype=np.float32)
    rows *= np.sqrt(1 / np.arange(1, size.d + 1)).astype(np.float32)
    for axis in np.random.default_rng(4).standard_normal((3, size.d)).astype(np.float32):
        axis /= np.linalg.norm(axis)
        rows -= np.outer(2 * (rows @ axis), axis)
    return rows


def lazy(size: Size) -> da.Array:
    """Return the rows as a lazy Dask array."""
    block = dask.delayed(draw_block)
    parts = [
        da.from_delayed(block(i, size), (size.block, size.d), np.float32)
        for i in range(size.n // size.block)
    ]
    return da.concatenate(parts)


def moments(number: int, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return X'X and the sum of one block, in float64."""
    rows = draw_block(number, size).astype(np.float64)
    return rows.T @ rows, rows.sum(axis=0)


def true_components(size: Size, client: Client) -> np.ndarray:
    """Return the exact components (k, d), with two blocks at a time to limit memory."""
    total, mean = np.zeros((size.d, size.d)), np.zeros(size.d)
    for first in range(0, size.n // size.block, 2):
        numbers = range(first, min(first + 2, size.n // size.block))
        for square, sums in client.gather([client.submit(moments, i, size) for i in numbers]):
            total += square
            mean += sums / size.n
    values, vectors = np.linalg.eigh(total - size.n * np.outer(mean, mean))
    return vectors[:, np.argsort(values)[::-1][: size.k]].T


GAME = {"algorithm": "remembered", "tol": None}
"""The game in one pass, unless options say otherwise."""


def methods(size: Size, client: Client) -> Iterator[tuple[str, Callable[[da.Array], Any]]]:
    """Yield each method with its name: a function from the array to components (k, d)."""

    def ours(**options: Any) -> Callable[[da.Array], np.ndarray]:
        return lambda x: (
            EigenGamePCA(size.k, random_state=0, **GAME | options).fit(x, engine=client).components_
        )

    def compressed(powers: int) -> Callable[[da.Array], np.ndarray]:
        def found(x: da.Array) -> np.ndarray:
            centred = x - x.mean(axis=0)
            _, _, right = da.linalg.svd_compressed(
                centred, size.k, n_power_iter=powers, seed=0, compute=True
            )
            return client.gather(client.compute(right))

        return found

    yield "one pass over the data", lambda x: client.gather(client.compute(x.sum()))
    yield "eigengame, one pass", ours()
    yield "eigengame, passes=3", ours(passes=3)
    yield "eigengame, tol=pi/32", ours(tol=math.pi / 32)
    yield "dask svd_compressed, 0 powers", compressed(0)
    yield "dask svd_compressed, 2 powers", compressed(2)
    yield "dask svd_compressed, 4 powers", compressed(4)
    try:
        from dask_ml.decomposition import PCA
    except ImportError as error:
        print(f"dask_ml is not measured: {error}")
        return
    for powers in (0, 4):
        yield (
            f"dask_ml PCA, {powers} powers",
            lambda x, powers=powers: (
                PCA(size.k, svd_solver="randomized", iterated_power=powers, random_state=0)
                .fit(x)
                .components_
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="20000 x 200, k = 8")
    parser.add_argument("--workers", type=int, default=2, help="number of worker processes")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names to measure")
    parser.add_argument("--once", action="store_true", help="omit the second call")
    options = parser.parse_args()
    size = SMALL if options.small else FULL
    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            dashboard_address=":0",
            env=thread_environment(1),
        ) as cluster,
        Client(cluster) as client,
    ):
        truth, x = true_components(size, client), lazy(size)
        print(
            f"{size.n} x {size.d} float32, k = {size.k}, {x.numblocks[0]} blocks, {options.workers} workers"
        )
        print(f"{'':32} {'first':>8} {'again':>8} {'angle':>8} {'streak':>8}")
        for name, method in methods(size, client):
            if not any(part in name for part in options.only):
                continue
            seconds = []
            for _ in range(1 if options.once else 2):
                began = time.perf_counter()
                found = method(x)
                seconds.append(time.perf_counter() - began)
            shown = " ".join(f"{one:8.2f}" for one in seconds)
            if np.ndim(found) == 2:
                off = angles(np.asarray(found), truth)
                shown += f" {off.max():8.3f} {streak(off, math.pi / 32):>5}/{size.k}"
            print(f"{name:32} {shown}", flush=True)


if __name__ == "__main__":
    main()
