"""What is certified are the principal components of the data as given, whatever happens on the way.

Each of these data sets was once certified to be within an angle that it was not.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame import Checkpoint, EigenGamePCA, Interrupted
from eigengame.metrics import angular_error
from eigengame.solver.results.outcome import Status
from tests.game_pca import game_pca

N, D = 6000, 50  # more than 262,144 numbers: played in float32 unless told otherwise


def truth(data, k):
    """The first k eigenvectors of the scatter matrix, summed in extended precision.

    Rounded to float64 before it is solved: off by about 1e-15 over the gap.
    """
    wide = np.asarray(data).astype(np.longdouble)
    wide = wide - wide.mean(axis=0)
    return np.linalg.eigh((wide.T @ wide).astype(np.float64))[1].T[::-1][:k]


def rows_of(values, seed=0, n=N):
    """Rows whose scatter matrix has these eigenvalues, up to the rounding of the rows."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, len(values)))
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0]
    turn = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (scores * np.sqrt(np.asarray(values) * n)) @ turn.T


def close_pair(gap):
    return np.concatenate([[1, 1 - gap], np.linspace(0.3, 0.01, D - 2)])


def holds(pca, data):
    """Every bound holds, and so do those of clusters."""
    found = pca.certificate_
    assert found.kind == "certified"
    components = pca.components_.astype(np.float64)
    true = angular_error(components, truth(data, len(components)))
    assert (true <= found.angle).all(), true / found.angle
    for cluster in found.clusters:
        span = truth(data, cluster.members[-1] + 1)[cluster.members[0] :]
        own = [i for i in cluster.members if i < len(components)]
        across = components[own] - components[own] @ span.T @ span
        assert np.linalg.norm(across, 2) <= math.sin(cluster.angle)
    return true


@pytest.mark.parametrize("seed", [0, 1])
def test_exact_ties_are_not_certified_but_their_span_is(seed):
    block = np.diag([3.0, 3, 3, 2, 1, 1])
    data = np.vstack([block, -block] * 25)
    pca = game_pca(2, tol=1e-3, random_state=seed).fit(data)
    assert (pca.certificate_.angle == math.pi / 2).all()
    assert pca.outcome_.status is Status.CONVERGED_IN_CLUSTERS
    (cluster,) = pca.certificate_.clusters
    assert cluster.members == (0, 1, 2)
    assert cluster.angle < 1e-3
    # The components lie in the span of the first three features.
    assert np.abs(pca.components_[:, 3:]).max() < 1e-3
    assert "cannot be separated from 1 further direction" in str(pca.certificate_)


def test_a_tie_within_the_components_leaves_the_others_certified():
    block = np.diag([4.0, 3, 3, 2, 1, 1])
    pca = game_pca(4, tol=1e-3, random_state=0).fit(np.vstack([block, -block] * 25))
    assert [cluster.members for cluster in pca.certificate_.clusters] == [(1, 2)]
    assert (pca.certificate_.angle[[0, 3]] <= 1e-3).all()
    assert (pca.certificate_.angle[[1, 2]] == math.pi / 2).all()


@pytest.mark.parametrize("gap", [1e-4, 1e-6, 1e-7])
def test_near_ties_in_float32_are_within_their_bounds(gap):
    data = rows_of(close_pair(gap)).astype(np.float32)
    pca = game_pca(4, tol=1e-3, random_state=0).fit(data)
    holds(pca, data)
    # The last product is in float64: the pair is told apart although float32 could not.
    assert pca.outcome_.status is Status.CONVERGED


def test_a_tie_below_the_rounding_of_float64_is_a_cluster():
    data = rows_of(close_pair(1e-12)).astype(np.float64)
    pca = game_pca(4, tol=1e-3, random_state=0).fit(data)
    assert pca.outcome_.status is Status.CONVERGED_IN_CLUSTERS
    assert [cluster.members for cluster in pca.certificate_.clusters] == [(0, 1)]
    assert (pca.certificate_.angle[:2] > 1e-3).all()


@pytest.mark.parametrize("mean", [0.0, 20.0])
@pytest.mark.parametrize("gap", [1e-4, 1e-6])
def test_the_covariance_route_is_within_its_bounds(mean, gap):
    data = (rows_of(close_pair(gap)) + mean).astype(np.float32)
    pca = game_pca(12, algorithm="auto", random_state=0).fit(data)
    assert pca.outcome_.route == "covariance"
    true = holds(pca, data)
    assert true.max() < 1e-3
    # Little more than the rounding of the stored components.
    assert np.median(pca.certificate_.angle / true) < 2


@pytest.mark.parametrize("mean", [1e6, 1e9])
def test_a_large_mean_is_subtracted_before_rows_are_rounded(mean):
    data = np.random.default_rng(0).standard_normal((N, D)) * np.arange(D, 0, -1) + mean
    pca = game_pca(4, tol=1e-2, random_state=0).fit(data)
    holds(pca, data)
    exact = np.linalg.eigvalsh(np.cov(data - mean, rowvar=False))[::-1][:4]
    # The variances of the first round were off by a part in ten.
    np.testing.assert_allclose(pca.explained_variance_, exact, rtol=1e-4)
    one = game_pca(4, random_state=0).fit(data)
    # Sums in float32 about the origin are within 1e-7 of the spread: 1e-6 here, beside a mean of up to 1e6.
    np.testing.assert_allclose(one.mean_, data.mean(axis=0), rtol=1e-11)


