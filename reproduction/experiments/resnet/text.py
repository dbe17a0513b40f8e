"""Summary of the results on a ResNet, and how the paper was read."""

from __future__ import annotations

import numpy as np

from reproduction.base import Results
from reproduction.experiments.resnet.edges import CYCLES, LOCAL, QUANTILE
from reproduction.experiments.resnet.verdicts import (
    LIKE,
    MOSTLY,
    REACHES,
    block_shares,
    similar_maps,
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
        f"{certificate['streak']} of {size['k']} components within pi/32. EigenGame by steps ({steps['updates']:,} "
        f"updates of {size['batch']} rows, step size {steps['step']:g} over the largest eigenvalue of a batch) has "
        f"a streak of {steps['streak']} against these. {_waves(results)} `maps.png` and `blocks.png` are larger "
        "figures."
    )


def _waves(results: Results) -> str:
    """Describe which maps are similar to filters, and how their spatial frequency changes."""
    edges = results["readings"]["uncentred"]["edges"]
    said = " and ".join(
        f"{similar_maps(edges, reach)[0]} of {len(edges)} are similar to {name}"
        for reach, name in REACHES.items()
    )
    said = f"Of the mean maps of Block 1, in full resolution, {said}, more than by chance."
    cycles = [one["any"]["cycles"] for one in edges if one["any"]["kind"] == "Gabor"]
    if len(cycles) < 4:
        return f"{said} Too few maps are closest to a Gabor filter to compare their frequencies."
    half = len(cycles) // 2
    early, late = float(np.median(cycles[:half])), float(np.median(cycles[half:]))
    change = "increases" if late > early else "decreases" if late < early else "does not change"
    return (
        f"{said} Of those that are closest to a Gabor filter, the median number of waves over the map {change} "
        f"from {early:g} in the first half of the components to {late:g} in the second."
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
        "writes it. A mean map is the mean over the channels of `conv1` in full resolution. It is similar to a "
        f"filter that explains at least {LIKE:.0%} of its variance, and more than the best filters do for "
        f"{QUANTILE:.0%} of maps with the same power spectrum and random phases. Filters are Gabor filters of "
        f"{CYCLES[0]:g} to {CYCLES[-1]:g} waves over the map and Laplacians of Gaussians; local filters have a "
        f"standard deviation of at most {LOCAL:g} of the side and a bandwidth of at most 2.5 octaves, as edge "
        "detectors have. The paper shows pictures and states no criterion."
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
