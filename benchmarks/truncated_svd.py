"""100 components of TF-IDF matrices without centring: time and angles, beside scikit-learn's TruncatedSVD.

    python -m benchmarks.truncated_svd [--only zipf topics real] [--out benchmarks/results/truncated_svd.md]

Each fit runs in a process of its own with one thread. Times are those of the processor, the smallest of several
runs; imports and reading of the data are not timed. Angles are to eigenvectors by ARPACK to machine precision in
float64. The number of iterations of "randomized" is doubled until the largest angle is within 0.05 rad.

zipf    artificial documents, 18000 x 100000 (`first_try.text`)
topics  artificial documents, 18000 x 100000 (`dataset_builders.text`)
real    the 250 documents of the corpus "head500" in the package gensim, which is read but not imported
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks import dataset_builders, first_try
from benchmarks.datasets import DATA_SETS
from benchmarks.machine import thread_environment
from eigengame.metrics import angular_error

K, TOL, MEASURED = 100, 0.05, "--measure"
MOST_ITERATIONS = 320

OURS: dict[str, dict[str, Any]] = {
    "EigenGamePCA, certified": {},
    "EigenGamePCA, certified, float64": {"dtype": "float64"},
    "EigenGamePCA, tol=None": {"tol": None},
}
THEIRS: dict[str, dict[str, Any]] = {
    "TruncatedSVD, arpack": {"algorithm": "arpack"},
    "the same on float64 data": {"algorithm": "arpack", "float64": True},
}


def zipf(folder: Path) -> Any:
    """Return the documents of `first_try`."""
    return first_try.text(folder)


def topics(folder: Path) -> Any:
    """Return the documents of `peers`."""
    dataset_builders.text(DATA_SETS["text"].full, folder)
    return scipy.sparse.load_npz(folder / "data.npz")


def real(folder: Path) -> Any:
    """Return the TF-IDF matrix of a corpus in gensim, or None if that is not installed."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = importlib.util.find_spec("gensim")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "test" / "test_data" / "head500.noblanks.cor"
    return TfidfVectorizer(dtype=np.float32).fit_transform(path.read_text("utf-8").splitlines())


LOADED: dict[str, Callable[[Path], Any]] = {"zipf": zipf, "topics": topics, "real": real}


def exact_components(rows: Any) -> np.ndarray:
    """Return the first components (K, d) by ARPACK in float64, from the inner products of the rows."""
    wide = scipy.sparse.csr_matrix(rows, dtype=np.float64)
    across, n = wide.T.tocsr(), wide.shape[0]
    operator = LinearOperator((n, n), lambda vector: wide @ (across @ vector), dtype=np.float64)
    values, vectors = eigsh(operator, K, tol=0, v0=np.random.default_rng(0).standard_normal(n))
    found = (across @ vectors[:, np.argsort(values)[::-1]]).T
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def measure(folder: Path, library: str, options: dict[str, Any]) -> None:
    """Fit once, and print seconds of the processor, the largest angle and the outcome as JSON."""
    rows = scipy.sparse.csr_matrix(scipy.sparse.load_npz(folder / "rows.npz"))
    if library == "eigengame":
        from eigengame import EigenGamePCA

        model: Any = EigenGamePCA(K, center=False, random_state=0, **options)
    else:
        from sklearn.decomposition import TruncatedSVD

        rows = rows.astype(np.float64) if options.pop("float64", False) else rows
        model = TruncatedSVD(K, random_state=0, **options)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    seconds = time.process_time() - began
    found = model.components_.astype(np.float64)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    angle = float(angular_error(found, np.load(folder / "truth.npy")).max())
    outcome = str(model.outcome_) if library == "eigengame" else ""
    warned = any("not certified" in str(one.message) for one in caught)
    print(json.dumps({"seconds": seconds, "angle": angle, "outcome": outcome, "warned": warned}))


def run(folder: Path, library: str, options: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.truncated_svd", MEASURED, str(folder), library]
    environment = thread_environment(1)
    environment.pop("JAX_ENABLE_COMPILATION_CACHE", None)
    done = subprocess.run(
        [*command, json.dumps(options)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def lines_of(folder: Path, name: str, shape: tuple[int, int], repeats: int) -> list[str]:
    """Return the lines of one data set; times are the smallest of all repeats."""
    lines = []

    def add(method: str, library: str, options: dict[str, Any]) -> float:
        found = [run(folder, library, options) for _ in range(repeats)]
        seconds, angle = min(one["seconds"] for one in found), found[0]["angle"]
        outcome = found[0]["outcome"] + (" (with a warning)" if found[0]["warned"] else "")
        cells = (
            f"{name}, {shape[0]} x {shape[1]} | {method} | {seconds:.2f} | {angle:.2g} | {outcome}"
        )
        lines.append(f"| {cells} |")
        print(lines[-1], flush=True)
        return float(angle)

    for method, options in OURS.items():
        add(method, "eigengame", options)
    for method, options in THEIRS.items():
        add(method, "sklearn", options)
    iterations, repeats = 5, 1
    while (
        add(f"TruncatedSVD, randomized, n_iter={iterations}", "sklearn", {"n_iter": iterations})
        > TOL
    ):
        iterations *= 2
        if iterations > MOST_ITERATIONS:
            break
    return lines


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == [MEASURED]:
        measure(Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(LOADED), choices=LOADED)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    lines = [
        f"# {K} components of TF-IDF matrices without centring, one thread",
        "",
        "| data | method | CPU seconds | largest angle (rad) | outcome |",
        "|---|---|---|---|---|",
    ]
    for name in given.only:
        with tempfile.TemporaryDirectory() as name_of_folder:
            folder = Path(name_of_folder)
            rows = LOADED[name](folder)
            if rows is None:
                print(f"{name}: gensim is not installed", file=sys.stderr)
                continue
            scipy.sparse.save_npz(folder / "rows.npz", scipy.sparse.csr_matrix(rows))
            np.save(folder / "truth.npy", exact_components(rows))
            lines += lines_of(folder, name, rows.shape, given.repeats)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
