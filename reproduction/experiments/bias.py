"""Bias of EigenGame's gradient against batch size, and the part that remains under a memory."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import testing
from eigengame.game import random_players
from eigengame.game.rows import SymmetricRows
from eigengame.game.sphere import project_tangent, retract
from reproduction.base import Claim, Results, Run
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
SLOPE = 0.15
"""A bias is proportional to 1/batch if its slope on logarithmic axes is -1 within this."""

CHANCE = 1.5
"""A mean is consistent with zero if it is at most this many standard errors from it."""

GONE = 0.1
"""A bias has vanished if at most this share of the bias of a single batch remains."""

ROUNDING = 1e-5
"""Relative deviations up to this are float32 rounding."""

LEVEL = 0.75
"""A bias levels off if twice the rows leave more than this share of it; 1/m would leave half."""

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


def slope(sizes: list[int], values: list[float]) -> float:
    """Return the slope of the least-squares line on logarithmic axes, without zeros."""
    points = [(m, value) for m, value in zip(sizes, values, strict=True) if value > 0]
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def claims(results: Results) -> list[Claim]:
    """Compare Sec. Gradient Bias, and our own claims on mu and memories, with the results."""
    return [*_claims_on_batches(results), *_claims_on_memory(results)]


def _slopes(results: Results) -> dict[str, float]:
    """Return the slope of EigenGame's bias for batches of at least K rows, by kind of rows."""
    batches = results["size"]["batches"]
    late = [i for i, m in enumerate(batches) if m >= K]
    return {
        name: slope(
            [batches[i] for i in late], [one["EigenGame"]["paired"]["bias"][i] for i in late]
        )
        for name, one in results["streams"].items()
    }


def _claims_on_batches(results: Results) -> list[Claim]:
    batches, slopes = results["size"]["batches"], _slopes(results)
    first, last = (
        results["streams"]["Gaussian"]["EigenGame"]["paired"]["bias"][i] for i in (0, -1)
    )
    off = max(results["off exact"])
    return [
        Claim(
            "Stochastic gradients of EigenGame are biased, and larger batches mitigate it.",
            f"{first:.2g} of the gradient's length at batches of {batches[0]}, {last:.2g} at {batches[-1]}; "
            f"slopes from {K} rows on: "
            + ", ".join(f"{value:.2f} for {name} rows" for name, value in slopes.items())
            + f" (holds if they are -1 within {SLOPE:g}).",
            all(abs(value + 1) <= SLOPE for value in slopes.values()),
        ),
        _unbiased(results, "GHA", "GHA is linear in M and as such naturally unbiased."),
        _unbiased(results, "mu", "Of EigenGame's successor: mu (EigenGame Unloaded) is unbiased."),
        Claim(
            "Our own: for Gaussian rows the bias over a batch of m is exactly -1/m times the sum, over the "
            "parents, of the gradient with that parent alone.",
            f"The measured bias is at most {off:.2f} standard errors from that at any batch size (holds up to "
            f"{CHANCE:g}).",
            off <= CHANCE,
        ),
    ]


def _unbiased(results: Results, name: str, claim: str) -> Claim:
    """Test whether a direction has no bias."""
    gaussian = results["streams"]["Gaussian"][name]
    ratios = np.array(gaussian["plain"]["mean"]) / gaussian["plain"]["chance"]
    left = max(gaussian["paired"]["mean"])
    return Claim(
        claim,
        f"Its mean deviates by {ratios.min():.2f} to {ratios.max():.2f} standard errors, and without the part "
        f"linear in M by {left:.1g} of its length (holds up to {CHANCE:g} and {ROUNDING:g}, which is rounding).",
        bool(ratios.max() <= CHANCE and left <= ROUNDING),
    )


def _claims_on_memory(results: Results) -> list[Claim]:
    memory = results["memory"]
    total = _rows_seen(memory)
    fewest, most = min(memory["kept"], key=int), max(memory["kept"], key=int)
    whole, part = memory["kept"][most], memory["kept"][fewest]
    fall = slope(total, whole["bias"])
    left = part["bias"][-1] / part["bias"][0]
    return [
        Claim(
            "Our own: under a memory that loses nothing, the bias is that of a batch of all rows seen.",
            f"With {most} players for {results['features']} features it falls with slope {fall:.2f} in the "
            f"number of rows, from {whole['bias'][0]:.2g} to {whole['bias'][-1]:.2g} (holds if the slope is -1 "
            f"within {SLOPE:g}).",
            abs(fall + 1) <= SLOPE,
        ),
        Claim(
            "Our own: the bias goes away as the remembered game's memory grows, with twice the players wanted.",
            f"With {fewest} players {part['bias'][-1]:.2g} of the gradient's length is left after {total[-1]} "
            f"rows, {left:.2f} of the bias of a single batch; in the tangent part it is "
            f"{part['tangent'][-1]:.2g} of its length, against {part['tangent'][0]:.2g} for a single batch (holds "
            f"if at most {GONE:g} is left of both).",
            left <= GONE and part["tangent"][-1] <= GONE * part["tangent"][0],
        ),
    ]


