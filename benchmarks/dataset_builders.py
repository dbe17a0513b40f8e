"""Builders of the data sets: each function writes one of them and returns its exact components.

All data is float32 and centred, so that peers with and without centring solve the same problem.
The exact components are those of the written numbers, in float64, not those of their distribution.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from numpy.lib.format import open_memmap


class Size(NamedTuple):
    """Rows, columns, components, and rows of each batch."""

    n: int
    d: int
    k: int
    batch: int


class Truth(NamedTuple):
    """The k + 1 largest eigenvalues of X'X / n, and the first k components (k, d)."""

    values: np.ndarray
    components: np.ndarray


class DataUnavailable(Exception):
    """A data set cannot be built on this machine; the message contains the reason."""


def mnist(size: Size, folder: Path) -> Truth:
    """Write the training images of MNIST, divided by 255 and centred."""
    shared = Path(__file__).parents[2] / "shared" / "data"
    source = Path(os.environ.get("EIGENGAME_DATA", shared)) / "mnist/train-images-idx3-ubyte.gz"
    if not source.exists():
        raise DataUnavailable(
            f"{source} does not exist: set EIGENGAME_DATA to the folder that contains mnist/"
        )
    with gzip.open(source) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    images = pixels[: size.n] / 255.0
    data = (images - images.mean(axis=0)).astype(np.float32)
    np.save(folder / "data.npy", data)
    return by_covariance(data, size.k)


def harmonic(size: Size, folder: Path) -> Truth:
    """Write Gaussian rows with eigenvalues 1/i: a long tail with decreasing gaps."""
    return gaussian(size, folder, 1 / np.arange(1, size.d + 1))


def exponential(size: Size, folder: Path) -> Truth:
    """Write Gaussian rows with eigenvalues exp(-i/8) + 1e-3: a few directions over a flat floor."""
    return gaussian(size, folder, np.exp(-np.arange(1, size.d + 1) / 8) + 1e-3)


def gaussian(size: Size, folder: Path, spectrum: np.ndarray) -> Truth:
    """Write Gaussian rows with this spectrum in a random orthogonal basis, chunk by chunk."""
    n, d, k, _ = size
    basis = scipy.linalg.qr(np.random.default_rng(1).standard_normal((d, d)), mode="economic")[0]
    root = (np.sqrt(spectrum)[:, None] * basis).astype(np.float32)

    def noise() -> Iterator[tuple[slice, np.ndarray]]:
        rng = np.random.default_rng(2)  # the same noise is drawn twice
        for rows in slices(n, 4096):
            yield rows, rng.standard_normal((rows.stop - rows.start, d), dtype=np.float32)

    # Rows are a linear function of the noise: if its mean is zero, theirs is.
    mean = sum(white.sum(axis=0, dtype=np.float64) for _, white in noise()) / n
    data = open_memmap(folder / "data.npy", "w+", np.float32, (n, d))
    for rows, white in noise():
        data[rows] = (white - mean.astype(np.float32)) @ root
    data.flush()
    return by_covariance(data, k)


def wide(size: Size, folder: Path) -> Truth:
    """Write rank 256 with s_i^2 = n / i plus small noise, more columns than rows, by column chunks."""
    n, d, k, _ = size
    rank, floor = 256, 0.1
    rng = np.random.default_rng(3)
    left = rng.standard_normal((n, rank))
    left = scipy.linalg.qr(left - left.mean(axis=0), mode="economic")[0]
    right = rng.standard_normal((rank, d), dtype=np.float32)
    whiten = np.linalg.inv(np.linalg.cholesky(gram_of_rows(right)))
    strengths = np.sqrt(n / np.arange(1, rank + 1))
    factor = ((left * strengths) @ whiten).astype(np.float32)
    # The largest singular value of the noise is about sigma (sqrt n + sqrt d): a tenth of the last s^2.
    sigma = np.float32(np.sqrt(floor) * strengths[-1] / (np.sqrt(n) + np.sqrt(d)))
    data = open_memmap(folder / "data.npy", "w+", np.float32, (n, d))
    for columns in slices(d, 4096):
        block = factor @ right[:, columns]
        block += sigma * rng.standard_normal(block.shape, dtype=np.float32)
        data[:, columns] = block - block.mean(axis=0, dtype=np.float64).astype(np.float32)
    data.flush()
    return by_rows_gram(data, k)


