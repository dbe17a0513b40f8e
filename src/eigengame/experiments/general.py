"""Players that are functions: `X v_i` becomes `f_i(X)`, on rows whose structure no direction shows.

Whether a row is of the blob or of the ring around it is told by its distance from the middle, to which every
linear score is blind. Players are linear, or networks with one hidden layer of which no layer stretches
anything: the general form of unit length. Their hidden values go through tanh, or are sorted two by two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import general as game
from eigengame import metrics, play
from eigengame.algorithms import Alpha
from eigengame.experiments import _ring
from eigengame.experiments._base import Claim, Results, Run
from eigengame.experiments._figures import panels
from eigengame.experiments._protocol import rounded
from eigengame.experiments._trials import one_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Players that are not linear"
PAPER = "appendix Design Decisions"

K, D = 3, 3
STEP = 0.1
"""The step size, for utilities that are variances."""
KINDS = {
    "linear": _ring.layered,
    "tanh": _ring.layered,
    "pairs": _ring.sorted_pairs,
    "isometric pairs": _ring.isometric_pairs,
}
NETWORK = "isometric pairs"
"""The networks that are held against linear players."""
EXACT = 0.01
"""Radians, up to which two components are the same: float32, and a finite number of rounds."""
ORTHOGONAL = 0.1
"""The cosine up to which outputs count as orthogonal."""
COLOURS = ("#d9822b", "#1f5fa8")
BARS = dict(zip(KINDS, ("#999999", "#3a923a", "#c3b2e0", "#7a5ab5"), strict=True))


class Size(NamedTuple):
    """How much is played."""

    trials: int
    rows: int
    rounds: int
    hidden: int
    grid: int


FULL = Size(trials=10, rows=1000, rounds=3000, hidden=32, grid=41)
QUICK = Size(trials=2, rows=60, rounds=400, hidden=8, grid=5)


def measure(run: Run) -> Results:
    """Play every kind of player on rows drawn anew for each trial."""
    size = QUICK if run.quick else FULL
    kept: dict[str, list[Results]] = {kind: [] for kind in (*KINDS, "sphere")}
    shown: Results = {}
    for seed in range(size.trials):
        run.say(f"trial {seed + 1} of {size.trials}")
        data, ring = _ring.blob_and_ring(seed, size.rows)
        rows = jnp.asarray(data, jnp.float32)
        with one_thread():
            found = {kind: _played(kind, rows, seed, size) for kind in KINDS}
        truth = metrics.true_components(data, K)[1]
        for kind, parameters in found.items():
            kept[kind].append(_seen(_outputs(kind, parameters, rows), ring))
        kept["linear"][-1] |= _to_truth(np.asarray(found["linear"][0][:, :, 0]), truth)
        kept["sphere"].append(_to_truth(_on_the_sphere(rows, seed, size), truth))
        if not seed:
            shown = _shown(found, rows, ring, size)
    return {
        "size": size._asdict(),
        "kinds": {kind: _over_trials(trials) for kind, trials in kept.items()},
        "shown": shown,
    }


def _start(kind: str, seed: int, size: Size) -> list[jax.Array]:
    """Return the players of a trial before the first round."""
    widths = (D, 1) if kind == "linear" else (D, size.hidden, 1)
    return [layer.astype(jnp.float32) for layer in game.mlp_players(seed, K, widths)]


def _played(kind: str, rows: jax.Array, seed: int, size: Size) -> Any:
    """Return the parameters of one kind of players after the game."""
    begun, step = _start(kind, seed, size), STEP / size.rows
    return game.play_general(
        rows, begun, apply=KINDS[kind], step_size=step, rounds=size.rounds
    ).parameters


def _on_the_sphere(rows: jax.Array, seed: int, size: Size) -> np.ndarray:
    """Return the components of EigenGame from the same start, which keeps players at length 1."""
    begun, alpha = _start("linear", seed, size)[0][:, :, 0], Alpha(STEP / size.rows, False)
    return np.asarray(play(alpha, rows, players=begun, rounds=size.rounds).components)


def _outputs(kind: str, parameters: Any, rows: jax.Array) -> np.ndarray:
    return np.asarray(game.outputs(KINDS[kind], parameters, rows), np.float64)


def _seen(outputs: np.ndarray, ring: np.ndarray) -> Results:
    """Return what outputs (n, k) are worth."""
    utilities = game.output_utilities(jnp.asarray(outputs), jnp.asarray(outputs))
    return {
        "utility": np.asarray(utilities) / len(outputs),
        "out of order": float(np.any(np.diff(np.asarray(utilities)) > 0)),
        "overlap": _ring.largest_overlap(outputs),
        "told apart": _ring.told_apart(outputs, ring),
    }


def _to_truth(players: np.ndarray, truth: np.ndarray) -> Results:
    """Return the largest angle of linear players to the components, and the shortest player's length."""
    angles, lengths = metrics.angular_error(players, truth), np.linalg.norm(players, axis=1)
    return {"angle": angles.max(), "length": lengths.min()}


