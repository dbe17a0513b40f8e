"""Claims and summary of `mnist`."""

from __future__ import annotations

import numpy as np

from reproduction.base import Claim, Results, holds_if
from reproduction.curves import chosen_steps, final, finals, first_reach, listed, run_mean
from reproduction.protocol import GRID

OTHERS = ("GHA", "Krasulina", "Oja")
"""Algorithms in the paper's figures that are not EigenGame."""

COMPETITIVE = 1.0
"""Competitive: a final mean streak that is shorter by at most this."""


def claims(results: Results) -> list[Claim]:
    """Compare Sec. Experiments and appendix Gradient Bias with the results."""
    found = results["panels"]
    sizes = list(found)
    first = found[sizes[0]]
    ours, oja = final(first, "EigenGame"), final(first, "Oja")
    leads = {batch: leads_over(panel) for batch, panel in found.items()}
    mean = {batch: float(np.mean(list(one.values()))) for batch, one in leads.items()}
    each = "; ".join(f"{batch}: {listed(one)}" for batch, one in leads.items())
    return [
        Claim(
            f"EigenGame is competitive with Oja's algorithm at batches of {sizes[0]}.",
            f"Final mean streak, of {results['components']}: EigenGame {ours:.1f}, Oja {oja:.1f} "
            f"(competitive: at most {COMPETITIVE:g} less); over the whole run {run_mean(first, 'EigenGame'):.1f} "
            f"and {run_mean(first, 'Oja'):.1f}.",
            holds_if(ours >= oja - COMPETITIVE),
            "pixels from 0 to 1, not centred",
        ),
        Claim(
            "The gap between EigenGame and the other methods shrinks as batches get smaller.",
            "Mean streak of EigenGame over the run minus that of the others, by batch size: "
            f"{each}; mean of these: {listed(mean)} (shrinks: decreases with every smaller batch).",
            holds_if(len(mean) > 1 and bool((np.diff(list(mean.values())) < 0).all())),
            "pixels from 0 to 1, not centred",
        ),
        Claim(
            "EigenGame's performance degrades with small batches, since its gradients are biased.",
            "Mean streak of EigenGame after the same number of rows, by batch size: "
            f"{listed(_finals(found, 'EigenGame'))}; after the same number of iterations: "
            f"{_listed_early(found, 'EigenGame')}, and that of GHA, which has no bias: "
            f"{_listed_early(found, 'GHA')} (degrades: after the same number of rows, less by two standard "
            "errors).",
            holds_if(degrades(found, "EigenGame")),
            "pixels from 0 to 1, not centred",
        ),
        Claim(
            "The remembered game does not degrade.",
            f"Final mean streak, by batch size: {listed(_finals(found, 'remembered'))} (degrades: as above).",
            holds_if(not degrades(found, "remembered")),
            "pixels from 0 to 1, not centred",
            ours=True,
        ),
    ]


def leads_over(panel: Results) -> dict[str, float]:
    """Return EigenGame's mean streak over the run minus that of each other method."""
    ours = run_mean(panel, "EigenGame")
    return {name: ours - run_mean(panel, name) for name in OTHERS if name in panel["runs"]}


def degrades(found: Results, name: str) -> bool:
    """Return whether the final streak at the smallest batches is below that at the largest, beyond errors."""
    curves = [panel["runs"][name]["curves"]["best"]["streak"] for panel in found.values()]
    ends = [(curve["mean"][-1], curve["error"][-1]) for curve in (curves[0], curves[-1])]
    (large, error), (small, other) = ends
    return small < large - 2 * float(np.hypot(error, other))


def _finals(found: Results, name: str) -> dict[str, float]:
    """Return the final mean streak of an algorithm at each batch size."""
    return {batch: final(panel, name) for batch, panel in found.items()}


def _listed_early(found: Results, name: str) -> str:
    """Return the streak at each batch size after as many iterations as the largest batches have."""
    runs = {batch: panel["runs"][name] for batch, panel in found.items() if name in panel["runs"]}
    if not runs:
        return "not run"
    end = min(run["iterations"][-1] for run in runs.values())
    early = {
        batch: float(np.interp(end, run["iterations"], run["curves"]["best"]["streak"]["mean"]))
        for batch, run in runs.items()
    }
    return listed(early)


