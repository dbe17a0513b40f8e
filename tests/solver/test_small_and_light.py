"""Bounds hold, or nothing is stated, for rows of little weight and for numbers whose squares are out of range."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame.game.memory import common_mean
from eigengame.metrics import angular_error
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.finite import refuse_unless_finite

K, D, B = 4, 12, 512


def truth(x, weights):
    """Eigenvectors of the scatter matrix, from rows in extended precision."""
    wide, weights = x.astype(np.longdouble), weights.astype(np.longdouble)
    away = (wide - weights @ wide / weights.sum()) * np.sqrt(weights)[:, None]
    return np.linalg.eigh((away.T @ away).astype(np.float64))[1].T[::-1][:K]


def light_and_heavy(size, weight, dtype):
    """Large rows of little weight before ordinary ones."""
    rng = np.random.default_rng(5)
    light = size * (1 + 0.3 * rng.standard_normal((B, D)))
    heavy = 3 + rng.standard_normal((2 * B, D)) * 0.8 ** np.arange(D)
    weights = np.r_[np.full(B, weight), np.ones(2 * B)]
    return np.concatenate([light, heavy]).astype(dtype), weights


@pytest.mark.parametrize(
    ("options", "size", "weight"),
    [
        ({"algorithm": "exact"}, 1e13, 1e-26),
        ({"algorithm": "remembered", "passes": 1, "dtype": "float64"}, 1e13, 1e-26),
        ({"algorithm": "remembered", "tol": 1e-9, "dtype": "float64"}, 1e13, 1e-26),
    ],
)
def test_a_light_batch_of_large_numbers_does_not_round_the_mean(options, size, weight):
    """The mean kept the rounding error of the first batch: bounds of 1e-10 were exceeded by 1e-3."""
    x, weights = light_and_heavy(size, weight, "float64")
    pca = EigenGamePCA(K, batch_size=B, random_state=0, **options).fit(x, sample_weight=weights)
    off = angular_error(pca.components_.astype(np.float64), truth(x, weights))
    assert pca.certificate_.kind == "certified"
    assert (off <= pca.certificate_.angle).all()
    np.testing.assert_allclose(pca.mean_, weights @ x / weights.sum(), rtol=1e-12)


def test_the_common_mean_is_that_of_both_whatever_their_weights():
    rng = np.random.default_rng(0)
    one, other = 1e12 * rng.standard_normal(5), rng.standard_normal(5)
    for weight in (0.0, 1e-30, 1e-15, 1.0, 3.0):
        exact = (weight * one.astype(np.longdouble) + other) / (weight + np.longdouble(1))
        for found in (
            common_mean(one, np.float64(weight), other, np.float64(1)),
            common_mean(other, np.float64(1), one, np.float64(weight)),
        ):
            np.testing.assert_allclose(found, exact.astype(float), rtol=1e-14)
    none = np.float64(0)
    np.testing.assert_array_equal(common_mean(np.zeros(5), none, np.zeros(5), none), np.zeros(5))


@pytest.mark.parametrize("weight", [1e-200, 1e200])
@pytest.mark.parametrize("method", ["fit", "partial_fit", "certify"])
def test_weights_out_of_range_are_refused(weight, method):
    """Squares of rounding errors were zero, and bounds too small."""
    x, weights = light_and_heavy(1, 1, "float64")
    pca = EigenGamePCA(K, random_state=0).fit(x)
    with pytest.raises(ValueError, match="multiply all weights by"):
        getattr(pca, method)(x, sample_weight=weights * weight)
    # A small weight among others, and one of zero, change nothing.
    pca.fit(x, sample_weight=np.r_[weights[:-2], 1e-200, 0])
    assert pca.outcome_.converged


@pytest.mark.parametrize("rows", [1, 3])
def test_a_first_batch_without_weight_is_refused(rows):
    """Equal rows without weight raised an IndexError while a frame was sought."""
    pca = EigenGamePCA(1, algorithm="remembered", tol=None, random_state=0)
    with pytest.raises(ValueError, match="no row has a weight above zero"):
        pca.partial_fit(np.ones((rows, D)), sample_weight=np.zeros(rows))


@pytest.mark.parametrize("weight", [2.0**-4, 1.0])
def test_a_single_row_that_is_not_centred_has_a_variance_whatever_its_weight(weight):
    """It counts once, as a row of weight 1 does: the divisor was zero."""
    pca = EigenGamePCA(1, algorithm="remembered", tol=None, center=False, random_state=0)
    row = np.arange(1.0, D + 1)[None]
    pca.partial_fit(row, sample_weight=[weight])
    np.testing.assert_allclose(pca.explained_variance_, [np.sum(row**2)], rtol=1e-6)
    pca.partial_fit(-row, sample_weight=[weight])
    np.testing.assert_allclose(pca.explained_variance_, [2 * np.sum(row**2)], rtol=1e-6)


@pytest.mark.parametrize(
    ("weight", "counted"), [(1.00001, 1.00001), (1.5, 1.5), (2.0, 2.0), (3.0, 1.5)]
)
def test_a_single_heavy_row_counts_as_its_repetitions(weight, counted):
    """Beyond two repetitions one less than the weight divides; a divisor below 1 would exceed all repetitions."""
    pca = EigenGamePCA(1, algorithm="remembered", tol=None, center=False, random_state=0)
    row = np.arange(1.0, D + 1)[None]
    pca.partial_fit(row, sample_weight=[weight])
    np.testing.assert_allclose(pca.explained_variance_, [counted * np.sum(row**2)], rtol=1e-6)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e-82), ("float32", 1e-18)])
def test_a_stream_of_too_small_numbers_is_refused(dtype, size):
    x, _ = light_and_heavy(1, 1, "float64")
    pca = EigenGamePCA(K, algorithm="remembered", random_state=0, dtype=dtype)
    with pytest.raises(ValueError, match="too small for float"):
        pca.fit(part for part in np.split((size * x).astype(dtype), 3))
    # Data that can be read again is scaled.
    assert pca.fit((size * x).astype(dtype)).outcome_.converged


@pytest.mark.parametrize(("dtype", "least"), [("float32", 1e-31), ("float64", 1e-121)])
def test_sums_that_are_too_small_are_refused_whatever_the_source(dtype, least):
    """Weights that a source reads with its rows are not checked before."""
    batches = Batches(as_source(np.ones((9, 3), dtype)), 4, np.dtype(dtype))
    for allowed in (0, 100 * least):
        refuse_unless_finite(batches, np.full(3, allowed, dtype))
    with pytest.raises(ValueError, match="multiply the data, or its weights"):
        refuse_unless_finite(batches, np.full(3, least, dtype))
