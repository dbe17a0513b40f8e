"""Claims and summary of `bias`."""

from __future__ import annotations

import itertools

import numpy as np

from reproduction.base import Claim, Results, holds_if
from reproduction.curves import log_slope

SLOPE = 0.15
"""A bias is proportional to 1/batch if its slope on logarithmic axes is -1 within this."""

BIASED = 2.0
"""A direction is biased if its mean deviates by more than this many standard errors."""

CHANCE = 1.5
"""A mean is consistent with zero if it is at most this many standard errors from it."""

GONE = 0.1
"""A bias has vanished if at most this share of the bias of a single batch remains."""

ROUNDING = 1e-5
"""Relative deviations up to this are float32 rounding."""

LEVEL = 0.75
"""A bias levels off if twice the rows leave more than this share of it; 1/m would leave half."""


def claims(results: Results) -> list[Claim]:
    """Compare Sec. Gradient Bias, and our own claims on mu and memories, with the results."""
    return [*_claims_on_batches(results), *_claims_on_memory(results)]


def _slopes(results: Results) -> dict[str, float]:
    """Return the slope of EigenGame's bias for batches of at least as many rows as players, by kind of rows."""
    batches = results["size"]["batches"]
    late = [i for i, m in enumerate(batches) if m >= results["players"]]
    return {
        name: log_slope(
            [batches[i] for i in late], [one["EigenGame"]["paired"]["bias"][i] for i in late]
        )
        for name, one in results["streams"].items()
    }


def _claims_on_batches(results: Results) -> list[Claim]:
    batches, slopes = results["size"]["batches"], _slopes(results)
    first, last = (
        results["streams"]["Gaussian"]["EigenGame"]["paired"]["bias"][i] for i in (0, -1)
    )
    off, streams = max(results["off exact"]), results["streams"].values()
    return [
        Claim(
            "Stochastic gradients of EigenGame are biased, and larger batches mitigate it.",
            f"{first:.2g} of the gradient's length at batches of {batches[0]}, {last:.2g} at {batches[-1]} (holds "
            f"if the first is more than {BIASED:g} standard errors from zero and every larger batch has less, for "
            f"both kinds of rows). Slopes on logarithmic axes from {results['players']} rows on: "
            + ", ".join(f"{value:.2f} for {name} rows" for name, value in slopes.items())
            + ".",
            holds_if(all(_biased_and_mitigated(one["EigenGame"]["paired"]) for one in streams)),
            "Gaussian and heavy-tailed rows, players near the components",
        ),
        _unbiased(results, "GHA", "GHA is linear in M and as such naturally unbiased.", ours=False),
        _unbiased(
            results,
            "mu",
            "Of EigenGame's successor: mu (EigenGame Unloaded) is unbiased.",
            ours=True,
        ),
        Claim(
            "For Gaussian rows the bias over a batch of m is exactly -1/m times the sum, over the "
            "parents, of the gradient with that parent alone.",
            f"The measured bias is at most {off:.2f} standard errors from that at any batch size (holds up to "
            f"{CHANCE:g}).",
            holds_if(off <= CHANCE),
            "Gaussian rows",
            ours=True,
        ),
    ]


def _biased_and_mitigated(seen: Results) -> bool:
    """Return whether there is a bias at the smallest batches, and every larger batch has less."""
    first, chance = seen["bias"][0], seen["chance"][0]
    falls = all(after < before for before, after in itertools.pairwise(seen["bias"]))
    return first > BIASED * chance and falls


def _unbiased(results: Results, name: str, claim: str, *, ours: bool) -> Claim:
    """Test whether a direction has no bias."""
    gaussian = results["streams"]["Gaussian"][name]
    ratios = np.array(gaussian["plain"]["mean"]) / gaussian["plain"]["chance"]
    left = max(gaussian["paired"]["mean"])
    return Claim(
        claim,
        f"Its mean deviates by {ratios.min():.2f} to {ratios.max():.2f} standard errors, and without the part "
        f"linear in M by {left:.1g} of its length (holds up to {CHANCE:g} and {ROUNDING:g}, which is rounding).",
        holds_if(bool(ratios.max() <= CHANCE and left <= ROUNDING)),
        "Gaussian rows",
        ours=ours,
    )


def _claims_on_memory(results: Results) -> list[Claim]:
    memory = results["memory"]
    total = _rows_seen(memory)
    fewest, most = min(memory["kept"], key=int), max(memory["kept"], key=int)
    whole, part = memory["kept"][most], memory["kept"][fewest]
    fall = log_slope(total, whole["bias"])
    left = part["bias"][-1] / part["bias"][0]
    return [
        Claim(
            "Under a memory that loses nothing, the bias is that of a batch of all rows seen.",
            f"With {most} players for {results['features']} features it falls with slope {fall:.2f} in the "
            f"number of rows, from {whole['bias'][0]:.2g} to {whole['bias'][-1]:.2g} (holds if the slope is -1 "
            f"within {SLOPE:g}).",
            holds_if(abs(fall + 1) <= SLOPE),
            "Gaussian rows, a memory of all rows",
            ours=True,
        ),
        Claim(
            "The bias goes away as the remembered game's memory grows, with twice the players wanted.",
            f"With {fewest} players {part['bias'][-1]:.2g} of the gradient's length is left after {total[-1]} "
            f"rows, {left:.2f} of the bias of a single batch; in the tangent part it is "
            f"{part['tangent'][-1]:.2g} of its length, against {part['tangent'][0]:.2g} for a single batch (holds "
            f"if at most {GONE:g} is left of both).",
            holds_if(left <= GONE and part["tangent"][-1] <= GONE * part["tangent"][0]),
            "Gaussian rows, a memory of twice the players",
            ours=True,
        ),
    ]


