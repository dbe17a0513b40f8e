"""Claims of the paper about the components of a ResNet, and the summary of the results."""

from __future__ import annotations

import numpy as np

from reproduction.base import Claim, Results, holds_if
from reproduction.experiments.scree import ratio_claims

PAPERS_ELBOWS = (2, 6)

MOSTLY = 0.5
"""PC 1 is about the mean if the mean accounts for at least this share of its quotient."""

SMALL = 0.1
"""Very small: at most this share of the median of the others."""

LIKE = 0.5
"""A map is similar to a filter that explains at least this share of its variance."""

SHOWN = 8
"""Number of components whose blocks the paper draws."""


def block_shares(results: Results, reading: str = "uncentred") -> np.ndarray:
    """Return the share of each block in the squared length of each component, shape (k, blocks)."""
    blocks = np.array([layer["block"] for layer in results["layers"]])
    shares = np.array(results["readings"][reading]["shares"])
    return np.stack([shares[:, blocks == one].sum(axis=1) for one in np.unique(blocks)], axis=1)


def block_sizes(results: Results) -> dict[int, int]:
    """Return the number of features of each block."""
    sizes: dict[int, int] = {}
    for layer in results["layers"]:
        sizes[layer["block"]] = sizes.get(layer["block"], 0) + layer["features"]
    return sizes


def relative_variance(results: Results) -> np.ndarray:
    """Return the mean square of each block's entries over that of the component, shape (k, blocks)."""
    sizes = np.array(list(block_sizes(results).values()))
    return block_shares(results) / (sizes / sizes.sum())


def elbows(rayleigh: list[float], count: int = 2) -> list[int]:
    """Return the components, from 1, at which the logarithms of the quotients have the largest bends."""
    bends = np.diff(np.log(rayleigh), 2)
    return sorted((np.argsort(-bends)[:count] + 2).tolist())


def claims(results: Results) -> list[Claim]:
    """Compare the section on ResNet-200 and appendix Spectrum with the results."""
    steps = results["EigenGame"]
    return [
        *ratio_claims(steps, float(np.mean(steps["ratio"]))),
        _certified(results),
        _elbows(results),
        *_claims_of_blocks(results),
        _first_discriminates(results),
        _edge_filters(results),
    ]


def _certified(results: Results) -> Claim:
    """Report the certificates."""
    seen = {name: one["certificate"] for name, one in results["readings"].items()}
    k = results["size"]["k"]
    said = "; ".join(
        f"{name}: {one['kind']}, {one['streak']} of {k} within pi/32, the largest bound "
        f"{max(one['angle']):.2g} rad, in {one['passes']} passes"
        for name, one in seen.items()
    )
    every = all(one["kind"] == "certified" and one["streak"] == k for one in seen.values())
    return Claim(
        f"The {k} components are eigenvectors, by the certificate.",
        f"{said[0].upper()}{said[1:]}.",
        holds_if(every),
        "ResNet-50, 1000 photographs, not centred",
        ours=True,
    )


def _elbows(results: Results) -> Claim:
    """Compare the elbows of the scree plot."""
    rayleigh = results["readings"]["uncentred"]["rayleigh"]
    found, drops = elbows(rayleigh), -np.diff(np.log(rayleigh))
    order = (np.argsort(-drops)[:3] + 1).tolist()
    return Claim(
        "The scree plot has two distinct elbows, at PC2 and PC6.",
        f"The quotients' logarithms bend most at PC{found[0]} and PC{found[1]}. The largest drops follow "
        + ", ".join(f"PC{i} (by a factor of {np.exp(drops[i - 1]):.2g})" for i in order)
        + ".",
        holds_if(found == list(PAPERS_ELBOWS)),
        "ResNet-50, 1000 photographs, not centred",
    )


def _claims_of_blocks(results: Results) -> list[Claim]:
    """Compare the blocks of the first component with those of the next ones."""
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
            holds_if(bool(first[0] <= SMALL * others[0])),
            "ResNet-50, 1000 photographs, not centred",
        ),
        Claim(
            "PC 1 has larger relative activations in the later blocks.",
            f"Shares of the squared length of PC 1, and the median of PCs 2 to {len(shares)}: {later} (larger: "
            "in each of them).",
            holds_if(bool(larger.all())),
            "ResNet-50, 1000 photographs, not centred",
        ),
    ]


def _first_discriminates(results: Results) -> Claim:
    """Test whether the first component is about variance or about the mean."""
    mean = results["mean"]
    return Claim(
        "PC 1 captures the variance which discriminates most between the classes.",
        f"PC 1 of X'X is {mean['angle']:.2g} rad from the mean activation, which accounts for {mean['share']:.1%} "
        f"of its Rayleigh quotient; variance between photographs is the other {1 - mean['share']:.1%} (holds above "
        f"half; photographs stand for classes, since there is one of each class).",
        holds_if(mean["share"] < MOSTLY),
        "ResNet-50, 1000 photographs, not centred",
    )


