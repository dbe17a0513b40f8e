"""Solvers of other libraries: one function each, with a common interface.

    solver(data, k, batch, seed) -> Found

`data` is a centred float32 array, a read-only `np.memmap` or a CSR array. Functions import their library
themselves, so that a library that is not installed affects only its own rows. A pass is one reading of all
the data, for X V', for Y'X or for both at once.
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
    """The result of a solver.

    Attributes
    ----------
    components : array of shape (k, d)
    passes : int or None
        Readings of all the data; None if unknown.
    players : int or None
        Number of vectors in the products X V' and Y'X of each pass, for solvers whose speed is compared
        with plain matrix products.
    note : str
        A remark for the table.
    """

    components: np.ndarray
    passes: int | None
    players: int | None = None
    note: str = ""


class Declined(Exception):
    """A solver does not accept a data set; the message contains the reason."""


@dataclass(frozen=True)
class Solver:
    """A solver, the import that it needs ("module" or "module:name"), its package and a description."""

    run: Callable[..., Found]
    needs: str
    package: str
    about: str


def sklearn_incremental(data: Any, k: int, batch: int, seed: int) -> Found:
    """IncrementalPCA: an SVD of components and batch for every batch (converts sparse batches)."""
    from sklearn.decomposition import IncrementalPCA

    return Found(IncrementalPCA(k, batch_size=batch).fit(data).components_, 1)


def sklearn_randomized(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by randomized SVD: `auto` is 7 power iterations if k is below a tenth of both sides."""
    from sklearn.decomposition import PCA

    pca = PCA(k, svd_solver="randomized", random_state=seed).fit(data)
    return Found(pca.components_, power_passes(7 if k < 0.1 * min(data.shape) else 4))


