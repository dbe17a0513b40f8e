"""Passes to a certificate on large data: tall, wide, and the activations of networks.

    python -m benchmarks.certified_large [NAME ...] [--out FILE]

Names: tall-harmonic, wide (from `benchmarks.datasets`), and networks of timm with random weights on random images.
For each, the passes of the remembered game to a tolerance, and the largest angle to exact components. Seconds are
of one run, and for orientation only.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import eigengame as eg
from benchmarks.datasets import DATA_SETS, open_data, open_truth, prepare

NETWORKS = ("vit_small_patch16_224", "mobilenetv2_100")
FILES = ("tall-harmonic", "wide")
IMAGES = 1000


class Case(NamedTuple):
    """A data set, the number of components, the tolerance, and exact components (k, d)."""

    data: Any
    k: int
    tol: float
    truth: np.ndarray


def from_file(name: str) -> Case:
    """Open a data set of the benchmarks."""
    folder = prepare(name, "full")
    k, truth = DATA_SETS[name].full.k, open_truth(folder).components
    return Case(open_data(name, folder), k, math.pi / 32, truth)


def from_network(name: str, k: int = 8) -> Case:
    """Return the activations of a network with random weights on random images."""
    import timm
    import torch

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = timm.create_model(name, pretrained=False).to(device)
    images = torch.randn(IMAGES, 3, 224, 224)
    source = eg.activations(network, torch.utils.data.DataLoader(images, batch_size=50))
    exact = eg.EigenGamePCA(k, algorithm="exact").fit(source)
    print(
        f"{name}: {source.shape[1]:,} features; exact: {exact.outcome_}, "
        f"bounds up to {exact.certificate_.angle.max():.1e}"
    )
    return Case(source, k, 0.05, exact.components_)


def measured(name: str) -> Iterator[str]:
    """Yield a line of the table for each seed."""
    data, k, tol, truth = from_network(name) if name in NETWORKS else from_file(name)
    for seed in (0, 1):
        began = time.perf_counter()
        pca = eg.EigenGamePCA(k, algorithm="remembered", tol=tol, random_state=seed).fit(data)
        seconds = time.perf_counter() - began
        true = eg.metrics.angular_error(
            np.asarray(pca.components_, np.float64), np.asarray(truth, np.float64)
        )
        bounds = pca.certificate_.angle
        yield (
            f"| {name} | {k} | {tol:.3g} | {pca.n_passes_}{'' if pca.outcome_.converged else ' (not reached)'} | "
            f"{int((bounds <= tol).sum())} | {true.max():.1e} | {int((true > bounds).sum())} | {seconds:.1f} |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*FILES, *NETWORKS])
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    lines = [
        "| data | k | tol | passes | certified | largest true angle | bounds violated | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        print(line)
    for name in given.names:
        for line in measured(name):
            print(line, flush=True)
            lines.append(line)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
