"""Claims of the paper about the components of a ResNet, compared with the results."""

from __future__ import annotations

import numpy as np

from reproduction.base import Claim, Results, Verdict, holds_if
from reproduction.curves import count_passes
from reproduction.experiments.scree_text import ratio_claims

PAPERS_ELBOWS = (2, 6)

MOSTLY = 0.5
"""PC 1 is about the mean if the mean accounts for at least this share of its quotient."""

SMALL = 0.1
"""Very small: at most this share of the median of the others."""

LIKE = 0.5
"""A map is similar to a filter that explains at least this share of its variance, and more than by chance."""

STEADY = 0.1
"""A run is long enough if its mean ratio changed by at most this share in the second half, and its streak not."""

REACHES = {"any": "any Gabor filter", "local": "local and bandpass filters"}
"""Two readings of an edge filter (`reproduction.experiments.resnet.edges`)."""

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
    """Compare the section on ResNet-200 and appendix Spectrum with the results.

    Statements about ResNet-200 are not comparable: the network and the photographs are others. Each has a
    criterion, and whether this network meets it.
    """
    return [
        *_ratio_claims(results),
        _certified(results),
        _elbows(results),
        *_claims_of_blocks(results),
        _first_discriminates(results),
        *(_edge_filters(results, reach) for reach in REACHES),
    ]


def _network(results: Results) -> str:
    """Return the network and the rows, for the reading of a claim."""
    return (
        f"ResNet-50 in place of ResNet-200, {results['rows']} crops of {results['size']['photographs']} "
        "photographs, not centred"
    )


def long_enough(results: Results) -> bool:
    """Return whether EigenGame by steps hardly changed in the second half of its updates."""
    end, half = results["EigenGame"], results["EigenGame"]["halfway"]
    late, early = (float(np.mean(one["ratio"])) for one in (end, half))
    return end["streak"] == half["streak"] and abs(late - early) <= STEADY * early


def _ratio_claims(results: Results) -> list[Claim]:
    """Report the penalties of EigenGame by steps, and how far its players have settled."""
    steps, k = results["EigenGame"], results["size"]["k"]
    half, steady = steps["halfway"], long_enough(results)
    run = (
        f"EigenGame has a streak of {half['streak']} of {k} after {half['updates']:,} updates and of "
        f"{steps['streak']} after {steps['updates']:,}, with mean ratios of {np.mean(half['ratio']):.2g} and "
        f"{np.mean(steps['ratio']):.2g}: the run is {'long enough' if steady else 'too short'} (long enough: the "
        f"same streak, and ratios within {STEADY:.0%})."
    )
    *curves, implied = ratio_claims(steps, float(np.mean(steps["ratio"])))
    order = (
        "Eigenvectors in another order count as wrong here, so that this decides nothing: see "
        "[scree](#scree)."
    )
    return [
        *(_of_resnet_200(results, one.claim, f"{one.measured} {run}", one.holds) for one in curves),
        _of_resnet_200(results, implied.claim, f"{implied.measured} {order}", implied.holds),
    ]


def _of_resnet_200(results: Results, claim: str, measured: str, met: bool) -> Claim:
    """Return a claim about the components of ResNet-200, with what this network has instead."""
    outcome = "met" if met else "not met"
    return Claim(
        claim,
        f"{measured} On this network the criterion is {outcome}.",
        Verdict.NOT_COMPARABLE,
        _network(results),
    )


def _certified(results: Results) -> Claim:
    """Report the certificates."""
    seen = {name: one["certificate"] for name, one in results["readings"].items()}
    k = results["size"]["k"]
    said = "; ".join(
        f"{name}: {one['kind']}, {one['streak']} of {k} within pi/32, the largest bound "
        f"{max(one['angle']):.2g} rad, in {count_passes(one['passes'])}"
        for name, one in seen.items()
    )
    every = all(one["kind"] == "certified" and one["streak"] == k for one in seen.values())
    return Claim(
        f"The {k} components are eigenvectors, by the certificate.",
        f"{said[0].upper()}{said[1:]}.",
        holds_if(every),
        "ResNet-50, centred and not centred",
        ours=True,
    )


