"""Claims and summary of `scree`; the claims on ratios also serve `resnet`."""

from __future__ import annotations

import numpy as np

from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Verdict, holds_if

PAPERS_RATIO = 0.025
"""The paper's mean ratio of penalty to Rayleigh quotient, on ResNet-200."""

OVERLAP = 0.1
"""Quotient and utility overlap if they differ by at most this share of the quotient."""


def claims(results: Results) -> list[Claim]:
    """Compare the paragraph of the figure with the results.

    The first two claims are about ResNet-200, so that other data cannot decide them. The third is about any
    data: one counterexample refutes it.
    """
    about = {
        name: ratio_claims(found, mean_ratio(found), reading=f"MNIST in place of ResNet-200, {how}")
        for name, how, found in _runs(results)
    }
    comparison = [
        claim._replace(
            verdict=Verdict.NOT_COMPARABLE,
            measured=f"{claim.measured[:-1]}; on these data {'met' if claim.holds else 'not met'}.",
        )
        for of_reading in about.values()
        for claim in of_reading[:2]
    ]
    refuted = [name for name, of_reading in about.items() if not of_reading[2].holds]
    implied = Claim(
        about["centred"][2].claim,
        " ".join(
            f"{name[0].upper()}{name[1:]}: {of_reading[2].measured}"
            for name, of_reading in about.items()
        ),
        holds_if(not refuted),
        f"about any data; {f'fails on MNIST {_and(refuted)}' if refuted else 'MNIST in both readings'}",
    )
    return [*sorted(comparison, key=lambda one: one.claim), implied]


def _runs(results: Results) -> list[tuple[str, str, Results]]:
    """Return each run of EigenGame with a short and a long name."""
    size = results["size"]
    runs = [
        (name, f"{name}, {size['passes']} passes", found["players"]["EigenGame"])
        for name, found in results["readings"].items()
    ]
    long = f"uncentred, {size['longer']} passes"
    return [*runs, (f"{long} at {results['longer']['step']:g}", long, results["longer"])]


def ratio_claims(
    found: Results, mean: float, *, reading: str = "MNIST, not centred"
) -> list[Claim]:
    """Compare the paragraph of the scree plot with players and their mean ratio.

    Parameters
    ----------
    found : dict
        "ratio" and "angle" of each player, of shape (k,) or (trials, k), and "streak". "nearest", the angle to
        the nearest eigenvector, is used if it is there.
    mean : float
        Mean ratio.
    reading : str
        Reading of the claims.
    """
    ratios = np.atleast_2d(found["ratio"])
    worst, (small, wrong, moved) = ratios.mean(axis=0), small_and_wrong(found)
    close = worst <= OVERLAP
    return [
        Claim(
            "The curves of Rayleigh quotients and utilities almost perfectly overlap.",
            f"For {int(close.sum())} of {len(close)} players of EigenGame they differ by at most {OVERLAP:.0%} of "
            f"the quotient, for the worst by {worst.max():.0%}.",
            holds_if(bool(close.all())),
            reading,
        ),
        Claim(
            f"The mean ratio of penalty to Rayleigh quotient is small: {PAPERS_RATIO} on ResNet-200.",
            f"{mean:.2g} here, with a median over the players of {np.median(worst):.2g} (small: a mean of at most "
            "twice the paper's).",
            holds_if(mean <= 2 * PAPERS_RATIO),
            reading,
        ),
        Claim(
            "A small ratio implies that the solutions are eigenvectors.",
            _implication(found, small, wrong, moved),
            holds_if(wrong == 0),
            reading,
        ),
    ]


def _implication(found: Results, small: int, wrong: int, moved: int) -> str:
    """Return the numbers on players with a small ratio."""
    said = f"{small} players of EigenGame have a ratio of at most the paper's {PAPERS_RATIO}, and "
    streak = f"the streak is {found['streak']:.1f}."
    if "nearest" not in found:
        return f"{said}{wrong} of these are more than pi/8 from their component; {streak}"
    total = np.size(found["ratio"])
    return (
        f"of {total} players in {len(found['ratio'])} trials, {small} have a ratio of at most the paper's "
        f"{PAPERS_RATIO}, and {wrong} of these are more than pi/8 from every eigenvector, {moved} from their own; "
        f"{streak}"
    )


def mean_ratio(player: Results) -> float:
    """Return the mean over players and trials of penalty over Rayleigh quotient."""
    return float(np.mean(player["ratio"]))


def small_and_wrong(player: Results) -> tuple[int, int, int]:
    """Return how many players have a small ratio, and how many of them are more than pi/8 off.

    Off is from every eigenvector (the second number), which is what the paper's sentence excludes, and from the
    player's own component (the third): eigenvectors in the wrong order have no penalty either.
    """
    small = np.asarray(player["ratio"]) <= PAPERS_RATIO
    nearest = np.asarray(player.get("nearest", player["angle"]))
    off, moved = (
        small & (angle > STREAK_ANGLE) for angle in (nearest, np.asarray(player["angle"]))
    )
    return int(small.sum()), int(off.sum()), int(moved.sum())


def summary(results: Results) -> str:
    """Describe ratios and streaks, and whether a small ratio implies eigenvectors."""
    parts = [_described(how, found, results["size"]["k"]) for _, how, found in _runs(results)]
    fails = [name for name, _, found in _runs(results) if small_and_wrong(found)[1]]
    holds = [name for name, _, found in _runs(results) if not small_and_wrong(found)[1]]
    if fails:
        said = f"a small ratio does not imply eigenvectors: the implication fails {_and(fails)}"
        said += f", and happens to be true {_and(holds)}" if holds else ""
    else:
        said = "a small ratio comes with eigenvectors in every run"
    kept = {name: found["players"]["remembered"] for name, found in results["readings"].items()}
    ends = "; ".join(
        f"{mean_ratio(one):.1g} and {one['streak']:.1f} {name}" for name, one in kept.items()
    )
    return (
        f"EigenGame, {'; '.join(parts)} (the paper's mean ratio: {PAPERS_RATIO} on ResNet-200). A penalty measures "
        "only whether players are orthogonal in M, which vectors that are not eigenvectors can be too. Here "
        f"{said}. The remembered game ends with a ratio and a mean streak of {ends}. For data with unknown "
        "components `EigenGamePCA` computes a certificate."
    )


def _described(how: str, found: Results, k: int) -> str:
    """Return the numbers of one run."""
    small, wrong, moved = small_and_wrong(found)
    return (
        f"{how}, step size {found['step']:g}: the mean penalty is {mean_ratio(found):.2g} of the Rayleigh "
        f"quotient, the worst player's {np.mean(found['ratio'], axis=0).max():.2g}, the mean streak "
        f"{found['streak']:.1f} of {k}, and of {small} players with a small ratio {wrong} are more than pi/8 from "
        f"every eigenvector and {moved} from their own"
    )


def _and(parts: list[str]) -> str:
    return " and ".join(parts)


def reading(results: Results) -> str:
    """Describe the data in place of ResNet-200."""
    size = results["size"]
    return (
        f"MNIST in place of ResNet-200, with {size['k']} players, batches of {size['batch']}, {size['passes']} "
        f"passes, {size['trials']} trials. The paper does not mention centring: both readings are run, and "
        f"{size['longer']} passes at a step size of {size['small']:g} without it. The paper does not say whether "
        "its ratio is the ratio of the means or the mean of the ratios over players: here it is the latter. Small "
        "is at most twice the paper's value for the mean, and at most the paper's value for one player. A "
        "player is an eigenvector if it is within pi/8 of one, in any order."
    )
