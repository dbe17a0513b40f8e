"""Deflation, EigenGame and Frequent Directions on the activations of a ResNet-50.

The paper takes components by Hebb's rule with deflation as the truth. Here certified components are a second truth,
which tells whether deflation is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import EigenGamePCA, metrics
from eigengame.algorithms.frequent_directions import best_shards, sketch_size
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.resnet.maps import as_bytes, mean_maps
from reproduction.experiments.resnet.rows import open_rows
from reproduction.experiments.resnet.steps import play_steps
from reproduction.experiments.resnet.stored import StoredRows
from reproduction.experiments.small_resnet.figure import draw, extras
from reproduction.experiments.small_resnet.methods import deflate, sketch, timed
from reproduction.experiments.small_resnet.text import claims, reading, summary
from reproduction.protocol import Protocol

__all__ = ["PAPER", "TITLE", "claims", "draw", "extras", "measure", "reading", "summary"]

TITLE = "Deflation, EigenGame and Frequent Directions on a ResNet-50"
PAPER = "fig:imagenet_maps_small, appendix Small ImageNet Experiments (small_resnet)"

TOL = math.pi / 32
"""Angle to which the certified components are certified."""

PASSES = 3
"""Passes of EigenGame in the paper."""

STEPS = (1.0, 4.0, 16.0)
"""Step sizes of EigenGame, in units of one over the largest eigenvalue of a batch; the best one is taken."""

LONG_STEP = 1.0
"""Step size of the long run of EigenGame, in the same units."""

DEFLATION_STEP, SLOWER = 0.5, 4
"""Step size of deflation in units of one over a component's own eigenvalue, and passes until it is halved."""

SECTION = 10
"""Number of components whose maps are drawn."""

TRUTHS = ("certified", "deflation")

PROTOCOL = Protocol(
    # Rows as in `resnet`. `turn` passes of deflation for each component, `steps` passes of the long run of
    # EigenGame: 28,128 updates, as many as three passes over 1.2 million rows have.
    full={
        "photographs": 1000,
        "copies": 4,
        "side": 224,
        "layers": None,
        "k": 25,
        "batch": 128,
        "turn": 24,
        "steps": 879,
    },
    quick={
        "photographs": 48,
        "copies": 1,
        "side": 32,
        "layers": ("layer1.2", "layer2.3"),
        "k": 4,
        "batch": 12,
        "turn": 24,
        "steps": 60,
    },
)


