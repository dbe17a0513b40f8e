"""Hard matrices through every algorithm: finite components, or a clear refusal; certified bounds that hold."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from benchmarks.exact_eigen import truth_of

from eigengame import EigenGamePCA
from eigengame.algorithms import REGISTRY

from .hard_matrices import MATRICES, K, read_only

CERTIFIED = ("exact", "auto", "remembered")
"""Algorithms whose certificates bound the angles of components."""

ORTHONORMAL = (*CERTIFIED, "oja", "krasulina", "frequent_directions")
"""Algorithms whose components are orthonormal after any number of steps. Those of the others have length 1, except
gha, whose players are not normalised."""

REFUSED = {
    "one row": "minimum of 2 is required",
    "denormal": "squares are beyond the range of float64: divide it",
}
"""Matrices that every algorithm refuses, and the message."""

REFUSED_BY = {
    ("sequential", name): "give distinct values"
    for name in ("rank 0", "equal rows", "one row broadcast")
}
"""Matrices that one algorithm refuses."""

FAST = (
    "graded spectrum",
    "repeated eigenvalues",
    "equal rows",
    "big-endian float32",
    "negative strides",
)


def fit(algorithm, name):
    """Return the fitted estimator, or None if the matrix is refused as expected."""
    rows = read_only(MATRICES[name])
    message = REFUSED.get(name) or REFUSED_BY.get((algorithm, name))
    estimator = EigenGamePCA(min(K, *rows.shape), algorithm=algorithm, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if message is None:
            return estimator.fit(rows)
        with pytest.raises(ValueError, match=message):
            estimator.fit(rows)
    return None


@cache
def truth(name):
    return truth_of(np.asarray(MATRICES[name]).astype(np.float64))


def assert_components(algorithm, pca):
    """Check that all numbers are finite, and components orthonormal or at least of length 1."""
    for one in (pca.components_, pca.explained_variance_, pca.mean_, pca.var_):
        assert np.isfinite(one).all()
    assert (pca.explained_variance_ >= 0).all()
    products = pca.components_.astype(np.float64) @ pca.components_.T.astype(np.float64)
    if algorithm == "gha":
        return
    if algorithm not in ORTHONORMAL:
        products = np.diag(np.diag(products))
    np.testing.assert_allclose(products, np.eye(len(products)), atol=1e-5)


def assert_bounds(name, pca):
    """Check values, and every certified bound against components to 50 digits."""
    known = truth(name)
    certificate = pca.certificate_
    rows = np.asarray(MATRICES[name]).astype(np.float64)
    if known is None:  # all rows are equal
        # The mean of equal numbers is rounded, and so is their distance to it.
        level = len(rows) * (np.finfo(np.float64).eps * np.abs(rows).max(initial=0)) ** 2
        assert (pca.explained_variance_ <= level).all()
        assert certificate.kind != "certified" or (certificate.angle >= math.pi / 2).all()
        return
    if certificate.kind != "certified":
        return
    for i, bound in enumerate(certificate.angle):
        if bound < math.pi / 2:
            assert known.angle(pca.components_[i : i + 1], i, i) <= bound * (1 + 1e-9), (i, bound)
    k = len(pca.components_)
    for cluster in certificate.clusters:
        members = [i for i in cluster.members if i < k]
        if members and cluster.angle < math.pi / 2:
            span = min(cluster.members), max(cluster.members)
            parts = [members] if span[1] < k else [[i] for i in members]
            true = max(known.angle(pca.components_[part], *span) for part in parts)
            assert true <= cluster.angle * (1 + 1e-9), cluster


def assert_values(name, pca, tolerance):
    """Compare variances with the true ones, relative to the largest."""
    known = truth(name)
    if known is None:
        return
    rows = np.asarray(MATRICES[name]).astype(np.float64)
    scale = np.abs(rows).max()
    total = ((rows / scale - (rows / scale).mean(axis=0)) ** 2).sum() / (len(rows) - 1)
    true = known.values[: len(pca.components_)].astype(np.float64) * total
    found = pca.explained_variance_ / scale / scale
    np.testing.assert_allclose(found, true, atol=tolerance * true[0], rtol=0)


def check(algorithm, name):
    pca = fit(algorithm, name)
    if pca is None:
        return
    assert_components(algorithm, pca)
    if algorithm in CERTIFIED:
        assert_bounds(name, pca)
        # Up to 8 bits are lost to the condition of the mean; one pass over 40 rows is one batch.
        assert_values(name, pca, 1e-6)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("algorithm", [*CERTIFIED, "oja", "frequent_directions"])
def test_some_hard_matrices(algorithm, name):
    check(algorithm, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("algorithm", [*CERTIFIED, *sorted(set(REGISTRY) - set(CERTIFIED))])
def test_hard_matrices(algorithm, name):
    check(algorithm, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("algorithm", CERTIFIED)
def test_hard_matrices_refined_to_a_tolerance(algorithm, name):
    if name in REFUSED:
        pytest.skip("refused")
    rows = read_only(MATRICES[name])
    estimator = EigenGamePCA(min(K, *rows.shape), algorithm=algorithm, tol=1e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = estimator.fit(rows)
    assert_components(algorithm, pca)
    assert_bounds(name, pca)
    assert_values(name, pca, 1e-6)


@pytest.mark.parametrize("algorithm", [*CERTIFIED, "oja"])
@pytest.mark.parametrize("factor", [1e-310, 1e-165, 1e170])
def test_numbers_whose_squares_are_out_of_range_are_refused(algorithm, factor):
    with pytest.raises(ValueError, match="squares are beyond the range of float64: divide it"):
        EigenGamePCA(K, algorithm=algorithm).fit(MATRICES["plain"] * factor)
