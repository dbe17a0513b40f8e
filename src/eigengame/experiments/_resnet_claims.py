"""What the paper says of a ResNet's components, held against results; and what there is to say of them."""

from __future__ import annotations

import numpy as np

from eigengame.experiments._base import Claim, Results
from eigengame.metrics import STREAK_ANGLE

PAPERS_RATIO = 0.025
"""The paper's mean ratio of penalty to Rayleigh quotient."""

PAPERS_ELBOWS = (2, 6)

OVERLAP = 0.1
"""Quotient and utility overlap where they are at most this share of the quotient apart."""

SMALL = 0.1
"""Very small: at most this part of what others have."""

LIKE = 0.5
"""A map is like a filter that makes at least this share of its variance."""

SHOWN = 8
"""Components whose blocks the paper draws."""


def block_shares(results: Results, reading: str = "uncentred") -> np.ndarray:
    """Return the share of each component's squared length that each block has, shape (k, blocks)."""
    blocks = np.array([layer["block"] for layer in results["layers"]])
    shares = np.array(results["readings"][reading]["shares"])
    return np.stack([shares[:, blocks == one].sum(axis=1) for one in np.unique(blocks)], axis=1)


def block_sizes(results: Results) -> dict[int, int]:
    """Return how many features each block has."""
    sizes: dict[int, int] = {}
    for layer in results["layers"]:
        sizes[layer["block"]] = sizes.get(layer["block"], 0) + layer["features"]
    return sizes


def relative_variance(results: Results) -> np.ndarray:
    """Return the mean square of each block's entries over that of the whole component, (k, blocks)."""
    sizes = np.array(list(block_sizes(results).values()))
    return block_shares(results) / (sizes / sizes.sum())


def elbows(rayleigh: list[float], count: int = 2) -> list[int]:
    """Return the components, from 1, at which the logarithms of quotients turn most: steep before, flat after."""
    bends = np.diff(np.log(rayleigh), 2)
    return sorted((np.argsort(-bends)[:count] + 2).tolist())


def claims(results: Results) -> list[Claim]:
    """Hold the section on ResNet-200 and appendix Spectrum against the results."""
    return [
        *_claims_of_steps(results),
        _certified(results),
        _elbows(results),
        *_claims_of_blocks(results),
        _first_discriminates(results),
        _edge_filters(results),
    ]


def _claims_of_steps(results: Results) -> list[Claim]:
    """Hold the paragraph of the scree plot against EigenGame by steps, which is what the paper played."""
    found = results["EigenGame"]
    ratios, off = np.array(found["ratio"]), np.array(found["angle"])
    close, small = ratios <= OVERLAP, ratios <= PAPERS_RATIO
    wrong = int((small & (off > STREAK_ANGLE)).sum())
    return [
        Claim(
            "The curves of Rayleigh quotients and utilities almost perfectly overlap.",
            f"For {int(close.sum())} of {len(off)} players of EigenGame they are within {OVERLAP:.0%} of the "
            f"quotient, for the worst {ratios.max():.0%} apart.",
            bool(close.all()),
        ),
        Claim(
            f"The mean ratio of penalty to Rayleigh quotient is small: {PAPERS_RATIO}.",
            f"{ratios.mean():.2g} after {found['updates']} updates of EigenGame, with a median over the players "
            f"of {np.median(ratios):.2g} (small: a mean of at most twice the paper's).",
            bool(ratios.mean() <= 2 * PAPERS_RATIO),
        ),
        Claim(
            "A small ratio implies that the solutions are eigenvectors.",
            f"{int(small.sum())} players of EigenGame have a ratio of at most the paper's {PAPERS_RATIO}, and "
            f"{wrong} of these are more than pi/8 from the component of their number; the streak is "
            f"{found['streak']}.",
            wrong == 0,
        ),
    ]


def _certified(results: Results) -> Claim:
    """Say what the certificates say."""
    seen = {name: one["certificate"] for name, one in results["readings"].items()}
    k = results["size"]["k"]
    said = "; ".join(
        f"{name}: {one['kind']}, {one['streak']} of {k} within pi/32, the largest bound "
        f"{max(one['angle']):.2g} rad, in {one['passes']} passes"
        for name, one in seen.items()
    )
    every = all(one["kind"] == "certified" and one["streak"] == k for one in seen.values())
    return Claim(
        f"The {k} components are eigenvectors (a claim of ours, by the certificate).",
        f"{said[0].upper()}{said[1:]}.",
        every,
    )


def _elbows(results: Results) -> Claim:
    """Look for the elbows of the scree plot."""
    rayleigh = results["readings"]["uncentred"]["rayleigh"]
    found, drops = elbows(rayleigh), -np.diff(np.log(rayleigh))
    order = (np.argsort(-drops)[:3] + 1).tolist()
    return Claim(
        "The scree plot has two distinct elbows, at PC2 and PC6.",
        f"The quotients' logarithms bend most at PC{found[0]} and PC{found[1]}. The largest drops follow "
        + ", ".join(f"PC{i} (by a factor of {np.exp(drops[i - 1]):.2g})" for i in order)
        + ".",
        found == list(PAPERS_ELBOWS),
    )