def _over_trials(trials: list[Results]) -> Results:
    """Return mean, standard error, least and most of everything measured: each a number or a list."""
    kept: Results = {}
    for name in trials[0]:
        values = np.asarray([trial[name] for trial in trials], np.float64)
        error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
        parts = rounded(np.stack([values.mean(0), error, values.min(0), values.max(0)]))
        kept[name] = dict(zip(("mean", "error", "least", "most"), parts, strict=True))
    return kept


def _shown(found: Results, rows: jax.Array, ring: np.ndarray, size: Size) -> Results:
    """Return some rows, what the first and the last player make of them, and the last network's surface."""
    few = slice(0, 400)
    line = np.linspace(-1.3 * _ring.RADIUS, 1.3 * _ring.RADIUS, size.grid)
    plane = np.stack([*np.meshgrid(line, line), np.zeros((size.grid, size.grid))], axis=-1)
    flat = jnp.asarray(plane.reshape(-1, D), jnp.float32)
    surface = _outputs(NETWORK, found[NETWORK], flat)[:, -1]
    return {
        "ring": [bool(one) for one in ring[few]],
        "rows": rounded(np.asarray(rows)[few, :2], 3),
        "outputs": {
            kind: rounded(_outputs(kind, found[kind], rows)[few][:, [0, -1]], 3)
            for kind in ("linear", NETWORK)
        },
        "line": rounded(line, 3),
        "surface": rounded(surface.reshape(size.grid, size.grid), 3),
    }


