"""Figures of the game: players on the sphere, utilities along great circles, and the error of a parent.

    python docs/figures/game.py

writes ``sphere-*.svg``, ``utilities-*.svg`` and ``parent-*.svg``. Utilities, moves and optima are computed by
`eigengame.game` and `eigengame.play`.
"""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from style import Theme, draw

import eigengame as eg
from eigengame.game.theory.error_propagation import (
    error_propagation,
    soft_step,
    worked_example_corrected,
)
from eigengame.game.utilities import utilities
from eigengame.metrics import angular_error

SPECTRUM = np.array([3.0, 2.0, 1.0])
"""Eigenvalues of the game on the sphere. The eigenvectors are the axes."""
ROUNDS, STEP_SIZE = 60, 0.05


def trajectories() -> np.ndarray:
    """Return the players after each round of `alpha`, shape (rounds + 1, k, d)."""
    algorithm = eg.make("alpha", step_size=STEP_SIZE)
    start = np.array([[-0.35, 0.45, 0.82], [0.75, 0.35, 0.56], [0.3, -0.85, 0.43]])
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    rows, state, path = np.diag(np.sqrt(SPECTRUM)), None, [start]
    for _ in range(ROUNDS):
        where = {"players": start} if state is None else {"state": state}
        played = eg.play(algorithm, rows, rounds=1, **where)
        state = played.state
        path.append(np.asarray(played.components))
    return np.array(path)


def utilities_of(players: np.ndarray) -> np.ndarray:
    """Return the utility of each player, shape (k,)."""
    return np.asarray(utilities(players @ np.diag(SPECTRUM) @ players.T))


def sphere(theme: Theme) -> Figure:
    """Draw the moves of three players, and their angles to the components."""
    path = trajectories()
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    ball = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    around = np.linspace(0, 2 * np.pi, 121)
    for tilt in np.linspace(0, np.pi, 7)[:-1]:
        x, y, z = np.cos(around) * np.cos(tilt), np.cos(around) * np.sin(tilt), np.sin(around)
        ball.plot(x, y, z, color=theme.faint, lw=0.4)
    for height in (-0.7, 0, 0.7):
        radius = np.sqrt(1 - height**2)
        ball.plot(
            radius * np.cos(around), radius * np.sin(around), height, color=theme.faint, lw=0.4
        )
    for i, colour in enumerate(theme.players):
        axis = np.eye(3)[i] * np.sign(path[-1, i, i])
        ball.plot(*np.stack([0 * axis, 1.3 * axis], axis=1), color=colour, lw=1, ls=":")
        ball.text(
            *(1.45 * axis), f"$v_{i + 1}$", color=colour, ha="center", va="center", fontsize=13
        )
        ball.plot(*path[:, i].T, color=colour, lw=2)
        ball.plot(*path[0, i], "o", color=colour, mfc="none", ms=7)
        ball.plot(*path[-1, i], "o", color=colour, ms=7)
    ball.set_axis_off()
    ball.set_box_aspect((1, 1, 1), zoom=1.45)
    ball.view_init(elev=24, azim=48)
    plot = figure.add_subplot(1, 2, 2)
    errors = np.array([np.asarray(angular_error(players, np.eye(3))) for players in path])
    for i, colour in enumerate(theme.players):
        plot.semilogy(np.maximum(errors[:, i], 1e-4), color=colour, lw=2, label=f"player {i + 1}")
    plot.set(xlabel="round", ylabel="angle to its component (rad)", ylim=(1e-3, 2))
    plot.legend()
    return figure


def along_a_circle(theme: Theme) -> Figure:
    """Draw each player's utility along the great circle from its component to the next one or to its parent."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.1), sharey=True, layout="constrained")
    theta = np.linspace(-np.pi / 2, np.pi / 2, 181)
    for i, (plot, colour) in enumerate(zip(axes, theme.players, strict=True)):
        for other in (j for j in range(3) if j != i):
            found = []
            for angle in theta:
                players = np.eye(3)
                players[i] = np.cos(angle) * np.eye(3)[i] + np.sin(angle) * np.eye(3)[other]
                found.append(utilities_of(players)[i])
            kind = "child" if other > i else "parent"
            first = other == (1 if i == 0 else 0)
            style, width = ("-", 2) if first else (":", 3)
            text = f"towards $v_{other + 1}$ ({kind})"
            plot.plot(theta, found, style, lw=width, color=colour, label=text)
        plot.axhline(SPECTRUM[i], color=theme.faint, lw=0.8, zorder=0)
        plot.set(
            title=f"player {i + 1}",
            xticks=[-np.pi / 2, 0, np.pi / 2],
            xlabel="angle from its component",
        )
        plot.set_xticklabels([r"$-\pi/2$", "0", r"$\pi/2$"])
        plot.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 0.0))
    axes[0].set(ylabel="utility", ylim=(-0.9, 3.2))
    return figure


def parent_error(theme: Theme) -> Figure:
    """Draw the utility of a child for several errors of its parent, and the angle of its best response."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
    theta = np.linspace(-np.pi / 2, np.pi / 2, 361)
    spectrum, toward = SPECTRUM[:2], np.array([[0.0, 1.0]])
    for colour, degrees in zip(theme.players, (0, 10, 30), strict=True):
        wave = error_propagation(spectrum, [np.radians(degrees)], toward, np.array([1.0, 0.0]))
        left.plot(
            np.degrees(theta), wave.utility(theta), color=colour, label=f"parent off by {degrees}°"
        )
        best = wave.argmax()
        left.plot(np.degrees(best), wave.utility(best), "o", color=colour)
    left.set(
        xlabel="angle of the child (degrees)",
        ylabel="utility of the child",
        xticks=[-90, -45, 0, 45, 90],
    )
    left.legend(fontsize=9, loc="upper left", bbox_to_anchor=(0, 1.0))
    left.set_ylim(-0.1, 3.3)
    degrees = np.linspace(0, 60, 241)
    errors = np.radians(degrees)
    best = np.degrees(worked_example_corrected(errors))
    right.plot(degrees, best, color=theme.faint, label="towards the child only")
    for colour, kappa in zip(theme.players, (2, 4, 10), strict=True):
        best = np.degrees(soft_step(errors, kappa))
        right.plot(
            degrees, best, color=colour, label=rf"towards another parent, $\kappa = {kappa}$"
        )
    right.set(xlabel="error of the parent (degrees)", ylabel="error of the child (degrees)")
    right.set(yticks=[0, 30, 60, 90])
    right.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return figure


def main() -> None:
    """Draw the three figures."""
    draw("sphere", sphere)
    draw("utilities", along_a_circle)
    draw("parent", parent_error)


if __name__ == "__main__":
    main()
