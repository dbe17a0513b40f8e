"""Functions that read a whole source, for comparison with a formula."""

import numpy as np
from scipy import sparse

from eigengame.sources import ArraySource, Block


def rows_of(source, size=7, start=0):
    """Return all rows from `start` on as one dense array, read in blocks of `size`."""
    return np.vstack([dense(block.values) for block in source.blocks(start, size)])


def weights_of(source, size=7):
    """Return the weights of all rows, which are 1 for blocks without weights."""
    blocks = list(source.blocks(0, size))
    return np.concatenate([np.ones(len(b)) if b.weights is None else b.weights for b in blocks])


def dense(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def counts(seed, n=40, d=6):
    """Return a table of small counts (n, d) with many zeros and one row of zeros."""
    draws = np.random.default_rng(seed).poisson(0.7, (n, d))
    draws[3] = 0
    return draws


class Weighted(ArraySource):
    """Rows with increasing weights."""

    def blocks(self, start, size):
        for begin in range(start, len(self.data), size):
            values = self.read(begin, begin + size)
            yield Block(values, np.arange(begin, begin + len(values), dtype=float))
