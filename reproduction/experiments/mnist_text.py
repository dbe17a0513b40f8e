"""Claims of `mnist`: each once for centred and once for uncentred images."""

from __future__ import annotations

import numpy as np

from reproduction.base import Claim, Results, Verdict, holds_if
from reproduction.curves import final, listed, run_mean
from reproduction.experiments.mnist_choices import (
    COMPETITIVE,
    describe_choices,
    is_competitive,
    is_excluded,
    other_choices,
)
from reproduction.experiments.mnist_growth import (
    BEYOND,
    Growth,
    early_lead,
    growth,
    in_errors,
    lead,
    shared_steps,
)

OTHERS = ("GHA", "Krasulina", "Oja")
"""Algorithms in the paper's figures that are not EigenGame."""

JUDGED = {"streak": ("GHA", "Oja"), "distance": OTHERS}
"""Methods by which the gap is judged: Krasulina finds a subspace and not its components."""

UNBIASED = ("Oja", "GHA")
"""Those whose update is linear in M."""

USABLE = 0.1
"""A method is compared only at step sizes with final subspace distances of at most this: others diverged."""

HOW = {
    "centred": "pixels from 0 to 1, mean image subtracted",
    "uncentred": "pixels from 0 to 1, not centred",
}
"""Readings of the paper, which flattens the images and does not mention centring."""


def claims(results: Results) -> list[Claim]:
    """Compare Sec. Experiments and appendix Gradient Bias with the results."""
    readings = {name: found["panels"] for name, found in results["readings"].items()}
    return [
        *(_competitive(results, name, panels) for name, panels in readings.items()),
        *(
            _gap(name, panels, kind)
            for name, panels in readings.items()
            for kind in ("streak", "distance")
        ),
        *(_degrades(name, panels) for name, panels in readings.items()),
        *(_because_of_bias(name, panels) for name, panels in readings.items()),
        *(_remembered(name, panels) for name, panels in readings.items()),
    ]


def _competitive(results: Results, name: str, panels: Results) -> Claim:
    """Compare EigenGame with Oja at the largest batches."""
    batch, first = next(iter(panels.items()))
    ends, areas, apart = (
        {one: value(first, one) for one in ("EigenGame", "Oja")}
        for value in (final, run_mean, lambda panel, one: final(panel, one, "distance"))
    )
    met = all(is_competitive(pair) for pair in (ends, areas))
    said = (
        f"Final mean streak, of {results['components']}: {listed(ends)}; over the whole run: {listed(areas)} "
        f"(competitive: both at most {COMPETITIVE:g} less). Final subspace distance: {listed(apart, '.2g')}."
    )
    verdict, how = holds_if(met), HOW[name]
    if name == "uncentred" and "finer" in results:
        others = other_choices(results["finer"])
        said += f" {describe_choices(results['finer'], others)}"
        if not met and not all(is_excluded(*ends) for ends in others.values()):
            verdict = Verdict.NOT_COMPARABLE
            how += "; the outcome depends on choices that the paper does not state"
    return Claim(
        f"EigenGame is competitive with Oja's algorithm at batches of {batch}.", said, verdict, how
    )


