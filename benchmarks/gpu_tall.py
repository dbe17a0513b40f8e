"""Tall data on a GPU: eigengame against what a user of torch would write.

    python -m benchmarks.gpu_tall [NAME ...] [--repeats 5] [--out benchmarks/results/gpu_tall.md]

Rows are Gaussian with eigenvalues 1/i, in float32, and on the card before the clock starts. Each peer has a process
of its own, with the same rows. Times are medians of warm runs, after one that is reported as the first. Components
are compared with those by `eigh` of the covariance in float64. Ratios are to the fastest fit of eigengame that is
not certified.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WITHIN = math.pi / 32


class Size(NamedTuple):
    """Rows, features and components."""

    n: int
    d: int
    k: int


SIZES = {
    "60000x784": Size(60_000, 784, 16),
    "1000000x1024": Size(1_000_000, 1024, 32),
    "1000000x4096": Size(1_000_000, 4096, 32),
    "200000x16384": Size(200_000, 16384, 64),
}

PEERS = (
    "eigengame torch",
    "eigengame jax",
    "eigengame certified",
    "torch covariance",
    "torch lowrank 6",
    "torch lowrank 8",
    "torch lowrank 10",
)


def rows_of(size: Size) -> Any:
    """Return the rows on the card: a product of Gaussian numbers, the roots of 1/i, and two reflections."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(0)
    rows = torch.empty(size.n, size.d, device="cuda")
    scale = torch.arange(1, size.d + 1, device="cuda").rsqrt()
    vectors = torch.randn(2, size.d, device="cuda", generator=generator)
    for begin in range(0, size.n, 65536):
        part = rows[begin : begin + 65536]
        part.normal_(generator=generator)
        part *= scale
        for vector in vectors:
            unit = vector / vector.norm()
            part -= 2 * torch.outer(part @ unit, unit)
    return rows


def true_components(rows: Any, k: int) -> np.ndarray:
    """Return the first k components (k, d), by `eigh` of the covariance in float64."""
    import torch

    d = rows.shape[1]
    total = torch.zeros(d, d, device="cuda", dtype=torch.float64)
    mean = sum(part.double().sum(0) for part in rows.split(16384)) / len(rows)
    for part in rows.split(16384):
        centred = part.double() - mean
        total += centred.T @ centred
    return torch.linalg.eigh(total)[1][:, -k:].flip(1).T.cpu().numpy()


def solver(peer: str, rows: Any, k: int) -> Callable[[], Any]:
    """Return a function that computes the first k components (k, d) of the rows."""
    import torch

    if peer.startswith("torch lowrank"):
        iterations = int(peer.split()[-1])
        return lambda: torch.pca_lowrank(rows, q=k + 16, center=True, niter=iterations)[2][:, :k].T
    if peer == "torch covariance":

        def by_covariance() -> Any:
            mean = rows.mean(0)
            matrix = rows.T @ rows - len(rows) * torch.outer(mean, mean)
            return torch.linalg.eigh(matrix)[1][:, -k:].flip(1).T

        return by_covariance
    import jax

    from eigengame import EigenGamePCA

    options: dict[str, Any] = {"algorithm": "remembered", "passes": 1}
    if peer == "eigengame certified":
        options = {"algorithm": "auto", "tol": WITHIN}
    data = jax.dlpack.from_dlpack(rows) if peer == "eigengame jax" else rows

    def fit() -> Any:
        found = EigenGamePCA(
            k, random_state=0, **{"algorithm": "remembered", "tol": None} | options
        ).fit(data)
        fit.outcome = str(found.outcome_)  # type: ignore[attr-defined]
        return found.components_

    return fit


def measure(name: str, peer: str, repeats: int, truth_file: str) -> dict[str, Any]:
    """Time one peer in this process; "truth" writes the true components instead."""
    import torch

    size = SIZES[name]
    rows = rows_of(size)
    if peer == "truth":
        np.save(truth_file, true_components(rows, size.k))
        return {"peer": peer}
    run, seconds = solver(peer, rows, size.k), []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        found = run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    components = found if isinstance(found, np.ndarray) else found.double().cpu().numpy()
    across = np.abs(np.sum(components.astype(np.float64) * np.load(truth_file), axis=1))
    angles = np.arccos(np.minimum(across / np.linalg.norm(components, axis=1), 1))
    good = int(np.cumprod(angles <= WITHIN).sum())
    told = {"peer": peer, "first": seconds[0], "median": float(np.median(seconds[1:]))}
    return told | {"streak": good, "k": size.k, "outcome": getattr(run, "outcome", "")}


def compare(name: str, repeats: int, timeout: float, peers: tuple[str, ...]) -> list[str]:
    """Return the lines of the table of one size; each peer has its own process."""
    truth = f"/tmp/gpu_tall_{name}.npy"
    found = []
    for peer in ("truth", *peers):
        command = [sys.executable, "-m", "benchmarks.gpu_tall", name, "--peer", peer]
        command += ["--repeats", str(repeats), "--truth", truth]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
            last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
            found.append(json.loads(last) if last.startswith("{") else _failed(peer, done.stderr))
        except subprocess.TimeoutExpired:
            found.append(_failed(peer, f"not finished after {timeout:.0f} s"))
    ours = [one["median"] for one in found if one["peer"] in PEERS[:2] and "median" in one]
    lines = []
    for one in found[1:]:
        if "median" not in one:
            lines.append(f"| {name} | {one['peer']} | {one['failed']} | | | | |")
            continue
        ratio = f"{one['median'] / min(ours):.2f}" if ours else ""
        lines.append(
            f"| {name} | {one['peer']} | {one['median']:.4f} | {ratio} | {one['first']:.2f} | "
            f"{one['streak']}/{one['k']} | {one['outcome']} |"
        )
    return lines


def describe_machine() -> str:
    """Return date, card and versions, without a library that would take memory of the card."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    card = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "torch"))
    return f"{datetime.date.today()}, {card}, {versions}"


def _failed(peer: str, text: str) -> dict[str, Any]:
    """Return the record of a peer that failed, with the last line of its error."""
    lines = text.strip().splitlines()
    return {"peer": peer, "failed": f"failed: {lines[-1][:160] if lines else 'no output'}"}


def main() -> None:
    """Print the table, or measure one peer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=90)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--truth", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    if given.peer:
        print(json.dumps(measure(given.names[0], given.peer, given.repeats, given.truth)))
        return
    lines = [
        describe_machine(),
        "",
        "| rows x features | peer | seconds | ratio | first | within pi/32 | outcome |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name in given.names:
        for line in compare(name, given.repeats, given.timeout, tuple(given.peers.split(","))):
            print(line, flush=True)
            lines.append(line)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
