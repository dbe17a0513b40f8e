"""Memories with more players: the further ones have no strength, so nothing of what is remembered changes."""

from __future__ import annotations

import jax
import numpy as np

from eigengame.linalg.random_directions import random_outside
from eigengame.solver.streams.stream import Stream


def completed_players(players: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return orthonormal players (count, d) that begin with the given ones; the others are random, in float64."""
    missing = count - len(players)
    return np.concatenate([players, random_outside(players, missing, seed)]) if missing else players


def with_players(stream: Stream, count: int, seed: int) -> Stream:
    """Return a stream on one device with `count` players, at least as many as it has."""
    memory = stream.state.memory
    players, strengths = np.asarray(memory.players), np.asarray(memory.strengths)
    if len(players) == count:
        return stream
    more = completed_players(players, count, seed).astype(players.dtype)
    padded = np.append(strengths, np.zeros(count - len(players), strengths.dtype))
    memory = memory._replace(players=jax.device_put(more), strengths=jax.device_put(padded))
    return stream._replace(state=stream.state._replace(memory=memory), overlaps=None)
