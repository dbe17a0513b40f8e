"""Handwritten digits in batches of 1024, 512 and 256: streaks and subspace distance on the way.

The paper flattens the images and says nothing of centring or scale. Here pixels go from 0 to 1 and are not
centred, M is summed over a batch, and every batch size has as many passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics
from eigengame.algorithms import GHA, Alpha, Krasulina, Mu, Oja
from eigengame.experiments import _mnist
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._families import best_response, eigengame, remembered
from eigengame.experiments._figures import draw_runs, panels
from eigengame.experiments._products import (
    Products,
    Truth,
    angles,
    distances,
    matched_angles,
    products,
    settled_angles,
    truth_of,
)
from eigengame.experiments._protocol import GRID, TRIED, curve, first_reach, rounded, tune
from eigengame.experiments._streaks import area, last, listed
from eigengame.experiments._trials import Family, orders, play_trials, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "MNIST: 16 components of handwritten digits"
PAPER = "fig:mnist, fig:gradient_bias"

PAPERS = ("EigenGame", "EigenGame^R", "GHA", "Krasulina", "Oja")
"""Those whom the paper's figures show."""

OTHERS = ("GHA", "Krasulina", "Oja")
"""Those of them that are not EigenGame."""

NEAR = 1.0
"""Competitive: a mean streak at the end that is at most this much shorter."""


PLAYED: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (eigengame, GRID),
    "EigenGame^R": (Alpha, GRID),
    "GHA": (GHA, GRID),
    "Krasulina": (Krasulina, GRID),
    "Oja": (Oja, GRID),
    "mu": (Mu, GRID),
    "remembered": (remembered, None),
    "best response": (best_response, None),
}
"""Who plays, with the step sizes to choose from."""


class Size(NamedTuple):
    """How much is played."""

    rows: int
    k: int
    batches: tuple[int, ...]
    passes: int
    points: int
    trials: int
    played: tuple[str, ...]


FULL = Size(60_000, 16, (1024, 512, 256), passes=10, points=60, trials=10, played=tuple(PLAYED))
QUICK = Size(
    2048, 4, (256,), passes=2, points=4, trials=2, played=(*PAPERS[:1], *PAPERS[3:], "remembered")
)


def measure(run: Run) -> Results:
    """Play everyone at every batch size by the protocol."""
    size = QUICK if run.quick else FULL
    images = _mnist.load(run.data)[: size.rows]
    _, truth = truth_of(images, size.k)
    rows = jnp.asarray(images)
    results: Results = {"components": size.k, "size": size._asdict(), "panels": {}}
    for batch in size.batches:
        panel: Results = {"runs": {}}
        for name in size.played:
            run.say(f"batches of {batch}: {name}")
            panel["runs"][name] = _played(name, rows, truth, size, batch)
        results["panels"][str(batch)] = panel
    return results