def claims(results: Results) -> list[Claim]:
    """Hold the paragraph on general function approximation, and its footnote, against the results."""
    kinds = results["kinds"]
    linear, networks, sphere = kinds["linear"], kinds[NETWORK], kinds["sphere"]
    earned, plain = (sum(one["utility"]["mean"]) for one in (networks, linear))
    missed, blind = (1 - one["told apart"]["mean"] for one in (networks, linear))
    return [
        Claim(
            "X v_i is a function approximator with weights v_i: the game of linear functions is PCA.",
            f"Largest angle of a linear player to its component in any trial: {linear['angle']['most']:.2g} "
            f"radians (holds up to {EXACT:g}).",
            linear["angle"]["most"] <= EXACT,
        ),
        Claim(
            "Players of length at most 1 do no worse than players of length 1.",
            f"Largest angle {linear['angle']['most']:.2g} in the ball and {sphere['angle']['most']:.2g} on the "
            f"sphere; the shortest player in the ball ends with length {linear['length']['least']:.4f}.",
            linear["angle"]["most"] <= sphere["angle"]["most"] + EXACT,
        ),
        Claim(
            "The formulation is readily extended to more general function approximation.",
            f"Networks of {NETWORK} earn {earned:.2f} together, linear players {plain:.2f}; a straight cut through "
            f"the outputs misses {100 * missed:.1f} % of the rows, through linear scores {100 * blind:.1f} % "
            "(holds where they earn more and miss at most half as many).",
            earned > plain and missed <= blind / 2,
        ),
        Claim(
            "Made of generalised inner products alone, the game keeps the players' outputs orthogonal.",
            f"Largest cosine between two players' outputs: {networks['overlap']['mean']:.2g} on average over "
            f"trials and {networks['overlap']['most']:.2g} at the most, for linear players "
            f"{linear['overlap']['most']:.2g} at the most (holds up to {ORTHOGONAL:g} in every trial).",
            networks["overlap"]["most"] <= ORTHOGONAL,
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the rows with the last network's surface, what players make of them, and what they earn."""
    figure, axes = panels(4, width=3.1, height=3.0)
    shown, (rows, linear, networks, earned) = results["shown"], axes[0]
    rows.contourf(
        shown["line"], shown["line"], shown["surface"], levels=14, cmap="Greys", alpha=0.5
    )
    _scatter(rows, shown["rows"], shown["ring"])
    rows.set(title=f"rows, and output {K} of the networks", xlabel="feature 1", ylabel="feature 2")
    for one, kind in ((linear, "linear"), (networks, NETWORK)):
        _scatter(one, shown["outputs"][kind], shown["ring"])
        one.set(title=kind, xlabel="output 1", ylabel=f"output {K}")
    for place, (kind, colour) in enumerate(BARS.items()):
        utility = results["kinds"][kind]["utility"]
        at = np.arange(K) + 0.2 * (place - 1.5)
        earned.bar(at, utility["mean"], 0.18, yerr=utility["error"], color=colour, label=kind)
    earned.set(title="what each player earns", xlabel="player", ylabel="utility (variance)")
    earned.set_xticks(np.arange(K), [str(1 + i) for i in range(K)])
    earned.set_ylim(0, 1.35 * max(results["kinds"]["linear"]["utility"]["mean"]))
    earned.legend(fontsize=7, frameon=False, ncols=2)
    for one in axes[0]:
        one.title.set_fontsize(9)
    return figure


def _scatter(axes: Axes, points: list[list[float]], ring: list[bool]) -> None:
    """Draw points (n, 2) in the colours of blob and ring."""
    x, y = np.asarray(points).T
    axes.scatter(x, y, s=4, c=[COLOURS[int(one)] for one in ring], linewidths=0)


def words(results: Results) -> str:
    """Say what was played and what the networks found."""
    size, kinds = results["size"], results["kinds"]
    earned = {
        kind: ", ".join(f"{one:.2f}" for one in kinds[kind]["utility"]["mean"]) for kind in KINDS
    }
    right = {kind: f"{100 * kinds[kind]['told apart']['mean']:.0f} %" for kind in KINDS}
    swapped = kinds[NETWORK]["out of order"]["mean"] * size["trials"]
    return (
        f"{size['rows']} rows, half of them a blob and half a ring around it, with a third feature that tells "
        f"nothing; {K} players, {size['trials']} trials with rows of their own, {size['rounds']} rounds. The paper "
        "gives no experiment. Outputs are centred, so that a utility is a variance, and no layer may stretch. "
        f"Linear players are the principal components, earn {earned['linear']}, and a straight cut through their "
        f"scores tells {right['linear']} of the rows right. Networks whose first layer is isometric and whose "
        f"hidden values are sorted in pairs earn {earned[NETWORK]}: as a rule two find the components of the plane "
        f"again and one the distance from the middle, and {right[NETWORK]} are told right. In {swapped:.0f} of the "
        "trials a parent stays in a local optimum and a child earns more than it: with such players utilities "
        "are no longer quadratic forms, and nothing guarantees their order. It matters which functions players "
        "have. If the first layer is only kept from stretching, it forgets all directions but one, and the third "
        f"player finds the distance from a line ({earned['pairs']}; {right['pairs']} told right). Networks of tanh "
        f"without biases are odd, and see no distance at all ({earned['tanh']}; {right['tanh']})."
    )