def _rows_seen(memory: Results) -> list[int]:
    """Return the rows seen at each point, those of the current batch included."""
    return [n + memory["batch"] for n in memory["rows"]]


def summary(results: Results) -> str:
    """Describe the bias by batch size, for heavy tails, for linear games, and under a memory."""
    exact, off = results["exact"]["one row"], max(results["off exact"])
    cosines = np.array(results["cosines"][0])
    follows = "agrees with it" if off <= CHANCE else "differs from it"
    return (
        f"In lengths of the gradient on all rows, the closed form of the bias is {exact:.2g}/m for batches of m "
        f"Gaussian rows; the measured bias {follows} (at most {off:.2f} standard errors apart). {_heavy(results)} "
        "In the closed form every parent takes 1/m of a player's reward away, so that the expected gradient of a "
        "player with more than m parents is reversed. At batches of one row the expected gradients of "
        f"{int((cosines < -0.5).sum())} of the {results['players']} players have a cosine below -0.5 to the full "
        f"gradient (lowest: {cosines.min():.2f}). At the equilibrium the closed form is parallel to the player, "
        "where the projection of EigenGame^R removes it and EigenGame takes shorter steps. "
        f"{_linear_games(results)} {_under_memory(results)}"
    )


def _heavy(results: Results) -> str:
    """Compare the bias of heavy-tailed rows with that of Gaussian rows."""
    gaussian, heavy = (
        results["streams"][name]["EigenGame"]["paired"]["bias"][-1]
        for name in ("Gaussian", "heavy-tailed")
    )
    slopes = _slopes(results)
    return (
        "Heavy-tailed rows (Gaussian rows times the root of an exponential variable) have a "
        f"{'larger' if heavy > gaussian else 'smaller'} bias, {heavy:.2g} against {gaussian:.2g} at batches of "
        f"{results['size']['batches'][-1]}, with slopes of {slopes['heavy-tailed']:.2f} and "
        f"{slopes['Gaussian']:.2f}."
    )


def _linear_games(results: Results) -> str:
    """Describe whether GHA and mu show a bias."""
    biased = [name for name in ("GHA", "mu") if not _unbiased(results, name, "").holds]
    if biased:
        return (
            f"Beyond chance or rounding, {' and '.join(biased)} deviates, though it is linear in M."
        )
    return "GHA and mu are linear in M and show no bias beyond chance and rounding."


def _under_memory(results: Results) -> str:
    """Describe whether the bias under a memory falls with rows, levels off, and falls with players."""
    memory, total = results["memory"], _rows_seen(results["memory"])
    kept = sorted(memory["kept"], key=int)
    fall = slope(total, memory["kept"][kept[-1]]["bias"])
    whole = "falls" if abs(fall + 1) <= SLOPE else "does not fall"
    said = (
        f"Under a memory of {kept[-1]} players for {results['features']} features, the bias of batches of "
        f"{memory['batch']} rows {whole} like that of one batch of all rows seen (slope {fall:.2f})."
    )
    if len(kept) == 1:
        return said
    ends = [memory["kept"][name]["bias"][-1] for name in kept]
    left = ", ".join(f"{end:.2g} with {name}" for name, end in zip(kept, ends, strict=True))
    before, after = memory["kept"][kept[0]]["bias"][-2:]
    levels = "levels off" if after > LEVEL * before else "keeps falling"
    more = "reduce" if all(b < a for a, b in itertools.pairwise(ends)) else "do not reduce"
    return (
        f"{said} After {memory['rows'][-1]} rows there remain {left} players: with {kept[0]} players the bias "
        f"{levels} ({before:.2g} to {after:.2g} over the last doubling of the rows), and more players {more} it."
    )


def reading(results: Results) -> str:
    """Describe the players, the rows, and how the bias is separated from noise."""
    size, (high, low) = results["size"], results["spectrum"]
    return (
        f"The paper gives no experiment. {results['players']} players near the components of {results['features']} "
        f"features, with eigenvalues from {high:g} to {low:g}, are fixed; {size['draws']} batches of each size "
        "estimate the mean direction of a batch. The part of a deviation that is linear in M has mean zero and is "
        "most of the noise. It is subtracted, which leaves the mean, the bias, unchanged."
    )
