"""The covariance in float32: its measured error holds, and float64 follows where float32 is not enough."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source, testing
from eigengame.metrics import angular_error
from eigengame.solver.exact.float32_scatter import CHUNK, accumulate_in_float32
from eigengame.solver.exact.scatter import accumulate_scatter
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches

N, D, K = 7000, 40, 5


def passes_over(rows, weights=None, size=CHUNK + 200):
    return SourcePasses(Batches(as_source(rows), size, np.dtype("float32"), weights))


def graded(seed, dtype=np.float32):
    """Rows with a mean, graded features, and a repeated feature, whose roundings are equal."""
    rows = np.random.default_rng(seed).standard_normal((N, D)) / np.arange(1, D + 1) + 0.3
    rows[:, 7] = rows[:, 3]
    return rows.astype(dtype)


def exact_components(rows):
    return np.linalg.eigh(np.cov(rows.astype(np.float64).T))[1].T[::-1][:K]


@pytest.mark.parametrize("kind", ["float32", "float64", "bytes", "weights", "uncentred"])
def test_measured_errors_are_bounds(kind):
    for seed in range(6):
        rows = graded(seed, np.float64 if kind == "float64" else np.float32)
        if kind == "bytes":
            rows = np.clip(40 * rows + 90, 0, 255).astype(np.uint8)
        weights = np.random.default_rng(seed).random(N) if kind == "weights" else None
        center = kind != "uncentred"
        found = accumulate_in_float32(passes_over(rows, weights), center=center, seed=seed)
        exact = accumulate_scatter(passes_over(rows, weights), center=center)
        off = found.matrix - exact.matrix
        assert 0 < np.linalg.norm(off, 2) <= found.error + exact.error
        assert found.error < 1e-5 * np.trace(exact.matrix)
        vectors = np.linalg.eigh(exact.matrix)[1].T[::-1]
        true = np.linalg.norm(vectors @ off, axis=1)
        assert (true <= found.image_errors(vectors) + exact.error).all()
        assert np.allclose(found.moments.mean, exact.moments.mean, rtol=1e-12, atol=1e-12)
        # Rows that are not centred lose digits when the mean is subtracted from sums of squares.
        squares = exact.moments.scatter + exact.moments.weight * exact.moments.mean**2
        assert (np.abs(found.moments.scatter - exact.moments.scatter) <= 1e-6 * squares).all()
        assert float(found.moments.weight) == pytest.approx(float(exact.moments.weight))
        assert found.rows == exact.rows == N


def test_a_fit_with_the_default_tolerance_takes_one_pass_in_float32():
    rows = testing.rows_with(testing.harmonic(D), N, seed=1).data.astype(np.float32)
    pca = EigenGamePCA(K, random_state=0).fit(rows)
    assert (pca.outcome_.route, pca.outcome_.passes) == ("covariance", 1)
    assert pca.certificate_.kind == "certified"
    assert pca.certificate_.confidence == 0.999
    assert (angular_error(pca.components_, exact_components(rows)) <= pca.certificate_.angle).all()
    assert pca.certificate_.angle.max() < 1e-3


def test_float64_follows_where_neighbours_are_closer_than_the_error():
    spectrum = np.append([1.0, 1 - 2e-8], 0.3 * testing.harmonic(D - 2))
    rows = testing.rows_with(spectrum, N, seed=1).data.astype(np.float32)
    pca = EigenGamePCA(K, center=False, random_state=0).fit(rows)
    wide = rows.astype(np.float64)
    exact = np.linalg.eigh(wide.T @ wide)[1].T[::-1][:K]
    assert (pca.outcome_.route, pca.outcome_.passes) == ("covariance", 2)
    assert pca.certificate_.confidence == 1
    assert (angular_error(pca.components_, exact) <= pca.certificate_.angle).all()
    assert pca.certificate_.angle.max() < 1e-2


@pytest.mark.parametrize("options", [{"tol": 1e-5}, {"passes": 1}, {"dtype": "float64"}])
def test_float64_is_used_at_once_where_float32_cannot_be_enough_or_be_repeated(options):
    pca = EigenGamePCA(K, random_state=0, **options).fit(graded(2))
    assert pca.outcome_.passes == 1
    assert pca.certificate_.confidence == 1


def test_infinite_numbers_are_refused_with_their_place():
    rows = graded(3)
    rows[70, 4] = np.inf
    with pytest.raises(ValueError, match=r"X\[70, 4\] is inf"):
        EigenGamePCA(2).fit(rows)


@pytest.mark.parametrize("seed", range(4))
def test_components_of_fewer_directions_explain_no_more_than_the_total(seed):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((N, 2)) @ rng.standard_normal((2, D))).astype(np.float32)
    pca = EigenGamePCA(2, random_state=0).fit(rows)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-5)


def test_the_noise_variance_of_nearly_exact_fits_is_right():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((N, 3)) @ rng.standard_normal((3, D))
    rows = (rows + 1e-5 * rng.standard_normal((N, D))).astype(np.float32)
    pca = EigenGamePCA(3, random_state=0).fit(rows)
    spectrum = np.linalg.eigvalsh(np.cov(rows.astype(np.float64).T))[::-1]
    assert pca.noise_variance_ == pytest.approx(spectrum[3:].mean(), rel=0.02)


def test_variances_of_features_far_from_zero_are_right_without_centring():
    rows = (graded(6) + 100).astype(np.float32)
    pca = EigenGamePCA(1, center=False, random_state=0).fit(rows)
    assert pca.var_ == pytest.approx(rows.astype(np.float64).var(axis=0), rel=1e-3)


def test_all_components_explain_everything():
    pca = EigenGamePCA(D, random_state=0).fit(graded(7))
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-6)