def _edge_filters(results: Results) -> Claim:
    """Count the mean activation maps that are similar to an edge filter."""
    edges = results["readings"]["uncentred"]["edges"]
    fit, chance = (np.array([one[key] for one in edges]) for key in ("fit", "chance"))
    waves = [one["cycles"] for one in edges if one["kind"] == "Gabor"]
    like, above = int((fit >= LIKE).sum()), int((fit > chance).sum())
    by_chance = int((chance >= LIKE).sum())
    return Claim(
        "The components are edge filters: Gabor and Laplacian-of-Gaussian filters.",
        f"For {like} of {len(edges)} mean maps of Block 1 one such filter explains at least half of the variance "
        f"(median {np.median(fit):.2g}); for maps with the same power spectrum and random phases it is {by_chance} "
        f"(median {np.median(chance):.2g}), and {above} maps exceed that. {len(waves)} of the best filters are "
        "Gabor filters"
        + (f", with {min(waves):g} to {max(waves):g} waves over the whole map" if waves else "")
        + " (holds if most maps reach half, and most exceed chance).",
        holds_if(like > len(edges) / 2 and above > len(edges) / 2),
        "ResNet-50, 1000 photographs, not centred",
    )


def summary(results: Results) -> str:
    """Describe explained variance, the mean, the certificate, EigenGame by steps, and the maps."""
    size, plain = results["size"], results["readings"]["uncentred"]
    steps, certificate = results["EigenGame"], plain["certificate"]
    return (
        f"The top-1 accuracy of the network is {results['accuracy']:.2f} on the centre crops. "
        f"{_of_the_mean(results)} {_explained(results)} The remembered game settles its players, so that the mean "
        f"ratio of penalties to quotients is {np.mean(plain['ratio']):.1g} whether or not they are eigenvectors; "
        f"the certificate ({certificate['kind']}, with probability {certificate['confidence']:.4g}) covers "
        f"{certificate['streak']} of {size['k']} components within pi/32. EigenGame by steps ({steps['updates']} "
        f"updates of {size['batch']} rows, step size {steps['step']:g} over the largest eigenvalue of a batch) has "
        f"a streak of {steps['streak']} against these. {_waves(results)} `maps.png` and `blocks.png` are larger "
        "figures."
    )


def _waves(results: Results) -> str:
    """Describe how the spatial frequency of the maps changes from the first to the last components."""
    cycles = [
        one["cycles"] for one in results["readings"]["uncentred"]["edges"] if one["kind"] == "Gabor"
    ]
    if len(cycles) < 4:
        return "Too few mean maps of Block 1 are closest to a Gabor filter to compare their frequencies."
    half = len(cycles) // 2
    early, late = float(np.median(cycles[:half])), float(np.median(cycles[half:]))
    change = "increases" if late > early else "decreases" if late < early else "does not change"
    return (
        "Of the mean maps of Block 1 that are closest to a Gabor filter, the median number of waves over the map "
        f"{change} from {early:g} in the first half of the components to {late:g} in the second."
    )


def reading(results: Results) -> str:
    """Describe network, rows, features and the unit of pixels."""
    size, names = results["size"], [layer["name"] for layer in results["layers"]]
    return (
        f"A ResNet-50 in place of a ResNet-200, and {results['rows']} rows in place of 1.2 million: "
        f"{size['copies']} crops of {size['side']} x {size['side']} of each of {size['photographs']} photographs, "
        "one photograph per class. The first crop is the centre, the others are at random places and may be "
        f"flipped; every pass reads the same crops. Features are the {results['features']:,} outputs of "
        f"`{names[0]}` and of {len(names) - 1} residual blocks. The weights expect pixels from 0 to 255; pixels "
        f"are divided by {results['unit']:g}, and the first batch norm is scaled accordingly, since `conv1` would "
        f"otherwise have {_without_unit(results):.1%} of the variance, and has "
        f"{results['variance'][0] / sum(results['variance']):.0%} now. M is X'X without centring, as the paper "
        "writes it."
    )


def _without_unit(results: Results) -> float:
    """Return the share of the variance that the first layer has for pixels from 0 to 255."""
    first, *others = results["variance"]
    plain = first * results["unit"] ** 2
    return plain / (plain + sum(others))


def _of_the_mean(results: Results) -> str:
    """Describe the effect of centring on the first component."""
    first = {name: block_shares(results, name)[0, 0] for name in results["readings"]}
    mean = results["mean"]
    about = "the mean" if mean["share"] >= MOSTLY else "variance between photographs"
    return (
        f"Without centring, PC 1 is {mean['angle']:.2g} rad from the mean activation, Block 1 has "
        f"{first['uncentred']:.1%} of it, and it is mostly about {about} ({mean['share']:.1%} of its quotient is "
        f"the mean); with centring, Block 1 has {first['centred']:.1%} of PC 1."
    )


def _explained(results: Results, count: int = 3) -> str:
    """Report the explained shares with and without centring."""
    plain, centred = (results["readings"][name]["explained"] for name in ("uncentred", "centred"))
    first = [", ".join(f"{one:.1%}" for one in shares[:count]) for shares in (plain, centred)]
    return (
        f"The first components explain {first[0]} of X'X, and {first[1]} of the variance; all {len(plain)} explain "
        f"{sum(plain):.0%} and {sum(centred):.0%}."
    )
