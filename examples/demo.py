"""The main job on data that comes with scikit-learn: fit, compare with the exact answer, look."""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg

K = 8


def main() -> None:
    digits = load_digits().data
    rows = digits - digits.mean(axis=0)
    rows = rows / np.linalg.norm(rows)  # total variance 1, so that one step size suits

    began = time.perf_counter()
    result = eg.play(eg.Alpha(step_size=1.0), rows, k=K, rounds=3000)
    seconds = time.perf_counter() - began
    values, truth = eg.metrics.true_components(rows, K)
    players = np.asarray(result.components)
    angles = eg.metrics.angular_error(players, truth)
    streak = eg.metrics.streak_of(angles)

    print(
        f"{len(rows)} images of 8 x 8; {K} players of `alpha`, 3000 rounds in {seconds:.1f} s;",
        result.outcome,
    )
    print(f"\n{'component':>9} {'variance':>9} {'exact':>9} {'utility':>9} {'angle':>9}")
    for i in range(K):
        variance, utility = result.info.rewards[-1, i], result.info.utilities[-1, i]
        print(f"{i + 1:>9} {variance:>9.2%} {values[i]:>9.2%} {utility:>9.2%} {angles[i]:>9.1e}")
    print(
        f"\nstreak: {streak} of {K} components within pi/8 of the exact ones, counted from the first"
    )
    if streak < K:
        sys.exit("the demo should find them all: please report this")
    draw(players, angles, np.asarray(result.info.utilities), Path("demo.png"))


def draw(players: np.ndarray, angles: np.ndarray, utilities: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplot_mosaic(
        [[f"{i}" for i in range(4)] + ["race"] * 4, [f"{i}" for i in range(4, 8)] + ["race"] * 4],
        figsize=(11, 3.2),
        layout="constrained",
    )
    for i, player in enumerate(players):
        size = np.abs(player).max()
        axes[f"{i}"].imshow(player.reshape(8, 8), cmap="RdBu_r", vmin=-size, vmax=size)
        axes[f"{i}"].set_title(f"{i + 1}: {angles[i]:.0e} rad", fontsize=8)
        axes[f"{i}"].set_axis_off()
    race = axes["race"]
    race.plot(np.arange(1, len(utilities) + 1), utilities, lw=1.5)
    race.set(
        xscale="log",
        xlabel="round",
        ylabel="utility",
        title="each player's utility settles on its eigenvalue",
    )
    race.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    print(f"picture: {path.resolve()}")


if __name__ == "__main__":
    main()
