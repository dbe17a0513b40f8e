"""Data with too few rows that count is refused; weights of any scale give the same variances."""

import numpy as np
import pytest

from eigengame import SourceError, prepare
from tests.game_pca import game_pca
from tests.preparation.reading import Weighted

N, D, K = 60, 5, 2
X = np.random.default_rng(0).standard_normal((N, D)) * [5, 3, 1, 1, 1]
HOLES = X.copy()
HOLES[np.arange(N), np.arange(N) % D] = np.nan


class WeighedDown(Weighted):
    """Rows of weight 0."""

    def blocks(self, start, size):
        for block in super().blocks(start, size):
            yield type(block)(block.values, 0 * block.weights)


@pytest.mark.parametrize("algorithm", ["remembered", "auto", "oja"])
@pytest.mark.parametrize(
    "data", [lambda: prepare(HOLES, missing="skip"), lambda: WeighedDown(X)], ids=["skip", "column"]
)
def test_a_fit_without_a_row_that_counts_is_refused(data, algorithm):
    with pytest.raises(SourceError, match=r"no row has a weight above zero.*missing='mean'"):
        game_pca(K, algorithm=algorithm, random_state=0).fit(data())


@pytest.mark.parametrize("weights", [0, np.zeros(N)], ids=["number", "array"])
def test_weights_that_are_all_0_are_refused(weights):
    pca = game_pca(K, random_state=0)
    for learn in (pca.fit, pca.partial_fit):
        # The first message is that of recent versions of scikit-learn.
        with pytest.raises(
            ValueError, match=r"at least one non-zero|no row has a weight above zero"
        ):
            learn(X, sample_weight=weights)


def test_a_batch_without_rows_that_count_changes_nothing():
    pca = game_pca(K, random_state=0)
    with pytest.raises(SourceError, match="no row has a weight above zero"):
        pca.partial_fit(prepare(HOLES, missing="skip"))
    pca.partial_fit(prepare(X, missing="skip"))
    before = pca.components_.copy()
    pca.partial_fit(HOLES)
    assert pca.n_samples_seen_ == N
    np.testing.assert_allclose(pca.components_, before, atol=1e-6)


def test_one_row_is_not_enough():
    for data in (iter([X[:1]]), Weighted(X[:2])):  # the first row of the latter has weight 0
        with pytest.raises(SourceError, match=r"has 1 row with a weight above 0: at least 2"):
            game_pca(1, random_state=0).fit(data)
    one = np.eye(1, N)[0]
    with pytest.raises(SourceError, match="at least 2 are needed"):
        game_pca(1, random_state=0).fit(X, sample_weight=one)


def test_a_stream_of_one_row_has_no_components_yet():
    pca = game_pca(K, random_state=0).partial_fit(X[:1])
    with pytest.raises(ValueError, match=r"has seen 1 row: components need at least two"):
        pca.transform(X)
    assert pca.partial_fit(X[1:]).transform(X).shape == (N, K)


def test_more_components_than_rows_that_count_are_refused():
    few = np.vstack([X[:3], HOLES])
    with pytest.raises(ValueError, match=r"n_components=4 is more than 3, the number of rows"):
        game_pca(4, random_state=0).fit(prepare(few, missing="skip"))
    with pytest.raises(ValueError, match=r"n_components=4 is more than 3"):
        game_pca(4, random_state=0).fit(iter([X[:3]]))
    assert game_pca(random_state=0).fit(prepare(few, missing="skip")).n_components_ == 3


@pytest.mark.parametrize("total", [1e-6, 1, 1.5, N / 2, N])
def test_weights_below_1_are_relative(total):
    pca = game_pca(K, passes=8, random_state=0).fit(X, sample_weight=np.full(N, total / N))
    plain = game_pca(K, passes=8, random_state=0).fit(X)
    np.testing.assert_allclose(pca.explained_variance_, plain.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(pca.var_, plain.var_, rtol=1e-6)
    assert pca.n_samples_seen_ == N


def test_rows_of_weight_0_are_not_counted():
    weights = np.arange(N) % 2
    pca = game_pca(K, passes=8, random_state=0).fit(X, sample_weight=weights)
    plain = game_pca(K, passes=8, random_state=0).fit(X[1::2])
    assert pca.n_samples_seen_ == N // 2
    np.testing.assert_allclose(pca.explained_variance_, plain.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(pca.noise_variance_, plain.noise_variance_, rtol=1e-6)


def test_small_weights_do_not_blow_up_where_rows_are_forgotten():
    weights = np.full(N, 1 / N)
    pca = game_pca(K, forget=0.999, random_state=0).fit(X, sample_weight=weights)
    plain = game_pca(K, forget=0.999, random_state=0).fit(X)
    assert 0.5 < pca.explained_variance_[0] / plain.explained_variance_[0] < 2.5
