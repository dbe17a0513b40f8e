"""Measurements behind the defaults of `remembered`: the number of extra players and of rounds.

    python -m benchmarks.defaults [--out benchmarks/results/defaults.md]

One pass, k = 16, float32. Prints the largest angle between the 16 components and the exact ones (`eigh` in
float64), and the streak at pi/32, as `angle / streak`. Times are not measured.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
import numpy as np

import eigengame as eg
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from eigengame.solver.streams import batch_step
from eigengame.sources import as_source

K, D, N = 16, 784, 20_000
SIZES = (1024, 512, 256, 64)
CHOICES = [(4, 1), (8, 1), (16, 1), (32, 1), (8, 2), (16, 2)]


def mnist() -> np.ndarray | None:
    """Return the training images, divided by 255, or None if they are not available."""
    folder = Path(os.environ.get("EIGENGAME_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "mnist" / "train-images-idx3-ubyte.gz"
    if not path.exists():
        return None
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, D) / 255


def gaussian(spectrum: np.ndarray, n: int = N) -> np.ndarray:
    """Return n Gaussian rows with this covariance."""
    stream, _ = eg.testing.stream_with(spectrum, n, 1, seed=1)
    return next(stream)


def problems() -> Iterator[tuple[str, np.ndarray]]:
    """Yield each data set with its name."""
    images = mnist()
    if images is not None:
        yield "MNIST, 60000 rows", images
    harmonic = gaussian(eg.testing.harmonic(D))
    yield "1/i", harmonic
    yield "exp(-i/8) + 1e-3", gaussian(np.exp(-np.arange(1, D + 1) / 8) + 1e-3)
    yield "1/i, values 20 to 40 equal", gaussian(eg.testing.bubble(eg.testing.harmonic(D), 20, 40))
    first = eg.metrics.true_components(harmonic, 1)[1][0]
    yield "1/i, sorted by the first component", harmonic[np.argsort(harmonic @ first)]
    yield "1/i, 100 rows", harmonic[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "defaults.md"
    )
    out = parser.parse_args().out
    head = " | ".join(f"+{extra}, {rounds} round{'s'[: rounds - 1]}" for extra, rounds in CHOICES)
    lines = [f"| data | batch | {head} |", "|---|---|" + "---|" * len(CHOICES)]
    print("\n".join(lines), flush=True)
    for name, x in problems():
        truth = eg.metrics.true_components(x - x.mean(axis=0), K)[1]
        for size in SIZES:
            if size > len(x):
                continue
            feed = Batches(as_source(x), size, np.dtype(np.float32))
            cells = []
            for extra, rounds in CHOICES:
                game = eg.algorithms.Remembered(extra=extra, rounds=rounds, center=True)
                begun = batch_step.begin(game, K, x.shape[1], np.float32, 0)
                step = partial(batch_step.take, game)
                seen = SourcePasses(feed).fold(step, begun, task="remembered")
                players = seen.state.memory.players[:K]
                errors = eg.metrics.angular_error(np.asarray(players, np.float64), truth)
                cells.append(f"{errors.max():.3f} / {eg.metrics.streak_of(errors, math.pi / 32)}")
            lines.append(f"| {name} | {size} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    out.parent.mkdir(exist_ok=True)
    out.write_text("\n".join(lines) + f"\n\nJAX {jax.__version__}, {jax.devices()[0].platform}.\n")


if __name__ == "__main__":
    main()