def _claims_of_blocks(results: Results) -> list[Claim]:
    """Compare the first component's blocks with those of the next ones."""
    shares = block_shares(results)[:SHOWN]
    first, others = shares[0], np.median(shares[1:], axis=0)
    larger = first[1:] > others[1:]
    later = ", ".join(
        f"Block {b}: {one:.2g} ({other:.2g})"
        for b, (one, other) in enumerate(zip(first[1:], others[1:], strict=True), start=2)
    )
    return [
        Claim(
            "Block 1 of PC 1 has very small magnitude activations relative to the other PCs.",
            f"Block 1 has {first[0]:.2g} of the squared length of PC 1, and between {shares[1:, 0].min():.2g} and "
            f"{shares[1:, 0].max():.2g} of that of PCs 2 to {len(shares)} (very small: at most {SMALL:g} of "
            "their median).",
            bool(first[0] <= SMALL * others[0]),
        ),
        Claim(
            "PC 1 has larger relative activations in the later blocks.",
            f"Shares of the squared length of PC 1, and the median of PCs 2 to {len(shares)}: {later} (larger: "
            "in each of them).",
            bool(larger.all()),
        ),
    ]


def _first_discriminates(results: Results) -> Claim:
    """Ask whether the first component is about differences between pictures at all."""
    mean = results["mean"]
    return Claim(
        "PC 1 captures the variance which discriminates most between the classes.",
        f"PC 1 of X'X is {mean['angle']:.2g} rad from the mean activation, which makes {mean['share']:.1%} of its "
        f"Rayleigh quotient: the variance between pictures is the other {1 - mean['share']:.1%}.",
        mean["share"] < 0.5,
    )


def _edge_filters(results: Results) -> Claim:
    """Count the mean activation maps that are like an edge filter."""
    edges = results["readings"]["uncentred"]["edges"]
    fit, chance = (np.array([one[key] for one in edges]) for key in ("fit", "chance"))
    waves = [one["cycles"] for one in edges if one["kind"] == "Gabor"]
    like, above = int((fit >= LIKE).sum()), int((fit > chance).sum())
    by_chance = int((chance >= LIKE).sum())
    return Claim(
        "The components are edge filters: Gabor and Laplacian-of-Gaussian filters.",
        f"For {like} of {len(edges)} mean maps of Block 1 a single such filter makes at least half of the variance "
        f"(the median is {np.median(fit):.2g}); scrambled, of the same power spectrum, {by_chance} would (median "
        f"{np.median(chance):.2g}), and {above} are more like a filter than that. {len(waves)} of the best are "
        "Gabor filters"
        + (f", of {min(waves):g} to {max(waves):g} waves over the whole picture" if waves else "")
        + " (holds: most have half, and most are above chance).",
        like > len(edges) / 2 and above > len(edges) / 2,
    )


def words(results: Results) -> str:
    """Say what was played, how the text was read, and what is to be seen."""
    size, found = results["size"], results["readings"]
    plain, steps = found["uncentred"], results["EigenGame"]
    names = [layer["name"] for layer in results["layers"]]
    return (
        f"A ResNet-50 (top-1 {results['accuracy']:.2f} on the centres of {size['photographs']} photographs, one "
        f"of each class) where the paper has a ResNet-200, and {results['rows']} rows where it has 1.2 million: "
        f"crops of {size['side']} x {size['side']}, {size['copies']} of each photograph, the first its centre, the "
        "others from random places and some of them flipped, but the same in every pass. Features are the "
        f"{results['features']:,} outputs of `{names[0]}` and of {len(names) - 1} residual blocks. These weights "
        f"take pixels from 0 to 255; pixels are divided by {results['unit']:g} here, and the first batch norm is "
        f"told so, since `conv1` would else have {_without_unit(results):.1%} of all variance, where it has "
        f"{results['variance'][0] / sum(results['variance']):.0%} now. {_of_the_mean(results)} "
        f"{_explained(results)} The remembered game settles its players, so that their penalties are nothing (mean "
        f"ratio {np.mean(plain['ratio']):.1g}) whatever they are worth; what they are worth the certificate tells "
        f"({plain['certificate']['kind']}, with probability {plain['certificate']['confidence']:.4g}): "
        f"{plain['certificate']['streak']} components within pi/32. EigenGame by steps ({steps['updates']} updates "
        f"of {size['batch']} rows, step size {steps['step']:g} over a batch's largest eigenvalue) has a "
        f"streak of {steps['streak']} against these. The mean maps of Block 1 spread over the whole picture: light "
        "and dark halves, then spots and stripes of ever more waves, as components of photographs are; `maps.png` "
        "and `blocks.png` have them enlarged."
    )


def _without_unit(results: Results) -> float:
    """Return the share of the variance that the first layer would have on pixels as they are."""
    first, *others = results["variance"]
    plain = first * results["unit"] ** 2
    return plain / (plain + sum(others))


def _of_the_mean(results: Results) -> str:
    """Say what a mean that is not taken off does to the first component."""
    first = {name: block_shares(results, name)[0, 0] for name in results["readings"]}
    said = (
        "M is X'X, without a mean, as the paper writes it. In that reading PC 1 is "
        f"{results['mean']['angle']:.2g} rad from the mean activation, and Block 1 has {first['uncentred']:.1%} of "
        f"it; about the mean, Block 1 has {first['centred']:.1%} of PC 1."
    )
    if results["mean"]["share"] < 0.5:
        return said
    return (
        f"{said} So it is the mean, not classes, that PC 1 is about (with one photograph of each class, classes "
        "cannot be told from photographs here)."
    )


def _explained(results: Results, count: int = 3) -> str:
    """Say how much the components explain in both readings."""
    plain, centred = (results["readings"][name]["explained"] for name in ("uncentred", "centred"))
    first = [", ".join(f"{one:.1%}" for one in shares[:count]) for shares in (plain, centred)]
    return (
        f"The first components explain {first[0]} of X'X, and {first[1]} of the variance about the mean; all "
        f"{len(plain)} explain {sum(plain):.0%} and {sum(centred):.0%}."
    )
