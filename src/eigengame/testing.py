"""Test problems with a known answer: a prescribed spectrum and random components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigengame import _check


class Problem(NamedTuple):
    """Data with its exact eigenvalues and components, in float64.

    Attributes
    ----------
    data : array
        The matrix M (d, d), or rows X (n, d) with X.T @ X = M.
    eigenvalues : array of shape (d,)
        In descending order.
    components : array of shape (d, d)
        Row i is the eigenvector of eigenvalue i.
    """

    data: np.ndarray
    eigenvalues: np.ndarray
    components: np.ndarray


def linear(d: int, high: float = 1000.0, low: float = 1.0) -> np.ndarray:
    """Return d equally spaced eigenvalues from high to low: the linear spectrum of the paper."""
    return np.linspace(high, low, d)


def exponential(d: int, high: float = 1e3, low: float = 1e0) -> np.ndarray:
    """Return d eigenvalues from high to low with equal ratios: the exponential spectrum of the paper."""
    return np.geomspace(high, low, d)


def harmonic(d: int, high: float = 1.0) -> np.ndarray:
    """Return the d eigenvalues high / i: a long tail with decreasing gaps."""
    return high / np.arange(1, d + 1)


def bubble(spectrum: ArrayLike, first: int = 10, last: int = 19) -> np.ndarray:
    """Return the spectrum with eigenvalues `first` to `last` (1-based) replaced by eigenvalue `first`.

    The repeated eigenvalues of the paper: 40 of 50 components remain unique.
    """
    values = np.array(spectrum, dtype=np.float64)
    if not 1 <= first <= last <= values.size:
        raise ValueError(f"first={first}, last={last}: give 1 <= first <= last <= {values.size}.")
    values[first - 1 : last] = values[first - 1]
    return values


def orthogonal(d: int, seed: int) -> np.ndarray:
    """Return an orthogonal matrix (d, d) from the uniform (Haar) distribution."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def matrix_with(spectrum: ArrayLike, seed: int = 0) -> Problem:
    """Return a symmetric matrix with this spectrum and random components."""
    values = _check.spectrum("spectrum", spectrum)
    basis = orthogonal(values.size, seed)
    matrix = (basis.T * values) @ basis
    return Problem((matrix + matrix.T) / 2, values, basis)


def rows_with(spectrum: ArrayLike, n: int, seed: int = 0) -> Problem:
    """Return n rows for which X.T @ X has exactly this spectrum, up to rounding; n is at least the rank."""
    values = _check.spectrum("spectrum", spectrum)
    rank = int(np.count_nonzero(values))
    if n < rank:
        raise ValueError(f"n={n}: give at least {rank} rows for {rank} eigenvalues above 0.")
    basis = orthogonal(values.size, seed)
    rng = np.random.default_rng((seed, 1))
    left = np.linalg.qr(rng.normal(size=(n, max(rank, 1))))[0][:, :rank]
    return Problem((left * np.sqrt(values[:rank])) @ basis[:rank], values, basis)


def stream_with(
    spectrum: ArrayLike, size: int, batches: int, seed: int = 0
) -> tuple[Iterator[np.ndarray], np.ndarray]:
    """Return Gaussian batches of shape (size, d) with this spectrum of the covariance, and its components.

    The components are those of the population, which the rows of the stream only estimate.
    """
    values = _check.spectrum("spectrum", spectrum)
    _check.whole("size", size)
    basis = orthogonal(values.size, seed)
    rng = np.random.default_rng((seed, 2))
    root = np.sqrt(values)[:, None] * basis
    return (rng.normal(size=(size, values.size)) @ root for _ in range(batches)), basis
