r"""What parts of a fit tell each other, and how two of them become one.

A pass folds rows into a carry: a remembered game, moments, sums of products. Folded part by part, from the same
empty start, carries of two parts merge into that of both: games by playing one memory on the other, moments
exactly, all else by addition. So a pass is a tree, on any engine.

What travels are NumPy arrays, never rows. Of a remembered game with K players and d features it is
$K(d + 1) + 2d$ numbers and four counts: players, strengths, and mean and scatter of every feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import Memory
from eigengame.solver import streaming as stream
from eigengame.solver.moments import Moments, merge_moments
from eigengame.solver.streaming import Stream


class Told(NamedTuple):
    """What travels of a remembered game.

    Attributes
    ----------
    players : array of shape (K, d)
    strengths : array of shape (K,)
    mean, scatter : arrays of shape (d,)
        Moments of every feature.
    weight : scalar array
    updates, rows, k : int
        Batches played, rows seen, components wanted.
    """

    players: np.ndarray
    strengths: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    weight: np.ndarray
    updates: int
    rows: int
    k: int


def packed(carry: Any) -> Any:
    """Return a carry as NumPy arrays and numbers: what can be sent.

    Earlier looks of a game stay behind: a merge takes its own.
    """
    if isinstance(carry, Stream):
        (memory, like, step), moments = carry.state, carry.moments
        return Told(
            np.asarray(memory.players),
            np.asarray(memory.strengths),
            np.asarray(moments.mean),
            np.asarray(moments.scatter),
            np.asarray(moments.weight),
            int(step),
            carry.rows,
            like.shape[0],
        )
    if isinstance(carry, Moments):
        return Moments(*map(packed, carry))
    if isinstance(carry, tuple):
        return tuple(map(packed, carry))
    return carry if isinstance(carry, int) else np.asarray(carry)


def unpacked(game: Remembered, told: Any) -> Any:
    """Return the carry of what was sent, on this process's device."""
    if isinstance(told, Told):
        weight, mean, players = map(jax.device_put, (told.weight, told.mean, told.players))
        # A game that centres has the mean of its moments; one that does not has none.
        about = mean if game.center else jax.device_put(np.zeros_like(told.mean))
        memory = Memory(players, jax.device_put(told.strengths), about, weight)
        like = jax.device_put(np.zeros((told.k, 0), told.players.dtype))
        state = RememberedState(memory, like, jax.device_put(np.int32(told.updates)))
        look = (0, players[: told.k])
        moments = Moments(weight, mean, jax.device_put(told.scatter))
        return Stream(state, moments, told.rows, (look, look))
    if isinstance(told, Moments):
        return Moments(*map(jax.device_put, told))
    if isinstance(told, tuple):
        return tuple(unpacked(game, one) for one in told)
    return told if isinstance(told, int) else jax.device_put(told)


def merged(game: Remembered, one: Any, other: Any) -> Any:
    """Return the carry of both parts together."""
    if isinstance(one, Stream):
        if not (one.rows and other.rows):  # a part without rows changes nothing
            return one if one.rows else other
        return stream.merge(game, one, other)
    if isinstance(one, Moments):
        return merge_moments(one, other)
    if isinstance(one, tuple):
        return tuple(merged(game, *pair) for pair in zip(one, other, strict=True))
    return one + other
