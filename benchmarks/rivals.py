"""Other people's solvers: one small function each, all of one shape.

    rival(data, k, batch, seed) -> Found

`data` is a float32 array, a read-only `np.memmap` or a CSR array, centred already. Functions import
their library themselves, so that a peer that is not installed costs a row and nothing else. A pass
is one reading of all the data, whether for X V', for Y'X or for both at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy.sparse

from benchmarks.krylov import block_krylov, covariance_times, nystrom_krylov
from benchmarks.machine import available_bytes, threads_allowed


class Found(NamedTuple):
    """What a rival hands back.

    Attributes
    ----------
    components : array of shape (k, d)
    passes : int or None
        Readings of all the data; None where nobody counted.
    players : int or None
        Vectors that met every row in both X V' and Y'X in each pass: given by those whose speed is
        compared to the machine's own matrix product.
    note : str
        What else a reader should know of this run.
    """

    components: np.ndarray
    passes: int | None
    players: int | None = None
    note: str = ""


class Declined(Exception):
    """A rival cannot take a data set, and why."""


@dataclass(frozen=True)
class Rival:
    """A rival, what it needs ("module" or "module:name"), and the package whose version matters."""

    run: Callable[..., Found]
    needs: str
    package: str
    about: str


def sklearn_incremental(data: Any, k: int, batch: int, seed: int) -> Found:
    """IncrementalPCA: an SVD of memory and batch at every batch (sparse rows made dense by batch)."""
    from sklearn.decomposition import IncrementalPCA

    return Found(IncrementalPCA(k, batch_size=batch).fit(data).components_, 1)


def sklearn_randomized(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by randomized SVD: `auto` is 7 power iterations where k is below a tenth of either side."""
    from sklearn.decomposition import PCA

    pca = PCA(k, svd_solver="randomized", random_state=seed).fit(data)
    return Found(pca.components_, power_passes(7 if k < 0.1 * min(data.shape) else 4))


