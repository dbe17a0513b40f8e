"""Bias of EigenGame's gradient against batch size, and the part that remains under a memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import testing
from eigengame.game import random_players
from eigengame.game.rows import SymmetricRows
from eigengame.game.sphere import project_tangent, retract
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.bias_draws import (
    GAMES,
    Moments,
    batch_moments,
    directions,
    gaussian_bias,
    memory_moments,
)
from reproduction.experiments.bias_figure import draw_bias as draw
from reproduction.experiments.bias_text import claims, reading, summary
from reproduction.protocol import Protocol

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "The bias of each game's direction"
PAPER = "Sec. Gradient Bias"

K = 8
HIGH, LOW = 1.0, 0.01
"""Largest and smallest eigenvalue, with equal ratios in between."""

OFF = 0.3
"""Distance of the players from the components: the length of a random vector added to each."""

MEMORY_BATCH = 64

PROTOCOL = Protocol(
    full={
        "features": 40,
        "batches": tuple(4**i for i in range(7)),
        "draws": 4000,
        "kept": (16, 24, 40),
        "memory_batches": 65,
        "streams": 100,
    },
    quick={
        "features": 16,
        "batches": (1, 4, 16, 64),
        "draws": 400,
        "kept": (16,),
        "memory_batches": 5,
        "streams": 20,
    },
)


def measure(run: Run) -> Results:
    """Draw batches and streams at fixed players near the components."""
    size = PROTOCOL.size(run.quick)
    d = size.features
    covariance = jnp.diag(jnp.asarray(testing.exponential(d, HIGH, LOW), jnp.float32))
    axes = jnp.eye(K, d, dtype=jnp.float32)
    players = retract(axes + OFF * random_players(0, K, d, jnp.float32))
    full = np.asarray(jax.jit(directions)(SymmetricRows(covariance), players), np.float64)
    exact = gaussian_bias(np.asarray(players, np.float64), np.asarray(covariance, np.float64))
    results: Results = {"features": d, "players": K, "size": vars(size), "streams": {}}
    results["spectrum"] = [HIGH, LOW]
    for stream in ("Gaussian", "heavy-tailed"):
        run.progress(f"batches of {stream} rows")
        seen = batch_moments(
            players, covariance, size.batches, size.draws, heavy=stream != "Gaussian"
        )
        results["streams"][stream] = {
            name: {how: _norms(one, full[g]) for how, one in seen[name].items()}
            for g, name in enumerate(GAMES)
        }
        if stream == "Gaussian":
            expected = full[0] + seen["EigenGame"]["paired"].mean
            results["cosines"] = rounded(_cosines(expected, full[0]))
            results["off exact"] = _off_exact(seen["EigenGame"]["paired"], exact, size.batches)
    results["exact"] = _exact(exact, full, size.batches)
    results["memory"] = _memory(run, size, players, covariance, full)
    return results


def _norms(seen: Moments, full: np.ndarray) -> Results:
    """Return the norm of mean deviations of shape (points, k, d), and its standard error as "chance".

    Both are relative to the direction on all rows, over all players together. The squared norm of a mean is too
    large by its variance on average; "bias" is corrected for that.
    """
    scale = np.linalg.norm(full)
    squares = np.square(seen.mean).sum(axis=(1, 2))
    chance = seen.variance.sum(axis=(1, 2))
    return {
        "bias": rounded(np.sqrt(np.maximum(squares - chance, 0)) / scale),
        "mean": rounded(np.sqrt(squares) / scale),
        "chance": rounded(np.sqrt(chance) / scale),
    }


def _cosines(expected: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Return the cosine between each player's expected and full direction, shape (points, k)."""
    along = np.sum(expected * full, axis=-1)
    return along / np.linalg.norm(expected, axis=-1) / np.linalg.norm(full, axis=-1)


def _off_exact(seen: Moments, exact: np.ndarray, batches: tuple[int, ...]) -> list[float]:
    """Return the distance of the measured bias from the exact one, in standard errors."""
    off = [np.linalg.norm(one - exact / m) for one, m in zip(seen.mean, batches, strict=True)]
    return rounded(np.array(off) / np.sqrt(seen.variance.sum(axis=(1, 2))), 3)


def _exact(exact: np.ndarray, full: np.ndarray, batches: tuple[int, ...]) -> Results:
    """Return the exact bias for a batch of one Gaussian row, and the exact cosines at every batch size."""
    expected = np.stack([full[0] + exact / m for m in batches])
    return {
        "one row": rounded(np.linalg.norm(exact) / np.linalg.norm(full[0])),
        "cosines": rounded(_cosines(expected, full[0])),
    }


def _memory(
    run: Run, size: Any, players: jax.Array, covariance: jax.Array, full: np.ndarray
) -> Results:
    """Return the bias under memories of increasing numbers of rows."""
    chosen = [0] + [
        2**i for i in range(size.memory_batches.bit_length()) if 2**i < size.memory_batches
    ]
    results: Results = {
        "batch": MEMORY_BATCH,
        "rows": [MEMORY_BATCH * i for i in chosen],
        "kept": {},
    }
    for kept in size.kept:
        run.progress(f"a memory of {kept} players")
        seen = memory_moments(
            players,
            covariance,
            kept=kept,
            size=MEMORY_BATCH,
            batches=size.memory_batches,
            draws=size.streams,
        )
        some = Moments(seen.mean[chosen], seen.variance[chosen])
        tangent = np.asarray(project_tangent(players[None], jnp.asarray(some.mean, jnp.float32)))
        results["kept"][str(kept)] = _norms(some, full[0]) | {
            "tangent": rounded(np.linalg.norm(tangent, axis=(1, 2)) / np.linalg.norm(full[1]))
        }
    return results
