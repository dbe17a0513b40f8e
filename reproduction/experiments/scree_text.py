"""Claims and summary of `scree`; the claims on ratios also serve `resnet`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eigengame.metrics import STREAK_ANGLE
from reproduction.base import Claim, Results, Verdict, holds_if
from reproduction.curves import listed

PAPERS_RATIO = 0.025
"""The paper's mean ratio of penalty to Rayleigh quotient, on ResNet-200."""

RESIDUAL = 0.1
"""A player with a residual of at most this share of its Rayleigh quotient counts as an eigenvector."""

IMPLICATION = "A small ratio implies that the solutions are eigenvectors."

OVERLAP = 0.1
"""Quotient and utility overlap if they differ by at most this share of the quotient."""


def claims(results: Results) -> list[Claim]:
    """Compare the paragraph of the figure with the results.

    The first two claims are about ResNet-200, so that other data cannot decide them. The third is about any
    data: a counterexample refutes it.
    """
    judged = [
        ratio_claims(found, mean_ratio(found), reading=f"MNIST in place of ResNet-200, {name}")
        for name, found in _runs(results).items()
    ]
    return [*(_on_other_data(one[place]) for place in (0, 1) for one in judged), *_implied(results)]


def _on_other_data(claim: Claim) -> Claim:
    """Return a claim about ResNet-200 as not comparable, with whether these data meet its criterion."""
    met = "meet" if claim.holds else "do not meet"
    return claim._replace(
        verdict=Verdict.NOT_COMPARABLE,
        measured=f"{claim.measured[:-1]}; these data {met} the criterion.",
    )


def _implied(results: Results) -> list[Claim]:
    """Test whether a small ratio implies eigenvectors, for the mean over players and for single players."""
    runs = _runs(results)
    players = {name: small_and_wrong(found) for name, found in runs.items()}
    trials = {name: small_and_wrong_trials(found) for name, found in runs.items()}
    by_mean = "; ".join(
        f"{name}: {small} of {len(runs[name]['ratio'])} trials, of which {wrong} have a player that is no "
        "eigenvector"
        for name, (small, wrong) in trials.items()
    )
    by_player = "; ".join(
        f"{name}: {small} of {np.size(runs[name]['ratio'])} players of all trials, of which {wrong} are no "
        f"eigenvectors and {moved} are more than pi/8 from their own"
        for name, (small, wrong, moved) in players.items()
    )
    return [
        Claim(
            IMPLICATION,
            f"Trials with a mean ratio of at most {PAPERS_RATIO}, {by_mean} (holds if none has, undecided without "
            f"such trials; an eigenvector: within pi/8 of one, or with a residual of at most {RESIDUAL:.0%} of the "
            "quotient).",
            _none_wrong([(small, wrong) for small, wrong in trials.values()]),
            f"a small mean over the players, as in the paper{_where(trials)}",
        ),
        Claim(
            IMPLICATION,
            f"Players with a ratio of at most {PAPERS_RATIO}, {by_player} (holds if all are eigenvectors: within "
            f"pi/8 of one, or with a residual of at most {RESIDUAL:.0%} of the quotient).",
            _none_wrong([(small, wrong) for small, wrong, _ in players.values()]),
            f"a small ratio of a single player{_where(players)}",
        ),
    ]


def _none_wrong(counts: list[tuple[int, int]]) -> Verdict:
    """Return the verdict for pairs of numbers: those with a small ratio, and those of them that are wrong."""
    if not any(small for small, _ in counts):
        return Verdict.NOT_COMPARABLE
    return holds_if(not any(wrong for _, wrong in counts))


def _where(counts: Mapping[str, Sequence[int]]) -> str:
    """Name the runs with a counterexample."""
    fails = [name for name, (_, wrong, *_) in counts.items() if wrong]
    return f"; fails for MNIST {_and(fails)}" if fails else "; MNIST"


