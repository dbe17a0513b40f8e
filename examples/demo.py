"""Fit the digits of scikit-learn, compare with the exact components, and plot the certificate."""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg

K = 8


def main() -> None:
    digits = load_digits().data
    began = time.perf_counter()
    game = {"algorithm": "remembered", "random_state": 0, "batch_size": 256}
    once = eg.EigenGamePCA(K, tol=None, **game).fit(digits)
    seconds = time.perf_counter() - began
    pca = eg.EigenGamePCA(K, tol=1e-3, **game).fit(digits)

    truth = eg.metrics.true_components(digits - digits.mean(axis=0), K)[1]
    first = eg.metrics.angular_error(once.components_, truth)
    angles = eg.metrics.angular_error(pca.components_, truth)
    print(f"{len(digits)} images of 8 x 8, {K} components, no step size")
    print(f"one pass ({seconds:.2f} s): largest angle {first.max():.1e} rad")
    print(f"tol=1e-3: {pca.outcome_}\n")
    print(f"{'component':>9} {'explained':>10} {'one pass':>10} {'angle':>10} {'certified':>10}")
    for i in range(K):
        print(
            f"{i + 1:>9} {pca.explained_variance_ratio_[i]:>10.2%} {first[i]:>10.1e} "
            f"{angles[i]:>10.1e} {pca.certificate_.angle[i]:>10.1e}"
        )
    print(f"\n(angles in radians; certified with probability {pca.certificate_.confidence:.4g})")
    if pca.certificate_.streak(1e-3) < K or (angles > pca.certificate_.angle).any():
        sys.exit("all components should have correct certificates below tol: please report this")
    plot_components(pca, angles, Path("demo.png"))


def plot_components(pca: eg.EigenGamePCA, angles: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplot_mosaic(
        [[f"{i}" for i in range(4)] + ["bound"] * 4, [f"{i}" for i in range(4, 8)] + ["bound"] * 4],
        figsize=(11, 3.2),
        layout="constrained",
    )
    for i, component in enumerate(pca.components_):
        size = np.abs(component).max()
        axes[f"{i}"].imshow(component.reshape(8, 8), cmap="RdBu_r", vmin=-size, vmax=size)
        axes[f"{i}"].set_title(f"{i + 1}: {pca.explained_variance_ratio_[i]:.1%}", fontsize=9)
        axes[f"{i}"].set_axis_off()
    plot, numbers = axes["bound"], np.arange(1, K + 1)
    plot.vlines(numbers, angles, pca.certificate_.angle, color="0.7", lw=3)
    plot.plot(numbers, pca.certificate_.angle, "v", color="C3", label="certified upper bound")
    plot.plot(numbers, angles, "o", color="C0", label="true angle")
    plot.set(yscale="log", xlabel="component", ylabel="angle to the true component (rad)")
    plot.legend(frameon=False, fontsize=9)
    plot.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    print(f"figure: {path.resolve()}")


if __name__ == "__main__":
    main()
