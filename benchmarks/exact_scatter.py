"""Exact scatter matrices: sums of products of float64 rows as Python integers, without rounding.

Every float64 number is an integer times a power of two, so the scatter matrix of float64 rows is a matrix of
integers in some unit. Eigenvectors do not depend on the unit, so it is dropped.

Two independent functions compute these integers. `scatter_by_slices` cuts the rows into slices of few bits, so
that products of slices are exact in float64 (fast, no weights). `scatter_by_integers` multiplies Python integers
(slow, any weights).
"""

from __future__ import annotations

import math

import numpy as np

MOST_SLICES = 24
"""Largest number of slices; rows with a wider range are refused by `scatter_by_slices`."""


def exact_scatter(
    rows: np.ndarray, weights: np.ndarray | None = None, *, center: bool = True
) -> np.ndarray:
    """Return the scatter matrix of the rows in an arbitrary unit, exactly.

    Parameters
    ----------
    rows : array of shape (n, d)
        Finite float32 or float64 values.
    weights : array of shape (n,), optional
        Floats or Python integers of at least 0: how often each row counts.
    center : bool
        Whether the scatter is about the exact weighted mean, or about zero.

    Returns
    -------
    array of shape (d, d)
        Python integers.
    """
    if weights is not None and np.isin(weights, range(9)).all():
        rows, weights = np.repeat(rows, weights.astype(int), axis=0), None
    sliced = scatter_by_slices(rows, center=center) if weights is None else None
    return scatter_by_integers(rows, weights, center=center) if sliced is None else sliced


def scatter_by_integers(
    rows: np.ndarray, weights: np.ndarray | None = None, *, center: bool = True
) -> np.ndarray:
    """Return the exact scatter matrix (d, d) by products of Python integers."""
    x = as_integers(rows)
    if weights is None:
        counts = np.full(len(x), 1, dtype=object)
    else:
        counts = weights if weights.dtype == object else as_integers(weights)
    weighted = x * counts[:, None]
    return _about_mean(x.T @ weighted, weighted.sum(axis=0), counts.sum(), center)


def scatter_by_slices(rows: np.ndarray, *, center: bool = True) -> np.ndarray | None:
    """Return the exact scatter matrix (d, d) by products of slices, or None if the range is too wide."""
    n, d = rows.shape
    # A sum of n products of two slices has at most 2 bits + log2 n bits, and float64 holds 53.
    bits = (53 - math.ceil(math.log2(max(n, 2)))) // 2
    slices = _slices(rows.astype(np.float64), bits)
    if slices is None:
        return None
    last = len(slices) - 1
    products, sums = np.full((d, d), 0, dtype=object), np.full(d, 0, dtype=object)
    for s, one in enumerate(slices):
        sums += _plain_integers(one.sum(axis=0)) * 2 ** (bits * (last - s))
        for t in range(s, len(slices)):
            product = _plain_integers(one.T @ slices[t]) * 2 ** (bits * (2 * last - s - t))
            products += product if s == t else product + product.T
    return _about_mean(products, sums, n, center)


def as_integers(values: np.ndarray) -> np.ndarray:
    """Return values as Python integers in the largest common power-of-two unit that they need."""
    mantissas, exponents = np.frexp(values.astype(np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    shifts = np.where(whole == 0, 0, exponents - exponents[whole != 0].min(initial=2**15))
    return whole.astype(object) * np.left_shift(1, shifts.astype(object))


def _about_mean(products: np.ndarray, sums: np.ndarray, total: int, center: bool) -> np.ndarray:
    """Return the scatter about the mean times the total weight, or the products about zero."""
    return products * total - np.outer(sums, sums) if center else products


def _slices(values: np.ndarray, bits: int) -> list[np.ndarray] | None:
    """Return integer-valued float64 slices, each `bits` bits below the previous one, whose sum is the values."""
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    rest = np.ldexp(values, -exponent)  # below 1
    if not np.array_equal(np.ldexp(rest, exponent), values):
        return None  # small entries became subnormal
    found: list[np.ndarray] = []
    while len(found) < MOST_SLICES:
        place = bits * (len(found) + 1)
        piece = np.rint(np.ldexp(rest, place))
        found.append(piece)
        rest = rest - np.ldexp(piece, -place)
        if not rest.any():
            return found
    return None


def _plain_integers(values: np.ndarray) -> np.ndarray:
    """Return integer-valued float64 values as Python integers."""
    return values.astype(np.int64).astype(object)
