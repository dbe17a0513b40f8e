r"""Merging of carries, and the messages that workers exchange.

A pass folds rows into a carry: a remembered game, moments, or sums of products. Carries of two partitions, folded
from the same empty start, merge into the carry of both: games by the memories of both together, moments exactly,
and everything else by addition. So a pass is a tree.

Messages are NumPy arrays, never rows. A remembered game with K players and d features takes $K(d + 1) + 2d$
numbers and four counts: players, strengths, and mean and scatter of each feature. Probes take $2rd$ more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from eigengame.algorithms import Remembered
from eigengame.algorithms.remembered import RememberedState
from eigengame.game.memory import Memory
from eigengame.solver.rows.moments import Moments, merge_moments
from eigengame.solver.streams import stream as streams
from eigengame.solver.streams.probe_sums import ProbeSums
from eigengame.solver.streams.stream import Stream


class GameMessage(NamedTuple):
    """A remembered game as it is sent.

    Attributes
    ----------
    players : array of shape (K, d)
    strengths : array of shape (K,)
    mean, scatter : arrays of shape (d,)
        Moments of every feature.
    weight : scalar array
    updates, rows, k : int
        Number of updates, rows and components.
    probes : ProbeSums or None
        Random probes and their products with M.
    """

    players: np.ndarray
    strengths: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    weight: np.ndarray
    updates: int
    rows: int
    k: int
    probes: ProbeSums | None = None


def packed(carry: Any) -> Any:
    """Return a carry as NumPy arrays and numbers, to be sent.

    Snapshots of a game are not sent: a merge takes its own.
    """
    if isinstance(carry, Stream):
        (memory, _, step), moments = carry.state, carry.moments
        return GameMessage(
            np.asarray(memory.players),
            np.asarray(memory.strengths),
            np.asarray(moments.mean),
            np.asarray(moments.scatter),
            np.asarray(moments.weight),
            int(step),
            carry.rows,
            carry.k,
            jax.tree.map(np.asarray, carry.probes),
        )
    if isinstance(carry, Moments):
        return Moments(*map(packed, carry))
    if isinstance(carry, tuple):
        return tuple(map(packed, carry))
    return carry if isinstance(carry, int) else np.asarray(carry)


def unpacked(game: Remembered, message: Any) -> Any:
    """Return the carry of a message, on the device of this process."""
    if isinstance(message, GameMessage):
        weight, mean, players = map(jax.device_put, (message.weight, message.mean, message.players))
        # A game that centres rows has the mean of its moments; otherwise its mean is zero.
        about = mean if game.center else jax.device_put(np.zeros_like(message.mean))
        memory = Memory(players, jax.device_put(message.strengths), about, weight)
        like = jax.device_put(np.zeros((message.k, 0), message.players.dtype))
        state = RememberedState(memory, like, jax.device_put(np.int32(message.updates)))
        start = (0, players[: message.k])
        moments = Moments(weight, mean, jax.device_put(message.scatter))
        probes = jax.tree.map(jax.device_put, message.probes)
        return Stream(state, moments, message.rows, (start, start), probes=probes)
    if isinstance(message, Moments):
        return Moments(*map(jax.device_put, message))
    if isinstance(message, tuple):
        return tuple(unpacked(game, one) for one in message)
    return message if isinstance(message, int) else jax.device_put(message)


def merged(game: Remembered, one: Any, other: Any) -> Any:
    """Return the carry of both partitions together."""
    if isinstance(one, Stream):
        if not (one.rows and other.rows):  # a partition without rows changes nothing
            return one if one.rows else other
        return streams.merge(game, one, other)
    if isinstance(one, Moments):
        return merge_moments(one, other)
    if isinstance(one, tuple):
        return tuple(merged(game, *pair) for pair in zip(one, other, strict=True))
    return one + other
