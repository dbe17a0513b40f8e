"""The graph of the players: whose vector changes whose utility, and what happens if a parent is silent.

Each player in turn is rotated a little, and the changes of all utilities and gradients are measured. The edges of
the graph are the pairs with a change. Then one parent at a time never broadcasts: its children keep its initial
vector.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import metrics, testing
from eigengame.algorithms import Alpha
from eigengame.game import Rules, SymmetricRows, sphere
from eigengame.game.utilities import gradients, rewards, utilities
from reproduction.base import Claim, Results, Run, holds_if
from reproduction.curves import rounded
from reproduction.experiments.dag_figure import draw_graph as draw
from reproduction.protocol import Protocol
from reproduction.trials import starts

__all__ = ["PAPER", "TITLE", "claims", "draw", "measure", "reading", "summary"]

TITLE = "The graph of the players"
PAPER = "fig:dag"

K, D = 6, 50
STEP = 1e-4
TURN = 0.1
"""Rotation of a player, in radians, by which dependences are measured."""
NONE = 1e-12
"""A relative change of at most this is none: it is rounding in float64."""
NEAR, FAR = 1.0, 22.5
"""Degrees. A player has found its component within the first, and has lost it from the second (pi/8) on."""
KINDS = {"utility": "utility", "gradient": "gradient"}
GAMES = {"hierarchy": Rules(), "no hierarchy": Rules(hierarchy=False)}

PROTOCOL = Protocol(
    # Graphs are measured after each number of updates in `moments`; `updates` are those with a silent parent.
    full={"trials": 20, "moments": (0, 30, 300, 3000), "updates": 5000},
    quick={"trials": 3, "moments": (0, 30), "updates": 3000},
)


def measure(run: Run) -> Results:
    """Measure the dependences during a run, and final angles if a parent is silent."""
    size = PROTOCOL.size(run.quick)
    # In float64, so that a dependence that is not there is zero up to 1e-12.
    with jax.enable_x64(True):
        rows = SymmetricRows(jnp.diag(jnp.asarray(testing.exponential(D), jnp.float64)))
        begun = starts(0, size.trials, K, D).astype(jnp.float64)
        turned = _turned(begun.shape)
        changes: Results = {name: {kind: [] for kind in KINDS} for name in GAMES}
        for moment in size.moments:
            run.progress(f"dependences after {moment} updates")
            players = _played(rows, begun, jnp.zeros(K, bool), moment)[0]
            for name, rules in GAMES.items():
                found = jax.vmap(partial(_changes, rows, rules))(players, turned)
                for kind, values in zip(KINDS, found, strict=True):
                    changes[name][kind].append(rounded(values.mean(axis=0)))
        ends = {}
        for silent in (None, *range(K - 1)):
            run.progress("no silent parent" if silent is None else f"parent {silent + 1} is silent")
            mask = jnp.arange(K) == (-1 if silent is None else silent)
            angles = _played(rows, begun, mask, size.updates)[1]
            ends["none" if silent is None else str(silent + 1)] = rounded(np.degrees(angles))
    return {"size": vars(size), "players": K, "step": STEP, "changes": changes, "ends": ends}


def claims(results: Results) -> list[Claim]:
    """Compare the caption with the measured graphs, and with silent parents."""
    k, moments = results["players"], results["size"]["moments"]
    wanted = np.triu(np.ones((k, k), bool), 1)
    graphs = [graph for kind in KINDS for graph in graphs_of(results, "hierarchy", kind)]
    same = all(np.array_equal(graph, graphs[0]) for graph in graphs)
    length, orders = longest_path(graphs[0]), count_orders(graphs[0])
    path = "there is a cycle" if length is None else f"the longest path has {length} of {k} players"
    without = [graph for kind in KINDS for graph in graphs_of(results, "no hierarchy", kind)]
    after = ", ".join(map(str, moments))
    return [
        Claim(
            "The utility of a player depends on its parents, and these dependences form a directed acyclic graph.",
            f"{_extremes(results)} Measured after {after} updates (holds if utilities and gradients change for all "
            f"{int(wanted.sum())} pairs of a parent and a later player, and for no other pair).",
            holds_if(all(np.array_equal(graph, wanted) for graph in graphs)),
            "a parent is any player that is earlier in the order (eq. obj)",
        ),
        Claim(
            "Parents broadcast in a fixed order.",
            f"The graphs after {after} updates are {'the same' if same else 'different'}. In the first, "
            f"{orders} {'order has' if orders == 1 else 'orders have'} every parent before its children, and "
            f"{path} (holds for one graph, with one order).",
            holds_if(same and orders == 1),
            "fixed order: the order of the players, during the whole run",
        ),
        Claim(
            "Every parent must broadcast its vector down the hierarchy.",
            f"{_silence(results)} (Holds if, for every silent parent, the players up to it end within {NEAR:g} "
            f"degree of their components, and a later player in every trial {FAR:g} degrees or more from its own.)",
            holds_if(_must_broadcast(results)),
            "Alg. 2 on M; children of a silent parent keep its initial vector",
        ),
        Claim(
            "Without the hierarchy every player depends on every other.",
            f"In the game without hierarchy {min(int(one.sum()) for one in without)} to "
            f"{max(int(one.sum()) for one in without)} of the {k * (k - 1)} pairs change (holds if all do).",
            holds_if(all(int(one.sum()) == k * (k - 1) for one in without)),
            "the rules of the appendix without the hierarchy",
            ours=True,
        ),
    ]


def summary(results: Results) -> str:
    """Describe the figure, the numbers of messages, and what children of a silent parent find."""
    graph = graphs_of(results, "hierarchy", "gradient")[0]
    senders, edges = int(graph.any(axis=1).sum()), int(graph.sum())
    return (
        f"Left: an arrow for each measured dependence of the {results['players']} players, from the player that "
        "was rotated to the one whose gradient changed; wide arrows are large changes. Centre: the mean relative "
        f"change of the gradients for a rotation by {TURN:g} rad of random players. Right: mean final angles with "
        f"one parent silent. An update needs a broadcast from {senders} players along {edges} edges. "
        f"{_silence(results)} {_next_child(results)}"
    )


def reading(results: Results) -> str:
    """Describe data, step size and criteria."""
    size = results["size"]
    return (
        f"The paper's figure is a sketch without numbers. Here {results['players']} players compute the first "
        f"components of the exponential spectrum with {D} features, from {size['trials']} random starts, by "
        f"EigenGame^R at a step size of {results['step']:g} on M itself. A dependence is a mean relative change of "
        f"more than {NONE:g}, of the utility relative to the reward or of the gradient relative to its length. "
        f"With a silent parent, players are updated {size['updates']} times."
    )


def graphs_of(results: Results, game: str, kind: str) -> list[np.ndarray]:
    """Return the measured graph at each moment: entry [j, i] is true if a rotation of j changes i, j != i."""
    found = []
    for values in results["changes"][game][kind]:
        graph = np.asarray(values) > NONE
        np.fill_diagonal(graph, False)
        found.append(graph)
    return found


def longest_path(graph: np.ndarray) -> int | None:
    """Return the number of players on the longest path of a graph (k, k), or None if it has a cycle."""
    reached: Any = np.ones(len(graph), bool)
    for length in range(len(graph) + 1):
        if not reached.any():
            return length
        reached = (graph & reached[:, None]).any(axis=0)
    return None


def count_orders(graph: np.ndarray) -> int:
    """Return the number of orders in which every parent precedes its children; 0 for a graph with a cycle."""
    if not len(graph):
        return 1
    total = 0
    for first in np.flatnonzero(~graph.any(axis=0)):
        rest = np.delete(np.delete(graph, first, axis=0), first, axis=1)
        total += count_orders(rest)
    return total


def _turned(shape: tuple[int, ...]) -> jax.Array:
    """Return random directions in which players are rotated, shape (trials, k, d)."""
    return jnp.asarray(np.random.default_rng(1).normal(size=shape))


def _changes(
    rows: SymmetricRows, rules: Rules, players: jax.Array, directions: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return relative changes of utilities and gradients, (k, k): entry [j, i] for player i if j is rotated."""
    tangent = sphere.retract(sphere.project_tangent(players, directions))
    rotated = jnp.cos(TURN) * players + jnp.sin(TURN) * tangent

    def seen(players: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        scores = rows.scores(players)
        gram = rows.gram(scores, scores)
        return utilities(gram, rules), rewards(gram), gradients(rows, players, rules)

    before, earned, ascent = seen(players)

    def change(j: jax.Array) -> tuple[jax.Array, jax.Array]:
        after, _, other = seen(jnp.where((jnp.arange(K) == j)[:, None], rotated, players))
        moved = jnp.linalg.norm(other - ascent, axis=1) / jnp.linalg.norm(ascent, axis=1)
        return jnp.abs(after - before) / earned, moved

    return jax.vmap(change)(jnp.arange(K))


@partial(jax.jit, static_argnums=3)
def _played(
    rows: SymmetricRows, begun: jax.Array, silent: jax.Array, updates: int
) -> tuple[jax.Array, jax.Array]:
    """Return the players of each trial after some updates, and their angles to the components.

    Players with `silent`, shape (k,), never broadcast.
    """
    # It never broadcasts by itself: `broadcast` decides here who does.
    game = Alpha(STEP, lag=10**12)

    def update(_: Any, state: Any) -> Any:
        moved, _ = game.update(rows, state)
        return moved._replace(
            broadcast=jnp.where(silent[:, None], state.broadcast, moved.players),
        )

    def trial(players: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, updates, update, game.init(players)).players

    players = jax.vmap(trial)(begun)
    truth = jnp.broadcast_to(jnp.eye(K, D, dtype=players.dtype), players.shape)
    return players, metrics.angular_error(players, truth)


def _extremes(results: Results) -> str:
    """Describe the smallest change by a parent, and the largest by another player, in utilities and gradients."""
    k = results["players"]
    parents = np.triu(np.ones((k, k), bool), 1)
    others = parents.T
    said = []
    for kind, name in KINDS.items():
        values = np.asarray(results["changes"]["hierarchy"][kind])
        said.append(
            f"a rotation of a parent by {TURN:g} rad changes the {name} by at least "
            f"{values[:, parents].min():.1g} of its size, that of a later player by at most "
            f"{values[:, others].max():.1g}"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def _split(results: Results) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return, for each silent parent, the final angles of players up to it and of its children (trials, ...)."""
    ends = {name: np.asarray(values) for name, values in results["ends"].items() if name != "none"}
    return [
        (int(name), values[:, : int(name)], values[:, int(name) :]) for name, values in ends.items()
    ]


def _must_broadcast(results: Results) -> bool:
    """Return whether players up to a silent parent find their components, and a child never does."""
    found = np.max(results["ends"]["none"]) <= NEAR
    parts = _split(results)
    return bool(
        found
        and all(upto.max() <= NEAR for _, upto, _ in parts)
        and all((after.max(axis=1) >= FAR).all() for _, _, after in parts)
    )


def _silence(results: Results) -> str:
    """Describe the final angles with all broadcasts, and with one silent parent."""
    parts = _split(results)
    worst = max(upto.max() for _, upto, _ in parts)
    least = min(after.max(axis=1).min() for _, _, after in parts)
    return (
        f"With all broadcasts every player ends within {_degrees(np.max(results['ends']['none']))} degrees of its "
        f"component. With one silent parent, it and the players before it end within {_degrees(worst)} degrees, "
        f"and the worst of its children at least {least:.2g} degrees away."
    )


def _degrees(angle: float) -> str:
    """Format an upper bound of an angle: below a thousandth of a degree the digits are rounding."""
    return f"{max(angle, 1e-3):.2g}"


def _next_child(results: Results) -> str:
    """Describe how many of the children of a silent parent lose their components."""
    lost = [float((after >= FAR).mean()) for _, _, after in _split(results)]
    share = float(np.mean(lost))
    amount = "all" if share == 1 else f"{100 * share:.0f} %"
    return f"Of all children of silent parents, {amount} end {FAR:g} degrees or more from their components."
