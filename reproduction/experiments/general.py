"""Players that are functions: `X v_i` becomes `f_i(X)`, on data that no linear score separates.

Rows belong to a blob or to a ring around it, which differ in their distance from the centre. Players are linear,
or networks with one hidden layer in which no layer increases lengths, the general form of unit length. Hidden
values pass through tanh, or are sorted in pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import general as game
from eigengame import metrics, play
from eigengame.algorithms import Alpha
from reproduction.base import Claim, Results, Run, Verdict, holds_if
from reproduction.curves import mean_and_error, rounded
from reproduction.experiments import general_ring
from reproduction.figures import SERIES, panels
from reproduction.protocol import Protocol
from reproduction.trials import one_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Players that are not linear"
PAPER = "appendix Design Decisions"

K, D = 3, 3
STEP = 0.1
"""Step size, for utilities that are variances."""
KINDS = {
    "linear": general_ring.layered,
    "tanh": general_ring.layered,
    "pairs": general_ring.sorted_pairs,
    "isometric pairs": general_ring.isometric_pairs,
}
NETWORK = "isometric pairs"
"""Networks that are compared with linear players in the claims."""
EXACT = 0.01
"""Components agree up to this angle in radians, given float32 and finitely many rounds."""
ORTHOGONAL = 0.1
"""Outputs are orthogonal up to this cosine."""
GAIN = 0.02
"""Kinds of players differ if they classify this share of the rows differently."""
CLASSES = {"blob": (SERIES[1], "o"), "ring": (SERIES[0], "^")}
"""Colour and marker of the two kinds of rows."""
BARS = dict(
    zip(
        KINDS, (("#999999", ""), (SERIES[2], "//"), ("#cc79a7", ".."), (SERIES[3], "")), strict=True
    )
)
"""Colour and hatching of the kinds of players."""


PROTOCOL = Protocol(
    full={"trials": 10, "rows": 1000, "rounds": 3000, "hidden": 32, "grid": 41},
    quick={"trials": 2, "rows": 60, "rounds": 400, "hidden": 8, "grid": 5},
)


def measure(run: Run) -> Results:
    """Run every kind of player on new rows for each trial."""
    size = PROTOCOL.size(run.quick)
    kept: dict[str, list[Results]] = {kind: [] for kind in (*KINDS, "sphere")}
    shown: Results = {}
    for seed in range(size.trials):
        run.progress(f"trial {seed + 1} of {size.trials}")
        data, ring = general_ring.blob_and_ring(seed, size.rows)
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
        "size": vars(size),
        "kinds": {kind: _over_trials(trials) for kind, trials in kept.items()},
        "shown": shown,
    }


def _start(kind: str, seed: int, size: Any) -> list[jax.Array]:
    """Return the initial players of a trial."""
    widths = (D, 1) if kind == "linear" else (D, size.hidden, 1)
    return [layer.astype(jnp.float32) for layer in game.mlp_players(seed, K, widths)]


def _played(kind: str, rows: jax.Array, seed: int, size: Any) -> Any:
    """Return the final parameters of one kind of players."""
    begun, step = _start(kind, seed, size), STEP / size.rows
    return game.play_general(
        rows, begun, apply=KINDS[kind], step_size=step, rounds=size.rounds
    ).parameters


def _on_the_sphere(rows: jax.Array, seed: int, size: Any) -> np.ndarray:
    """Return the players of EigenGame, which have length 1, from the same start."""
    begun, alpha = _start("linear", seed, size)[0][:, :, 0], Alpha(STEP / size.rows, False)
    return np.asarray(play(alpha, rows, players=begun, rounds=size.rounds).components)


def _outputs(kind: str, parameters: Any, rows: jax.Array) -> np.ndarray:
    return np.asarray(game.outputs(KINDS[kind], parameters, rows), np.float64)


def _seen(outputs: np.ndarray, ring: np.ndarray) -> Results:
    """Return utilities, overlap and separation of outputs (n, k)."""
    utilities = game.output_utilities(jnp.asarray(outputs), jnp.asarray(outputs))
    return {
        "utility": np.asarray(utilities) / len(outputs),
        "out of order": float(np.any(np.diff(np.asarray(utilities)) > 0)),
        "overlap": general_ring.largest_overlap(outputs),
        "told apart": general_ring.classified(outputs, ring),
    }


def _to_truth(players: np.ndarray, truth: np.ndarray) -> Results:
    """Return the largest angle between linear players and components, and the smallest length."""
    angles, lengths = metrics.angular_error(players, truth), np.linalg.norm(players, axis=1)
    return {"angle": angles.max(), "length": lengths.min()}


def _over_trials(trials: list[Results]) -> Results:
    """Return mean, standard error, minimum and maximum of each measurement."""
    kept: Results = {}
    for name in trials[0]:
        values = np.asarray([trial[name] for trial in trials], np.float64)
        parts = rounded(np.stack([*mean_and_error(values), values.min(0), values.max(0)]))
        kept[name] = dict(zip(("mean", "error", "least", "most"), parts, strict=True))
    return kept


def _shown(found: Results, rows: jax.Array, ring: np.ndarray, size: Any) -> Results:
    """Return some rows, outputs of the first and the last player, and the surface of the last network."""
    few = slice(0, 400)
    line = np.linspace(-1.3 * general_ring.RADIUS, 1.3 * general_ring.RADIUS, size.grid)
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
    """Compare the paragraph on general function approximation, and its footnote, with the results."""
    kinds = results["kinds"]
    linear, networks, sphere = kinds["linear"], kinds[NETWORK], kinds["sphere"]
    earned, plain = (sum(one["utility"]["mean"]) for one in (networks, linear))
    missed, blind = (1 - one["told apart"]["mean"] for one in (networks, linear))
    extended = (
        f"Total utility {earned:.2f} for networks ({NETWORK}), {plain:.2f} for linear players; a linear "
        f"classifier on the outputs errs for {100 * missed:.1f} % of the rows, on linear scores for "
        f"{100 * blind:.1f} %"
    )
    met = earned > plain and missed <= blind / 2
    return [
        Claim(
            "Players of length at most 1 do no worse than players of length 1.",
            f"Largest angle after the same rounds: {linear['angle']['most']:.2g} in the ball and "
            f"{sphere['angle']['most']:.2g} on the sphere (holds if larger by at most {EXACT:g}); smallest final "
            f"length in the ball {linear['length']['least']:.4f}.",
            holds_if(linear["angle"]["most"] <= sphere["angle"]["most"] + EXACT),
            "linear players on our own data; the paper does not name its data",
        ),
        Claim(
            "The formulation is readily extended to more general function approximation.",
            f"{extended}. The paper gives no experiment and no criterion.",
            Verdict.NOT_COMPARABLE,
            "our own data and networks",
        ),
        Claim(
            "Networks as players earn more than linear players, and separate rows that these do not.",
            f"{extended} (holds if the utility is larger and errors are at most half as many).",
            holds_if(met),
            "our own data and networks",
            ours=True,
        ),
        Claim(
            "The game of linear functions finds the principal components.",
            f"Largest angle of a linear player to its component in any trial: {linear['angle']['most']:.2g} "
            f"radians (holds up to {EXACT:g}).",
            holds_if(linear["angle"]["most"] <= EXACT),
            "our own data",
            ours=True,
        ),
        Claim(
            "The game keeps the outputs of networks orthogonal.",
            f"Largest cosine between two players' outputs, mean and maximum over trials: "
            f"{networks['overlap']['mean']:.2g} and {networks['overlap']['most']:.2g}; maximum for linear players: "
            f"{linear['overlap']['most']:.2g} (holds up to {ORTHOGONAL:g} in every trial).",
            holds_if(networks["overlap"]["most"] <= ORTHOGONAL),
            "our own data and networks",
            ours=True,
        ),
    ]


def draw(results: Results) -> Figure:
    """Draw the rows with the surface of the last network, the outputs of players, and utilities."""
    figure, axes = panels(2, rows=2, width=3.6, height=3.0)
    shown, (rows, linear, networks, earned) = results["shown"], axes.flat
    rows.contourf(
        shown["line"], shown["line"], shown["surface"], levels=14, cmap="Greys", alpha=0.5
    )
    _scatter(rows, shown["rows"], shown["ring"])
    rows.set(title=f"rows, and output {K} of the networks", xlabel="feature 1", ylabel="feature 2")
    for one, kind in ((linear, "linear"), (networks, NETWORK)):
        _scatter(one, shown["outputs"][kind], shown["ring"])
        one.set(title=f"players: {kind}", xlabel="output 1", ylabel=f"output {K}")
    for place, (kind, (colour, hatch)) in enumerate(BARS.items()):
        utility = results["kinds"][kind]["utility"]
        earned.bar(
            np.arange(K) + 0.2 * (place - 1.5),
            utility["mean"],
            0.18,
            yerr=utility["error"],
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=kind,
        )
    earned.set(title="utility of each player", xlabel="player", ylabel="utility (variance)")
    earned.set_xticks(np.arange(K), [str(1 + i) for i in range(K)])
    handles = [*rows.get_legend_handles_labels()[0], *earned.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=8)
    for one in axes.flat:
        one.title.set_fontsize(9)
    return figure


def _scatter(axes: Axes, points: list[list[float]], ring: list[bool]) -> None:
    """Draw points (n, 2) in the colours and markers of blob and ring."""
    x, y = np.asarray(points).T
    for (name, (colour, mark)), chosen in zip(
        CLASSES.items(), (~np.asarray(ring), np.asarray(ring)), strict=True
    ):
        axes.scatter(x[chosen], y[chosen], s=7, c=colour, marker=mark, linewidths=0, label=name)


def summary(results: Results) -> str:
    """Describe what each kind of players earns and separates."""
    kinds = results["kinds"]
    exact = kinds["linear"]["angle"]["most"] <= EXACT
    swapped = kinds[NETWORK]["out of order"]["mean"] * results["size"]["trials"]
    return (
        "Utilities of the players, and share of the rows that a linear classifier on their outputs assigns "
        f"correctly: {'; '.join(_outcome(kinds, kind) for kind in KINDS)}. Linear players "
        f"{'are' if exact else 'are not'} the principal components (largest angle "
        f"{kinds['linear']['angle']['most']:.2g} radians). {_separation(kinds)} In {swapped:.0f} of "
        f"{results['size']['trials']} trials of {NETWORK} a child earns more than its parent; with networks "
        "utilities are not quadratic forms, and their order is not guaranteed."
    )


def _outcome(kinds: Results, kind: str) -> str:
    earned = ", ".join(f"{one:.2f}" for one in kinds[kind]["utility"]["mean"])
    return f"{kind} {earned} ({100 * kinds[kind]['told apart']['mean']:.0f} %)"


def _separation(kinds: Results) -> str:
    """Describe which networks separate blob and ring better than linear players do."""
    about = {
        NETWORK: "an isometric first layer and sorted pairs",
        "pairs": "sorted pairs and a first layer that may shrink directions",
        "tanh": "tanh and no biases (odd functions)",
    }
    linear = kinds["linear"]["told apart"]["mean"]
    said = []
    for kind, description in about.items():
        gain = kinds[kind]["told apart"]["mean"] - linear
        verdict = (
            "better than" if gain > GAIN else "worse than" if gain < -GAIN else "no better than"
        )
        said.append(f"networks with {description} separate blob and ring {verdict} linear players")
    joined = "; ".join(said)
    return f"{joined[0].upper()}{joined[1:]} ({100 * linear:.0f} %)."


def reading(results: Results) -> str:
    """Describe data and players."""
    size = results["size"]
    return (
        f"The paper gives no experiment. {size['rows']} rows, half of them a blob and half a ring around it, with "
        f"a third feature of noise; {K} players, {size['trials']} trials with new rows, {size['rounds']} rounds. "
        "Outputs are centred, so that a utility is a variance, and no layer increases lengths."
    )
