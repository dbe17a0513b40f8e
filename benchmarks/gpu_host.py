"""Data in host memory or in a file, computing on a GPU: transfer and compute alone, and the fit that overlaps them.

    python -m benchmarks.gpu_host [--rows 500000] [--features 4096] [--components 32] [--out FILE]

"transfer" copies all batches that a fit plans to the card and computes nothing, "compute" fits the same rows on the
card, and "fit" fits the rows of the host by one pass. The last column is the time of the fit over the larger of the
first two. All times are medians of warm runs.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem


def made_rows(n: int, d: int) -> np.ndarray:
    """Return Gaussian rows with eigenvalues 1/i, in float32."""
    rng, scale = np.random.default_rng(0), 1 / np.sqrt(np.arange(1, d + 1, dtype=np.float32))
    rows = np.empty((n, d), np.float32)
    for begin in range(0, n, 65536):
        part = rows[begin : begin + 65536]
        rng.standard_normal(dtype=np.float32, out=part)
        part *= scale
    return rows


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the median time of warm runs."""
    function()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def transfer(data: Any, size: int) -> None:
    """Copy all batches to the device, and wait for the last of them."""
    last = None
    for block in as_source(data).blocks(0, size):
        placed = jax.device_put(np.asarray(block.values))
        if last is not None:
            last.block_until_ready()
        last = placed
    assert last is not None
    last.block_until_ready()


def line(name: str, data: Any, there: Any, k: int, repeats: int) -> str:
    """Return the line of one kind of data; `there` are the same rows on the device."""

    def fit(rows: Any) -> EigenGamePCA:
        pca = EigenGamePCA(k, algorithm="remembered", passes=1, tol=None, random_state=0)
        return pca.fit(rows)

    source = as_source(data)
    options = Options(center=True, dtype=np.dtype(np.float32))
    size = make_plan(Problem(source, options), k, rows=source.shape[0]).batch
    alone = median_seconds(lambda: transfer(data, size), repeats)
    compute = median_seconds(lambda: fit(there), repeats)
    both = median_seconds(lambda: fit(data), repeats)
    angle = angular_error(fit(data).components_, fit(there).components_).max()
    ratio = both / max(alone, compute)
    return f"| {name} | {alone:.3f} | {compute:.3f} | {both:.3f} | {ratio:.2f} | {angle:.1e} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=4096)
    parser.add_argument("--components", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    rows = made_rows(given.rows, given.features)
    there = jnp.asarray(rows)
    lines = [
        f"# Rows of the host on {jax.devices()[0].device_kind}",
        "",
        f"{given.rows} x {given.features} in float32 ({rows.nbytes / 1e9:.1f} GB), k = {given.components}, "
        f"one pass; JAX {jax.__version__}, {datetime.date.today()}. Seconds.",
        "",
        "| rows | transfer | compute | fit | fit / larger | largest angle between both fits |",
        "|---|---|---|---|---|---|",
        line("NumPy array", rows, there, given.components, given.repeats),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, rows)
        lines.append(line(".npy file", path, there, given.components, given.repeats))
    page = "\n".join(lines)
    print(page)
    if given.out is not None:
        given.out.write_text(page + "\n")


if __name__ == "__main__":
    main()
