"""Three sites, one answer: rows stay where they are, and only small model files are shared."""

import sys
import tempfile
from functools import reduce
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg

K = 8


def site(rows: np.ndarray, file: Path) -> None:
    """Run at each site: fit what is there, write what may leave."""
    eg.EigenGamePCA(K, random_state=0, batch_size=256).fit(rows).save(file)


def headquarters(files: list[Path]) -> eg.EigenGamePCA:
    """Run where the files arrive: no row is seen here."""
    return reduce(lambda one, other: one.merge(other), map(eg.EigenGamePCA.load, files))


def main() -> None:
    digits = load_digits()
    # As it may be: each site has its own share of the digits, and none of the others'.
    kinds = ([0, 1, 2], [3, 4, 5], [6, 7, 8, 9])
    shares = [digits.data[np.isin(digits.target, kind)] for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"site{i}.safetensors" for i in range(len(shares))]
        for rows, file in zip(shares, files, strict=True):
            site(rows, file)
        together = headquarters(files)
        alone = [eg.EigenGamePCA.load(file) for file in files]
        sent = max(file.stat().st_size for file in files)

    truth = eg.metrics.true_components(digits.data - digits.data.mean(axis=0), K)[1]
    pooled = eg.EigenGamePCA(K, random_state=0, batch_size=256).fit(digits.data)
    print(f"{together.n_samples_seen_} images at {len(shares)} sites, {sent} bytes from each\n")
    print(f"{'components of':>24} {'largest angle to the exact ones':>32}")
    for name, model in [
        *((f"site {i + 1} alone", one) for i, one in enumerate(alone)),
        ("all sites, merged", together),
        ("all rows in one place", pooled),
    ]:
        angle = eg.metrics.angular_error(model.components_, truth).max()
        print(f"{name:>24} {angle:>28.3f} rad")
    off = np.abs(together.mean_ - digits.data.mean(axis=0)).max()
    print(f"\nthe merged mean is that of all rows to {off:.0e}")
    if eg.metrics.angular_error(together.components_, truth).max() > 0.1:
        sys.exit("the merged model should be near the exact one: please report this")


if __name__ == "__main__":
    main()
