"""The covariance of rows on a device with memory of its own: the matrix stays there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error
from eigengame.solver.exact.scatter import accumulate_scatter
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches

N, D, K = 9000, 40, 5


@pytest.fixture(autouse=True)
def another_device(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "other")


def given(mean=3.0):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((N, D)) / np.arange(1, D + 1) + mean).astype(np.float32)


@pytest.mark.parametrize("center", [True, False])
def test_the_matrix_is_that_of_numpy_and_is_not_transferred(center):
    rows = given()
    passes = SourcePasses(Batches(as_source(jnp.asarray(rows)), 2000, np.dtype("float32")))
    found = accumulate_scatter(passes, center=center)
    assert isinstance(found.matrix, jax.Array)
    wide = rows.astype(np.float64)
    wide -= wide.mean(axis=0) if center else 0
    exact = wide.T @ wide
    assert np.linalg.norm(np.asarray(found.matrix) - exact, 2) <= found.error
    assert found.error < 1e-8 * np.trace(exact)
    assert (np.asarray(found.matrix) == np.asarray(found.matrix).T).all()


@pytest.mark.parametrize("options", [{"algorithm": "exact"}, {"n_components": 0.9}])
def test_a_fit_is_that_of_numpy_and_can_be_continued(options):
    rows = given()
    settings = {"n_components": K, "random_state": 0} | options
    pca = EigenGamePCA(**settings).fit(jnp.asarray(rows))
    assert pca.outcome_.route == "covariance"
    assert pca.certificate_.kind == "certified"
    count = len(pca.components_)
    truth = np.linalg.eigh(np.cov(rows.T.astype(np.float64)))[1].T[::-1][:count]
    true = angular_error(pca.components_.astype(np.float64), truth)
    assert (true <= pca.certificate_.angle).all()
    pca.partial_fit(given())
    assert pca.certificate_.kind == "certified"
    assert pca.n_samples_seen_ == 2 * N


def test_numbers_that_are_not_finite_are_named():
    rows = given()
    rows[7000, 3] = np.inf
    with pytest.raises(ValueError, match="feature 3 is inf in row 7000"):
        EigenGamePCA(K, algorithm="exact").fit(jnp.asarray(rows))