def _rows_seen(memory: Results) -> list[int]:
    """Return the rows seen at each point, those of the current batch included."""
    return [n + memory["batch"] for n in memory["rows"]]


def summary(results: Results) -> str:
    """Describe the bias by batch size, for heavy tails, for linear games, and under a memory."""
    exact, off = results["exact"]["one row"], max(results["off exact"])
    cosines = np.array(results["cosines"][0])
    follows = "agrees with it" if off <= CHANCE else "differs from it"
    return (
        f"In lengths of the gradient on all rows, the closed form of the bias is {exact:.2g}/m for batches of m "
        f"Gaussian rows; the measured bias {follows} (at most {off:.2f} standard errors apart). {_heavy(results)} "
        "In the closed form every parent takes 1/m of a player's reward away, so that the expected gradient of a "
        "player with more than m parents is reversed. At batches of one row the expected gradients of "
        f"{int((cosines < -0.5).sum())} of the {results['players']} players have a cosine below -0.5 to the full "
        f"gradient (lowest: {cosines.min():.2f}). At the equilibrium the closed form is parallel to the player, "
        "where the projection of EigenGame^R removes it and EigenGame takes shorter steps. "
        f"{_linear_games(results)} {_under_memory(results)}"
    )


def _heavy(results: Results) -> str:
    """Compare the bias of heavy-tailed rows with that of Gaussian rows."""
    gaussian, heavy = (
        results["streams"][name]["EigenGame"]["paired"]["bias"][-1]
        for name in ("Gaussian", "heavy-tailed")
    )
    slopes = _slopes(results)
    return (
        "Heavy-tailed rows (Gaussian rows times the root of an exponential variable) have a "
        f"{'larger' if heavy > gaussian else 'smaller'} bias, {heavy:.2g} against {gaussian:.2g} at batches of "
        f"{results['size']['batches'][-1]}, with slopes of {slopes['heavy-tailed']:.2f} and "
        f"{slopes['Gaussian']:.2f}."
    )


def _linear_games(results: Results) -> str:
    """Describe whether GHA and mu show a bias."""
    biased = [name for name in ("GHA", "mu") if not _unbiased(results, name, "", ours=True).holds]
    if biased:
        return (
            f"Beyond chance or rounding, {' and '.join(biased)} deviates, though it is linear in M."
        )
    return "GHA and mu are linear in M and show no bias beyond chance and rounding."


def _under_memory(results: Results) -> str:
    """Describe whether the bias under a memory falls with rows, levels off, and falls with players."""
    memory, total = results["memory"], _rows_seen(results["memory"])
    kept = sorted(memory["kept"], key=int)
    fall = log_slope(total, memory["kept"][kept[-1]]["bias"])
    whole = "falls" if abs(fall + 1) <= SLOPE else "does not fall"
    said = (
        f"Under a memory of {kept[-1]} players for {results['features']} features, the bias of batches of "
        f"{memory['batch']} rows {whole} like that of one batch of all rows seen (slope {fall:.2f})."
    )
    if len(kept) == 1:
        return said
    ends = [memory["kept"][name]["bias"][-1] for name in kept]
    left = ", ".join(f"{end:.2g} with {name}" for name, end in zip(kept, ends, strict=True))
    before, after = memory["kept"][kept[0]]["bias"][-2:]
    levels = "levels off" if after > LEVEL * before else "keeps falling"
    more = "reduce" if all(b < a for a, b in itertools.pairwise(ends)) else "do not reduce"
    return (
        f"{said} After {memory['rows'][-1]} rows there remain {left} players: with {kept[0]} players the bias "
        f"{levels} ({before:.2g} to {after:.2g} over the last doubling of the rows), and more players {more} it."
    )


def reading(results: Results) -> str:
    """Describe the players, the rows, and how the bias is separated from noise."""
    size, (high, low) = results["size"], results["spectrum"]
    return (
        f"The paper gives no experiment. {results['players']} players near the components of {results['features']} "
        f"features, with eigenvalues from {high:g} to {low:g}, are fixed; {size['draws']} batches of each size "
        "estimate the mean direction of a batch. The part of a deviation that is linear in M has mean zero and is "
        "most of the noise. It is subtracted, which leaves the mean, the bias, unchanged."
    )
