"""Federated PCA: three sites keep their rows and share only small model files."""

import sys
import tempfile
from functools import reduce
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg

K = 8


def fit_site(rows: np.ndarray, file: Path) -> None:
    """Run at each site: fit the local rows and write a model file."""
    eg.EigenGamePCA(K, random_state=0, batch_size=256).fit(rows).save(file)


def merge_sites(files: list[Path]) -> eg.EigenGamePCA:
    """Run at the coordinator: merge the model files, without access to any row."""
    return reduce(lambda one, other: one.merge(other), map(eg.EigenGamePCA.load, files))


def main() -> None:
    digits = load_digits()
    # An extreme split: each site has its own digits, and none of the others.
    kinds = ([0, 1, 2], [3, 4, 5], [6, 7, 8, 9])
    shares = [digits.data[np.isin(digits.target, kind)] for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"site{i}.safetensors" for i in range(len(shares))]
        for rows, file in zip(shares, files, strict=True):
            fit_site(rows, file)
        merged = merge_sites(files)
        alone = [eg.EigenGamePCA.load(file) for file in files]
        size = max(file.stat().st_size for file in files)

    truth = eg.metrics.true_components(digits.data - digits.data.mean(axis=0), K)[1]
    pooled = eg.EigenGamePCA(K, random_state=0, batch_size=256).fit(digits.data)
    print(f"{merged.n_samples_seen_} images at {len(shares)} sites, {size} bytes from each\n")
    print(f"{'components of':>24} {'largest angle to the exact ones':>32}")
    for name, model in [
        *((f"site {i + 1} alone", one) for i, one in enumerate(alone)),
        ("all sites, merged", merged),
        ("all rows in one place", pooled),
    ]:
        angle = eg.metrics.angular_error(model.components_, truth).max()
        print(f"{name:>24} {angle:>28.3f} rad")
    error = np.abs(merged.mean_ - digits.data.mean(axis=0)).max()
    print(f"\nlargest error of the merged mean: {error:.0e}")
    if eg.metrics.angular_error(merged.components_, truth).max() > 0.1:
        sys.exit("the angle of the merged model should be below 0.1: please report this")


if __name__ == "__main__":
    main()
