"""Rayleigh quotients and utilities of players on MNIST: the paper's scree plot, compared with the truth.

The components of ResNet-200 are unknown to the paper, which takes a small mean ratio of penalty to Rayleigh
quotient as a sign of eigenvectors. The components of MNIST are known, so that the sign can be checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.game.utilities import penalties, rewards
from eigengame.metrics import STREAK_ANGLE, streak_of
from reproduction import mnist_images
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import rounded
from reproduction.figures import COLOURS, panels
from reproduction.products import Products, Truth, angles, products, truth_of
from reproduction.protocol import GRID, Protocol, tune
from reproduction.trials import Family, eigengame, remembered, seeded_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Scree plot: Rayleigh quotients and utilities on MNIST"
PAPER = "fig:imagenet_scree"

PAPERS_RATIO = 0.025
"""The paper's mean ratio of penalty to Rayleigh quotient, on ResNet-200."""

OVERLAP = 0.1
"""Quotient and utility overlap if they differ by at most this share of the quotient."""

ALGORITHMS: dict[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "remembered": (remembered, None),
}


PROTOCOL = Protocol(
    full={"rows": 60_000, "k": 32, "batch": 1024, "passes": 10, "trials": 10},
    quick={"rows": 2048, "k": 4, "batch": 256, "passes": 2, "trials": 2},
)


def measure(run: Run) -> Results:
    """Measure reward and penalty of each player on all of the data."""
    size = PROTOCOL.size(run.quick)
    images = mnist_images.load(run.data)[: size.rows]
    values, truth = truth_of(images, size.k)
    results: Results = {
        "size": vars(size),
        "eigenvalues": rounded(values / len(images)),
        "players": {},
    }
    for name, (family, grid) in ALGORITHMS.items():
        run.progress(name)
        results["players"][name] = _ended(family, grid, jnp.asarray(images), truth, size)
    return results