def sparse(size: Size, folder: Path) -> Truth:
    """Write rows with about 75 entries, most of them in the columns of the row's own topic.

    Twenty topics, each 0.87 times as frequent as the previous one, give separated components. The
    matrix is [A; -A] in random order, so its mean is exactly zero.
    """
    n, d, k, _ = size
    topics, owned, own_entries, other_entries = 20, d // 100, 60, 15
    rng = np.random.default_rng(4)
    share = 0.87 ** np.arange(topics)
    topic = rng.choice(topics, size=n // 2, p=share / share.sum())
    columns_of = rng.permutation(d)[: topics * owned].reshape(topics, owned)
    own = columns_of[topic[:, None], rng.integers(owned, size=(n // 2, own_entries))]
    columns = np.hstack([own, rng.integers(d, size=(n // 2, other_entries))])
    values = rng.uniform(0.5, 1.5, size=columns.size).astype(np.float32)
    rows = np.repeat(np.arange(n // 2), columns.shape[1])
    half = scipy.sparse.csr_array((values, (rows, columns.ravel())), shape=(n // 2, d))
    return with_its_negative(half, k, rng, folder)


def text(size: Size, folder: Path) -> Truth:
    """Write TF-IDF rows of documents from a topic model: the frequencies of words follow Zipf's law.

    Half of the words of a document are from one distribution of all words, half from its two topics, each of which
    has its own order of the words. Values are (1 + log count) times the logarithm of the inverse document
    frequency, in rows of length 1. The matrix is [A; -A] in random order, so its mean is exactly zero.
    """
    n, d, k, _ = size
    documents, topics = n // 2, 2 * k
    rng = np.random.default_rng(5)
    share = 1 / (np.arange(topics) + 3.0)
    lengths = np.maximum(rng.lognormal(4.8, 0.6, documents), 20).astype(int)
    document = np.repeat(np.arange(documents), lengths)
    own = rng.choice(topics, size=(documents, 2), p=share / share.sum())
    topic = own[document, rng.integers(2, size=document.size)]
    # Words of a topic: the ranks of Zipf's law in an order of its own, by an affine map of the ranks.
    rank = np.searchsorted(zipf(d), rng.random(document.size))
    steps = 2 * rng.integers(d // 2, size=topics) + 1
    special = (rank * steps[topic] + rng.integers(d, size=topics)[topic]) % d
    word = np.where(rng.random(document.size) < 0.5, rank, special)
    counts = scipy.sparse.csr_array((np.ones(word.size), (document, word)), shape=(documents, d))
    frequency = np.bincount(counts.indices, minlength=d)
    counts.data = 1 + np.log(counts.data)
    counts.data *= np.log((1 + documents) / (1 + frequency))[counts.indices] + 1
    rows = np.repeat(np.arange(documents), np.diff(counts.indptr))
    squares = np.bincount(rows, counts.data**2, minlength=documents)
    counts.data = (counts.data / np.sqrt(squares)[rows]).astype(np.float32)
    return with_its_negative(counts, k, rng, folder)


def zipf(d: int) -> np.ndarray:
    """Return the distribution function (d,) of ranks by Zipf's law."""
    weights = 1 / (np.arange(d) + 2.7)
    return np.cumsum(weights) / weights.sum()


def with_its_negative(
    half: scipy.sparse.csr_array, k: int, rng: np.random.Generator, folder: Path
) -> Truth:
    """Write [A; -A] in random order, and return its exact components by ARPACK in float64."""
    count = 2 * half.shape[0]
    data = scipy.sparse.vstack([half, -half]).tocsr()[rng.permutation(count)]
    data.indices, data.indptr = data.indices.astype(np.int32), data.indptr.astype(np.int32)
    scipy.sparse.save_npz(folder / "data.npz", data)
    start = rng.standard_normal(min(data.shape))
    _, s, vt = scipy.sparse.linalg.svds(data.astype(np.float64), k=k + 1, tol=0, v0=start)
    order = np.argsort(-s)
    return Truth(s[order] ** 2 / data.shape[0], vt[order[:k]])


def by_covariance(data: np.ndarray, k: int) -> Truth:
    """Return the exact components by `eigh` of the d x d covariance."""
    d = data.shape[1]
    covariance = np.zeros((d, d))
    for rows in slices(len(data), 4096):
        block = data[rows].astype(np.float64)
        covariance += block.T @ block
    values, vectors = scipy.linalg.eigh(covariance, subset_by_index=(d - k - 1, d - 1))
    return Truth(values[::-1] / len(data), vectors.T[:0:-1])


def by_rows_gram(data: np.ndarray, k: int) -> Truth:
    """Return the exact components by `eigh` of the n x n matrix XX', with v = X'u / s."""
    n, d = data.shape
    gram = gram_of_rows(data)
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=(n - k - 1, n - 1))
    left = vectors.T[:0:-1]
    components = np.empty((k, d))
    for columns in slices(d, 4096):
        components[:, columns] = left @ data[:, columns].astype(np.float64)
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    return Truth(values[::-1] / n, components)


def gram_of_rows(data: np.ndarray) -> np.ndarray:
    """Return XX' in float64, by chunks of columns."""
    gram = np.zeros((len(data), len(data)))
    for columns in slices(data.shape[1], 4096):
        block = data[:, columns].astype(np.float64)
        gram += block @ block.T
    return gram


def slices(length: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover 0 to `length`."""
    for begin in range(0, length, size):
        yield slice(begin, min(begin + size, length))


Builder = Callable[[Size, Path], Truth]
