"""The bias of EigenGame's gradient against batch size, and what is left of it under a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import testing
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._bias_draws import (
    GAMES,
    Moments,
    batch_moments,
    directions,
    gaussian_bias,
    memory_moments,
)
from eigengame.experiments._bias_figure import draw_bias
from eigengame.experiments._protocol import rounded
from eigengame.game import random_players
from eigengame.game.rows import SymmetricRows
from eigengame.game.sphere import project_tangent, retract

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The bias of each game's direction"
PAPER = "Sec. Gradient Bias"

K = 8
HIGH, LOW = 1.0, 0.01
"""The largest eigenvalue and the smallest; equal ratios in between."""

OFF = 0.3
"""How far players are off the components, as the length of a random unit vector added to each."""

MEMORY_BATCH = 64
SLOPE = 0.15
"""A bias falls like 1/batch where its slope, both axes logarithmic, is -1 within this."""

CHANCE = 1.5
"""A mean of draws has no bias to be seen where it is off by at most this times what chance alone gives."""

GONE = 0.1
"""A bias is gone where less than this share of that of a batch alone is left."""


class Size(NamedTuple):
    """How much is drawn."""

    features: int
    batches: tuple[int, ...]
    draws: int
    kept: tuple[int, ...]
    memory_batches: int
    streams: int


FULL = Size(40, tuple(4**i for i in range(7)), 4000, (16, 24, 40), 65, 100)
QUICK = Size(16, (1, 4, 16, 64), 400, (16,), 5, 20)


def measure(run: Run) -> Results:
    """Draw batches and streams at fixed players near the truth."""
    size = QUICK if run.quick else FULL
    d = size.features
    covariance = jnp.diag(jnp.asarray(testing.exponential(d, HIGH, LOW), jnp.float32))
    axes = jnp.eye(K, d, dtype=jnp.float32)
    players = retract(axes + OFF * random_players(0, K, d, jnp.float32))
    full = np.asarray(jax.jit(directions)(SymmetricRows(covariance), players), np.float64)
    exact = gaussian_bias(np.asarray(players, np.float64), np.asarray(covariance, np.float64))
    results: Results = {"features": d, "players": K, "size": size._asdict(), "streams": {}}
    results["spectrum"] = [HIGH, LOW]
    for stream in ("Gaussian", "heavy-tailed"):
        run.say(f"batches of {stream} rows")
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
    """Return the size of a mean deviation, shape (points, k, d), and what chance alone gives it.

    Relative to the direction on all rows, all players together. The square of a mean of draws is too large
    by its own variance on average: that is taken off in "bias".
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
    """Return the cosine of each player's expected direction to the full one, shape (points, k)."""
    along = np.sum(expected * full, axis=-1)
    return along / np.linalg.norm(expected, axis=-1) / np.linalg.norm(full, axis=-1)


def _off_exact(seen: Moments, exact: np.ndarray, batches: tuple[int, ...]) -> list[float]:
    """Return how far the bias seen is from the exact one, in what chance alone gives."""
    off = [np.linalg.norm(one - exact / m) for one, m in zip(seen.mean, batches, strict=True)]
    return rounded(np.array(off) / np.sqrt(seen.variance.sum(axis=(1, 2))), 3)


def _exact(exact: np.ndarray, full: np.ndarray, batches: tuple[int, ...]) -> Results:
    """Return the bias of a batch of one Gaussian row, and the cosines it makes at every batch size."""
    expected = np.stack([full[0] + exact / m for m in batches])
    return {
        "one row": rounded([np.linalg.norm(exact) / np.linalg.norm(full[0])])[0],
        "cosines": rounded(_cosines(expected, full[0])),
    }


def _memory(
    run: Run, size: Size, players: jax.Array, covariance: jax.Array, full: np.ndarray
) -> Results:
    """Return what is left of the bias under memories of more and more rows."""
    chosen = [0] + [
        2**i for i in range(size.memory_batches.bit_length()) if 2**i < size.memory_batches
    ]
    results: Results = {
        "batch": MEMORY_BATCH,
        "rows": [MEMORY_BATCH * i for i in chosen],
        "kept": {},
    }
    for kept in size.kept:
        run.say(f"a memory of {kept} players")
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
    """Return the slope of a line through the points, both axes logarithmic."""
    points = [(m, value) for m, value in zip(sizes, values, strict=True) if value > 0]
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def claims(results: Results) -> list[Claim]:
    """Hold Sec. Gradient Bias, and what we say of mu and of memories, against the results."""
    return [*_claims_on_batches(results), *_claims_on_memory(results)]


