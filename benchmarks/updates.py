"""The time of one update of each algorithm, relative to the two products that every update needs.

    python benchmarks/updates.py [--rows 1024] [--features 784] [--players 16]

Compare ratios, not times: the load of the machine differs between runs.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import jax
import numpy as np

import eigengame as eg
from eigengame.game.rows import DenseRows

OPTIONS = {"sequential": {"eigenvalues": tuple(np.linspace(1.0, 0.5, 65))}}


def median_ratio(step, state, reference, players, repeats=30):
    """Time both in turn, so that other load on the machine affects both."""
    ratios, floors = [], []
    for repeat in range(repeats + 3):
        began = time.perf_counter()
        jax.block_until_ready(reference(players))
        middle = time.perf_counter()
        state = jax.block_until_ready(step(state))
        ended = time.perf_counter()
        if repeat >= 3:  # compilation and first accesses are not measured
            ratios.append((ended - middle) / (middle - began))
            floors.append(middle - began)
    return statistics.median(ratios), statistics.median(floors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--players", type=int, default=16)
    shape = parser.parse_args()

    x = np.random.default_rng(0).normal(size=(shape.rows, shape.features)).astype("float32")
    rows = DenseRows(jax.numpy.asarray(x / np.linalg.norm(x)))
    players = eg.game.random_players(0, shape.players, shape.features)
    products = jax.jit(lambda v: rows.directions(rows.scores(v)))
    results = {"shape": vars(shape), "device": str(jax.devices()[0]), "jax": jax.__version__}
    print(f"on {jax.devices()[0]}, {shape.rows} x {shape.features}, {shape.players} players")
    for name in eg.algorithms.REGISTRY:
        algorithm = eg.make(name, **OPTIONS.get(name, {}))
        update = jax.jit(lambda state, algorithm=algorithm: algorithm.update(rows, state)[0])
        ratio, floor = median_ratio(update, algorithm.init(players), products, players)
        results[name] = {"ratio": ratio, "products_ms": 1e3 * floor}
        print(f"{name:>20}: {ratio:7.2f} times the two products ({1e3 * floor:.2f} ms)")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "updates.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