def _gap(name: str, panels: Results, kind: str) -> Claim:
    """Test whether EigenGame's lead over the other methods shrinks with the batch size."""
    others = tuple(one for one in JUDGED[kind] if all(one in p["runs"] for p in panels.values()))
    leads = {batch: lead(panel, others, kind) for batch, panel in panels.items()}
    each = {
        one: {batch: lead(panel, (one,), kind)[0] for batch, panel in panels.items()}
        for one in OTHERS
        if all(one in panel["runs"] for panel in panels.values())
    }
    form, what = (".1f", "longer streak") if kind == "streak" else (".2g", "smaller distance")
    (large, error), *_, (small, other) = leads.values()
    change = in_errors(small - large, float(np.hypot(error, other)))
    means = ", ".join(
        f"{batch} {mean:{form}} (± {spread:.1g})" for batch, (mean, spread) in leads.items()
    )
    return Claim(
        "The gap between EigenGame and the other methods shrinks as batches get smaller.",
        f"Lead of EigenGame ({what}, mean over the run and over {', '.join(others)}), by batch size: "
        f"{means}; over {'; '.join(f'{one}: {listed(values, form)}' for one, values in each.items())}. It changes "
        f"by {change:.1f} standard errors from the largest to the smallest batches (holds from -{BEYOND:g} on "
        f"down, fails from {BEYOND:g} on up, else undecided). Over equally many iterations the lead is "
        f"{listed(early_lead(panels, others, kind), form)}.{_steps_differ(panels, kind)}",
        Verdict.NOT_COMPARABLE if _steps_differ(panels, kind) else three_ways(-change),
        f"{HOW[name]}; gap by {'streak' if kind == 'streak' else 'subspace distance'}, after equally many rows",
    )


def _steps_differ(panels: Results, kind: str) -> str:
    """Return a sentence if EigenGame has other step sizes at other batch sizes, which decide its final distance."""
    steps = {batch: panel["runs"]["EigenGame"]["step"] for batch, panel in panels.items()}
    if kind == "streak" or len(set(steps.values())) == 1:
        return ""
    return (
        f" EigenGame's chosen step sizes are {listed(steps, 'g')}: distances at different step sizes "
        "cannot be compared, so that this is undecided."
    )


def three_ways(change: float) -> Verdict:
    """Return the verdict on an increase that is given in standard errors; a small one decides nothing."""
    if abs(change) < BEYOND:
        return Verdict.NOT_COMPARABLE
    return holds_if(change > 0)


def degrades(panels: Results, name: str, kind: str = "distance") -> bool | None:
    """Return whether the final value is worse at the smallest batches than at the largest, beyond errors.

    None if no step size was run at every batch size.
    """
    seen = growth(panels, name, kind)
    if seen is None:
        return None
    return (seen.change if kind == "distance" else -seen.change) >= BEYOND


def _degrades(name: str, panels: Results) -> Claim:
    """Test whether EigenGame's subspace distance grows as batches shrink."""
    claim = "EigenGame's performance degrades with small batches."
    seen, streak = (growth(panels, "EigenGame", kind) for kind in ("distance", "streak"))
    if seen is None or streak is None:
        return Claim(
            claim,
            f"No step size was run at all {len(panels)} batch sizes.",
            Verdict.NOT_COMPARABLE,
            HOW[name],
        )
    return Claim(
        claim,
        f"Final subspace distance of EigenGame after the same number of rows, at step size {seen.step:g}, by batch "
        f"size: {_said(seen, '.3g')}: {seen.ratio:.2f} times from the largest to the smallest batches, a change of "
        f"{seen.change:.1f} standard errors (holds from {BEYOND:g} on, fails from -{BEYOND:g} on down, else "
        f"undecided). Final mean streak: {_said(streak, '.1f')}, a change of {streak.change:.1f} standard errors.",
        three_ways(seen.change),
        f"{HOW[name]}; performance as subspace distance, the same step size for all batches",
    )


