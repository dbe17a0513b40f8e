"""What certificates take: components certified after one pass, and passes to a tolerance.

    python -m benchmarks.certified_passes [--out benchmarks/results/certified_passes.md]

Compares every bound with the true angle (`eigh` of the scatter matrix in float64). Times of one pass are relative
to one with `extra=k` and without probes, the fastest of three each.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg
from benchmarks.defaults import gaussian, mnist

WITHIN = math.pi / 32
EXTRA = (16, 24, 32)
PROBES = (24, 48, 64)
SEEDS = (0, 1, 2)
GAME = {"algorithm": "remembered", "tol": None}


def one_pass_sets() -> Iterator[tuple[str, np.ndarray]]:
    """Yield the data sets of the first table: 60000 rows of 784 features in float32."""
    images = mnist()
    if images is not None:
        yield "MNIST", images.astype(np.float32)
    yield "1/i", gaussian(eg.testing.harmonic(784), 60_000).astype(np.float32)
    yield "1/i^1.5", gaussian(eg.testing.harmonic(784) ** 1.5, 60_000).astype(np.float32)


def true_components(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the first k components of the rows (k, d)."""
    return eg.metrics.true_components(rows.astype(np.float64) - rows.mean(axis=0, dtype=float), k)[
        1
    ]


def one_pass(k: int = 16) -> Iterator[str]:
    """Yield the lines of the table of one pass."""
    yield (
        "| data | extra | probes | certified within pi/32 | estimate over true angle | bounds violated | "
        "fastest, relative |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, rows in one_pass_sets():
        truth = true_components(rows, k)
        least = min(_plain_seconds(rows, k) for _ in SEEDS)
        for extra in EXTRA:
            for probes in PROBES:
                counts, ratios, seconds, violated = [], [], [], 0
                for seed in SEEDS:
                    pca = eg.EigenGamePCA(k, extra=extra, probes=probes, random_state=seed, **GAME)
                    began = time.perf_counter()
                    pca.fit(rows)
                    seconds.append(time.perf_counter() - began)
                    found = pca.certificate_
                    true = eg.metrics.angular_error(pca.components_.astype(np.float64), truth)
                    counts.append(int((found.angle <= WITHIN).sum()))
                    ratios.append(float(np.median(found.estimate / true)))
                    violated += int((true > found.angle).sum())
                yield (
                    f"| {name} | {extra} | {probes} | {', '.join(map(str, counts))} of {k} | "
                    f"{np.median(ratios):.2f} | {violated} | {min(seconds) / least:.2f} |"
                )


def _plain_seconds(rows: np.ndarray, k: int) -> float:
    """Return the seconds of one pass with as many extra players as components, and without probes."""
    pca = eg.EigenGamePCA(k, extra=k, probes=0, random_state=0, **GAME)
    began = time.perf_counter()
    pca.fit(rows)
    return time.perf_counter() - began


def several_passes() -> Iterator[str]:
    """Yield the lines of the table of passes to a tolerance."""
    yield "| data | k | tol | batch size | passes | bounds violated |"
    yield "|---|---|---|---|---|---|"
    digits, images = load_digits().data, mnist()
    harmonic = gaussian(eg.testing.harmonic(784), 20_000).astype(np.float32)
    cases: list[tuple[str, np.ndarray, int, float, int | str, int]] = [
        ("digits", digits, 8, 1e-3, size, 8) for size in ("auto", 256, 1024)
    ]
    if images is not None:
        rows = images.astype(np.float32)
        cases += [("MNIST", rows, 16, tol, "auto", 1) for tol in (WITHIN, 1e-2, 1e-3)]
    cases += [("1/i, 20000 x 784", harmonic, 16, tol, "auto", 1) for tol in (0.1, 1e-3)]
    falling = {
        "exp(-i/8), 60000 x 784": np.exp(-np.arange(1, 785) / 8) + 1e-3,
        "rank 20 and noise, 60000 x 784": np.r_[np.linspace(10, 2, 20), np.full(764, 0.01)],
    }
    for name, spectrum in falling.items():
        rows = gaussian(spectrum, 60_000).astype(np.float32)
        cases += [(name, rows, 16, tol, "auto", 3) for tol in (WITHIN, 0.05)]
    for name, rows, k, tol, size, seeds in cases:
        truth, taken, violated = true_components(rows, k), [], 0
        for seed in range(seeds):
            pca = eg.EigenGamePCA(k, batch_size=size, random_state=seed, **GAME | {"tol": tol})
            pca.fit(rows)
            true = eg.metrics.angular_error(pca.components_.astype(np.float64), truth)
            violated += int((true > pca.certificate_.angle).sum())
            taken.append(f"{pca.n_passes_}{'' if pca.outcome_.converged else ' (not reached)'}")
        yield f"| {name} | {k} | {tol:.3g} | {size} | {', '.join(taken)} | {violated} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    given = parser.parse_args()
    lines = ["# Certified components and passes", "", "After one pass:", ""]
    for line in lines:
        print(line)
    for line in chain(
        one_pass(), ["", "Passes to a tolerance, the first one included:", ""], several_passes()
    ):
        print(line, flush=True)
        lines.append(line)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
