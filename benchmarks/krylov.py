"""Block Krylov over a stream of rows: the strongest rival we know that may read the data many times.

Musco and Musco, *Randomized Block Krylov Methods for Stronger and Faster Approximate Singular Value
Decomposition* (2015), arranged so that each pass reads the rows once: products with data are float32
GEMMs on chunks that stay in cache between X V' and Y'X, blocks are rows (b, d), and the small
problem is solved in float64. NumPy alone does the algebra: SciPy brings a second pool of BLAS
threads, and two pools that take turns wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.makers import slices

CHUNK_BYTES = 2**23


def block_krylov(data: Any, k: int, passes: int, seed: int) -> np.ndarray:
    r"""Return k components (k, d) after this many passes, with blocks of 2k.

    The basis is $Q_1, \dots, Q_p$ with $Q_1$ random and $Q_{i+1}$ what $M Q_i$ adds to the blocks
    before it; $H = Q M Q^\top$ is filled in while the blocks come, so no image is kept.
    """
    d = data.shape[1]
    size = min(2 * k, d // passes)
    block = np.random.default_rng(seed).standard_normal((size, d), dtype=np.float32)
    block = orthonormal_rows(orthonormal_rows(block))
    basis = np.empty((passes * size, d), np.float32)
    small = np.empty((passes * size, passes * size))
    for step in range(passes):
        known = slice(0, (step + 1) * size)
        newest = slice(step * size, (step + 1) * size)
        basis[newest] = block
        image = covariance_times(data, block)
        small[known, newest] = inner_products(basis[known], image)
        small[newest, known] = small[known, newest].T
        if step + 1 < passes:
            block = new_directions(image, basis[known])
    return rayleigh_ritz(small, basis, k)


def covariance_times(data: Any, block: np.ndarray) -> np.ndarray:
    """Return V X'X / n, shape (b, d), for a block V (b, d): one pass over the rows."""
    n = data.shape[0]
    if scipy.sparse.issparse(data):
        return ((data.T @ (data @ block.T)) / n).T
    image = np.zeros_like(block)
    product = np.empty_like(block)
    for rows in slices(n, chunk_rows(data, block)):
        chunk = np.asarray(data[rows])
        scores = chunk @ block.T
        image += np.matmul(scores.T, chunk, out=product)
    image /= n
    return image


def chunk_rows(data: Any, block: np.ndarray) -> int:
    """Return how many rows make a chunk: within the cache, but enough to be worth reading V for."""
    return max(4 * len(block), CHUNK_BYTES // (data.shape[1] * data.itemsize))


def new_directions(image: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return orthonormal rows for what the image adds to the basis.

    Twice: what is left after the first time may be mostly rounding, and rounding is not orthogonal.
    """
    for _ in range(2):
        image = orthonormal_rows(image - inner_products(image, basis).astype(np.float32) @ basis)
    return image


def orthonormal_rows(block: np.ndarray) -> np.ndarray:
    """Return rows of the same span that are nearly orthonormal, by Cholesky of their Gram matrix."""
    gram = inner_products(block, block)
    scale = 1 / np.sqrt(np.diag(gram))
    gram *= scale[:, None] * scale
    gram += 1e-6 * np.eye(len(gram))  # above float32 rounding: the factor always exists
    undo = np.linalg.inv(np.linalg.cholesky(gram)) * scale
    return undo.astype(np.float32) @ block


def inner_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the inner products of float32 rows, summed in float64 over chunks of columns."""
    total = np.zeros((len(left), len(right)))
    for columns in slices(left.shape[1], 4096):
        total += left[:, columns] @ right[:, columns].T
    return total


def rayleigh_ritz(small: np.ndarray, basis: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest Ritz vectors (k, d), for a basis that is orthonormal only nearly."""
    undo = np.linalg.inv(np.linalg.cholesky(inner_products(basis, basis)))
    _, vectors = np.linalg.eigh(undo @ small @ undo.T)
    return (vectors.T[: -k - 1 : -1] @ undo).astype(np.float32) @ basis
