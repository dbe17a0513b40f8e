"""Summary and reading of `mnist`."""

from __future__ import annotations

from reproduction.base import Results
from reproduction.curves import chosen_steps, final, finals, first_reach, listed
from reproduction.experiments.mnist_growth import growth
from reproduction.experiments.mnist_text import controls
from reproduction.protocol import GRID


def summary(results: Results) -> str:
    """Describe both readings, the finer grid, and what limits each algorithm."""
    parts = [_reading(name, found, results) for name, found in results["readings"].items()]
    return "\n\n".join([*parts, _finer(results), _bias(results)])


def _reading(name: str, found: Results, results: Results) -> str:
    """Describe final streaks, step sizes, Krasulina and the remembered game in one reading."""
    panels, (first, second) = found["panels"], found["eigenvalues"]
    ends = "; ".join(f"{batch}: {listed(finals(panel))}" for batch, panel in panels.items())
    steps = "; ".join(
        f"{batch}: {listed(chosen_steps(panel), 'g')}" for batch, panel in panels.items()
    )
    return (
        f"{name.capitalize()} (the first two eigenvalues per row are {first:.3g} and {second:.3g}): final mean "
        f"streaks, by batch size, are {ends}. Chosen step sizes: {steps}. {_smaller_steps(panels)} "
        f"{_krasulina(panels)} {_remembered(panels, results)}"
    )


def _smaller_steps(panels: Results) -> str:
    """Compare EigenGame's final streak at a tenth of the chosen step size with that at the chosen one."""
    pairs = {
        batch: [final(panel, "EigenGame", step=step) for step in ("best", "x0.1")]
        for batch, panel in panels.items()
    }
    better = [batch for batch, (best, tenth) in pairs.items() if tenth > best]
    said = ", ".join(f"{tenth:.1f} at {batch}" for batch, (_, tenth) in pairs.items())
    return f"At a tenth of the chosen step size EigenGame ends with {said}: " + (
        f"more than at the chosen one for batches of {_and(better)}, since step sizes are chosen by the mean over "
        "the run and not by its end."
        if better
        else "not more than at the chosen one."
    )


def _krasulina(panels: Results) -> str:
    """Describe the subspace and the streak of Krasulina, matched and rotated."""
    seen = {
        batch: (
            final(panel, "Krasulina", "distance"),
            final(panel, "Krasulina"),
            panel["runs"]["Krasulina"]["settled"],
        )
        for batch, panel in panels.items()
    }
    said = "; ".join(
        f"{batch}: distance {distance:.2g}, streak {matched:.1f} matched and {settled:.1f} rotated"
        for batch, (distance, matched, settled) in seen.items()
    )
    gains = [batch for batch, (_, matched, settled) in seen.items() if settled >= matched + 1]
    return (
        "Krasulina finds a subspace, and its step size is chosen by the distance. Its players are matched to the "
        "components as in the paper, and for comparison also rotated to the eigenvectors of M within their span: "
        f"{said}. The rotation, which the paper does not make, gains a component or more at "
        f"{f'batches of {_and(gains)}' if gains else 'no batch size'}."
    )


def _remembered(panels: Results, results: Results) -> str:
    """Return the passes after which the remembered game has found all components in every trial."""
    said = []
    for batch, panel in panels.items():
        run = panel["runs"]["remembered"]
        mean = run["curves"]["best"]["streak"]["mean"]
        reached = first_reach(run["iterations"], mean, results["components"])
        if reached is None:
            said.append(f"does not find all of them (batches of {batch})")
        else:
            passes = reached / (results["size"]["rows"] // int(batch))
            said.append(f"finds all of them after {passes:.1f} passes (batches of {batch})")
    return f"Of {results['components']} components the remembered game {', '.join(said)}."


def _finer(results: Results) -> str:
    """Describe final streaks on the finer grid, and after a longer run."""
    finer = results["finer"]
    said = "; ".join(
        f"{name} {listed({step: one['shown']['streak']['mean'] for step, one in steps.items()})}"
        for name, steps in finer["steps"].items()
    )
    steps = finer["steps"]["EigenGame"]
    ends = {step: one["shown"]["streak"]["mean"] for step, one in steps.items()}
    best = max(ends, key=lambda step: ends[step])
    on_grid = float(best) in GRID
    longer = "; ".join(
        f"{name} {listed({step: one['shown']['streak']['mean'] for step, one in steps.items()})}"
        for name, steps in finer["longer"].items()
    )
    return (
        f"Finer step sizes, uncentred, batches of {finer['batch']}: final mean streaks are {said}. EigenGame's "
        f"longest, {ends[best]:.1f}, is at {best}, which is {'a' if on_grid else 'not a'} step size of the paper's "
        f"grid. After {finer['passes']} passes: {longer}."
    )


def _bias(results: Results) -> str:
    """Compare how the distances of biased and unbiased methods depend on the batch size."""
    parents = results["components"] - 1
    parts = []
    for name, found in results["readings"].items():
        panels = found["panels"]
        seen = {"EigenGame": growth(panels, "EigenGame", "distance")} | controls(panels)
        said = ", ".join(
            f"{one} {grown.ratio:.2f} times (step size {grown.step:g})"
            for one, grown in seen.items()
            if grown is not None
        )
        if said:
            parts.append(f"{name}: {said}")
    smallest = min(int(batch) for batch in next(iter(results["readings"].values()))["panels"])
    return (
        f"The last player has {parents} parents, and the bias of its gradient is of the order of parents "
        f"over rows (see `bias`), {parents / smallest:.2f} at batches of {smallest}. From the largest to the "
        f"smallest batches the final subspace distance changes by these factors: {'; '.join(parts) or 'none'}. Oja "
        "and GHA are linear in M and have no bias."
    )


def _and(parts: list[str]) -> str:
    return " and ".join(parts)


def reading(results: Results) -> str:
    """Describe preprocessing, passes, and how the grid fits the data."""
    size = results["size"]
    inside = []
    for name, found in results["readings"].items():
        steps = [
            step for panel in found["panels"].values() for step in chosen_steps(panel).values()
        ]
        between = sum(min(GRID) < step < max(GRID) for step in steps)
        inside.append(f"{between} of {len(steps)} {name}")
    skipped = [one for one in size["played"]["centred"] if one not in size["played"]["uncentred"]]
    left_out = f", without {_and(skipped)} in the uncentred reading" if skipped else ""
    return (
        "The paper flattens the images and does not mention centring or scale. Here pixels are from 0 to 1, M is "
        "summed over a batch, and both readings are run: with the mean of all images subtracted (centred), and "
        "without (uncentred). Chosen step sizes that lie inside the paper's grid rather than at its ends: "
        f"{', '.join(inside)}. {size['rows']} images, {size['passes']} passes at every batch size, "
        f"{size['trials']} trials with their own starts and shuffles{left_out}. The finer grid and the longer run "
        "are not in the paper. To show the effect of the batch size alone, distances are compared at one step size "
        "for all batches."
    )
