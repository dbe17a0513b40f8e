"""Pearson residuals: the formula, whatever the blocks, for the rows of the fit and for others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import EigenGamePCA, SourceError, prepare
from tests.preparation.reading import Weighted, counts, rows_of
from tests.tolerance import assert_close


def naive(x, learnt_on=None, theta=100.0):
    """Return the residuals of counts, entry by entry."""
    known = x if learnt_on is None else learnt_on
    total, found = known.sum(), np.zeros(x.shape)
    for i, row in enumerate(x):
        for j, count in enumerate(row):
            mu = row.sum() * known[:, j].sum() / total
            if mu > 0:
                found[i, j] = (count - mu) / np.sqrt(mu + mu**2 / theta)
    bound = np.sqrt(len(known))
    return np.clip(found, -bound, bound)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 7, 40, 64]), start=st.integers(0, 39)
)
def test_residuals_are_the_formula_whatever_the_blocks(seed, size, start):
    x = counts(seed)
    prepared = prepare(x, counts="pearson")
    np.testing.assert_allclose(rows_of(prepared, size, start), naive(x)[start:], atol=1e-12)


def test_large_residuals_are_clipped():
    x = np.zeros((9, 2), int)
    x[:, 0] = x[0, 1] = 1000
    found = rows_of(prepare(x, counts="pearson", theta=1e6))
    assert found.max() == 3
    np.testing.assert_allclose(found, naive(x, theta=1e6), atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_sparse_counts_give_the_same_dense_residuals(make):
    x = counts(1)
    prepared = prepare(make(x), counts="pearson", theta=10)
    assert not prepared.sparse
    np.testing.assert_allclose(rows_of(prepared), naive(x, theta=10), atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_totals_include_features_that_are_not_selected(make):
    x = counts(2)
    once = prepare(make(x), columns=[4, 1], counts="pearson")
    np.testing.assert_allclose(rows_of(once), naive(x)[:, [4, 1]], atol=1e-12)
    twice = prepare(prepare(make(x), columns=[4, 1]), counts="pearson")
    np.testing.assert_allclose(rows_of(twice), naive(x[:, [4, 1]]), atol=1e-12)


def test_features_and_rows_without_counts_are_0():
    x = counts(3)
    x[:, 2] = 0
    prepared = prepare(x, counts="pearson")
    assert (rows_of(prepared)[:, 2] == 0).all()
    assert (rows_of(prepared)[3] == 0).all()
    new = np.ones((2, 6), int)  # the feature occurs in new rows only
    assert (rows_of(prepared.preparation.over(new))[:, 2] == 0).all()
    with pytest.raises(SourceError, match="no counts above 0"):
        prepare(np.zeros((4, 3)), counts="pearson")


def test_rows_of_weight_0_are_not_learnt_from():
    x = counts(4)
    known = np.repeat(x, np.arange(40), axis=0)  # row i has weight i
    found = rows_of(prepare(Weighted(x.astype(float), "x"), counts="pearson"))
    np.testing.assert_allclose(found, naive(x, known), atol=1e-12)


def test_float32_is_close_to_float64():
    x = counts(5)
    found = prepare(x.astype(np.float32), counts="pearson")
    assert found.dtype == np.float32
    np.testing.assert_allclose(rows_of(found), naive(x), atol=1e-5)
    np.testing.assert_allclose(rows_of(found.in_float64()), naive(x), atol=1e-12)


def test_a_saved_model_gives_other_rows_residuals_by_the_shares_of_the_fit(tmp_path):
    x, new = counts(6, 200), counts(7, 30)
    pca = EigenGamePCA(2, random_state=0).fit(prepare(x, counts="pearson"))
    expected = (naive(new, x) - naive(x).mean(axis=0)) @ pca.components_.T
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    for model in (pca, again):
        assert_close(model.transform(new), expected, factor=100)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_negative_counts_are_refused_by_row_and_column(make):
    x = counts(6)
    x[11, 5] = -2
    with pytest.raises(SourceError, match=r"row 11, column 5 is -2, but counts are never negative"):
        prepare(make(x), counts="pearson")
    with pytest.raises(ValueError, match="theta=0: give a finite number above 0"):
        prepare(counts(6), counts="pearson", theta=0)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_residuals_are_those_of_scanpy(make):
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    anndata = pytest.importorskip("anndata")
    x = counts(8, 60, 12).astype(float) + np.eye(60, 12)
    x[3, 0] = 1  # scanpy divides by 0 for rows without counts
    cells = anndata.AnnData(make(x.copy()))
    scanpy.experimental.pp.normalize_pearson_residuals(cells, theta=100)
    np.testing.assert_allclose(rows_of(prepare(make(x), counts="pearson")), cells.X, atol=1e-10)
