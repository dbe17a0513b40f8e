"""Single cells: components compared with the recipe of scanpy, on 10x Genomics counts.

    python -m benchmarks.cells FILE.h5 [--components 50] [--genes 2000]

The recipe is ``normalize_total(target_sum=1e4)``, ``log1p``, ``highly_variable_genes``, and PCA by ARPACK in
float64. It prints whether the same genes are selected, and the largest angle between components, for some options
of the fit, with the smallest relative gap between two variances, which determines how sensitive components are.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from eigengame import EigenGamePCA, metrics, prepare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="A 10x Genomics file of counts (.h5).")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--genes", type=int, default=2000)
    given = parser.parse_args()
    truth, selected, seconds = recipe(given.path, given.components, given.genes)
    print(f"scanpy: {seconds:.1f} s, {len(selected)} genes")
    gaps = -np.diff(truth["variance"]) / truth["variance"][:-1]
    print(f"smallest relative gap between variances: {gaps.min():.1e}")
    print("| fit | seconds | genes that differ | largest angle (rad) | largest bound | route |")
    print("|---|---|---|---|---|---|")
    for name, options in FITS.items():
        begin = time.perf_counter()
        cells = prepare(given.path, counts="log-normalise", top_variable=given.genes)
        model = EigenGamePCA(given.components, random_state=0, **options).fit(cells)
        spent = time.perf_counter() - begin
        differ = len(set(cells.preparation.steps[-1].indices) ^ set(selected))
        angles = metrics.angular_error(model.components_.astype(np.float64), truth["components"])
        print(
            f"| {name} | {spent:.1f} | {differ} | {angles.max():.1e} | "
            f"{model.certificate_.group_angle.max():.1e} | {model.outcome_.route} |",
            flush=True,
        )


FITS = {
    "defaults": {},
    "tol=1e-3": {"tol": 1e-3},
    "tol=1e-5": {"tol": 1e-5},
    'algorithm="remembered", tol=1e-5': {"algorithm": "remembered", "tol": 1e-5},
    'algorithm="exact"': {"algorithm": "exact"},
    'tol=1e-5, dtype="float64"': {"tol": 1e-5, "dtype": "float64"},
}


def recipe(
    path: str, components: int, genes: int
) -> tuple[dict[str, np.ndarray], list[int], float]:
    """Return components and variances of the recipe of scanpy, the selected genes, and the seconds it took."""
    import scanpy

    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = scanpy.read_10x_h5(path)
        cells.X = cells.X.astype(np.float64)
        scanpy.pp.normalize_total(cells, target_sum=1e4)
        scanpy.pp.log1p(cells)
        scanpy.pp.highly_variable_genes(cells, n_top_genes=genes)
        scanpy.pp.pca(cells, components, svd_solver="arpack", dtype="float64")
    selected = np.flatnonzero(cells.var["highly_variable"].to_numpy())
    found = {
        "components": cells.varm["PCs"][selected].T,
        "variance": cells.uns["pca"]["variance"],
    }
    return found, selected.tolist(), time.perf_counter() - begin


if __name__ == "__main__":
    main()