def test_sparse_rows_with_a_flat_spectrum_are_within_their_bounds():
    rng = np.random.default_rng(3)
    dense = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.1) + 0.05 * rows_of(
        close_pair(1e-3)
    )
    dense[rng.random((N, D)) < 0.8] = 0
    data = csr_array(dense.astype(np.float32))
    pca = game_pca(6, tol=1e-2, random_state=0, passes=100).fit(data)
    assert pca.certificate_.kind == "certified"
    true = angular_error(pca.components_.astype(np.float64), truth(data.toarray(), 6))
    assert (true <= pca.certificate_.angle).all()


def test_weights_count_in_what_is_certified():
    data, rng = rows_of(close_pair(1e-2)).astype(np.float32), np.random.default_rng(1)
    weights = rng.integers(0, 4, N).astype(float)
    pca = game_pca(3, tol=1e-3, random_state=0).fit(data, sample_weight=weights)
    holds(pca, np.repeat(data, weights.astype(int), axis=0))
    again = pca.certify(data, sample_weight=weights)
    np.testing.assert_allclose(again.rayleigh, pca.explained_variance_, rtol=1e-5)
    true = angular_error(
        pca.components_.astype(float), truth(np.repeat(data, weights.astype(int), axis=0), 3)
    )
    assert (true <= again.angle).all()


def test_certify_is_about_the_mean_of_the_data_it_is_given():
    data = rows_of(np.linspace(1, 0.1, D)).astype(np.float32)
    pca = game_pca(3, random_state=0).fit(data)
    shifted = pca.certify(data + 5).angle
    np.testing.assert_allclose(shifted, pca.certify(data).angle, rtol=1e-3)


@pytest.mark.parametrize(("mean", "scale"), [(4.0, 1e-9), (3e6, 1.0), (0.0, 1e-100), (0.0, 1e100)])
def test_certify_holds_for_data_unlike_that_of_the_fit(mean, scale):
    rng = np.random.default_rng(0)
    first = rng.standard_normal((300, 6)) * np.arange(6, 0, -1) + 4
    pca = game_pca(2, tol=1e-3, random_state=0).fit(first)
    other = rng.standard_normal((300, 6)) * np.arange(1, 7)
    data = mean + scale * other
    found = pca.certify(data)
    # Differences of numbers this close are exact.
    true = angular_error(pca.components_, truth((data - mean) / scale, 2))
    assert (true <= found.angle).all()
    assert np.isfinite(found.rayleigh).all()


def test_certify_of_constant_data_says_nothing():
    data = np.random.default_rng(0).standard_normal((300, 6)) * np.arange(6, 0, -1)
    pca = game_pca(2, random_state=0).fit(data)
    assert (pca.certify(np.full((10, 6), 2.0)).angle == math.pi / 2).all()


@pytest.mark.parametrize("shift", [1e6, 3e6, 1e7, 1e8])
def test_certify_of_shifted_data_holds_where_components_are_off(shift):
    rng = np.random.default_rng(1)
    for gap in (1e-3, 0.1):
        data = rows_of(np.array([1, 1 - gap, 0.3, 0.2, 0.1, 0.05]), seed=5, n=300)
        pca = game_pca(2, tol=1e-6, random_state=0).fit(data)
        # Components that are 0.05 rad off.
        exact = truth(data, 6)
        pca.components_ = math.cos(0.05) * exact[:2] + math.sin(0.05) * exact[[2, 3]]
        players = np.vstack([pca.components_, exact[2:]])
        pca._result = replace(pca._result, components=pca.components_, players=players)
        moved = np.round(data, 6) + shift * rng.integers(1, 3, 6)
        found = pca.certify(moved)
        true = angular_error(pca.components_, truth(moved, 2))
        assert (true <= found.angle).all()


def test_one_pass_then_certify_holds_for_a_stream():
    data = rows_of(close_pair(1e-5), seed=2).astype(np.float32)
    pca = game_pca(4, random_state=0)
    for part in np.split(data, 4):
        pca.partial_fit(part)
    pca.certify(data)
    holds(pca, data)


def test_clusters_are_saved_with_the_model(tmp_path):
    block = np.diag([3.0, 3, 2, 1, 1, 0.5])
    pca = game_pca(3, tol=1e-3, random_state=0).fit(np.vstack([block, -block] * 25))
    loaded = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    assert loaded.certificate_.clusters == pca.certificate_.clusters
    assert len(pca.certificate_.clusters) == 1
    assert str(loaded.certificate_) == str(pca.certificate_)
    assert loaded.outcome_ == pca.outcome_


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("tol", [1e-3, 5e-4], ids=["measured", "float64"])
def test_a_run_stopped_in_a_pass_over_raw_rows_resumes_to_the_same_model(tmp_path, number, tol):
    class Stop:
        def batch(self, at):
            if at.task == "refinement" and at.number == number and at.rows > 2000:
                raise KeyboardInterrupt
            return False

    data = rows_of(close_pair(1e-6)).astype(np.float32)
    options = {"tol": tol, "extra": 8, "random_state": 0}
    whole = game_pca(4, **options).fit(data)
    kept = Checkpoint(tmp_path / "run", every=0)
    with pytest.raises(Interrupted):
        game_pca(4, **options).fit(data, checkpoint=kept, progress=Stop())
    again = game_pca(4, **options).fit(data, checkpoint=kept)
    np.testing.assert_array_equal(again.components_, whole.components_)
    np.testing.assert_array_equal(again.certificate_.angle, whole.certificate_.angle)