def sklearn_covariance(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by `eigh` of the d x d covariance: exact, for few columns."""
    from sklearn.decomposition import PCA

    room_for_covariance(data)
    return Found(PCA(k, svd_solver="covariance_eigh").fit(data).components_, 1)


def sklearn_arpack(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by ARPACK: one vector at a time, so many passes; counted where scikit-learn calls `svds`."""
    from scipy.sparse.linalg import svds
    from sklearn.decomposition import PCA

    passes = 0

    def counted_svds(matrix: Any, *args: Any, **options: Any) -> Any:
        operator = scipy.sparse.linalg.aslinearoperator(matrix)  # as svds itself begins

        def count(product: Callable[[Any], Any], vector: Any) -> Any:
            nonlocal passes
            passes += 1
            return product(vector)

        counting = scipy.sparse.linalg.LinearOperator(
            operator.shape,
            matvec=partial(count, operator.matvec),
            rmatvec=partial(count, operator.rmatvec),
            matmat=partial(count, operator.matmat),
            rmatmat=partial(count, operator.rmatmat),
            dtype=operator.dtype,
        )
        return svds(counting, *args, **options)

    with mock.patch("sklearn.decomposition._pca.svds", counted_svds):
        pca = PCA(k, svd_solver="arpack", random_state=seed).fit(data)
    return Found(pca.components_, passes)


def sklearn_truncated(data: Any, k: int, batch: int, seed: int) -> Found:
    """TruncatedSVD: randomized, 5 power iterations, no centring."""
    from sklearn.decomposition import TruncatedSVD

    return Found(TruncatedSVD(k, random_state=seed).fit(data).components_, power_passes(5))


def sklearnex_incremental(data: Any, k: int, batch: int, seed: int) -> Found:
    """Intel's IncrementalPCA: sums the d x d covariance batch by batch, then `eigh`."""
    import daal4py
    from sklearnex.preview.decomposition import IncrementalPCA

    daal4py.daalinit(threads_allowed())
    room_for_covariance(data)
    if scipy.sparse.issparse(data):
        raise Declined("takes no sparse rows (it falls back to scikit-learn's own)")
    return Found(IncrementalPCA(k, batch_size=batch).fit(data).components_, 1)


def torch_lowrank(data: Any, k: int, batch: int, seed: int, niter: int = 2) -> Found:
    """torch.pca_lowrank with q = k + 10, without centring (the data is centred)."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(threads_allowed())
    if scipy.sparse.issparse(data):
        parts = data.tocoo()
        places = torch.from_numpy(np.stack(parts.coords).astype(np.int64))
        rows = torch.sparse_coo_tensor(places, torch.from_numpy(parts.data), data.shape)
    else:
        rows = torch.from_numpy(data)
    _, _, vectors = torch.pca_lowrank(rows, q=k + 10, center=False, niter=niter)
    return Found(vectors[:, :k].T.numpy(), power_passes(niter))


def fbpca_pca(data: Any, k: int, batch: int, seed: int, n_iter: int = 2) -> Found:
    """fbpca.pca with l = k + 10, raw (the data is centred); it draws, and so computes, in float64."""
    import fbpca

    np.random.seed(seed)  # noqa: NPY002 - the only seed fbpca knows
    _, _, vectors = fbpca.pca(data, k, raw=True, n_iter=n_iter, l=k + 10)
    return Found(vectors, power_passes(n_iter))


def dask_compressed(data: Any, k: int, batch: int, seed: int, n_power_iter: int = 0) -> Found:
    """dask.array svd_compressed over chunks of rows, one BLAS thread for each of Dask's threads."""
    import dask.array as da
    from threadpoolctl import threadpool_limits

    import dask

    source = DenseSlices(data) if scipy.sparse.issparse(data) else data
    rows = da.from_array(source, chunks=(max(batch, k + 10), data.shape[1]))
    workers = {"scheduler": "threads", "num_workers": threads_allowed()}
    with dask.config.set(**workers), threadpool_limits(1):
        _, _, vectors = da.linalg.svd_compressed(
            rows, k, iterator="QR", n_power_iter=n_power_iter, seed=seed, compute=True
        )
        return Found(vectors.compute(), power_passes(n_power_iter))


def scipy_lobpcg(data: Any, k: int, batch: int, seed: int, iterations: int = 8) -> Found:
    """SciPy's lobpcg on the covariance as an operator over chunks of rows, with blocks of 2k."""
    from scipy.sparse.linalg import LinearOperator, lobpcg

    passes, d = 0, data.shape[1]

    def times(block: np.ndarray) -> np.ndarray:
        nonlocal passes
        passes += 1
        rows = np.ascontiguousarray(block.reshape(d, -1).T, np.float32)
        return covariance_times(data, rows).T.astype(np.float64)

    operator = LinearOperator((d, d), matvec=times, matmat=times, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal((d, 2 * k))
    # The last residuals are those of the spare vectors: `tol` would wait for them, so count instead.
    _, vectors = lobpcg(operator, start, largest=True, maxiter=iterations, tol=1e-12)
    return Found(vectors[:, :k].T, passes)


def krylov(data: Any, k: int, batch: int, seed: int, passes: int = 6) -> Found:
    """Block Krylov over a stream of rows (krylov.py): blocks of 2k, float32 GEMMs."""
    return Found(block_krylov(data, k, passes, seed), passes, players=2 * k)


def nystrom(data: Any, k: int, batch: int, seed: int, passes: int = 4) -> Found:
    """Block Krylov with its images kept (krylov.py), by Nystrom: one pass more for nothing."""
    return Found(nystrom_krylov(data, k, passes, seed), passes, players=2 * k)


class DenseSlices:
    """Sparse rows that turn dense where they are sliced: how Dask reads them."""

    def __init__(self, data: Any) -> None:
        self.data, self.shape, self.dtype, self.ndim = data, data.shape, data.dtype, 2

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.data[index].toarray()


def power_passes(iterations: int) -> int:
    """Return the passes of a randomized SVD: two for each iteration, one before, one after."""
    return 2 * iterations + 2


def room_for_covariance(data: Any) -> None:
    """Decline where the d x d covariance (and one copy of it in work) does not fit into memory."""
    needed = 2 * 8 * data.shape[1] ** 2
    if needed > available_bytes():
        raise Declined(
            f"the {data.shape[1]} x {data.shape[1]} covariance needs {needed / 1e9:.0f} GB"
        )


def entry(run: Callable[..., Found], needs: str, package: str, **options: Any) -> Rival:
    """Return a rival described by its function's docstring and its options."""
    chosen = "".join(f" [{name}={value}]" for name, value in options.items())
    return Rival(
        partial(run, **options), needs, package, (run.__doc__ or "").splitlines()[0] + chosen
    )


RIVALS: dict[str, Rival] = {
    "sklearn-incremental": entry(sklearn_incremental, "sklearn.decomposition", "scikit-learn"),
    "sklearn-randomized": entry(sklearn_randomized, "sklearn.decomposition", "scikit-learn"),
    "sklearn-covariance": entry(sklearn_covariance, "sklearn.decomposition", "scikit-learn"),
    "sklearn-arpack": entry(sklearn_arpack, "sklearn.decomposition", "scikit-learn"),
    "sklearn-truncated": entry(sklearn_truncated, "sklearn.decomposition", "scikit-learn"),
    "sklearnex-incremental": entry(
        sklearnex_incremental, "sklearnex.preview.decomposition", "scikit-learn-intelex"
    ),
    "torch": entry(torch_lowrank, "torch", "torch"),
    "torch-8": entry(torch_lowrank, "torch", "torch", niter=8),
    "fbpca": entry(fbpca_pca, "fbpca", "fbpca"),
    "fbpca-8": entry(fbpca_pca, "fbpca", "fbpca", n_iter=8),
    "dask": entry(dask_compressed, "dask.array", "dask"),
    "dask-4": entry(dask_compressed, "dask.array", "dask", n_power_iter=4),
    "lobpcg": entry(scipy_lobpcg, "scipy.sparse.linalg", "scipy"),
    "lobpcg-4": entry(scipy_lobpcg, "scipy.sparse.linalg", "scipy", iterations=4),
    "block-krylov": entry(krylov, "numpy", "numpy"),
    "block-krylov-4": entry(krylov, "numpy", "numpy", passes=4),
    "nystrom-krylov": entry(nystrom, "numpy", "numpy"),
}
"""Every rival by name; a name with a number is the same peer with that many iterations or passes."""
