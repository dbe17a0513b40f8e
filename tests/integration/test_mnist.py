"""MNIST: fits in one pass, and certified to a milliradian."""

import gzip
import math

import numpy as np
import pytest

from eigengame import Status, metrics
from tests.game_pca import game_pca
from tests.sources.same_rows import real

K = 16


@pytest.fixture(scope="module")
def mnist():
    with gzip.open(real("mnist/train-images-idx3-ubyte.gz")) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(60_000, 784)
    x = pixels.astype(np.float32) / 255
    return x, metrics.true_components(x - x.mean(axis=0), K)[1]


def test_one_pass_finds_all_sixteen_components_within_pi_over_32(mnist):
    x, truth = mnist
    pca = game_pca(K, batch_size=1024, random_state=0).fit(x)
    errors = metrics.angular_error(pca.components_.astype(np.float64), truth)
    assert metrics.streak_of(errors, math.pi / 32) == K
    ratios = [0.09705, 0.07096, 0.06169, 0.05389, 0.04869]
    np.testing.assert_allclose(pca.explained_variance_ratio_[:5], ratios, atol=2e-5)
    assert pca.mean_.mean() == pytest.approx(0.1307, abs=1e-4)


def test_a_milliradian_is_certified_in_ten_passes_or_fewer(mnist):
    x, truth = mnist
    pca = game_pca(K, batch_size=1024, tol=1e-3, random_state=0).fit(x)
    assert pca.outcome_.status is Status.CONVERGED
    assert pca.certificate_.kind == "certified"
    errors = metrics.angular_error(pca.components_.astype(np.float64), truth)
    assert (errors <= pca.certificate_.angle + 1e-5).all()
    assert pca.certificate_.angle.max() <= 1e-3
    assert pca.n_passes_ <= 10
