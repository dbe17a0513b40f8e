"""Fits without arguments: largest angle, warnings and time, beside scikit-learn's PCA.

    python -m benchmarks.first_try [--threads 1] [--only digits mnist] [--out benchmarks/results/first_try.md]

For each data set `EigenGamePCA(k).fit(X)` and `sklearn.decomposition.PCA(k).fit(X)` run in processes of their own,
one after the other, with equal numbers of threads. Times are those of the processor, summed over threads, so that
other users of the machine matter less. Imports and reading of the data are not timed. The first fit of
a process is timed ("first": programs are compiled, or loaded from the cache on disk), then a second one ("again").
The truth is the eigenvectors by LAPACK or, with more features than rows, ARPACK to machine precision, in float64.

Components are outside if their true angle is above 0.05 rad. A fit is right if all components outside are named by
its warning. Components that the warning names although they are inside are counted as "named in vain".
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.machine import thread_environment
from eigengame import testing
from eigengame.metrics import angular_error

TOL = 0.05
MEASURED = "--measure"


class DataSet(NamedTuple):
    """A function that returns the rows, the number of components, and the number of fits that are timed."""

    load: Callable[[Path], Any]
    k: int
    fits: int = 2


def digits(folder: Path) -> np.ndarray:
    """Return scikit-learn's digits, 1797 x 64."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data)


