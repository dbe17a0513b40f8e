"""Components on a Dask cluster: ours beside Dask's own, on the same workers and the same lazy array.

    python -m benchmarks.scaling_dask [--small] [--workers 2]

200000 x 2000 float32 rows with eigenvalues 1/i, k = 16 (`--small`: 20000 x 200, k = 8). Blocks are drawn from their
seed whenever they are needed, so each look at the data costs what the first line of the table says. Two worker
processes of one thread each. The truth is that of the rows drawn, by X'X in float64.

    seconds   first call, compilation included, and the same call again
    angle     the largest of the k components to the true ones, in radians
    streak    leading components within pi/32
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import dask
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


def drawn(number: int, size: Size) -> np.ndarray:
    """Return one block of rows: Gaussian with variances 1/i, turned by three reflections.

    A product with a whole basis would cost many times what is measured; reflections cost next to nothing.
    """
    rng = np.random.default_rng((3, number))
    rows = rng.standard_normal((size.block, size.d), dtype=np.float32)
    rows *= np.sqrt(1 / np.arange(1, size.d + 1)).astype(np.float32)
    for axis in np.random.default_rng(4).standard_normal((3, size.d)).astype(np.float32):
        axis /= np.linalg.norm(axis)
        rows -= np.outer(2 * (rows @ axis), axis)
    return rows


def lazy(size: Size) -> da.Array:
    """Return the rows as a Dask array of which nothing is kept."""
    block = dask.delayed(drawn)
    parts = [
        da.from_delayed(block(i, size), (size.block, size.d), np.float32)
        for i in range(size.n // size.block)
    ]
    return da.concatenate(parts)


def moments(number: int, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return X'X and the sum of one block, in float64."""
    rows = drawn(number, size).astype(np.float64)
    return rows.T @ rows, rows.sum(axis=0)


def true_components(size: Size, client: Client) -> np.ndarray:
    """Return the exact components (k, d), block after block so that few matrices are held."""
    total, mean = np.zeros((size.d, size.d)), np.zeros(size.d)
    for first in range(0, size.n // size.block, 2):
        numbers = range(first, min(first + 2, size.n // size.block))
        for square, sums in client.gather([client.submit(moments, i, size) for i in numbers]):
            total += square
            mean += sums / size.n
    values, vectors = np.linalg.eigh(total - size.n * np.outer(mean, mean))
    return vectors[:, np.argsort(values)[::-1][: size.k]].T


def contenders(size: Size, client: Client) -> Iterator[tuple[str, Callable[[da.Array], Any]]]:
    """Give each method by name: from the array to components (k, d)."""

    def ours(**options: Any) -> Callable[[da.Array], np.ndarray]:
        return lambda x: (
            EigenGamePCA(size.k, random_state=0, **options).fit(x, engine=client).components_
        )

    def compressed(powers: int) -> Callable[[da.Array], np.ndarray]:
        def found(x: da.Array) -> np.ndarray:
            centred = x - x.mean(axis=0)
            _, _, right = da.linalg.svd_compressed(
                centred, size.k, n_power_iter=powers, seed=0, compute=True
            )
            return client.gather(client.compute(right))

        return found

    yield "one look at the data", lambda x: client.gather(client.compute(x.sum()))
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
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names to measure")
    parser.add_argument("--once", action="store_true", help="no second call")
    asked = parser.parse_args()
    size = SMALL if asked.small else FULL
    with (
        LocalCluster(
            n_workers=asked.workers,
            threads_per_worker=1,
            dashboard_address=":0",
            env=thread_environment(1),
        ) as cluster,
        Client(cluster) as client,
    ):
        truth, x = true_components(size, client), lazy(size)
        print(
            f"{size.n} x {size.d} float32, k = {size.k}, {x.numblocks[0]} blocks, {asked.workers} workers"
        )
        print(f"{'':32} {'first':>8} {'again':>8} {'angle':>8} {'streak':>8}")
        for name, method in contenders(size, client):
            if not any(part in name for part in asked.only):
                continue
            seconds = []
            for _ in range(1 if asked.once else 2):
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
