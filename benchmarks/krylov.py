"""Block Krylov over a stream of rows: the strongest other solver we know that reads the data several times.

Musco and Musco, *Randomized Block Krylov Methods for Stronger and Faster Approximate Singular Value
Decomposition* (2015), arranged so that each pass reads the rows once: products with data are float32
GEMMs on chunks that stay in cache between X V' and Y'X, blocks are rows (b, d), and the small
problem is solved in float64. Only NumPy is used for linear algebra: SciPy has a second pool of BLAS
threads, and alternating between two pools is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.dataset_builders import slices

CHUNK_BYTES = 2**23


def block_krylov(data: Any, k: int, passes: int, seed: int) -> np.ndarray:
    r"""Return k components (k, d) by Rayleigh-Ritz over all blocks, with blocks of 2k.

    $H = Q M Q^\top$ is filled block by block, so that no image is stored.
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

    The passes are those of `block_krylov`. The images are stored as well; they contain one more product
    with $M$ than the blocks, which is worth about one pass, at twice the memory.
    """
    size = block_size(data, k, passes)
    images = np.empty((passes * size, data.shape[1]), np.float32)
    for basis, image in blocks(data, size, passes, seed):
        images[len(basis) - size : len(basis)] = image
    return nystrom(inner_products(basis, images), images, k)


def block_size(data: Any, k: int, passes: int) -> int:
    """Return 2k, or less if all blocks together would exceed the number of columns."""
    return min(2 * k, data.shape[1] // passes)


def blocks(data: Any, size: int, passes: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Yield, after each pass, the basis so far (i b, d) and the image $M Q_i$ of its last block (b, d).

    $Q_1$ is random, and $Q_{i+1}$ is the part of $M Q_i$ orthogonal to the previous blocks.
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
    """Return the rows of a chunk: few enough for the cache, but many compared with the block."""
    return max(4 * len(block), CHUNK_BYTES // (data.shape[1] * data.itemsize))


def new_directions(image: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return orthonormal rows for the part of the image that is orthogonal to the basis.

    Twice, because the remainder after the first time may consist mostly of rounding errors.
    """
    for _ in range(2):
        image = orthonormal_rows(image - inner_products(image, basis).astype(np.float32) @ basis)
    return image


def orthonormal_rows(block: np.ndarray) -> np.ndarray:
    """Return rows of the same span that are nearly orthonormal, by Cholesky of their Gram matrix."""
    gram = inner_products(block, block)
    scale = 1 / np.sqrt(np.diag(gram))
    gram *= scale[:, None] * scale
    gram += 1e-6 * np.eye(
        len(gram)
    )  # above the rounding of float32, so that the factor always exists
    undo = np.linalg.inv(np.linalg.cholesky(gram)) * scale
    return undo.astype(np.float32) @ block


def inner_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the inner products of float32 rows, summed in float64 over chunks of columns."""
    total = np.zeros((len(left), len(right)))
    for columns in slices(left.shape[1], 4096):
        total += left[:, columns] @ right[:, columns].T
    return total


def rayleigh_ritz(small: np.ndarray, basis: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest Ritz vectors (k, d), for a nearly orthonormal basis."""
    undo = np.linalg.inv(np.linalg.cholesky(inner_products(basis, basis)))
    _, vectors = np.linalg.eigh(undo @ small @ undo.T)
    return (vectors.T[: -k - 1 : -1] @ undo).astype(np.float32) @ basis


def nystrom(small: np.ndarray, images: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest eigenvectors (k, d) of W' H^-1 W, ignoring eigenvalues of H at the level of rounding."""
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    held = values > 1e-6 * values[-1]
    root = (vectors[:, held] / np.sqrt(values[held])).T
    _, vectors = np.linalg.eigh(root @ inner_products(images, images) @ root.T)
    components = (vectors.T[: -k - 1 : -1] @ root).astype(np.float32) @ images
    return components / np.linalg.norm(components, axis=1, keepdims=True)