def _played(name: str, rows: jax.Array, truth: Truth, size: Size, batch: int) -> Results:
    """Return one algorithm's part of a panel."""
    family, grid = PLAYED[name]
    updates = size.passes * (len(rows) // batch)
    every = max(1, updates // size.points)
    streak = _streaks_by(name)
    # Shuffled before the runs, whose time is taken.
    shuffled = {seed: orders(seed, size.trials, len(rows), batch, updates) for seed in (0, TRIED)}

    def runs(step: float, first_seed: int) -> Products:
        return play_trials(
            family,
            step,
            starts(first_seed, size.trials, size.k, rows.shape[1]),
            rows,
            truth,
            products,
            updates=updates,
            every=every,
            order=shuffled[first_seed],
        )

    tuned = tune(runs, _score_by(name), grid)
    kept: Results = {
        "step": tuned.step,
        "tried": tuned.tried,
        "runtime": rounded([tuned.seconds / size.trials], 3)[0],
        "iterations": list(range(every, updates // every * every + 1, every)),
        "curves": {
            which: {"streak": curve(streak(seen)), "distance": curve(distances(seen))}
            for which, seen in tuned.shown.items()
        },
    }
    if name == "Krasulina":
        settled = metrics.streak_of(settled_angles(tuned.shown["best"]))
        kept["settled"] = rounded([settled[:, -1].mean()])[0]
    return kept


def _score_by(name: str) -> Callable[[Products], float]:
    """Return what a step size is chosen by: Krasulina's by the subspace, since it seeks nothing else."""
    if name == "Krasulina":
        return lambda seen: -float(distances(seen).mean())
    return lambda seen: float(_streaks_by(name)(seen).mean())


def _streaks_by(name: str) -> Callable[[Products], np.ndarray]:
    """Return how an algorithm's streaks are counted: Krasulina's players are matched to the truth first."""
    seen_as = matched_angles if name == "Krasulina" else angles
    return lambda seen: metrics.streak_of(seen_as(seen))


def claims(results: Results) -> list[Claim]:
    """Hold Sec. Experiments and appendix Gradient Bias against the results."""
    found = results["panels"]
    sizes = list(found)
    first = found[sizes[0]]
    ours, oja = last(first, "EigenGame"), last(first, "Oja")
    leads = [leads_over(panel) for panel in found.values()]
    mean = {
        batch: float(np.mean(list(one.values()))) for batch, one in zip(sizes, leads, strict=True)
    }
    each = "; ".join(f"{batch}: {listed(one)}" for batch, one in zip(sizes, leads, strict=True))
    return [
        Claim(
            f"EigenGame is competitive with Oja's algorithm at batches of {sizes[0]}.",
            f"Mean streak at the end, of {results['components']}: EigenGame {ours:.1f}, Oja {oja:.1f} "
            f"(competitive: at most {NEAR:g} less); over the whole run {area(first, 'EigenGame'):.1f} and "
            f"{area(first, 'Oja'):.1f}.",
            ours >= oja - NEAR,
        ),
        Claim(
            "The gap between EigenGame and the other methods shrinks as batches get smaller.",
            f"EigenGame's mean streak over the run less that of others, by batch size: {each}; in the mean "
            f"{listed(mean)} (shrinks: falls with every smaller batch).",
            len(mean) > 1 and bool((np.diff(list(mean.values())) < 0).all()),
        ),
        Claim(
            "EigenGame's performance degrades with small batches, since its gradients are biased.",
            "EigenGame's mean streak after as many rows, by batch size: "
            f"{listed({batch: last(panel, 'EigenGame') for batch, panel in found.items()})}; after as many "
            f"iterations: {_listed_early(found, 'EigenGame')}, and that of GHA, which has no bias: "
            f"{_listed_early(found, 'GHA')} (degrades: after as many rows, less by two standard errors).",
            degrades(found, "EigenGame"),
        ),
        Claim(
            "The remembered game does not degrade (a claim of ours).",
            "Mean streak at the end, by batch size: "
            f"{listed({batch: last(panel, 'remembered') for batch, panel in found.items()})}.",
            not degrades(found, "remembered"),
        ),
    ]


def leads_over(panel: Results) -> dict[str, float]:
    """Return how much longer EigenGame's streak is, over the run, than that of each other method."""
    ours = area(panel, "EigenGame")
    return {name: ours - area(panel, name) for name in OTHERS if name in panel["runs"]}


def degrades(found: Results, name: str) -> bool:
    """Say whether the last streak at the smallest batches is below that at the largest, beyond errors."""
    curves = [panel["runs"][name]["curves"]["best"]["streak"] for panel in found.values()]
    ends = [(curve["mean"][-1], curve["error"][-1]) for curve in (curves[0], curves[-1])]
    (large, error), (small, other) = ends
    return small < large - 2 * float(np.hypot(error, other))


def _listed_early(found: Results, name: str) -> str:
    """Return the streak at each batch size after as many iterations as the largest batches have in all."""
    runs = {batch: panel["runs"][name] for batch, panel in found.items() if name in panel["runs"]}
    if not runs:
        return "not played"
    end = min(run["iterations"][-1] for run in runs.values())
    early = {
        batch: float(np.interp(end, run["iterations"], run["curves"]["best"]["streak"]["mean"]))
        for batch, run in runs.items()
    }
    return listed(early)


def draw(results: Results) -> Figure:
    """Draw streaks at the left and subspace distances at the right, a row for each batch size."""
    figure, axes = panels(2, rows=len(results["panels"]), width=5.6)
    for (left, right), (batch, panel) in zip(axes, results["panels"].items(), strict=True):
        draw_runs(left, panel, "streak", unit="s")
        draw_runs(right, panel, "distance", unit="s")
        left.set_ylim(0, results["components"] * 1.04)
        left.get_legend().remove()
        right.set_yscale("log")
        right.set_ylim(1e-5, 1.2)
        left.set(title=f"batches of {batch}", ylabel="longest streak")
        right.set(title=f"batches of {batch}", ylabel="subspace distance")
    return figure


def words(results: Results) -> str:
    """Say what came out, and how the text was read."""
    size, found, parents = results["size"], results["panels"], results["components"] - 1
    steps = [
        f"{batch}: {listed({n: r['step'] for n, r in panel['runs'].items() if r['step']}, 'g')}"
        for batch, panel in found.items()
    ]
    ends = [
        f"{batch}: {listed({name: last(panel, name) for name in panel['runs']})}"
        for batch, panel in found.items()
    ]
    settled = [
        f"{panel['runs']['Krasulina']['settled']:.1f} at {batch}" for batch, panel in found.items()
    ]
    tenth = [
        f"{panel['runs']['EigenGame']['curves']['x0.1']['streak']['mean'][-1]:.1f} at {batch}"
        for batch, panel in found.items()
    ]
    return (
        f"{size['rows']} images, {size['passes']} passes at every batch size, {size['trials']} trials, each with "
        "its own start and its own shuffles. Pixels from 0 to 1 and M summed over a batch are the reading in "
        "which the paper's step sizes are neither all too large nor all too small. The best of them by the mean "
        f"streak: {'; '.join(steps)}. Mean streaks at the end, by batch size: {'; '.join(ends)}. The best mean "
        "over the run is not always the best end: at a tenth of its step size EigenGame ends with "
        f"{', '.join(tenth)}. Images are not centred, so that the first component is far above the others and "
        "sets how large a step EigenGame^R, GHA and mu can take, where EigenGame without the projection takes "
        f"larger ones. The last player has {parents} parents, and the bias of its gradient is of the order of "
        f"parents over rows (see `bias`): {parents / min(map(int, found)):.2f} at the smallest batches. That is "
        "too little to show here. Krasulina finds the subspace and does "
        "not turn within it, so that even matched to the truth its players have hardly a streak, and its step "
        f"size is chosen by the distance; settled, they would have {', '.join(settled)}. The remembered game "
        f"has no step size and finds all {results['components']} after {_passes(results)} passes. Best response "
        "is made for full batches: on a batch its best is the best for that batch."
    )


def _passes(results: Results) -> str:
    """Return how many passes the remembered game takes in the mean until every trial has all components."""
    said = []
    for batch, panel in results["panels"].items():
        run = panel["runs"]["remembered"]
        mean = run["curves"]["best"]["streak"]["mean"]
        reached = first_reach(run["iterations"], mean, results["components"])
        passes = None if reached is None else reached / (results["size"]["rows"] // int(batch))
        said.append(f"{'no number of' if passes is None else f'{passes:.1f}'} (batches of {batch})")
    return ", ".join(said)
