"""Frequent Directions in shards against EigenGame: what each finds in a few passes, and what shards cost."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms.frequent_directions import best_shards, runtime_multiplier
from eigengame.experiments import _sketches
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._families import eigengame, remembered
from eigengame.experiments._protocol import GRID, rounded, tune
from eigengame.experiments._sketches_figure import SHOWN, draw_sketches
from eigengame.experiments._trials import Family, orders, play_trials, seconds_of, starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Frequent Directions in shards"
PAPER = "appendix Frequent Directions (freqdirs), Small ImageNet Experiments (small_resnet)"

PASSES = 3
"""EigenGame reads the data three times, as in the paper."""
CLOSE = 1.5
"""The cost model holds where measured times are within this factor of it."""


class Size(NamedTuple):
    """Rows, features, components, sketch, rows of a batch, trials, and runs of which the shortest counts."""

    n: int
    d: int
    k: int
    l: int
    batch: int
    trials: int
    repeats: int


FULL = Size(n=20_480, d=200, k=16, l=80, batch=64, trials=10, repeats=5)
QUICK = Size(n=64, d=12, k=4, l=8, batch=8, trials=2, repeats=1)


def measure(run: Run) -> Results:
    """Sketch and play on rows with the paper's two spectra; then time the parts of a sharded sketch."""
    size = QUICK if run.quick else FULL
    shards = 2 ** round(math.log2(best_shards(size.n, size.l)))
    results: Results = {"size": size._asdict(), "passes": PASSES, "shards": shards, "found": {}}
    for name, spectrum in (("linear", testing.linear), ("exponential", testing.exponential)):
        problem = testing.rows_with(spectrum(size.d), size.n)
        run.say(f"{name} spectrum: Frequent Directions")
        found = _sketch_trials(problem, size, shards)
        run.say(f"{name} spectrum: EigenGame")
        steps, played = _game_trials(problem, size)
        results["found"][name] = {"step": steps, "kinds": found | played}
    run.say("times")
    results["seconds"] = _times(problem, size, results["found"]["exponential"]["step"])
    return results


def _sketch_trials(problem: testing.Problem, size: Size, shards: int) -> Results:
    """Return the angles of what a sharded sketch gives, over trials with rows in orders of their own."""
    truth = jnp.asarray(problem.components[: size.k], jnp.float32)
    trials = [
        _sketches.components_of(_sketches.shuffled(problem.data, seed), size.k, size.l, shards)
        for seed in range(size.trials)
    ]
    return {
        name: _kept(
            np.stack([metrics.angular_error(trial[name], truth) for trial in trials])[:, None]
        )
        for name in trials[0]
    }


def _game_trials(problem: testing.Problem, size: Size) -> tuple[float | None, Results]:
    """Return the step size chosen, and angles after each pass of EigenGame and the remembered game."""
    per_pass = size.n // size.batch
    truth = jnp.asarray(problem.components[: size.k], jnp.float32)
    # A batch is M on average, so that the paper's step sizes mean what they do on M itself.
    rows = jnp.asarray(problem.data * math.sqrt(per_pass), jnp.float32)

    def runs(family: Family, passes: int, step: float, first_seed: int) -> np.ndarray:
        players, updates = starts(first_seed, size.trials, size.k, size.d), passes * per_pass
        order = orders(first_seed, size.trials, size.n, size.batch, updates)
        return play_trials(
            family,
            step,
            players,
            rows,
            truth,
            metrics.angular_error,
            updates=updates,
            every=per_pass,
            order=order,
        )

    tuned = tune(
        partial(runs, eigengame, PASSES), lambda seen: float(metrics.streak_of(seen).mean()), GRID
    )
    found = {"EigenGame": tuned.shown["best"], "remembered": runs(remembered, 1, 1.0, 0)}
    return tuned.step, {name: _kept(angles) for name, angles in found.items()}


