"""Reference implementations of the paper: NumPy loops in float64, one player at a time, written from the text."""

import numpy as np


def utility(v, parents, m):
    """Eq. obj."""
    value = v @ m @ v
    for parent in parents:
        value -= (v @ m @ parent) ** 2 / (parent @ m @ parent)
    return value


def algorithm_2_gradient(x, players, i):
    """The gradient of player i in Alg. 2, line by line."""
    v = players[i]
    rewards = x @ v
    penalties = np.zeros(len(x))
    for j in range(i):
        view = x @ players[j]
        penalties += (x @ v) @ view / (view @ view) * view
    return 2 * x.T @ (rewards - penalties)


def algorithm_2(x, players, step_size, *, riemannian=True):
    """One iteration of Alg. 2: all players move simultaneously."""
    moved = []
    for i, v in enumerate(players):
        gradient = algorithm_2_gradient(x, players, i)
        if riemannian:
            gradient = gradient - (gradient @ v) * v
        w = v + step_size * gradient
        moved.append(w / np.linalg.norm(w))
    return np.array(moved)


def gha(m, players, i):
    """The GHA update in the proof of Prop. gha_equiv_eigengame."""
    v = players[i]
    delta = m @ v - (v @ m @ v) * v
    for j in range(i):
        delta = delta - (v @ m @ players[j]) * players[j]
    return 2 * delta


def mu(m, players, i):
    """The direction of EigenGame Unloaded, before the tangent projection."""
    v = players[i]
    delta = m @ v
    for j in range(i):
        delta = delta - (v @ m @ players[j]) * players[j]
    return delta