def _ended(
    family: Family, grid: tuple[float, ...] | None, rows: jax.Array, truth: Truth, size: Any
) -> Results:
    """Return the final quotient, utility, ratio and angle of each player, averaged over trials."""
    updates = size.passes * (len(rows) // size.batch)
    runs = seeded_runs(
        family,
        rows,
        truth,
        products,
        k=size.k,
        trials=size.trials,
        updates=updates,
        every=max(1, updates // 20),
        batch=size.batch,
    )
    tuned = tune(runs, lambda seen: float(streak_of(angles(seen)).mean()), grid)
    seen = Products(*(part[:, -1] for part in tuned.shown["best"]))
    gram = jnp.asarray(seen.gram)
    earned = np.asarray(jax.vmap(rewards)(gram), np.float64) / len(rows)
    lost = np.asarray(jax.vmap(penalties)(gram), np.float64) / len(rows)
    off = angles(seen)
    return {
        "step": tuned.step,
        "rayleigh": rounded(earned.mean(axis=0)),
        "utility": rounded((earned - lost).mean(axis=0)),
        "ratio": rounded((lost / earned).mean(axis=0)),
        "ratios": rounded((lost / earned).mean(axis=1)),
        "angle": rounded(off.mean(axis=0)),
        "streak": rounded(streak_of(off).mean()),
    }


def mean_ratio(player: Results) -> float:
    """Return the mean over players and trials of penalty over Rayleigh quotient."""
    return float(np.mean(player["ratios"]))


def small_and_wrong(player: Results) -> tuple[int, int]:
    """Return the number of players with a small ratio, and of those among them that are off by over pi/8."""
    small = np.array(player["ratio"]) <= PAPERS_RATIO
    return int(small.sum()), int((small & (np.array(player["angle"]) > STREAK_ANGLE)).sum())


def claims(results: Results) -> list[Claim]:
    """Compare the paragraph of the figure with the results."""
    found = results["players"]["EigenGame"]
    return ratio_claims(found, mean_ratio(found))


def ratio_claims(found: Results, mean: float) -> list[Claim]:
    """Compare the paragraph of the scree plot with the players of EigenGame and their mean ratio."""
    ratios = np.array(found["ratio"])
    close, (small, wrong) = ratios <= OVERLAP, small_and_wrong(found)
    return [
        Claim(
            "The curves of Rayleigh quotients and utilities almost perfectly overlap.",
            f"For {int(close.sum())} of {len(ratios)} players of EigenGame they differ by at most {OVERLAP:.0%} of "
            f"the quotient, for the worst by {ratios.max():.0%}.",
            holds_if(bool(close.all())),
            "MNIST, not centred",
        ),
        Claim(
            f"The mean ratio of penalty to Rayleigh quotient is small: {PAPERS_RATIO} on ResNet-200.",
            f"{mean:.2g} here, with a median over the players of {np.median(ratios):.2g} (small: a mean of at most "
            "twice the paper's).",
            holds_if(mean <= 2 * PAPERS_RATIO),
            "MNIST, not centred",
        ),
        Claim(
            "A small ratio implies that the solutions are eigenvectors.",
            f"{small} players of EigenGame have a ratio of at most the paper's {PAPERS_RATIO}, and {wrong} of "
            f"these are more than pi/8 from their component; the streak is {found['streak']:.1f}.",
            holds_if(wrong == 0),
            "MNIST, not centred",
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the scree plot, and the angle of each player to its component."""
    figure, axes = panels(2, width=4.8, height=3.4)
    left, right = axes[0]
    number = np.arange(1, results["size"]["k"] + 1)
    left.plot(number, results["eigenvalues"], color="#999999", linewidth=4, label="eigenvalues")
    for name, found in results["players"].items():
        colour = COLOURS[name]
        left.plot(
            number, found["rayleigh"], "o-", color=colour, markersize=3, label=f"{name}, Rayleigh"
        )
        left.plot(
            number, found["utility"], "x--", color=colour, markersize=4, label=f"{name}, utility"
        )
        right.semilogy(
            number, found["angle"], "o-", color=colour, markersize=3, label=f"{name}, angle"
        )
        right.semilogy(
            number,
            np.maximum(found["ratio"], 1e-9),
            "x:",
            color=colour,
            markersize=4,
            label=f"{name}, penalty ratio",
        )
    left.set_yscale("log")
    right.axhline(np.pi / 8, color="#999999", linewidth=0.8)
    right.text(1, np.pi / 8 * 1.15, "pi/8", fontsize=7, color="#777777")
    left.set(xlabel="player", ylabel="mean over rows")
    right.set(xlabel="player", ylabel="radians, or a share")
    right.set_ylim(1e-6, 3)
    left.legend(fontsize=7)
    right.legend(fontsize=7, loc="lower right")
    return figure


def summary(results: Results) -> str:
    """Describe ratios and streaks, and whether a small ratio implies eigenvectors."""
    size, found = results["size"], results["players"]
    ours, kept = found["EigenGame"], found["remembered"]
    small, wrong = small_and_wrong(ours)
    verdict = "does not imply" if wrong else "comes with"
    return (
        f"EigenGame at step size {ours['step']:g}: the mean penalty is {mean_ratio(ours):.2g} of the Rayleigh "
        f"quotient (the paper: {PAPERS_RATIO} on ResNet-200), and the mean streak is {ours['streak']:.1f} of "
        f"{size['k']}. A penalty measures only whether players are orthogonal in M, which eigenvectors in the "
        f"wrong order are too. Of {small} players with a ratio of at most {PAPERS_RATIO}, {wrong} are more than "
        f"pi/8 from their component: a small ratio {verdict} eigenvectors here. The remembered game ends with a "
        f"ratio of {mean_ratio(kept):.1g} and a mean streak of {kept['streak']:.1f}. For data with unknown "
        "components `EigenGamePCA` computes a certificate."
    )


def reading(results: Results) -> str:
    """Describe the data in place of ResNet-200."""
    size = results["size"]
    return (
        f"MNIST in place of ResNet-200, with {size['k']} players, batches of {size['batch']}, {size['passes']} "
        f"passes, {size['trials']} trials. The paper does not say whether its ratio is the ratio of the means or "
        "the mean of the ratios over players: here it is the latter. Small is at most twice the paper's value."
    )
