"""Data of a lower rank than the number of components: exactly as many come back, as from scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_low_rank_matrix
from sklearn.decomposition import PCA

from eigengame import Status, prepare
from eigengame.metrics import angular_error
from eigengame.solver.planning.options import Options
from eigengame.solver.results.result import Found, result_of
from eigengame.solver.rows.frame import Frame
from tests.game_pca import game_pca

LOW_RANK = make_low_rank_matrix(400, 40, tail_strength=0.0, effective_rank=4, random_state=1999)


@pytest.mark.parametrize("k", [None, 39])
def test_variances_are_those_of_scikit_learn(k):
    exact = PCA(k).fit(LOW_RANK)
    pca = game_pca(k, batch_size=100, random_state=0).fit(LOW_RANK)
    assert pca.n_components_ == exact.n_components_
    for name in ("explained_variance_", "explained_variance_ratio_", "noise_variance_"):
        np.testing.assert_allclose(getattr(pca, name), getattr(exact, name), atol=1e-12)


@pytest.mark.parametrize("k", [None, 39])
def test_whitened_scores_are_those_of_scikit_learn_and_can_be_inverted(k):
    exact = PCA(k, whiten=True).fit(LOW_RANK)
    pca = game_pca(k, whiten=True, batch_size=100, random_state=0).fit(LOW_RANK)
    stable = exact.explained_variance_ratio_ > 1e-10
    scores = pca.transform(LOW_RANK)
    # One pass: its last components are off by what it forgot.
    np.testing.assert_allclose(
        np.abs(scores)[:, stable], np.abs(exact.transform(LOW_RANK))[:, stable], atol=1e-3
    )
    # Variances below 4 eps of the first count as 0: lengths of 3e-8 of it.
    np.testing.assert_allclose(pca.inverse_transform(scores), LOW_RANK, atol=1e-8)


@pytest.mark.parametrize(
    "how", [{}, {"tol": 1e-3}, {"algorithm": "auto"}], ids=["stream", "refined", "covariance"]
)
@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("k", [None, 6])
def test_null_directions_are_orthonormal_with_variance_zero(k, rank, how):
    rng = np.random.default_rng(rank)
    data = 2.0 + rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 12))
    pca = game_pca(k, random_state=0, **how).fit(data)
    assert pca.components_.shape == (k or 12, 12)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(k or 12), atol=1e-12)
    assert (pca.explained_variance_[:rank] > 0.01).all()
    # Rounding errors of the first variance, if the number was given: small variances may be real.
    most = 0 if k is None else 1e-14 * pca.explained_variance_[0]
    assert (pca.explained_variance_[rank:] <= most).all()


def test_more_features_than_rows_give_as_many_components_as_rows():
    data = np.random.default_rng(0).standard_normal((8, 20))
    pca = game_pca(random_state=0).fit(data)
    assert pca.n_components_ == 8
    assert pca.explained_variance_[-1] == 0  # the mean takes one dimension
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(8), atol=1e-12)


@pytest.mark.parametrize("how", [{}, {"tol": 0.01}, {"n_components": None}])
def test_small_variances_beside_a_dominant_one_are_kept(how):
    """The variances of the small features are a hundred-millionth of the first."""
    rng = np.random.default_rng(0)
    small = rng.standard_normal((30_000, 9)) * np.linspace(5, 1, 9)
    data = np.c_[rng.lognormal(10, 1, 30_000), small]  # enough numbers for float32
    pca = game_pca(**{"n_components": 4, "random_state": 0} | how).fit(data)
    exact = PCA(4).fit(data)
    np.testing.assert_allclose(pca.explained_variance_[:4], exact.explained_variance_, rtol=0.01)
    assert angular_error(pca.components_[:4], exact.components_).max() < 0.02


def test_components_that_few_rows_cannot_determine_do_not_count_for_tol():
    data = np.random.default_rng(0).standard_normal((10, 40))
    for algorithm in ("remembered", "auto"):
        pca = game_pca(tol=1e-3, algorithm=algorithm, random_state=0).fit(data)
        assert pca.n_components_ == 10
        assert pca.outcome_.status is Status.CONVERGED
        assert (pca.certificate_.angle[:9] <= 1e-3).all()
        assert pca.certificate_.angle[9] == pytest.approx(np.pi / 2)


def test_a_share_of_the_variance_takes_no_more_components_than_rows_that_count():
    data = np.random.default_rng(0).standard_normal((40, 30))
    data[8:, 0] = np.nan
    pca = game_pca(0.5, random_state=0).fit(prepare(data, missing="skip"))
    assert 1 <= pca.n_components_ < 8
    assert pca.explained_variance_ratio_.sum() >= 0.5
    assert pca.n_passes_ == 1


def test_a_component_without_a_direction_gets_one():
    pca = game_pca(3, probes=0, random_state=0).fit(LOW_RANK)
    result = pca._result
    players = result.players.copy()
    players[2] = 0
    values = np.append(result.singular_values[:2] ** 2, 0)
    moments = result.stream.moments
    found = Found(players, values, result.certificate, result.outcome, moments, result.rows)
    completed = result_of(found, replace(Options(), dtype=np.float64), Frame()).components
    np.testing.assert_allclose(completed @ completed.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(np.abs(completed[:2]), np.abs(result.components[:2]))
