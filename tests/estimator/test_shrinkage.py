"""Scores of new rows are smaller than those of the fit, by the factor of the spiked covariance model."""

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.estimator.shrinkage import shrinkage_factors
from tests.sources.same_rows import real

SPIKES = np.array([200.0, 100.0, 60.0])
N, D = 200, 2000


def simulated(seed, unit=1.0):
    """Return training rows and new rows of a spiked model, with their latent scores."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((D, len(SPIKES))))[0].T
    latent = rng.standard_normal((2, N, len(SPIKES)))
    rows = latent * np.sqrt(SPIKES - 1) @ axes + rng.standard_normal((2, N, D))
    return unit * rows + 3, latent


def slopes(scores, latent):
    """Return the size of the scores for each unit of the latent ones."""
    fit = np.linalg.lstsq(latent - latent.mean(axis=0), scores - scores.mean(axis=0), rcond=None)[0]
    return np.linalg.norm(fit, axis=0)


def test_the_correction_removes_the_shrinkage_of_simulated_scores():
    theory = (SPIKES - 1) / (SPIKES - 1 + D / (N - 1))
    measured, estimated = [], []
    for seed in range(8):
        (rows, new), (latent, other) = simulated(seed)
        pca = EigenGamePCA(len(SPIKES), algorithm="exact").fit(rows)
        estimated.append(pca.score_shrinkage())
        measured.append(slopes(pca.transform(new), other) / slopes(pca.transform(rows), latent))
    mean = np.mean(measured, axis=0)
    error = np.std(measured, axis=0) / np.sqrt(8)
    assert (np.abs(mean - theory) < 4 * error + 0.005).all()
    # Three times the standard error of the mean is at most 0.03, so a missing correction would be found.
    assert error.max() < 0.01
    assert mean.max() < 0.97
    np.testing.assert_allclose(np.mean(estimated, axis=0), theory, atol=0.01)


def test_the_factors_are_exact_for_the_limit_of_the_eigenvalues():
    ratio, noise = 10.0, 0.3
    limits = noise * SPIKES * (1 + ratio / (SPIKES - 1))
    total = noise * (100_000 - 3) + noise * SPIKES.sum()
    factors, found = shrinkage_factors(limits, total, 100_000, 10_000)
    np.testing.assert_allclose(factors, (SPIKES - 1) / (SPIKES - 1 + ratio), rtol=1e-10)
    assert found == pytest.approx(noise, rel=1e-10)


def test_a_component_within_the_noise_has_no_factor():
    rows = np.random.default_rng(0).standard_normal((100, 400))
    rows[:, 0] *= 20
    factors = EigenGamePCA(3, algorithm="exact").fit(rows).score_shrinkage()
    assert np.isnan(factors).tolist() == [False, True, True]


def test_factors_do_not_depend_on_units_and_constant_features():
    (rows, _), _ = simulated(0)
    (scaled, _), _ = simulated(0, unit=1e-3)
    constant = np.column_stack([scaled, np.ones((N, 50))])
    one, two = (EigenGamePCA(3, algorithm="exact").fit(part) for part in (rows, constant))
    np.testing.assert_allclose(one.score_shrinkage(), two.score_shrinkage(), rtol=1e-6)


def test_data_without_noise_has_no_factors():
    assert np.isnan(shrinkage_factors(np.array([2.0, 1.0]), 3.0, 10, 20)[0]).all()


def test_too_many_components_leave_no_noise_to_estimate():
    rows = np.random.default_rng(0).standard_normal((20, 60))
    rows[:, 0] *= 100
    for k, known in ((9, True), (10, False), (20, False)):
        factors = EigenGamePCA(k, algorithm="exact").fit(rows).score_shrinkage()
        assert np.isfinite(factors[0]) == known


def test_forgetting_is_refused():
    pca = EigenGamePCA(2, forget=0.99, random_state=0).fit(
        np.random.default_rng(0).normal(size=(40, 6))
    )
    with pytest.raises(ValueError, match=r"forget=0\.99"):
        pca.score_shrinkage()


def test_hapmap3_populations_keep_their_place_after_the_correction():
    open_bed = pytest.importorskip("bed_reader").open_bed
    from eigengame import prepare

    path = real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed")
    lines = real("genotypes_hapmap3/relationships_w_pops_121708.txt").read_text().splitlines()
    population = {line.split()[1]: line.split()[-1] for line in lines}
    with open_bed(path) as bed:
        calls, names = bed.read(dtype="float32"), np.array([population[one] for one in bed.iid])
    train = np.random.default_rng(0).random(len(calls)) < 0.5
    pca = EigenGamePCA(4, algorithm="exact").fit(prepare(calls[train], genotypes=True))
    scores = pca.transform(calls)
    means = [
        np.array([scores[part & (names == one)].mean(axis=0) for one in np.unique(names)])
        for part in (train, ~train)
    ]
    slope = (means[0] * means[1]).sum(axis=0) / (means[0] ** 2).sum(axis=0)
    # New individuals are shrunk by up to 29 %; after the correction by at most 5 %.
    assert slope.min() < 0.8
    np.testing.assert_allclose(slope / pca.score_shrinkage(), 1, atol=0.05)