def _claims_on_batches(results: Results) -> list[Claim]:
    batches, streams = results["size"]["batches"], results["streams"]
    late = [i for i, m in enumerate(batches) if m >= K]
    slopes = {
        name: slope(
            [batches[i] for i in late], [one["EigenGame"]["paired"]["bias"][i] for i in late]
        )
        for name, one in streams.items()
    }
    first, last = (streams["Gaussian"]["EigenGame"]["paired"]["bias"][i] for i in (0, -1))
    off = max(results["off exact"])
    return [
        Claim(
            "Stochastic gradients of EigenGame are biased, and larger batches mitigate it.",
            f"{first:.2g} of the gradient's length at batches of {batches[0]}, {last:.2g} at {batches[-1]}; "
            f"slopes from {batches[late[0]]} rows on: "
            + ", ".join(f"{value:.2f} for {name} rows" for name, value in slopes.items())
            + ".",
            all(abs(value + 1) <= SLOPE for value in slopes.values()),
        ),
        *(_unbiased(results, name) for name in ("GHA", "mu")),
        Claim(
            "Our own: for Gaussian rows the bias over a batch of m is exactly -1/m times the sum, over the "
            "parents, of the gradient with that parent alone.",
            f"The bias seen is off that by at most {off:.2f} of what chance alone gives, at any batch size.",
            off <= CHANCE,
        ),
    ]


def _unbiased(results: Results, name: str) -> Claim:
    """Return the claim that a direction has no bias."""
    gaussian = results["streams"]["Gaussian"][name]
    ratios = np.array(gaussian["plain"]["mean"]) / gaussian["plain"]["chance"]
    left = max(gaussian["paired"]["mean"])
    said = {
        "GHA": "GHA is linear in M and as such naturally unbiased.",
        "mu": "Of EigenGame's successor: mu (EigenGame Unloaded) is unbiased.",
    }
    return Claim(
        said[name],
        f"Its mean is off by {ratios.min():.2f} to {ratios.max():.2f} of what chance alone gives, and without "
        f"the part linear in M by {left:.1g} of its length, which is rounding.",
        bool(ratios.max() <= CHANCE and left <= 1e-5),
    )


def _claims_on_memory(results: Results) -> list[Claim]:
    memory = results["memory"]
    total = [n + memory["batch"] for n in memory["rows"]]
    fewest, most = min(memory["kept"], key=int), max(memory["kept"], key=int)
    whole, part = memory["kept"][most], memory["kept"][fewest]
    fall = slope(total, whole["bias"])
    left = part["bias"][-1] / part["bias"][0]
    return [
        Claim(
            "Our own: under a memory that loses nothing, the bias is that of a batch of all rows seen.",
            f"With {most} players for {results['features']} features it falls with slope {fall:.2f} in the "
            f"number of rows, from {whole['bias'][0]:.2g} to {whole['bias'][-1]:.2g}.",
            abs(fall + 1) <= SLOPE,
        ),
        Claim(
            "Our own: the bias goes away as the remembered game's memory grows, with twice the players wanted.",
            f"With {fewest} players {part['bias'][-1]:.2g} of the gradient's length is left after {total[-1]} "
            f"rows, {left:.2f} of what a batch alone has; in the part that moves players the bias is "
            f"{part['tangent'][-1]:.2g} of its length, where a batch alone has {part['tangent'][0]:.2g}.",
            left <= GONE and part["tangent"][-1] <= GONE * part["tangent"][0],
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw bias against batch size, where expected gradients point, and bias against memory."""
    return draw_bias(results)


def words(results: Results) -> str:
    """Say what was drawn, and what came out."""
    size, memory, (high, low) = results["size"], results["memory"], results["spectrum"]
    paired = {name: one["EigenGame"]["paired"] for name, one in results["streams"].items()}
    gaussian, heavy = paired.values()
    largest, cosines = size["batches"][-1], np.array(results["cosines"][0])
    kept = memory["kept"]
    left = ", ".join(f"{one['bias'][-1]:.2g} with {name}" for name, one in kept.items())
    return (
        f"{results['players']} players stand near the components of {results['features']} features whose "
        f"eigenvalues fall from {high:g} to {low:g}, and do not move; {size['draws']} batches of each size tell "
        "what a batch's direction is on average. A deviation is mostly noise; its part that is linear in M has "
        "no mean, so it is taken off first, and what is left has the bias for its mean. In lengths of the "
        f"gradient on all rows the bias is {results['exact']['one row']:.2g}/m for batches of m Gaussian rows: it "
        "has a closed form, which the dots follow. Rows with heavy tails (Gaussian ones times the root of an "
        f"exponential number) have more, {heavy['bias'][-1]:.2g} against {gaussian['bias'][-1]:.2g} at batches of "
        f"{largest}, and fall alike. The closed form says more than the paper does: every parent takes 1/m of a "
        "player's reward away, so that a player with more than m parents is, on average, sent away from where "
        f"it should go. At batches of one row {int((cosines < -0.5).sum())} of the {results['players']} players "
        f"are (cosines to the full gradient down to {cosines.min():.2f}). At the equilibrium all of it lies along "
        "the player itself, where EigenGame^R does not see it and EigenGame takes shorter steps. GHA and mu are "
        "linear in M and have none. Under the remembered game's memory, batches of "
        f"{memory['batch']} rows have the bias of one batch of all rows seen if the memory has a player for every "
        "feature. With fewer, the gradient lacks what the memory has let go wherever players lie partly in that, "
        f"as they do here: after {memory['rows'][-1]} rows {left} players is left, which more rows do not mend "
        "and more players do."
    )
