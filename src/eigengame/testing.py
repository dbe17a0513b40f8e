"""Problems whose answer is known by construction: a prescribed spectrum and a drawn basis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eigengame import _check


class Problem(NamedTuple):
    """Data and its exact answer, in float64.

    Attributes
    ----------
    data : array
        The matrix M (d, d), or rows X (n, d) with X.T @ X = M.
    eigenvalues : array of shape (d,)
        Largest first.
    components : array of shape (d, d)
        Row i belongs to eigenvalue i.
    """

    data: np.ndarray
    eigenvalues: np.ndarray
    components: np.ndarray


def linear(d: int, high: float = 1000.0, low: float = 1.0) -> np.ndarray:
    """Return d eigenvalues from high to low, equally spaced: the paper's linear spectrum."""
    return np.linspace(high, low, d)


def exponential(d: int, high: float = 1e3, low: float = 1e0) -> np.ndarray:
    """Return d eigenvalues from high to low, equal ratios: the paper's exponential spectrum."""
    return np.geomspace(high, low, d)


def harmonic(d: int, high: float = 1.0) -> np.ndarray:
    """Return d eigenvalues high / i: a long tail with ever smaller gaps."""
    return high / np.arange(1, d + 1)


def bubble(spectrum: ArrayLike, first: int = 10, last: int = 19) -> np.ndarray:
    """Return the spectrum with eigenvalues `first` to `last` (1-based) all equal to the first of them.

    The paper's repeated eigenvalues: of 50 components, 40 are still determined.
    """
    values = np.array(spectrum, dtype=np.float64)
    if not 1 <= first <= last <= values.size:
        raise ValueError(f"first={first}, last={last}: give 1 <= first <= last <= {values.size}.")
    values[first - 1 : last] = values[first - 1]
    return values


def orthogonal(d: int, seed: int) -> np.ndarray:
    """Return a random orthogonal matrix (d, d), uniformly drawn."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def matrix_with(spectrum: ArrayLike, seed: int = 0) -> Problem:
    """Return a symmetric matrix with this spectrum and randomly drawn components."""
    values = _check.spectrum("spectrum", spectrum)
    basis = orthogonal(values.size, seed)
    matrix = (basis.T * values) @ basis
    return Problem((matrix + matrix.T) / 2, values, basis)


def rows_with(spectrum: ArrayLike, n: int, seed: int = 0) -> Problem:
    """Return n rows whose X.T @ X has exactly this spectrum (to rounding), n at least the rank."""
    values = _check.spectrum("spectrum", spectrum)
    rank = int(np.count_nonzero(values))
    if n < rank:
        raise ValueError(f"n={n}: {rank} eigenvalues above 0 need at least {rank} rows.")
    basis = orthogonal(values.size, seed)
    rng = np.random.default_rng((seed, 1))
    left = np.linalg.qr(rng.normal(size=(n, max(rank, 1))))[0][:, :rank]
    return Problem((left * np.sqrt(values[:rank])) @ basis[:rank], values, basis)


def stream_with(
    spectrum: ArrayLike, size: int, batches: int, seed: int = 0
) -> tuple[Iterator[np.ndarray], np.ndarray]:
    """Return Gaussian batches of shape (size, d) whose covariance has this spectrum, and its components.

    A stream: the truth is that of the population, which the rows seen so far only estimate.
    """
    values = _check.spectrum("spectrum", spectrum)
    _check.whole("size", size)
    basis = orthogonal(values.size, seed)
    rng = np.random.default_rng((seed, 2))
    root = np.sqrt(values)[:, None] * basis
    return (rng.normal(size=(size, values.size)) @ root for _ in range(batches)), basis