def _runs(results: Results) -> dict[str, Results]:
    """Return the runs of EigenGame: each reading, and a longer one."""
    size = results["size"]
    runs = {
        f"{name} ({size['passes']} passes)": found["players"]["EigenGame"]
        for name, found in results["readings"].items()
    }
    return runs | {f"uncentred ({size['longer']} passes)": results["longer"]}


def ratio_claims(
    found: Results, mean: float, *, reading: str = "MNIST, not centred"
) -> list[Claim]:
    """Compare the paragraph of the scree plot with players and their mean ratio.

    Parameters
    ----------
    found : dict
        "ratio" and "angle" of each player, of shape (k,) or (trials, k), and "streak".
    mean : float
        Mean ratio.
    reading : str
        Reading of the claims.
    """
    ratios = np.atleast_2d(found["ratio"])
    worst, (small, _, wrong) = ratios.mean(axis=0), small_and_wrong(found)
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
            IMPLICATION,
            f"{small} players of EigenGame have a ratio of at most the paper's {PAPERS_RATIO}, and {wrong} of "
            f"these are more than pi/8 from their component; the streak is {found['streak']:.1f}.",
            holds_if(wrong == 0),
            reading,
        ),
    ]


def mean_ratio(player: Results) -> float:
    """Return the mean over players and trials of penalty over Rayleigh quotient."""
    return float(np.mean(player["ratio"]))


def small_and_wrong(player: Results) -> tuple[int, int, int]:
    """Return how many players have a small ratio, and how many of them are wrong.

    Wrong is not an eigenvector (the second number, see `is_wrong`), which is what the paper's sentence excludes, or
    more than pi/8 from its own component (the third): eigenvectors in another order have no penalty either.
    """
    small = np.asarray(player["ratio"]) <= PAPERS_RATIO
    moved = np.asarray(player["angle"]) > STREAK_ANGLE
    wrong = is_wrong(player) if "nearest" in player else moved
    return int(small.sum()), int((small & wrong).sum()), int((small & moved).sum())


def is_wrong(player: Results) -> np.ndarray:
    """Return which players are no eigenvectors: more than pi/8 from each, with a large residual."""
    far = np.asarray(player["nearest"]) > STREAK_ANGLE
    return far & (np.asarray(player["residual"]) > RESIDUAL)


def small_and_wrong_trials(player: Results) -> tuple[int, int]:
    """Return how many trials have a small mean ratio, and how many of them a player that is no eigenvector."""
    small = np.mean(player["ratio"], axis=1) <= PAPERS_RATIO
    return int(small.sum()), int((small & is_wrong(player).any(axis=1)).sum())


def summary(results: Results) -> str:
    """Describe ratios and streaks, and whether a small ratio implies eigenvectors."""
    runs = _runs(results)
    parts = [_described(name, found, results["size"]["k"]) for name, found in runs.items()]
    fails = [name for name, found in runs.items() if small_and_wrong(found)[1]]
    holds = [name for name in runs if name not in fails]
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


def _described(name: str, found: Results, k: int) -> str:
    """Return the numbers of one run."""
    small, wrong, moved = small_and_wrong(found)
    return (
        f"{name}, step size {found['step']:g}: the mean penalty is {mean_ratio(found):.2g} of the Rayleigh "
        f"quotient, the worst player's {np.mean(found['ratio'], axis=0).max():.2g}, the mean streak "
        f"{found['streak']:.1f} of {k}, and of {small} players with a small ratio {wrong} are no eigenvectors and "
        f"{moved} are more than pi/8 from their own"
    )


def _scores(results: Results) -> str:
    """Return the held-out scores of the step sizes in both readings."""
    return "; ".join(
        f"{name} {listed(found['players']['EigenGame']['tried'])}"
        for name, found in results["readings"].items()
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
        f"player counts as an eigenvector if it is within pi/8 of one, in any order, or has a residual of at most "
        f"{RESIDUAL:.0%} of its quotient, as mixtures of eigenvectors with nearly equal eigenvalues have. Step "
        f"sizes are chosen from the paper's grid by the mean streak over held-out runs: {_scores(results)}."
    )
