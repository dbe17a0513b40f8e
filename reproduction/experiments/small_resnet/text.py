"""Claims of the appendix Small ImageNet Experiments, and the summary of the results."""

from __future__ import annotations

import numpy as np

from eigengame import metrics
from eigengame.algorithms.frequent_directions import best_shards
from reproduction.base import Claim, Results, Verdict, holds_if
from reproduction.curves import count_passes

PAPERS_HOURS = (9, 2)
"""Hours of Frequent Directions and of EigenGame in the paper."""

PAPERS_ROWS, PAPERS_FEATURES = 1_200_000, 20_371_456
"""Rows of the paper's small experiment, and features of its large one."""

ALIKE = 0.9
"""Maps agree if their correlation is at least this, up to the sign."""

SHOWN = 8
"""The paper shows a section of the components and does not say which: so many maps that agree may be it."""

STABLE = 0.01
"""A Rayleigh quotient is stable if it changed by at most this share in the last pass of a component's turn."""

GAMES = {
    "EigenGame, short": "three passes over our rows",
    "EigenGame, long": "as many updates as three passes over the paper's rows",
}
"""Two readings of three passes: our data has fewer rows, hence fewer updates in a pass."""


def claims(results: Results) -> list[Claim]:
    """Compare the section with the results."""
    return [
        *(_faster(results, game) for game in GAMES),
        *(_alike(results, game) for game in GAMES),
        _controlled(results),
        _not_applicable(results),
        _certified(results),
    ]


def _data(results: Results) -> str:
    """Return network and rows, for the reading of a claim."""
    return f"ResNet-50 as in the paper, {results['rows']} rows in place of 1.2 million"


def _streaks(results: Results, *names: str) -> str:
    """Return the streaks of some methods against both truths."""
    k = results["size"]["k"]
    return "; ".join(
        f"{name}: {results['methods'][name]['streak']['certified']} of {k} against the certified components, "
        f"{results['methods'][name]['streak']['deflation']} against deflation"
        for name in names
    )


def _faster(results: Results, game: str) -> Claim:
    """Compare times; the verdict requires that both methods found the components."""
    k, methods, seconds = results["size"]["k"], results["methods"], results["seconds"]
    both = all(methods[name]["streak"]["certified"] == k for name in (game, "FD"))
    game_seconds, passes = methods[game]["seconds"], methods[game]["passes"]
    verdict = holds_if(seconds["shard"] > game_seconds) if both else Verdict.NOT_COMPARABLE
    shard, whole, recovery = (duration(seconds[part]) for part in ("shard", "sketch", "recovery"))
    return Claim(
        "Frequent Directions takes longer than EigenGame, which processes the full data three times.",
        f"A sketch of the rows of one of {results['shards']} shards takes {shard}, of all rows {whole}, and the "
        f"recovery {recovery}; {passes} passes of EigenGame take {duration(game_seconds)} (the paper: "
        f"{PAPERS_HOURS[0]} hours for a shard, {PAPERS_HOURS[1]} for EigenGame). Streaks: "
        f"{_streaks(results, game, 'FD')} (a verdict needs all {k} certified components from both).",
        verdict,
        f"{GAMES[game]}; updates alone, one machine; {_data(results)}",
    )


def agreeing(found: Results, truth: str) -> int:
    """Return the number of components whose maps agree with those of a truth."""
    return int((np.array(found["maps"][truth]) >= ALIKE).sum())


def _alike(results: Results, game: str) -> Claim:
    """Compare the mean activation maps of EigenGame and Frequent Directions with those of deflation."""
    k, methods = results["size"]["k"], results["methods"]
    counts = {name: agreeing(methods[name], "deflation") for name in (game, "FD")}
    against = {name: agreeing(methods[name], "certified") for name in (*counts, "deflation")}
    fewest = min(counts.values())
    if fewest == k:
        verdict = Verdict.HOLDS
    elif fewest >= SHOWN or not _long_enough(results, game):
        verdict = Verdict.NOT_COMPARABLE
    else:
        verdict = Verdict.DOES_NOT_HOLD
    return Claim(
        "The mean activation maps of deflation, EigenGame and Frequent Directions agree.",
        f"Maps with a correlation of at least {ALIKE:g} to those by deflation: "
        + ", ".join(f"{name} {count} of {k}" for name, count in counts.items())
        + "; to the certified ones: "
        + ", ".join(f"{name} {count}" for name, count in against.items())
        + f" (holds if all agree with deflation; not comparable from {SHOWN} on, since the paper does not say "
        f"which components it shows). {_length(results, game)}",
        verdict,
        f"the paper shows pictures of some components; {GAMES[game]}; {_data(results)}",
    )


def _long_enough(results: Results, game: str) -> bool:
    """Return whether a run of EigenGame has all components, or as many as after half of its passes."""
    found = results["methods"][game]
    streak = found["streak"]["certified"]
    return streak == results["size"]["k"] or found.get("halfway", {}).get("streak") == streak


def _length(results: Results, game: str) -> str:
    """Describe whether a run of EigenGame is long enough for a verdict."""
    found = results["methods"][game]
    enough = "long enough" if _long_enough(results, game) else "too short"
    before = found.get("halfway")
    half = "" if before is None else f"{before['streak']} after {before['passes']} passes and "
    return (
        f"EigenGame has a streak of {half}{found['streak']['certified']} after {count_passes(found['passes'])}: "
        f"the run is {enough} (long enough: all components, or as many as after half of the passes)."
    )