def summary(results: Results) -> str:
    """Describe final streaks, step sizes, and what limits each algorithm."""
    found = results["panels"]
    steps = [f"{batch}: {listed(chosen_steps(panel), 'g')}" for batch, panel in found.items()]
    ends = [f"{batch}: {listed(finals(panel))}" for batch, panel in found.items()]
    return (
        f"Final mean streaks, by batch size: {'; '.join(ends)}. Chosen step sizes: {'; '.join(steps)}. "
        f"{_projection(found)} {_smaller_steps(found)} {_bias(results)} {_krasulina(found)} {_remembered(results)}"
    )


def _projection(found: Results) -> str:
    """Compare the step sizes of EigenGame, which does not project, with those of methods that do."""
    others = ("EigenGame^R", "GHA", "mu")
    larger, compared = [], []
    for batch, panel in found.items():
        steps = chosen_steps(panel)
        present = [steps[name] for name in others if name in steps]
        if present:
            compared.append(batch)
            if steps["EigenGame"] > max(present):
                larger.append(batch)
    if not compared:
        return "EigenGame^R, GHA and mu were not run."
    return (
        "EigenGame, without the projection, has a larger chosen step size than EigenGame^R, GHA and mu at "
        f"{len(larger)} of {len(compared)} batch sizes."
    )


def _smaller_steps(found: Results) -> str:
    """Compare EigenGame's final streak at a tenth of the chosen step size with that at the chosen one."""
    pairs = {
        batch: [final(panel, "EigenGame", step=step) for step in ("best", "x0.1")]
        for batch, panel in found.items()
    }
    better = [batch for batch, (best, tenth) in pairs.items() if tenth > best]
    said = ", ".join(f"{tenth:.1f} at {batch}" for batch, (_, tenth) in pairs.items())
    return f"At a tenth of the chosen step size EigenGame ends with {said}: " + (
        f"more than at the chosen one for batches of {_and(better)}, since step sizes are chosen by the "
        "mean over the run and not by its end."
        if better
        else "not more than at the chosen one."
    )


def _bias(results: Results) -> str:
    """Relate the size of the gradient's bias to whether the streak degrades."""
    found, parents = results["panels"], results["components"] - 1
    smallest = min(map(int, found))
    return (
        f"The last player has {parents} parents, and the bias of its gradient is of the order of parents over rows "
        f"(see `bias`), {parents / smallest:.2f} at batches of {smallest}; by the criterion of the table EigenGame "
        + ("degrades." if degrades(found, "EigenGame") else "does not degrade.")
    )


def _krasulina(found: Results) -> str:
    """Describe the subspace and the streak of Krasulina, matched and settled."""
    seen = {
        batch: (
            final(panel, "Krasulina", "distance"),
            final(panel, "Krasulina"),
            panel["runs"]["Krasulina"]["settled"],
        )
        for batch, panel in found.items()
    }
    said = "; ".join(
        f"{batch}: {distance:.2g}, {matched:.1f} and {settled:.1f}"
        for batch, (distance, matched, settled) in seen.items()
    )
    gains = [batch for batch, (_, matched, settled) in seen.items() if settled >= matched + 1]
    return (
        "Krasulina, whose step size is chosen by the subspace distance: final distance, streak after matching to "
        f"the components, and streak after rotation to the eigenvectors within the span, {said}. The rotation "
        f"gains a component or more at {f'batches of {_and(gains)}' if gains else 'no batch size'}."
    )


def _and(parts: list[str]) -> str:
    return " and ".join(parts)


def _remembered(results: Results) -> str:
    """Return the passes after which the remembered game has found all components in every trial."""
    said = []
    for batch, panel in results["panels"].items():
        run = panel["runs"]["remembered"]
        mean = run["curves"]["best"]["streak"]["mean"]
        reached = first_reach(run["iterations"], mean, results["components"])
        if reached is None:
            said.append(f"does not find all of them (batches of {batch})")
        else:
            passes = reached / (results["size"]["rows"] // int(batch))
            said.append(f"finds all of them after {passes:.1f} passes (batches of {batch})")
    return f"Of {results['components']} components the remembered game {', '.join(said)}."


def reading(results: Results) -> str:
    """Describe preprocessing, passes, and how the grid fits the data."""
    size = results["size"]
    steps = [step for panel in results["panels"].values() for step in chosen_steps(panel).values()]
    inside = sum(min(GRID) < step < max(GRID) for step in steps)
    return (
        "The paper flattens the images and does not mention centring or scale. Here pixels are from 0 to 1 and not "
        f"centred, and M is summed over a batch; in this reading {inside} of {len(steps)} chosen step sizes lie "
        f"inside the paper's grid rather than at its ends. {size['rows']} images, {size['passes']} passes at every "
        f"batch size, {size['trials']} trials with their own starts and shuffles."
    )