def _elbows(results: Results) -> Claim:
    """Compare the elbows of the scree plot."""
    rayleigh = results["readings"]["uncentred"]["rayleigh"]
    found, drops = elbows(rayleigh), -np.diff(np.log(rayleigh))
    order = (np.argsort(-drops)[:3] + 1).tolist()
    return _of_resnet_200(
        results,
        "The scree plot has two distinct elbows, at PC2 and PC6.",
        f"The quotients' logarithms bend most at PC{found[0]} and PC{found[1]}. The largest drops follow "
        + ", ".join(f"PC{i} (by a factor of {np.exp(drops[i - 1]):.2g})" for i in order)
        + " (criterion: the two largest bends are at PC2 and PC6).",
        found == list(PAPERS_ELBOWS),
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
        _of_resnet_200(
            results,
            "Block 1 of PC 1 has very small magnitude activations relative to the other PCs.",
            f"Block 1 has {first[0]:.2g} of the squared length of PC 1, and between {shares[1:, 0].min():.2g} and "
            f"{shares[1:, 0].max():.2g} of that of PCs 2 to {len(shares)} (very small: at most {SMALL:g} of "
            "their median).",
            bool(first[0] <= SMALL * others[0]),
        ),
        _of_resnet_200(
            results,
            "PC 1 has larger relative activations in the later blocks.",
            f"Shares of the squared length of PC 1, and the median of PCs 2 to {len(shares)}: {later} (larger: "
            "in each of them).",
            bool(larger.all()),
        ),
    ]


def _first_discriminates(results: Results) -> Claim:
    """Report the share of the mean in the first component, beside the paper's explanation of it."""
    mean = results["mean"]
    return _of_resnet_200(
        results,
        "PC 1 captures the variance which discriminates most between the classes.",
        f"There is one photograph of each class, so that variance between classes cannot be told from variance "
        f"between photographs. PC 1 of X'X is {mean['angle']:.2g} rad from the mean activation, which accounts for "
        f"{mean['share']:.1%} of its Rayleigh quotient; variance between photographs is the other "
        f"{1 - mean['share']:.1%} (criterion: above half). The paper does not say whether it subtracts the mean.",
        mean["share"] < MOSTLY,
    )


def similar_maps(edges: list[Results], reach: str) -> tuple[int, int]:
    """Return the number of maps that are similar to a filter, and of those that only explain half."""
    fit, chance = (np.array([one[reach][key] for one in edges]) for key in ("fit", "chance"))
    return int(((fit >= LIKE) & (fit > chance)).sum()), int((fit >= LIKE).sum())


def _edge_filters(results: Results, reach: str) -> Claim:
    """Count the mean activation maps that are similar to an edge filter."""
    edges = results["readings"]["uncentred"]["edges"]
    best = [one[reach] for one in edges]
    fit, chance = (np.array([one[key] for one in best]) for key in ("fit", "chance"))
    like, half = similar_maps(edges, reach)
    centred, _ = similar_maps(results["readings"]["centred"]["edges"], reach)
    waves = [one["cycles"] for one in best if one["kind"] == "Gabor"]
    claim = _of_resnet_200(
        results,
        "The components are edge filters: Gabor and Laplacian-of-Gaussian filters.",
        f"For {half} of {len(edges)} mean maps of Block 1 one filter explains at least half of the variance "
        f"(median {np.median(fit):.2g}); for {like} of these it explains more than for 95% of maps with the same "
        f"power spectrum and random phases (median of this quantile {np.median(chance):.2g}). With centring these "
        f"are {centred} maps. {len(waves)} of the best filters are Gabor filters"
        + (f", with {min(waves):g} to {max(waves):g} waves over the whole map" if waves else "")
        + " (criterion: most maps reach half and exceed chance).",
        like > len(edges) / 2,
    )
    return claim._replace(reading=f"{REACHES[reach]}; {claim.reading}")