def stable_and_wrong(results: Results) -> tuple[int, int]:
    """Return the number of components by deflation with a stable quotient, and of those that are wrong."""
    stable = np.array(results["deflation"]["change"]) <= STABLE
    angle = np.array(results["methods"]["deflation"]["angle"]["certified"])
    return int(stable.sum()), int((stable & (angle > metrics.STREAK_ANGLE)).sum())


def _controlled(results: Results) -> Claim:
    """Test whether a stable Rayleigh quotient tells that a component by deflation is right."""
    k, (stable, wrong) = results["size"]["k"], stable_and_wrong(results)
    found = results["methods"]["deflation"]
    return Claim(
        "Monitoring the Rayleigh quotient controls the quality of components by deflation.",
        f"The quotients of {stable} of {k} components are stable (a change of at most {STABLE:.0%} in the last of "
        f"{results['size']['turn']} passes), and {wrong} of these are more than pi/8 from the certified component. "
        f"Deflation has a streak of {found['streak']['certified']} after {found['passes']} passes (holds if no "
        "stable component is wrong; not comparable otherwise, since the paper states no threshold).",
        Verdict.HOLDS if stable and not wrong else Verdict.NOT_COMPARABLE,
        f"step size in proportion to one over the component's own eigenvalue, decreasing; {_data(results)}",
    )


def _not_applicable(results: Results) -> Claim:
    """Report the size of the decomposition that the recovery needs."""
    l, d, recovery = results["l"], results["features"], duration(results["seconds"]["recovery"])
    streak, k = results["methods"]["FD"]["streak"]["certified"], results["size"]["k"]
    return Claim(
        "Frequent Directions is not applicable to 20 million features, because of its final SVD.",
        f"With {d:,} features the components were recovered in {recovery} with a streak of {streak} of {k}. The "
        f"decompositions are of {2 * l} x {2 * l} products of the sketch. With {PAPERS_FEATURES:,} features the "
        f"sketch would take {8 * l * PAPERS_FEATURES / 2**30:.0f} GiB in float32; this was not run.",
        Verdict.NOT_COMPARABLE,
        f"{d:,} features; an SVD of the sketch by products of its rows",
    )


def _certified(results: Results) -> Claim:
    """Report the certificate of the second truth, and whether deflation agrees with it."""
    k, found, fit = results["size"]["k"], results["certificate"], results["methods"]["certified"]
    return Claim(
        f"The {k} components that serve as truth are eigenvectors, by the certificate.",
        f"{found['kind'].capitalize()}: {found['streak']} of {k} within pi/32, in "
        f"{count_passes(fit['passes'])} and {duration(fit['seconds'])}.",
        holds_if(found["kind"] == "certified" and found["streak"] == k),
        _data(results),
        ours=True,
    )


def duration(seconds: float) -> str:
    """Return seconds with about two digits."""
    return f"{seconds:.{0 if seconds >= 10 else 1 if seconds >= 1 else 2}f} s"


def summary(results: Results) -> str:
    """Describe what each method found in which time, and whether deflation is a truth."""
    k, methods = results["size"]["k"], results["methods"]
    listed = "; ".join(
        f"{name} {one['streak']['certified']} in {count_passes(one['passes'])} and {duration(one['seconds'])}"
        for name, one in methods.items()
        if name != "certified"
    )
    deflation = methods["deflation"]["streak"]["certified"]
    truth = (
        "Deflation finds all of them, so that it can serve as truth here"
        if deflation == k
        else f"Deflation finds the first {deflation} of {k} only, so that it is not a truth for the others"
    )
    return (
        f"Streaks of {k} against the certified components: {listed}. {truth}. {_cheapest(results)} `maps.png` is a "
        "larger figure of the maps."
    )


def _cheapest(results: Results) -> str:
    """Name the fastest method among those that found all components."""
    k, methods = results["size"]["k"], results["methods"]
    whole = {
        name: one["seconds"] for name, one in methods.items() if one["streak"]["certified"] == k
    }
    name = min(whole, key=lambda one: whole[one])
    return f"The fastest method with all {k} components is: {name}, {duration(whole[name])}."


def reading(results: Results) -> str:
    """Describe rows, times, step sizes and the two truths."""
    size, l, methods = results["size"], results["l"], results["methods"]
    return (
        f"Activations of a ResNet-50 as in the experiment `resnet`: {results['rows']} rows of "
        f"{results['features']:,} features, not centred, k = {size['k']}, l = 5k = {l} (epsilon = 0.25/k). The "
        f"paper's 1.2 million rows have {best_shards(PAPERS_ROWS, l):.0f} as the best number of shards, these "
        f"{best_shards(results['rows'], l):.1f}. Rows are computed once and stay on the device; times are of "
        "updates alone, without the network and without compilation. On a GPU, EigenGame and deflation "
        "run by kernels for wide rows, Frequent Directions by plain products. The paper does not state how many "
        f"devices its times are for. EigenGame has batches of {size['batch']}; step sizes are in units of one over "
        f"the largest eigenvalue of a batch, {methods['EigenGame, short']['step']:g} (the best of "
        f"{', '.join(results['tried'])}) in the short run and {methods['EigenGame, long']['step']:g} in the long "
        f"one. Deflation has {size['turn']} passes for each component. Its step size is in proportion to one over "
        "the component's own eigenvalue and decreases within a turn; the paper says only that it is low. The "
        "certified components are from `EigenGamePCA` with a tolerance of pi/32. Maps are drawn with the signs of "
        "the certified ones."
    )
