"""Row weights of a stream with forgetting, for further passes over the rows.

With a forgetting factor below 1, each row multiplies the weight of all earlier rows by it. At the end of the stream
every row has a known weight, and the components of the stream are those of the weighted rows.
"""

from __future__ import annotations

import numpy as np

from eigengame._system import interrupts
from eigengame.solver.passes.passes import Passes
from eigengame.sources import RandomAccess, Source


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


def faded_passes(passes: Passes, rows: int, forget: float) -> Passes:
    """Return further passes over the same rows, weighted as at the end of the first pass.

    Parameters
    ----------
    passes : Passes
        After the first pass.
    rows : int
        Rows that the first pass counted: those with a weight above 0.
    forget : float
    """
    source, weights = passes.source, passes.batches.weights
    n = source.shape[0]
    assert n is not None
    if rows != (n if weights is None else np.count_nonzero(weights)):
        _refuse_gaps(source, forget)
    return passes.weighted(faded_weights(n, forget, weights))


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
        for block in interrupts.drawn(source.blocks(0, 1024)):
            if block.weights is not None and not np.all(block.weights > 0):
                _refuse_gaps(source, forget)
    return faded_weights(n, forget, weights)


def _refuse_gaps(source: Source, forget: float) -> None:
    """Raise because the age of rows is not known."""
    raise ValueError(
        f"forget={forget}: {source.name} leaves out rows while it is read, so the age of the others is unknown to "
        "a second pass. Remove these rows first, or fit with forget=1, or with passes=1 and tol=None."
    )
