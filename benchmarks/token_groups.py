"""Sums over tokens in float64: covariance, scores, and the variance between tokens and between texts."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy import sparse

MOST_TYPICAL = 4
"""Number of tokens that are listed for an end of a component."""

ENDS = 0.01
"""Share of the scores that is an end."""


class Truth:
    """Sums of the rows of one layer in float64, about an origin near their mean.

    Parameters
    ----------
    d : int
    origin : array of shape (d,)
    players : array of shape (k, d)
        Their scores of each row are kept.
    """

    def __init__(self, d: int, origin: np.ndarray, players: np.ndarray) -> None:
        self._origin, self._players = origin, players
        self._rows, self._sum, self._square = 0, np.zeros(d), np.zeros((d, d))
        self._groups: dict[str, dict[int, np.ndarray]] = {"tokens": {}, "texts": {}}
        self._scores: list[np.ndarray] = []

    def add(self, rows: np.ndarray, tokens: np.ndarray, texts: np.ndarray) -> None:
        """Add rows (m, d) with the token ids and texts (m,) to which they belong."""
        rows = rows - self._origin
        self._rows += len(rows)
        self._sum += rows.sum(0)
        self._square += rows.T @ rows
        self._scores.append(rows @ self._players.T)
        for name, keys in (("tokens", tokens), ("texts", texts)):
            known, place = np.unique(keys, return_inverse=True)
            chosen = sparse.csr_array((np.ones(len(keys)), (place, np.arange(len(keys)))))
            sums = np.column_stack([np.bincount(place), chosen @ rows])
            for key, one in zip(known, sums, strict=True):
                # The count comes first.
                self._groups[name][key] = self._groups[name].get(key, 0) + one

    def mean(self) -> np.ndarray:
        """Return the mean (d,)."""
        return self._origin + self._sum / self._rows

    def covariance(self) -> np.ndarray:
        """Return the covariance matrix (d, d)."""
        mean = self._sum / self._rows
        return (self._square - self._rows * np.outer(mean, mean)) / (self._rows - 1)

    def values(self) -> np.ndarray:
        """Return all eigenvalues of the covariance matrix, largest first."""
        return np.linalg.eigvalsh(self.covariance())[::-1]

    def components(self, k: int) -> np.ndarray:
        """Return the first k eigenvectors (k, d) of the covariance matrix."""
        return np.linalg.eigh(self.covariance())[1].T[::-1][:k]

    def scores(self) -> np.ndarray:
        """Return the scores (rows, k) by the players."""
        return np.concatenate(self._scores)

    def share(self, name: str) -> float:
        """Return the adjusted share of the total variance between the groups "tokens" or "texts"."""
        groups = np.stack(list(self._groups[name].values()))
        counts, means = groups[:, 0], groups[:, 1:] / groups[:, :1]
        between = np.sum(counts[:, None] * (means - self._sum / self._rows) ** 2)
        total = np.trace(self.covariance()) * (self._rows - 1)
        return adjusted(between / total, self._rows, len(groups))


def adjusted(share: float, rows: int, groups: int) -> float:
    """Return a share of variance between groups, adjusted so that groups drawn at random have 0 on average."""
    return 1 - (1 - share) * (rows - 1) / (rows - groups)


def shares_of(scores: np.ndarray, keys: np.ndarray) -> float:
    """Return the adjusted share of the variance of scores (n,) between groups of equal keys (n,)."""
    _, place = np.unique(keys, return_inverse=True)
    counts = np.bincount(place)
    centred = scores - scores.mean()
    means = np.bincount(place, centred) / counts
    return adjusted(np.sum(counts * means**2) / np.sum(centred**2), len(scores), len(counts))


def typical_tokens(scores: np.ndarray, words: np.ndarray) -> tuple[str, str]:
    """Return the most frequent words (n,) among the lowest and the highest scores (n,), with their shares."""
    count = max(1, round(ENDS * len(scores)))
    order = np.argsort(scores)
    low, high = (
        " ".join(
            f"`{word}` {found / count:.0%}"
            for word, found in Counter(words[ends].tolist()).most_common(MOST_TYPICAL)
        )
        for ends in (order[:count], order[-count:])
    )
    return low, high
