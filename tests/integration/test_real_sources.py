"""Real files, opened by path and prepared: comparison with known results."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from eigengame import as_source, metrics, prepare
from tests.game_pca import game_pca
from tests.sources.same_rows import real


@pytest.mark.slow
def test_genotypes_have_the_eigenvalues_of_their_relationship_matrix():
    """The relationship matrix is Z Z' / d: Z standardised calls, mean-imputed, d SNPs."""
    pytest.importorskip("bed_reader")
    bed = real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed")
    calls = prepare(bed, genotypes=True)
    assert calls.shape == (957, 14079)
    pca = game_pca(6, tol=1e-3, random_state=0).fit(calls)
    eigenvalues = pca.singular_values_**2 / 14079
    np.testing.assert_allclose(eigenvalues, [26.16, 23.39, 6.92, 6.05, 4.40, 2.65], atol=0.005)
    assert pca.certificate_.kind == "certified"
    raw = pca.transform(bed)
    assert_variances_are_the_eigenvalues(raw, eigenvalues)


def assert_variances_are_the_eigenvalues(scores, eigenvalues):
    np.testing.assert_allclose((scores**2).sum(axis=0) / 14079, eigenvalues, rtol=1e-4)


@pytest.mark.slow
def test_cells_log_normalised_have_the_components_that_scikit_learn_finds():
    """The 2000 genes with the most counts; totals include all genes."""
    pytest.importorskip("h5py")
    path = real("singlecell_10x/GSM4339772_C144_filtered_feature_bc_matrix.h5")
    raw = as_source(path)
    assert raw.shape == (3716, 33539)
    everything = next(raw.blocks(0, 3716)).values
    assert everything.nnz == 1_397_983
    assert everything.sum() == 13_315_819
    genes = np.sort(np.argsort(np.asarray(everything.sum(axis=0)).ravel())[-2000:])

    cells = prepare(prepare(path, counts="log-normalise"), columns=genes)
    assert cells.sparse
    pca = game_pca(8, tol=1e-3, random_state=0).fit(cells)

    totals = np.asarray(everything.sum(axis=1)).ravel()
    counts = everything[:, genes].toarray()
    dense = np.log1p(counts / totals[:, None] * 1e4)
    truth = PCA(8, svd_solver="covariance_eigh").fit(dense)
    np.testing.assert_allclose(pca.explained_variance_, truth.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(
        pca.explained_variance_ratio_, truth.explained_variance_ratio_, rtol=1e-4
    )
    errors = metrics.angular_error(pca.components_.astype(np.float64), truth.components_)
    assert (errors <= 1e-3).all()


def test_digits_from_the_gzipped_file_have_the_known_ratios():
    images = real("mnist/train-images-idx3-ubyte.gz")
    pca = game_pca(16, random_state=0).fit(images)
    known = [0.09705, 0.07096, 0.06169, 0.05389, 0.04869]
    np.testing.assert_allclose(pca.explained_variance_ratio_[:5], known, atol=2e-5)
    assert pca.mean_.mean() / 255 == pytest.approx(0.1307, abs=1e-4)