def measure(run: Run) -> Results:
    """Find the components by each method, and compare them with both truths."""
    size = PROTOCOL.size(run.quick)
    rows = open_rows(run, "small-resnet", size, PROTOCOL.size()).rows
    n, d = rows.shape
    assert n is not None
    l = sketch_size(size.k, 0.25 / size.k)
    shards = max(1, round(best_shards(n, l)))
    found: dict[str, Any] = {}
    methods: Results = {}
    run.progress(f"certificate: {size.k} components of {d} features")
    fit, seconds = timed(lambda: _certified(rows, size))
    found["certified"] = jnp.asarray(fit.components_)
    methods["certified"] = {"passes": int(fit.n_passes_), "seconds": seconds}
    quotients = np.asarray(fit.certificate_.rayleigh)[: size.k]
    run.progress("deflation")
    deflated = deflate(
        rows, quotients, step=DEFLATION_STEP, slower=SLOWER, batch=size.batch, turn=size.turn
    )
    found["deflation"] = deflated.components
    methods["deflation"] = {"passes": size.k * size.turn, "seconds": deflated.seconds}
    tried = _play_games(run, rows, size, float(quotients[0]), found, methods)
    run.progress(f"Frequent Directions: a sketch of {l} rows")
    sketched = sketch(rows, size.k, size=l, shard=n // shards)
    found["FD"] = sketched.components
    methods["FD"] = {"passes": 2, "seconds": sketched.sketch + sketched.recovery}
    run.progress("angles and maps")
    for name, components in found.items():
        angles = {one: np.asarray(_angles(components, found[one])) for one in TRUTHS}
        methods[name] |= {
            "seconds": rounded(methods[name]["seconds"]),
            "angle": {one: rounded(seen) for one, seen in angles.items()},
            "streak": {one: int(metrics.streak_of(seen)) for one, seen in angles.items()},
        }
    section, arrays = _maps(rows, found, methods)
    before, after = deflated.quotients.T
    certificate = fit.certificate_
    return {
        "size": vars(size),
        "rows": n,
        "features": int(d),
        "l": l,
        "shards": shards,
        "tried": tried,
        "methods": methods,
        "certificate": {"kind": certificate.kind, "streak": certificate.streak(TOL)},
        "rayleigh": rounded(quotients),
        "deflation": {"quotient": rounded(after), "change": rounded(np.abs(after / before - 1))},
        "seconds": {
            part: rounded(getattr(sketched, part)) for part in ("sketch", "recovery", "shard")
        },
        "section": section,
        "arrays": arrays,
    }


def _certified(rows: StoredRows, size: Any) -> EigenGamePCA:
    """Return a fit by the inner products of the rows, which are few: exact up to rounding, and certified."""
    return EigenGamePCA(
        size.k, algorithm="exact", center=False, tol=TOL, batch_size=size.batch, random_state=0
    ).fit(rows)


def _play_games(
    run: Run,
    rows: StoredRows,
    size: Any,
    largest: float,
    found: dict[str, Any],
    methods: Results,
) -> Results:
    """Run EigenGame for three passes with the best of `STEPS`, and for many; return the streak of each step."""

    def game(step: float, *marks: int) -> list[jax.Array]:
        size_of_step = step / (largest * size.batch)
        played = play_steps(rows, size.k, step=size_of_step, batch=size.batch, marks=marks, seed=1)
        return [played[mark] for mark in marks]

    run.progress(f"EigenGame, {PASSES} passes")
    game(STEPS[0], 1)  # compiles
    played = {step: timed(partial(game, step, PASSES)) for step in STEPS}
    truth = found["certified"]
    angles = {step: np.asarray(_angles(one[0], truth)) for step, (one, _) in played.items()}
    streaks = {step: int(metrics.streak_of(seen)) for step, seen in angles.items()}
    best = max(STEPS, key=lambda step: (streaks[step], -float(angles[step].mean())))
    (found["EigenGame, short"],), seconds = played[best]
    methods["EigenGame, short"] = {"passes": PASSES, "seconds": seconds, "step": best}
    run.progress(f"EigenGame, {size.steps} passes")
    half, passes = size.steps // 2, size.steps
    (halfway, found["EigenGame, long"]), seconds = timed(lambda: game(LONG_STEP, half, passes))
    streak = int(metrics.streak_of(np.asarray(_angles(halfway, truth))))
    methods["EigenGame, long"] = {"passes": passes, "seconds": seconds, "step": LONG_STEP}
    # The streak after half of the passes shows whether the run is long enough.
    methods["EigenGame, long"] |= {"halfway": {"passes": half, "streak": streak}}
    return {f"{step:g}": streak for step, streak in streaks.items()}


def _maps(
    rows: StoredRows, found: Mapping[str, Any], methods: Results
) -> tuple[list[int], dict[str, np.ndarray]]:
    """Add the correlation of mean maps with those of both truths; return the components and maps to draw.

    Maps have the signs of the certified ones.
    """
    maps = {name: mean_maps(rows.layers, np.asarray(one)) for name, one in found.items()}
    flat = {name: one.reshape(len(one), -1) for name, one in maps.items()}
    alike = {
        name: {truth: _correlations(one, flat[truth]) for truth in TRUTHS}
        for name, one in flat.items()
    }
    for name, seen in alike.items():
        methods[name]["maps"] = {truth: rounded(np.abs(one)) for truth, one in seen.items()}
    k = len(flat["certified"])
    section = np.unique(np.linspace(0, k - 1, min(SECTION, k)).round().astype(int))
    signs = {name: np.where(seen["certified"] < 0, -1, 1) for name, seen in alike.items()}
    drawn = [as_bytes(signs[name][section, None, None] * maps[name][section]) for name in found]
    return (section + 1).tolist(), {"maps": np.stack(drawn)}


def _correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the correlation of each row with that of the other array, shape (k,)."""
    left, right = (part - part.mean(axis=1, keepdims=True) for part in (one, other))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.sum(left * right, axis=1) / np.where(lengths > 0, lengths, 1)


@jax.jit
def _angles(components: jax.Array, truth: jax.Array) -> jax.Array:
    """Return the angle of each component to the true one, shape (k,)."""
    return metrics.angular_error(components, truth)
