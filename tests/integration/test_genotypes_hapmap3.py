"""HapMap3: components equal an SVD in float64, and recoded individuals have the scores of aligned ones."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, prepare
from tests.sources.same_rows import real

pytest.importorskip("bed_reader")

from bed_reader import open_bed

from tests.sources.genotype_files import recoded, write_bed

K = 6


@pytest.fixture(scope="module")
def prefix():
    return real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed").with_suffix("")


@pytest.fixture(scope="module")
def pca(prefix):
    return EigenGamePCA(K, algorithm="exact").fit(prepare(prefix, genotypes=True))


@pytest.fixture(scope="module")
def standardised(prefix):
    """Return the standardised calls and the allele frequencies, computed without the package."""
    calls = open_bed(f"{prefix}.bed").read(dtype="float64")
    frequencies = np.nanmean(calls, axis=0) / 2
    z = (calls - 2 * frequencies) / np.sqrt(2 * frequencies * (1 - frequencies))
    return np.nan_to_num(z), frequencies


def test_components_equal_an_svd_in_float64(pca, standardised):
    z, frequencies = standardised
    _, values, components = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    cosines = np.sum(pca.components_ * components[:K], axis=1, keepdims=True)
    sines = np.linalg.norm(pca.components_ - cosines * components[:K], axis=1)
    assert sines.max() < 1e-6
    np.testing.assert_allclose(pca.singular_values_, values[:K], rtol=1e-6)
    np.testing.assert_allclose(pca._preparation.steps[0].frequencies, frequencies, rtol=1e-12)


def test_recoded_individuals_have_the_scores_of_aligned_ones(pca, standardised, tmp_path):
    _, frequencies = standardised
    # Founders of random mixtures of the reference and its opposite: no individual of the fit.
    rng = np.random.default_rng(0)
    shift = rng.uniform(-0.1, 0.1, (5, len(frequencies)))
    chances = np.clip(frequencies + shift, 0.01, 0.99)[rng.integers(0, 5, 1000)]
    calls = rng.binomial(2, chances).astype(np.float32)
    snps = pca.snps_
    (new, ids, alleles), gaps = recoded(calls, snps.ids, snps.alleles, 1)
    other = write_bed(tmp_path / "other.bed", new, ids, alleles)
    aligned = write_bed(
        tmp_path / "aligned.bed", np.where(gaps, np.nan, calls), snps.ids, snps.alleles
    )
    scores = pca.transform(other)
    np.testing.assert_allclose(scores, pca.transform(aligned), rtol=0, atol=1e-6)
    z = (calls - 2 * frequencies) / np.sqrt(2 * frequencies * (1 - frequencies))
    truth = (np.where(gaps, 0, z) - pca.mean_) @ pca.components_.T
    # Scores of a .bed file are computed in float32.
    assert np.linalg.norm(scores - truth) < 1e-6 * np.linalg.norm(truth)
    found = pca.align(other).alignment
    assert found.n_flipped == pytest.approx(0.3 * len(ids), rel=0.05)
    assert found.n_matched + found.n_flipped == len(ids)
    assert (found.n_ambiguous, found.n_missing, found.n_other_alleles) == (1015, 0, 0)
    # The same file without alignment gives other scores: the check above can fail.
    wrong = np.nan_to_num((new - 2 * frequencies) / np.sqrt(2 * frequencies * (1 - frequencies)))
    assert np.linalg.norm(wrong @ pca.components_.T - truth) > 0.5 * np.linalg.norm(truth)