def mnist(folder: Path) -> np.ndarray:
    """Return the training images of MNIST, 60000 x 784, in float32."""
    with gzip.open(folder / "mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16)
    return (images.reshape(-1, 784) / 255).astype(np.float32)


def hapmap3(folder: Path) -> np.ndarray:
    """Return standardised genotypes, 957 x 14079, in float32."""
    from eigengame import prepare

    path = folder / "genotypes_hapmap3" / "HM3_thinned_autosomal_overlap.bed"
    source = prepare(path, genotypes="standardise")
    return np.concatenate([block.values for block in source.blocks(0, 256)]).astype(np.float32)


def cells(folder: Path) -> scipy.sparse.csr_matrix:
    """Return log-normalised counts of 10x cells, 3716 x 33539, sparse."""
    import h5py

    (path,) = (folder / "singlecell_10x").glob("*.h5")
    with h5py.File(path) as file:
        group = file["matrix"]
        arrays = [group[name][:] for name in ("data", "indices", "indptr", "shape")]
    counts = scipy.sparse.csc_matrix(tuple(arrays[:3]), shape=tuple(arrays[3]), dtype=np.float64)
    counts = counts.T.tocsr()
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    found = (scipy.sparse.diags(1e4 / totals) @ counts).tocsr()
    found.data = np.log1p(found.data)
    return scipy.sparse.csr_matrix(found.astype(np.float32))


def text(folder: Path, n: int = 18_000, d: int = 100_000, topics: int = 120) -> Any:
    """Return tf-idf of artificial documents: words by a Zipf law that each of the topics changes, sparse."""
    rng, ranks = np.random.default_rng(0), np.arange(1, d + 1)
    shares = rng.dirichlet(np.full(topics, 0.05), n)
    laws = [np.cumsum(rng.gamma(0.1, 10, d) / ranks) for _ in range(topics)]
    lengths = rng.lognormal(4.6, 0.8, n).astype(int) + 5
    document = np.repeat(np.arange(n), lengths)
    topic = np.concatenate(
        [rng.choice(topics, m, p=p) for m, p in zip(lengths, shares, strict=True)]
    )
    word = np.empty(len(topic), int)
    for one, law in enumerate(laws):
        own = topic == one
        word[own] = np.searchsorted(law, rng.random(own.sum()) * law[-1])
    ones = np.ones(len(word))
    counts = scipy.sparse.coo_matrix(
        (ones, (document, np.minimum(word, d - 1))), shape=(n, d)
    ).tocsr()
    seen = np.bincount(counts.indices, minlength=d)
    weighted = (counts @ scipy.sparse.diags(np.log((1 + n) / (1 + seen)) + 1)).tocsr()
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    rows = scipy.sparse.diags(1 / np.maximum(norms, 1e-9)) @ weighted
    return scipy.sparse.csr_matrix(rows.astype(np.float32))


def harmonic(folder: Path) -> np.ndarray:
    """Return Gaussian rows with variances 1/i, 60000 x 784, in float32."""
    stream, _ = testing.stream_with(testing.harmonic(784), 60_000, 1, seed=1)
    return np.asarray(next(stream), np.float32)


DATA_SETS = {
    "digits": DataSet(digits, 16),
    "mnist": DataSet(mnist, 16),
    "hapmap3": DataSet(hapmap3, 20),
    "cells": DataSet(cells, 50, 1),
    "text": DataSet(text, 100, 1),
    "harmonic": DataSet(harmonic, 16),
}


def exact_components(rows: Any, k: int) -> np.ndarray:
    """Return the first k components of the rows (k, d), in float64."""
    if not scipy.sparse.issparse(rows) and rows.shape[0] > rows.shape[1]:
        centred = rows - rows.mean(axis=0, dtype=np.float64)
        vectors = np.linalg.eigh(centred.T @ centred)[1]
        return vectors.T[::-1][:k]
    wide = rows.astype(np.float64)
    n, mean = rows.shape[0], np.asarray(wide.mean(axis=0)).ravel()

    def product(vector: np.ndarray) -> np.ndarray:
        """Multiply by the inner products of centred rows."""
        vector = np.ravel(vector)
        there = wide.T @ vector - vector.sum() * mean
        return wide @ there - mean @ there

    values, vectors = eigsh(LinearOperator((n, n), product, dtype=np.float64), k, tol=0)
    vectors = vectors.T[np.argsort(values)[::-1]]
    found = (wide.T @ vectors.T - np.outer(mean, vectors.sum(axis=1))).T
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def stored(folder: Path, name: str) -> tuple[Any, int]:
    """Return the rows of a data set from a file, and the number of components."""
    path, k = folder / f"{name}.npz", DATA_SETS[name].k
    if path.exists():
        return scipy.sparse.csr_matrix(scipy.sparse.load_npz(path)), k
    return np.load(folder / f"{name}.npy"), k


def measure(folder: Path, name: str, library: str) -> None:
    """Fit twice, and print seconds, warnings and the outcome as JSON. Components are written to the folder."""
    rows, k = stored(folder, name)
    if library == "eigengame":
        from eigengame import EigenGamePCA
        from eigengame.estimator.uncertified import uncertified

        make: Callable[[], Any] = lambda: EigenGamePCA(k)  # noqa: E731
    else:
        from sklearn.decomposition import PCA

        make = lambda: PCA(k)  # noqa: E731
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(DATA_SETS[name].fits):
            caught.clear()
            began = time.process_time()
            pca = make().fit(rows)
            seconds.append(time.process_time() - began)
    found = {"seconds": seconds, "warnings": [str(one.message) for one in caught], "named": []}
    if library == "eigengame":
        found |= {"outcome": str(pca.outcome_), "named": uncertified(pca).tolist()}
        # What is named must be in the warning, and nothing is named without one.
        assert bool(found["named"]) == any("not certified" in one for one in found["warnings"])
    else:
        found["outcome"] = str(pca._fit_svd_solver)
    np.save(folder / f"{name}-{library}.npy", pca.components_)
    print(json.dumps(found))


def run(folder: Path, name: str, library: str, threads: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.first_try", MEASURED, str(folder), name, library]
    environment = thread_environment(threads)
    # Fits cache their programs on disk by default.
    environment.pop("JAX_ENABLE_COMPILATION_CACHE", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}, {library}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def line(folder: Path, name: str, threads: int) -> str:
    """Return the line of one data set."""
    rows, k = stored(folder, name)
    ours, theirs = (run(folder, name, library, threads) for library in ("eigengame", "sklearn"))
    truth = exact_components(rows, k)
    angles, others = (
        angular_error(np.load(folder / f"{name}-{library}.npy").astype(np.float64), truth)
        for library in ("eigengame", "sklearn")
    )
    outside, named = set(np.flatnonzero(angles > TOL).tolist()), set(ours["named"])
    right = "yes" if outside <= named else f"no: {sorted(outside - named)}"
    ratios = [one / other for one, other in zip(ours["seconds"], theirs["seconds"], strict=True)]
    cells = [
        f"{name}, {rows.shape[0]} x {rows.shape[1]}, k = {k}",
        f"{angles.max():.2g}",
        str(len(outside)),
        right,
        str(len(named - outside)),
        *(
            " / ".join(f"{one:.2f}" for one in found)
            for found in (ours["seconds"], theirs["seconds"], ratios)
        ),
        f"{others.max():.2g} ({int((others > TOL).sum())})",
        f"{ours['outcome']}; {theirs['outcome']}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == [MEASURED]:
        measure(Path(sys.argv[2]), *sys.argv[3:5])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(DATA_SETS), choices=DATA_SETS)
    default = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder of the real data")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    lines = [
        f"# Fits without arguments, {given.threads} thread(s)",
        "",
        "| data | largest angle | outside 0.05 | all of these named | named in vain | CPU seconds, first / again | "
        "scikit-learn, first / again | ratio | scikit-learn's largest angle (outside) | outcomes |",
        "|---" * 10 + "|",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        for name in given.only:
            rows = DATA_SETS[name].load(given.data)
            if scipy.sparse.issparse(rows):
                scipy.sparse.save_npz(folder / f"{name}.npz", rows)
            else:
                np.save(folder / f"{name}.npy", rows)
            lines.append(line(folder, name, given.threads))
            print(lines[-1], flush=True)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