def sklearn_covariance(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by `eigh` of the d x d covariance: exact, for few columns."""
    from sklearn.decomposition import PCA

    room_for_covariance(data)
    return Found(PCA(k, svd_solver="covariance_eigh").fit(data).components_, 1)


def sklearn_arpack(data: Any, k: int, batch: int, seed: int) -> Found:
    """PCA by ARPACK: one vector at a time, so many passes; they are counted in calls of `svds`."""
    from scipy.sparse.linalg import svds
    from sklearn.decomposition import PCA

    passes = 0

    def counted_svds(matrix: Any, *args: Any, **options: Any) -> Any:
        operator = scipy.sparse.linalg.aslinearoperator(matrix)  # as in svds itself

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
        raise Declined("does not accept sparse rows (it falls back to scikit-learn)")
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
    """fbpca.pca with l = k + 10, raw (the data is centred); it computes in float64."""
    import fbpca

    np.random.seed(seed)  # noqa: NPY002 - fbpca uses the global seed
    _, _, vectors = fbpca.pca(data, k, raw=True, n_iter=n_iter, l=k + 10)
    return Found(vectors, power_passes(n_iter))


def dask_compressed(data: Any, k: int, batch: int, seed: int, n_power_iter: int = 0) -> Found:
    """dask.array svd_compressed over chunks of rows, one BLAS thread for each of Dask's threads."""
    import dask
    import dask.array as da
    from threadpoolctl import threadpool_limits

    source = DenseSlices(data) if scipy.sparse.issparse(data) else data
    rows = da.from_array(source, chunks=(max(batch, k + 10), data.shape[1]))
    workers = {"scheduler": "threads", "num_workers": threads_allowed()}
    with dask.config.set(**workers), threadpool_limits(1):
        _, _, vectors = da.linalg.svd_compressed(
            rows, k, iterator="QR", n_power_iter=n_power_iter, seed=seed, compute=True
        )
        return Found(vectors.compute(), power_passes(n_power_iter))


def xeofs_eof(data: Any, k: int, batch: int, seed: int) -> Found:
    """xeofs.single.EOF with its randomized solver, on an xarray in memory or in chunks of Dask."""
    import dask
    import xarray
    import xeofs

    if scipy.sparse.issparse(data):
        raise Declined("needs dense rows")
    # It needs coordinates, and has uses of its own for the names "sample" and "feature".
    along = {"time": np.arange(data.shape[0]), "place": np.arange(data.shape[1])}
    rows = xarray.DataArray(data, coords=along, dims=tuple(along))
    if isinstance(data, np.memmap):
        rows = rows.chunk({"time": max(batch, k + 10)})
    model = xeofs.single.EOF(n_modes=k, center=True, check_nans=False, random_state=seed)
    with dask.config.set(scheduler="threads", num_workers=threads_allowed()):
        model.fit(rows, dim="time")
        found = model.components().transpose("mode", "place").values
    return Found(np.asarray(found), None)


def torchdr_incremental(data: Any, k: int, batch: int, seed: int) -> Found:
    """TorchDR's IncrementalPCA: an SVD of components and batch for every batch."""
    import torch
    import torchdr

    if scipy.sparse.issparse(data):
        raise Declined("needs dense rows")
    torch.set_num_threads(threads_allowed())
    model = torchdr.IncrementalPCA(n_components=k, batch_size=max(batch, 5 * k), device="cpu")
    model.fit(torch.from_numpy(np.asarray(data)))
    return Found(model.components_.numpy(), 1)


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
    # `tol` would also wait for the residuals of the spare vectors, so the iterations are limited instead.
    _, vectors = lobpcg(operator, start, largest=True, maxiter=iterations, tol=1e-12)
    return Found(vectors[:, :k].T, passes)


def krylov(data: Any, k: int, batch: int, seed: int, passes: int = 6) -> Found:
    """Block Krylov over a stream of rows (krylov.py): blocks of 2k, float32 GEMMs."""
    return Found(block_krylov(data, k, passes, seed), passes, players=2 * k)


def nystrom(data: Any, k: int, batch: int, seed: int, passes: int = 4) -> Found:
    """Block Krylov with stored images (krylov.py), by Nystrom: as accurate as one more pass."""
    return Found(nystrom_krylov(data, k, passes, seed), passes, players=2 * k)


class DenseSlices:
    """Sparse rows that become dense when they are sliced, for Dask."""

    def __init__(self, data: Any) -> None:
        self.data, self.shape, self.dtype, self.ndim = data, data.shape, data.dtype, 2

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.data[index].toarray()


def power_passes(iterations: int) -> int:
    """Return the passes of a randomized SVD: two for each iteration, one before, one after."""
    return 2 * iterations + 2


def room_for_covariance(data: Any) -> None:
    """Decline if the d x d covariance and one copy of it do not fit in memory."""
    needed = 2 * 8 * data.shape[1] ** 2
    if needed > available_bytes():
        raise Declined(
            f"the {data.shape[1]} x {data.shape[1]} covariance needs {needed / 1e9:.0f} GB"
        )


def entry(run: Callable[..., Found], needs: str, package: str, **options: Any) -> Solver:
    """Return a solver described by the docstring of its function and its options."""
    chosen = "".join(f" [{name}={value}]" for name, value in options.items())
    return Solver(
        partial(run, **options), needs, package, (run.__doc__ or "").splitlines()[0] + chosen
    )


OTHER_SOLVERS: dict[str, Solver] = {
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
    "torchdr": entry(torchdr_incremental, "torchdr", "torchdr"),
    "xeofs": entry(xeofs_eof, "xeofs", "xeofs"),
    "dask": entry(dask_compressed, "dask.array", "dask"),
    "dask-4": entry(dask_compressed, "dask.array", "dask", n_power_iter=4),
    "lobpcg": entry(scipy_lobpcg, "scipy.sparse.linalg", "scipy"),
    "lobpcg-4": entry(scipy_lobpcg, "scipy.sparse.linalg", "scipy", iterations=4),
    "block-krylov": entry(krylov, "numpy", "numpy"),
    "block-krylov-4": entry(krylov, "numpy", "numpy", passes=4),
    "nystrom-krylov": entry(nystrom, "numpy", "numpy"),
}
"""Solvers by name; a number in a name is the number of iterations or passes."""
