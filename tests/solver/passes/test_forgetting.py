"""Forgetting together with further passes: refinement and certificates of the weighted problem."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import metrics, prepare
from eigengame.solver.passes.forgetting import faded_weights
from eigengame.solver.planning.options import Options
from eigengame.solver.results.result import Found, result_of
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.moments import Moments
from tests.game_pca import game_pca

N, D, K = 300, 12, 3
FORGET = 0.99


def drifting(seed=0):
    """Rows whose first directions change half-way through."""
    rng = np.random.default_rng(seed)
    scales = 0.6 ** np.arange(D)
    before = rng.normal(size=(N // 2, D)) * scales
    after = rng.normal(size=(N // 2, D)) * np.roll(scales, 3) + 1
    return np.concatenate([before, after])


def weights_by_loop(x, forget=FORGET, own=None):
    """The weight of each row: every later row that counts multiplies it by `forget`."""
    own = np.ones(len(x)) if own is None else own
    weights = np.zeros(len(x))
    for r in range(len(x)):
        if own[r] > 0:
            weights *= forget
            weights[r] = own[r]
    return weights


def weighted_problem(x, weights, center=True):
    """Eigenvalues and eigenvectors of the weighted scatter matrix, its trace, and the mean."""
    mean = weights @ x / weights.sum() if center else np.zeros(x.shape[1])
    rows = np.sqrt(weights)[:, None] * (x - mean)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return values[::-1], vectors.T[::-1], np.sum(rows**2), mean


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("how", [{"tol": 1e-4}, {"passes": 12}])
def test_refining_a_fit_that_forgets_solves_the_weighted_problem(how, center):
    x = drifting()
    pca = game_pca(K, forget=FORGET, center=center, random_state=0, **how).fit(x)
    weights = weights_by_loop(x)
    values, vectors, total, mean = weighted_problem(x, weights, center)
    assert metrics.angular_error(pca.components_, vectors[:K]).max() < 1e-4
    np.testing.assert_allclose(pca.singular_values_**2, values[:K], rtol=1e-6)
    np.testing.assert_allclose(pca.explained_variance_ratio_, values[:K] / total, rtol=1e-6)
    np.testing.assert_allclose(pca.explained_variance_, values[:K] / (weights.sum() - 1), rtol=1e-6)
    np.testing.assert_allclose(pca.mean_, mean, atol=1e-12)
    if "tol" in how:
        assert pca.certificate_.kind == "certified"
        assert pca.certificate_.angle.max() <= 1e-4


def test_rows_of_weight_zero_make_no_other_row_older():
    x, own = drifting(), np.random.default_rng(1).integers(0, 3, N)
    pca = game_pca(K, forget=FORGET, tol=1e-4, random_state=0).fit(x, sample_weight=own)
    weights = weights_by_loop(x, own=own)
    np.testing.assert_allclose(faded_weights(N, FORGET, own), weights)
    values, vectors, total, _ = weighted_problem(x, weights)
    assert metrics.angular_error(pca.components_, vectors[:K]).max() < 1e-4
    np.testing.assert_allclose(pca.explained_variance_ratio_, values[:K] / total, rtol=1e-6)


def test_certify_of_a_fit_that_forgets_measures_the_weighted_problem():
    x = drifting()
    pca = game_pca(K, forget=FORGET, random_state=0).fit(x)
    weights = weights_by_loop(x)
    values, vectors, _, _ = weighted_problem(x, weights)
    found = pca.certify(x)
    true = metrics.angular_error(pca.components_, vectors[:K])
    assert found.kind == "certified"
    assert (true <= found.angle + 1e-9).all()
    assert found.angle.max() < 0.2
    np.testing.assert_allclose(found.rayleigh, values[:K] / (weights.sum() - 1), rtol=0.01)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: sparse.csr_matrix(drifting()), "forget=0.99 needs dense rows"),
        (lambda: prepare(_with_a_gap(), missing="skip"), "leaves out rows"),
    ],
)
def test_refining_a_fit_that_forgets_is_refused_where_weights_cannot_be_known(data, words):
    with pytest.raises(ValueError, match=words):
        game_pca(K, forget=FORGET, tol=1e-6, batch_size=64, random_state=0).fit(data())


def test_certify_of_a_fit_that_forgets_is_refused_where_weights_cannot_be_known():
    pca = game_pca(K, forget=FORGET, random_state=0).fit(drifting())
    with pytest.raises(ValueError, match="leaves out rows"):
        pca.certify(prepare(_with_a_gap(), missing="skip"))
    with pytest.raises(ValueError, match="number of rows"):
        pca.certify(iter([drifting()]))
    pytest.importorskip("dask")
    with pytest.raises(ValueError, match=r"forget=0\.99"):
        pca.certify(drifting(), engine="dask")


def test_refining_a_fit_that_forgets_needs_the_number_of_rows():
    once = game_pca(K, forget=FORGET, tol=None, passes=3, random_state=0)
    with pytest.raises(ValueError, match=r"forget=0\.99 .* number of rows"):
        once.fit(iter([drifting()]))


def _with_a_gap():
    x = drifting()
    x[7, 2] = np.nan
    return x


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**31 - 1))
@pytest.mark.parametrize("how", [{}, {"tol": 0.01}])
@pytest.mark.parametrize("forget", [1.0, 0.9])
def test_shares_of_variance_never_exceed_one(forget, how, seed):
    x = drifting(seed)
    x = x * 10.0 ** (seed % 7 - 3) + seed % 5
    pca = game_pca(K, forget=forget, random_state=seed, **how).fit(x)
    assert pca.explained_variance_ratio_.sum() <= 1 + 1e-9
    stream = game_pca(K, forget=forget, random_state=seed).partial_fit(x).partial_fit(x)
    # Played in float32.
    assert stream.explained_variance_ratio_.sum() <= 1 + 1e-4


def test_shares_above_one_are_an_error():
    fitted = game_pca(K, random_state=0).fit(drifting())
    result, values = fitted._result, fitted.singular_values_**2
    small = Moments(np.float64(N), np.zeros(D), np.full(D, values.sum() / D / 60))
    found = Found(result.players, values, result.certificate, result.outcome, small, N)
    with pytest.raises(ArithmeticError, match="more than the total"):
        result_of(found, Options(), Frame())
    close = small._replace(scatter=np.full(D, values.sum() / D * (1 - 1e-14)))
    shares = result_of(replace(found, moments=close), Options(), Frame()).explained_variance_ratio
    assert shares.sum() == pytest.approx(1)
