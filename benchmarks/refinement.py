"""Refinement on a CPU: passes on flat spectra, and wide rows in float32 with measured errors.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.refinement

The first table compares the default number of players, which grows where the first pass shows a flat spectrum, with
the same number given by `extra`. The second one has the passes to several tolerances on slowly falling eigenvalues,
20000 x 784, for three seeds. The third one compares passes in float32 with measured errors and in float64: seconds
of the processor of the second fit, on 4000 x 50000 with the spectrum 1/i and 32 components.
"""

from __future__ import annotations

import math
import time
import warnings
from unittest import mock

import numpy as np

from eigengame import EigenGamePCA, testing
from eigengame.solver.refinement import refine

ROWS, FEATURES, K = 4000, 1499, 16
RANKS = np.arange(1.0, FEATURES + 1)

SPECTRA = {
    "1/i": 1 / RANKS,
    "i^-0.5": RANKS**-0.5,
    "i^-0.3": RANKS**-0.3,
    "1 to 0.5 over 150, then 0.05": np.r_[np.linspace(1, 0.5, 150), np.full(FEATURES - 150, 0.05)],
}
"""Eigenvalues by their names in the table."""


POWERS = (0.3, 0.4, 0.5, 0.7)
"""Powers of the rank by which the eigenvalues of the second table fall."""


def by_tolerance() -> None:
    """Print the passes to each tolerance, with a mark where components are left without a certificate."""
    print("\n| eigenvalues | k | pi/32 | 0.05 | 0.01 | 0.001 |\n|---|---|---|---|---|---|")
    for power in POWERS:
        spectrum = np.arange(1.0, 785) ** -power
        rows = testing.rows_with(spectrum, 20000, seed=1).data.astype(np.float32)
        for k in (8, 16):
            cells = []
            for tol in (math.pi / 32, 0.05, 1e-2, 1e-3):
                fits = [
                    EigenGamePCA(k, algorithm="remembered", tol=tol, random_state=seed).fit(rows)
                    for seed in range(3)
                ]
                counts = [
                    f"{fit.n_passes_}{'' if fit.outcome_.converged else ' (open)'}" for fit in fits
                ]
                cells.append(", ".join(counts))
            print(f"| i^-{power} | {k} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print all tables."""
    warnings.simplefilter(
        "ignore"
    )  # about components that are not certified: the table counts them
    print("| eigenvalues | extra | passes | certified within 0.05 rad |\n|---|---|---|---|")
    for name, spectrum in SPECTRA.items():
        rows = testing.rows_with(spectrum, ROWS, seed=1).data.astype(np.float32)
        for extra in ("auto", 3 * K // 2):
            pca = EigenGamePCA(
                K, algorithm="remembered", tol=0.05, passes=30, extra=extra, random_state=0
            ).fit(rows)
            certified = int((pca.certificate_.angle <= 0.05).sum())
            print(f"| {name} | {extra} | {pca.n_passes_} | {certified} of {K} |", flush=True)
    by_tolerance()
    print("\n| products | passes | CPU s |\n|---|---|---|")
    spread = (1 / np.sqrt(np.arange(1, 50001))).astype(np.float32)
    wide = np.random.default_rng(0).standard_normal((4000, 50000), dtype=np.float32) * spread
    for products in ("measured", "float64"):
        with mock.patch.object(refine, "first_precision", return_value=products):
            for _ in range(2):
                begun = time.process_time()
                pca = EigenGamePCA(
                    32, algorithm="remembered", tol=math.pi / 32, passes=8, random_state=0
                ).fit(wide)
                seconds = time.process_time() - begun
        print(f"| {products} | {pca.n_passes_} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
