"""Figures of a stream: its components, and the certified bounds on their angles, as rows arrive.

    python docs/figures/stream.py

fits MNIST, if it is found in `$EIGENGAME_DATA` or in ``../shared/data``, and else the digits of scikit-learn. It
writes ``stream-*.svg`` (components and bounds) and ``bounds-*.svg`` (bounds and true angles over rows).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Wedge
from sklearn.datasets import load_digits
from style import Theme, draw

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error, true_components

K, BATCH = 6, 256
OPTIONS = {"algorithm": "remembered", "tol": None, "random_state": 0}


class Stage(NamedTuple):
    """Components after some rows, their certified bounds, and their true angles."""

    title: str
    rows: int
    components: np.ndarray
    bounds: np.ndarray
    angles: np.ndarray


def images() -> np.ndarray:
    """Return MNIST (60000, 784), or the digits of scikit-learn (1797, 64), with values from 0 to 1."""
    folder = Path(os.environ.get("EIGENGAME_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = folder / "mnist" / "train-images-idx3-ubyte.gz"
    if not path.exists():
        return (load_digits().data / 16).astype(np.float32)
    blocks = [np.asarray(block.values) for block in as_source(str(path)).blocks(0, 10_000)]
    return np.concatenate(blocks).astype(np.float32) / np.float32(255)


def stage(title: str, pca: EigenGamePCA, seen: np.ndarray) -> Stage:
    """Compare a fit with the exact components of the rows that it has seen."""
    truth = true_components(matrix=np.cov(seen.T.astype(np.float64)), k=K)[1]
    angles = np.asarray(angular_error(pca.components_, truth))
    assert (angles <= pca.certificate_.angle).all()
    signs = np.sign(np.sum(pca.components_ * truth, axis=1, keepdims=True))
    signs *= np.sign(truth[np.arange(K), np.abs(truth).argmax(axis=1)])[:, None]
    return Stage(
        title, len(seen), signs * pca.components_, np.asarray(pca.certificate_.angle), angles
    )


def stream(rows: np.ndarray) -> list[Stage]:
    """Return the stages of one pass by `partial_fit`, at powers of two and at the end, and of three passes."""
    n, stages = len(rows), []
    pca = EigenGamePCA(K, **OPTIONS)
    for begin in range(0, n, BATCH):
        end = min(begin + BATCH, n)
        pca.partial_fit(rows[begin:end])
        if end == n or (end // BATCH).bit_count() == 1:
            stages.append(stage(f"{end:,} rows", pca, rows[:end]))
            print(stages[-1].title, np.round(stages[-1].bounds, 3), np.round(stages[-1].angles, 4))
    again = EigenGamePCA(K, **OPTIONS | {"tol": 1e-4}).fit(rows)
    stages.append(stage(f"read {again.n_passes_} times", again, rows))
    print(stages[-1].title, stages[-1].bounds, stages[-1].angles)
    return stages


def picture(stages: list[Stage], theme: Theme) -> Figure:
    """Draw components and bounds: one column for each stage, one line for each component."""
    figure, axes = plt.subplots(K, 2 * len(stages), figsize=(10, 0.93 * K + 0.5))
    figure.subplots_adjust(0.03, 0.01, 0.995, 0.93, wspace=0.06, hspace=0.08)
    for column, one in enumerate(stages):
        for i, (image, cone) in enumerate(axes[:, 2 * column : 2 * column + 2]):
            draw_component(image, one.components[i], theme)
            draw_cone(cone, one.bounds[i], theme)
            if column == 0:
                image.set_ylabel(f"{i + 1}", rotation=0, va="center", labelpad=8, fontsize=13)
        middle = (
            axes[0, 2 * column].get_position().x0 + axes[0, 2 * column + 1].get_position().x1
        ) / 2
        figure.text(middle, 0.955, one.title, ha="center", fontsize=13)
    return figure


def draw_component(axes: Axes, component: np.ndarray, theme: Theme) -> None:
    """Draw a component as an image: the colour is the sign of a loading, the opacity its size."""
    side = int(len(component) ** 0.5)
    colours = np.array([to_rgb(theme.players[0]), to_rgb(theme.players[1])])
    loadings = component.reshape(side, side)
    opacity = np.abs(loadings)[..., None] / np.abs(component).max()
    axes.imshow(
        np.concatenate([colours[(loadings > 0).astype(int)], opacity], axis=-1),
        interpolation="none",
    )
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_cone(axes: Axes, bound: float, theme: Theme) -> None:
    """Draw the directions that a bound leaves open, as a sector of the half-plane, in true size."""
    axes.set(xlim=(-1.05, 1.05), ylim=(-0.72, 1.38), aspect="equal")
    axes.set_axis_off()
    known = bound < np.pi / 2
    colour = theme.good if bound <= 0.05 else theme.poor if known else theme.faint
    half = max(np.degrees(bound), 0.6)
    axes.add_patch(
        Wedge((0, 0), 1, 90 - half, 90 + half, color=colour, lw=0, alpha=1 if known else 0.4)
    )
    axes.add_patch(Wedge((0, 0), 1, 0, 180, fill=False, edgecolor=theme.faint, lw=0.8))
    axes.text(
        0,
        -0.15,
        label(bound),
        color=colour if known else theme.muted,
        ha="center",
        va="top",
        fontsize=12,
    )


def label(bound: float) -> str:
    """Return a bound in words, rounded up."""
    if bound >= np.pi / 2:
        return "no bound"
    power = np.ceil(np.log10(bound))
    if power <= -4:
        return f"≤ $10^{{{power:.0f}}}$"
    unit = min(0.01, 10.0 ** (power - 1))
    return f"≤ {np.ceil(bound / unit) * unit:.{int(-np.log10(unit))}f}"


def bounds_over_rows(stages: list[Stage], theme: Theme) -> Figure:
    """Draw the bounds and true angles of three components over the rows of the stream."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for colour, i in zip(theme.players, (0, 2, 5), strict=True):
        rows = np.array([one.rows for one in stages])
        bounds = np.array([one.bounds[i] for one in stages])
        bounds = np.where(bounds < np.pi / 2, bounds, np.nan)
        axes.plot(rows, bounds, "-v", color=colour, label=f"component {i + 1}, bound")
        axes.plot(
            rows, [one.angles[i] for one in stages], ":o", ms=4, color=colour, label="true angle"
        )
    axes.set(xscale="log", yscale="log", xlabel="rows read", ylabel="angle (rad)")
    axes.legend(ncols=3, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.18))
    return figure


def main() -> None:
    """Fit the stream and draw both figures."""
    stages = stream(images())
    last, seen = stages[-1], stages[:-1]
    # Columns: the second batch, eight times as many rows, eight times again, all rows; then further passes.
    chosen = [seen[at] for at in sorted({1, 4, 7, len(seen) - 1}) if at < len(seen)]
    draw("stream", lambda theme: picture([*chosen, last], theme))
    draw("bounds", lambda theme: bounds_over_rows(seen[1:], theme))


if __name__ == "__main__":
    main()
