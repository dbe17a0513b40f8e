"""Block Krylov over a stream of rows: the strongest rival we know that may read the data many times.

Musco and Musco, *Randomized Block Krylov Methods for Stronger and Faster Approximate Singular Value
Decomposition* (2015), arranged so that each pass reads the rows once: products with data are float32
GEMMs on chunks that stay in cache between X V' and Y'X, blocks are rows (b, d), and the small
problem is solved in float64. NumPy alone does the algebra: SciPy brings a second pool of BLAS
threads, and two pools that take turns wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.makers import slices

CHUNK_BYTES = 2**23


def block_krylov(data: Any, k: int, passes: int, seed: int) -> np.ndarray:
    r"""Return k components (k, d) by Rayleigh-Ritz over all blocks, with blocks of 2k.

    $H = Q M Q^\top$ is filled in while the blocks come, so no image is kept.
    """
    size = block_size(data, k, passes)
    small = np.empty((passes * size, passes * size))
    for basis, image in blocks(data, size, passes, seed):
        newest = slice(len(basis) - size, len(basis))
        small[: len(basis), newest] = inner_products(basis, image)
        small[newest, : len(basis)] = small[: len(basis), newest].T
    return rayleigh_ritz(small, basis, k)


def nystrom_krylov(data: Any, k: int, passes: int, seed: int) -> np.ndarray:
    r"""Return k components (k, d) of the Nystrom approximation $W^\top H^{-1} W$ with $W = Q M$.

    The same passes as `block_krylov`; the images are kept as well, and they have met $M$ once more
    than the blocks they come from: about one pass for nothing, at twice the memory.
    """
    size = block_size(data, k, passes)
    images = np.empty((passes * size, data.shape[1]), np.float32)
    for basis, image in blocks(data, size, passes, seed):
        images[len(basis) - size : len(basis)] = image
    return nystrom(inner_products(basis, images), images, k)


def block_size(data: Any, k: int, passes: int) -> int:
    """Return 2k, or less where all blocks together would exceed the columns."""
    return min(2 * k, data.shape[1] // passes)


def blocks(data: Any, size: int, passes: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Yield, after each pass, the basis so far (i b, d) and the image $M Q_i$ of its last block (b, d).

    $Q_1$ is random and $Q_{i+1}$ is what $M Q_i$ adds to the blocks before it.
    """
    d = data.shape[1]
    basis = np.empty((passes * size, d), np.float32)
    block = np.random.default_rng(seed).standard_normal((size, d), dtype=np.float32)
    block = orthonormal_rows(orthonormal_rows(block))
    for end in range(size, passes * size + 1, size):
        basis[end - size : end] = block
        image = covariance_times(data, block)
        yield basis[:end], image
        if end < len(basis):
            block = new_directions(image, basis[:end])


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


def nystrom(small: np.ndarray, images: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest eigenvectors (k, d) of W' H^-1 W, without what H holds only as rounding."""
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    held = values > 1e-6 * values[-1]
    root = (vectors[:, held] / np.sqrt(values[held])).T
    _, vectors = np.linalg.eigh(root @ inner_products(images, images) @ root.T)
    components = (vectors.T[: -k - 1 : -1] @ root).astype(np.float32) @ images
    return components / np.linalg.norm(components, axis=1, keepdims=True)
