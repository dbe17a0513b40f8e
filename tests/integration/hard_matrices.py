"""Matrices on which computations of components fail most easily."""

import numpy as np

N, D, K = 40, 8, 3


def _rng():
    return np.random.default_rng(0)


def _orthonormal(n, d):
    return np.linalg.qr(_rng().standard_normal((n, d)))[0]


def _with_spectrum(values):
    """Return rows (N, D) about 0 whose singular values are given."""
    left = _rng().standard_normal((N, D))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    return (left * values) @ _orthonormal(D, D).T


def _stacked(square):
    """Return N rows from a square matrix: with both signs, so that their mean is 0."""
    return np.vstack([square, -square] * (N // (2 * len(square)) + 1))[:N]


def _kahan():
    sine, cosine = np.sin(1.2), np.cos(1.2)
    upper = np.eye(D) - cosine * np.triu(np.ones((D, D)), 1)
    return np.diag(sine ** np.arange(D)) @ upper


def _constant_columns():
    rows = _rng().standard_normal((N, D))
    rows[:, 2], rows[:, 5] = 7.0, -1e6
    return rows


def _denormal_columns():
    rows = _rng().standard_normal((N, D))
    rows[:, 4:] *= 1e-310
    return rows


NORMAL = _rng().standard_normal((N, D)) * np.arange(D, 0, -1)
ROUND = np.round(4 * NORMAL)

MATRICES = {
    "plain": NORMAL,
    "graded spectrum": _with_spectrum(10.0 ** np.linspace(20, -20, D)),
    "graded columns": _rng().standard_normal((N, D)) * 10.0 ** np.linspace(20, -20, D),
    "graded rows": _rng().standard_normal((N, D)) * 10.0 ** np.linspace(-20, 20, N)[:, None],
    "small spread": _with_spectrum(10.0 ** np.linspace(-8, -20, D)),
    "Hilbert": 1.0 / (np.arange(N)[:, None] + np.arange(D) + 1),
    "Kahan": _stacked(_kahan()),
    "repeated eigenvalues": _stacked(np.diag([3.0, 3, 3, 2, 1, 1, 1, 1])),
    "nearly repeated": _stacked(np.diag([1 + 1e-9, 1.0, 1 - 1e-9, 0.5, 0.1, 0.1, 0.1, 0])),
    "all eigenvalues equal": _stacked(np.eye(D)),
    "rank 0": np.zeros((N, D)),
    "equal rows": np.full((N, D), 0.1),
    "rank 1": np.outer(_rng().standard_normal(N), np.arange(1.0, D + 1)),
    "rank 2 with a mean": np.outer(np.arange(N), np.arange(D))
    + np.outer(np.ones(N), np.arange(D) ** 2.0),
    "constant columns": _constant_columns(),
    "one large entry": np.pad([[1e15]], ((0, N - 1), (0, D - 1))) + 1e-3 * NORMAL,
    "large mean": NORMAL + 1e9,
    "large": NORMAL * 1e150,
    "small": NORMAL * 1e-150,
    "denormal": NORMAL * 1e-310,
    "denormal columns": _denormal_columns(),
    "near the largest float32": NORMAL * 1e37,
    "one row": NORMAL[:1],
    "two rows": NORMAL[:2],
    "as many rows as components": NORMAL[:K],
    "one feature": NORMAL[:, :1].copy(),
    "as many features as components": NORMAL[:, :K].copy(),
    "float16": NORMAL.astype(np.float16),
    "float32": NORMAL.astype(np.float32),
    "big-endian float16": NORMAL.astype(">f2"),
    "big-endian float32": NORMAL.astype(">f4"),
    "big-endian float64": NORMAL.astype(">f8"),
    "int8": ROUND.clip(-100, 100).astype(np.int8),
    "uint8": (ROUND.clip(-100, 100) + 120).astype(np.uint8),
    "int16": ROUND.astype(np.int16),
    "big-endian int16": ROUND.astype(">i2"),
    "int32": ROUND.astype(np.int32),
    "int64": ROUND.astype(np.int64) * 10**12,
    "uint64": (ROUND.astype(np.int64) + 10**6).astype(np.uint64),
    "bool": NORMAL > 0,
    "longdouble": NORMAL.astype(np.longdouble),
    "negative strides": NORMAL[::-1, ::-1],
    "every second": np.repeat(np.repeat(NORMAL, 2, axis=0), 2, axis=1)[::2, ::2],
    "columns together": np.asfortranarray(NORMAL),
    "one row broadcast": np.broadcast_to(NORMAL[0], (N, D)),
}
"""Matrices by name. They have few different shapes, because each shape compiles again."""


def read_only(rows):
    """Return the matrix with memory that cannot be written."""
    if rows.flags.writeable:
        rows = rows.view()
        rows.flags.writeable = False
    return rows