def _because_of_bias(name: str, panels: Results) -> Claim:
    """Compare the growth of EigenGame's distance with that of methods whose updates have no bias."""
    claim = "The degradation of EigenGame with small batches is due to its biased gradients."
    ours, others = growth(panels, "EigenGame", "distance"), controls(panels)
    if ours is None or not others:
        return Claim(
            claim,
            f"No step size was run at all {len(panels)} batch sizes, or methods without bias diverged.",
            Verdict.NOT_COMPARABLE,
            HOW[name],
        )
    grow = [one for one, seen in others.items() if seen.change >= BEYOND]
    if ours.change < BEYOND:
        verdict, why = three_ways(ours.change), "EigenGame does not degrade beyond errors"
    elif grow:
        verdict = Verdict.NOT_COMPARABLE
        why = (
            f"the distance of {' and '.join(grow)}, without bias, grows as well, so that the growth is not due to "
            "bias alone, and these runs do not separate the two"
        )
    elif unsure := [one for one, seen in others.items() if ours.exceeds(seen) < BEYOND]:
        verdict = Verdict.NOT_COMPARABLE
        why = (
            f"the distance of {' and '.join(unsure)} does not grow beyond errors, but these are so large that "
            "growth as strong as EigenGame's is not excluded"
        )
    else:
        verdict, why = Verdict.HOLDS, "methods without bias do not degrade"
    return Claim(
        claim,
        f"Final subspace distance at the smallest batches over that at the largest, at step size {ours.step:g}: "
        f"EigenGame {_ratio(ours, ours.step)}; methods without bias: {_ratios(others, ours.step)} (holds if "
        f"EigenGame's grows by {BEYOND:g} standard errors, that of the others does not, and its growth is above "
        f"theirs by as much). Here {why}."
        f"{_other_steps(panels, ours.step)}",
        verdict,
        f"{HOW[name]}; compared with methods that are linear in M",
    )


def _ratio(seen: Growth, step: float | None) -> str:
    """Format a ratio with its change in standard errors, and its step size if that is another one."""
    own = "" if seen.step == step else f" at {seen.step:g}"
    return f"{seen.ratio:.2f}{own} ({seen.change:+.1f} standard errors)"


def _ratios(others: dict[str, Growth], step: float | None) -> str:
    return ", ".join(f"{name} {_ratio(seen, step)}" for name, seen in others.items())


def _other_steps(panels: Results, judged: float | None) -> str:
    """Describe the same comparison at the other step sizes that were run at every batch size."""
    said = []
    for step in shared_steps(panels, "EigenGame"):
        ours = growth(panels, "EigenGame", "distance", step)
        others = {
            one: seen
            for one in UNBIASED
            if (seen := growth(panels, one, "distance", step)) and is_usable(seen)
        }
        if step != judged and ours and is_usable(ours) and others:
            said.append(f" At {step:g}: EigenGame {_ratio(ours, step)}; {_ratios(others, step)}.")
    return "".join(said)


def is_usable(seen: Growth) -> bool:
    """Return whether a method converges at every batch size."""
    return max(seen.means.values()) <= USABLE


def controls(panels: Results) -> dict[str, Growth]:
    """Return the growth of the distance of each method without bias.

    It is taken at EigenGame's step size if the method converges with it, else at its own.
    """
    ours = growth(panels, "EigenGame", "distance")
    steps = (None,) if ours is None else (ours.step, None)
    found: dict[str, Growth] = {}
    for name in UNBIASED:
        seen = (growth(panels, name, "distance", step) for step in steps)
        best = next((one for one in seen if one and is_usable(one)), None)
        if best is not None:
            found[name] = best
    return found


def _remembered(name: str, panels: Results) -> Claim:
    """Test whether the remembered game degrades."""
    seen, streak = (growth(panels, "remembered", kind) for kind in ("distance", "streak"))
    if seen is None or streak is None:
        raise KeyError("remembered")
    return Claim(
        "The remembered game does not degrade with small batches.",
        f"Final subspace distance, by batch size: {_said(seen, '.2g')}; final mean streak: {_said(streak, '.1f')} "
        f"(degrades: a larger distance or a shorter streak, by {BEYOND:g} standard errors).",
        holds_if(not (degrades(panels, "remembered") or degrades(panels, "remembered", "streak"))),
        HOW[name],
        ours=True,
    )


def _said(seen: Growth, form: str) -> str:
    """Format the values by batch size with their standard errors."""
    return ", ".join(
        f"{batch} {mean:{form}} (± {seen.errors[batch]:.1g})" for batch, mean in seen.means.items()
    )