def _kept(angles: np.ndarray) -> Results:
    """Return means over trials of angles (trials, passes, k): streaks by pass, and the last pass's angles."""
    streaks = metrics.streak_of(np.asarray(angles, np.float64))
    error = streaks.std(axis=0, ddof=1) / math.sqrt(len(streaks))
    return {
        "streak": rounded(streaks.mean(axis=0)),
        "error": rounded(error),
        "angles": rounded(angles[:, -1].mean(axis=0)),
    }


def _times(problem: testing.Problem, size: Size, step: float | None) -> Results:
    """Return seconds: of a sketch by rows, of a merge, and of EigenGame's passes."""
    rows = _sketches.shuffled(problem.data, 0)
    updates = PASSES * (size.n // size.batch)
    order = jnp.asarray(orders(0, 1, size.n, size.batch, updates)[0])
    players = starts(0, 1, size.k, size.d)[0]
    games = [
        seconds_of(eigengame, step or 1.0, players, rows, updates=updates, order=order)
        for _ in range(size.repeats)
    ]
    by_rows = _sketches.seconds_by_rows(rows, size.k, size.l, size.repeats)
    return {
        "rows": list(by_rows),
        "sketch": rounded(list(by_rows.values())),
        "merge": rounded([_sketches.seconds_of_merge(rows, size.k, size.l, size.repeats)])[0],
        "game": rounded([min(games)])[0],
    }


def multipliers(results: Results) -> dict[str, list[float]]:
    """Return, for each number of shards, time over that of one shard: by the model and as measured.

    One sketch of all sketches stacked is the appendix's merge; "in pairs" merges two at a time, all pairs
    at once, so that only the depth of the tree takes time.
    """
    n, l, taken = results["size"]["n"], results["size"]["l"], results["seconds"]
    sketch = dict(zip(taken["rows"], taken["sketch"], strict=True))
    shards = [n // rows for rows in reversed(taken["rows"])]
    pairs = [sketch[n // b] + math.log2(b) * taken["merge"] for b in shards]
    return {
        "shards": [float(b) for b in shards],
        "model": [runtime_multiplier(b, n, l) for b in shards],
        "stacked": [(sketch[n // b] + sketch[2 * l * b]) / sketch[n] for b in shards],
        "in pairs": [seconds / sketch[n] for seconds in pairs],
    }


def claims(results: Results) -> list[Claim]:
    """Hold the appendix against the results."""
    k, costs = results["size"]["k"], multipliers(results)
    ends = {
        kind: {name: one["kinds"][kind]["streak"][-1] for name, one in results["found"].items()}
        for kind in SHOWN
    }
    off = [seen / model for seen, model in zip(costs["stacked"], costs["model"], strict=True)]
    least = costs["shards"][int(np.argmin(costs["stacked"]))]
    best, bound = _best(results)
    (shard, merge), game = _sharded_seconds(results), results["seconds"]["game"]
    return [
        Claim(
            "The rows of the sketch are not principal components.",
            f"Mean streak of its first {k} rows: {_listed(ends['sketch rows'])} of {k} (holds where at least one "
            "is missing on every spectrum).",
            all(end <= k - 1 for end in ends["sketch rows"].values()),
        ),
        Claim(
            "They are recovered by an SVD of the data projected on the sketch.",
            f"Mean streak: {_listed(ends['recovered'])} of {k}.",
            all(end >= k - 0.5 for end in ends["recovered"].values()),
        ),
        Claim(
            "With b shards the runtime is that of one times 1/b + 2bl/n.",
            f"Measured over model for {costs['shards'][0]:.0f} to {costs['shards'][-1]:.0f} shards: from "
            f"{min(off):.2f} to {max(off):.2f} (holds within a factor of {CLOSE:g}).",
            max(off) <= CLOSE and min(off) >= 1 / CLOSE,
        ),
        Claim(
            "The best number of shards is the root of n/2l.",
            f"The root is {best:.1f}; of the powers of two, {least:.0f} took least (holds within a factor of 2).",
            best / 2 <= least <= 2 * best,
        ),
        Claim(
            "The best multiplier so found bounds the runtime of Frequent Directions from below.",
            f"It is {bound:.3f}; sketches merged two at a time, all pairs at once, take "
            f"{min(costs['in pairs']):.3f}.",
            min(costs["in pairs"]) >= bound,
        ),
        Claim(
            "The best sharded Frequent Directions takes longer than EigenGame, which reads all data three times.",
            f"{_ms(shard + merge)} in {results['shards']} shards ({_ms(shard)} for a shard, {_ms(merge)} to merge "
            f"them), {_ms(game)} for {PASSES} passes of EigenGame, not shared out at all.",
            shard + merge > game,
        ),
    ]


def _best(results: Results) -> tuple[float, float]:
    """Return the best number of shards and its multiplier, by the model."""
    n, l = results["size"]["n"], results["size"]["l"]
    return best_shards(n, l), runtime_multiplier(best_shards(n, l), n, l)


def _sharded_seconds(results: Results) -> tuple[float, float]:
    """Return the seconds of the sketch of one shard, and of the sketch of all their sketches."""
    taken, n, b = results["seconds"], results["size"]["n"], results["shards"]
    sketch = dict(zip(taken["rows"], taken["sketch"], strict=True))
    return sketch[n // b], sketch[2 * results["size"]["l"] * b]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 2}f} ms"


def _listed(ends: dict[str, float]) -> str:
    return ", ".join(f"{end:.1f} on the {name} spectrum" for name, end in ends.items())


def draw(results: Results) -> Figure:
    """Draw the cost of shards, and the angle of each component on each spectrum."""
    return draw_sketches(results["found"], multipliers(results), _best(results))


def words(results: Results) -> str:
    """Say what was found in how many passes, and what the cost model leaves out."""
    size, costs, (best, bound) = results["size"], multipliers(results), _best(results)
    taken, deep = results["seconds"], int(np.argmin(costs["in pairs"]))
    return (
        f"{size['n']} rows of {size['d']} features, k = {size['k']}, l = {size['l']}, {results['shards']} shards, "
        f"{size['trials']} trials with rows in orders of their own; EigenGame on batches of {size['batch']}. Mean "
        f"streaks of {size['k']}: {'; '.join(_told(*one) for one in results['found'].items())}. The sketch's own "
        "directions are components already where the spectrum decays fast; where it does not, the second look "
        "finds them. The paper compares times and maps of activations, not angles. EigenGame's three passes "
        f"take {_ms(taken['game'])}, and a pass of Frequent Directions on one machine "
        f"{_ms(taken['sketch'][-1])}; what they find is above. The model's best number of shards is "
        f"{best:.1f}, with {bound:.3f} of the time of one. That is "
        "called a bound from below, but it has one machine work through all sketches. Merged in pairs, all pairs "
        f"at once, {costs['shards'][deep]:.0f} shards take {costs['in pairs'][deep]:.3f}. Times are the shortest "
        f"of {size['repeats']} on one machine; shards are counted as if they ran at once, sending as if it took "
        "no time."
    )


def _told(spectrum: str, found: Results) -> str:
    """Return the streaks on one spectrum, by passes."""
    streaks = {kind: kept["streak"] for kind, kept in found["kinds"].items()}
    return (
        f"on the {spectrum} spectrum {streaks['sketch SVD'][0]:.1f} after one pass (the sketch's singular "
        f"vectors) and {streaks['recovered'][0]:.1f} after two (recovered), against "
        f"{streaks['EigenGame'][1]:.1f} after two and {streaks['EigenGame'][-1]:.1f} after {PASSES} of EigenGame "
        f"at step size {found['step']:g}, and {streaks['remembered'][0]:.1f} after one of the remembered game"
    )
