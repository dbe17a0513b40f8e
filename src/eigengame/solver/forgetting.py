"""Row weights of a stream that forgets, for passes that read the rows again.

With a forgetting factor below 1, each row multiplies the weight of all earlier rows by it. At the end of the stream
every row has a known weight, and the components of the stream are those of the weighted rows.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from eigengame.solver.passes import Reading
from eigengame.sources import RandomAccess, Source

Read = TypeVar("Read", bound=Reading)


def faded_weights(n: int, forget: float, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of each row at the end of the stream.

    Parameters
    ----------
    n : int
        Number of rows.
    forget : float
        Forgetting factor in (0, 1].
    weights : array of shape (n,), optional
        Sample weights. A row of weight 0 does not age the rows before it.

    Returns
    -------
    array of shape (n,)
        ``weights * forget ** after``, with `after` the number of later rows of positive weight.
    """
    own = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    counts = own > 0
    after: np.ndarray = np.cumsum(counts[::-1])[::-1] - counts
    return own * np.float64(forget) ** after


def refuse_unless_fading(source: Source, forget: float, *, passes: int = 1) -> None:
    """Raise if the rows of a source cannot be weighted by `forget`, before they are read."""
    if source.sparse:
        raise ValueError(
            f"forget={forget} needs dense rows, but {source.name} is sparse: pass forget=1, or dense rows."
        )
    if passes > 1 and source.shape[0] is None:
        raise ValueError(
            f"forget={forget} with more than one pass needs the number of rows, which {source.name} does not "
            "know: give an array or a file that does, or fit with forget=1, or with passes=1 and tol=None."
        )


def faded_again(reading: Read, rows: int, forget: float) -> Read:
    """Return further passes over the rows of a reading, weighted as at the end of its first pass.

    Parameters
    ----------
    reading : Reading
        After its first pass.
    rows : int
        Number of rows that the first pass counted: those with a weight above 0.
    forget : float
    """
    feed, n = reading.feed, reading.feed.shape[0]
    assert n is not None
    if rows != (n if feed.weights is None else np.count_nonzero(feed.weights)):
        _refuse_gaps(feed.source, forget)
    again = copy.copy(reading)
    again.feed = replace(feed, weights=faded_weights(n, forget, feed.weights))
    return again


def certified_weights(
    source: Source, forget: float, weights: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the weights (n,) that rows have in a certificate: sample weights, faded as by one stream."""
    if forget == 1:
        return weights
    refuse_unless_fading(source, forget, passes=2)
    n = source.shape[0]
    assert n is not None
    # Other sources may leave rows out (weight 0), which only reading them shows.
    if not isinstance(source, RandomAccess):
        for block in source.blocks(0, 1024):
            if block.weights is not None and not np.all(block.weights > 0):
                _refuse_gaps(source, forget)
    return faded_weights(n, forget, weights)


def _refuse_gaps(source: Source, forget: float) -> None:
    """Raise because the age of rows is not known."""
    raise ValueError(
        f"forget={forget}: {source.name} leaves out rows while it is read, so the age of the others is unknown to "
        "a second pass. Remove these rows first, or fit with forget=1, or with passes=1 and tol=None."
    )
