"""Handwritten digits in batches of 1024, 512 and 256: streaks and subspace distance on the way.

The paper flattens the images and says nothing of centring or scale. Here pixels go from 0 to 1 and are not
centred, M is summed over a batch, and every batch size has as many passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import GHA, Alpha, BestResponse, Krasulina, Mu, Oja, Remembered, metrics
from eigengame.experiments import _mnist
from eigengame.experiments._base import Claim, Results, Run
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
from eigengame.experiments._protocol import GRID, curve, rounded, tune
from eigengame.experiments._streaks import area, last, listed
from eigengame.experiments._trials import Family, orders, play_trials, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "MNIST: 16 components of handwritten digits"
PAPER = "fig:mnist, fig:gradient_bias"

PAPERS = ("EigenGame", "EigenGame^R", "GHA", "Krasulina", "Oja")
"""Those whom the paper's figures show."""

NEAR = 1.0
"""Competitive: a mean streak at the end that is at most this much shorter."""


def _eigengame(step: Any) -> Alpha:
    return Alpha(step, riemannian=False)


def _remembered(_: Any) -> Remembered:
    return Remembered()


def _best_response(_: Any) -> BestResponse:
    return BestResponse(rounds=1)


PLAYED: Mapping[str, tuple[Family, tuple[float, ...] | None]] = {
    "EigenGame": (_eigengame, GRID),
    "EigenGame^R": (Alpha, GRID),
    "GHA": (GHA, GRID),
    "Krasulina": (Krasulina, GRID),
    "Oja": (Oja, GRID),
    "mu": (Mu, GRID),
    "remembered": (_remembered, None),
    "best response": (_best_response, None),
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
            order=orders(first_seed, size.trials, len(rows), batch, updates),
        )

    tuned = tune(runs, lambda seen: float(streak(seen).mean()), grid)
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


def _streaks_by(name: str) -> Callable[[Products], np.ndarray]:
    """Return how an algorithm's streaks are counted: Krasulina's players are matched to the truth first."""
    seen_as = matched_angles if name == "Krasulina" else angles
    return lambda seen: metrics.streak_of(seen_as(seen))


def claims(results: Results) -> list[Claim]:
    """Hold Sec. Experiments and appendix Gradient Bias against the results."""
    sizes = list(results["panels"])
    largest, smallest = sizes[0], sizes[-1]
    ends = {
        batch: {name: last(panel, name) for name in panel["runs"]}
        for batch, panel in results["panels"].items()
    }
    leads = {batch: _lead(panel) for batch, panel in results["panels"].items()}
    ours, oja = ends[largest]["EigenGame"], ends[largest]["Oja"]
    own = {batch: end["EigenGame"] for batch, end in ends.items()}
    kept = {batch: end["remembered"] for batch, end in ends.items()}
    return [
        Claim(
            f"EigenGame is competitive with Oja's algorithm at batches of {largest}.",
            f"Mean streak at the end, of {results['components']}: EigenGame {ours:.1f}, Oja {oja:.1f} "
            f"(competitive: at most {NEAR:g} less); over the whole run "
            f"{area(results['panels'][largest], 'EigenGame'):.1f} and "
            f"{area(results['panels'][largest], 'Oja'):.1f}.",
            ours >= oja - NEAR,
        ),
        Claim(
            "The gap between EigenGame and the other methods shrinks as batches get smaller.",
            "EigenGame's mean streak over the run less that of the best of the others but Oja: "
            f"{listed(leads)} (batch size and lead).",
            leads[smallest] < leads[largest],
        ),
        Claim(
            "EigenGame's performance degrades with small batches, since its gradients are biased.",
            f"EigenGame's mean streak at the end: {listed(own)} (batch size and streak).",
            own[smallest] < own[largest],
        ),
        Claim(
            "The remembered game does not degrade (a claim of ours).",
            f"Mean streak at the end: {listed(kept)} (batch size and streak).",
            kept[smallest] >= kept[largest] - 0.05 * results["components"],
        ),
    ]


def _lead(panel: Results) -> float:
    """Return how much longer EigenGame's streak is, over the run, than the best of the paper's others."""
    others = [name for name in PAPERS if name in panel["runs"] and name not in ("EigenGame", "Oja")]
    return area(panel, "EigenGame") - max(area(panel, name) for name in others)


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
    size = results["size"]
    steps = [
        f"{batch}: {listed({n: r['step'] for n, r in panel['runs'].items() if r['step']}, 'g')}"
        for batch, panel in results["panels"].items()
    ]
    ends = [
        f"{batch}: {listed({name: last(panel, name) for name in panel['runs']})}"
        for batch, panel in results["panels"].items()
    ]
    settled = [
        f"{panel['runs']['Krasulina']['settled']:.1f} at {batch}"
        for batch, panel in results["panels"].items()
    ]
    return (
        f"{size['rows']} images, {size['passes']} passes at every batch size, {size['trials']} trials, each with "
        "its own start and its own shuffles; the best step size by the mean streak, of those from 1e-3 to 1e-6 "
        f"({'; '.join(steps)}). Mean streaks at the end, by batch size: {'; '.join(ends)}. Krasulina finds the "
        "subspace and does not turn within it, so that even matched to the truth its players have hardly a "
        f"streak; settled, they would have {', '.join(settled)}. The remembered game needs no step size, and one "
        "pass. Best response is made for full batches: on a batch its best is the best for that batch."
    )
