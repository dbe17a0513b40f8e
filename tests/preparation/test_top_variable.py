"""Selection of the most variable features, by the rule of Seurat and by the variance of residuals."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import EigenGamePCA, SourceError, prepare
from eigengame.preparation.variable_features import normalised_dispersions
from eigengame.sources import as_source
from tests.preparation.reading import rows_of
from tests.sources.cell_files import cell_counts, gene_names
from tests.sources.same_rows import real
from tests.tolerance import assert_close

N, D = 120, 40


def normalised(x):
    return x / x.sum(axis=1, keepdims=True) * 1e4


def naive_dispersions(x):
    """Return the normalised dispersions of numbers (not logarithms), feature by feature."""
    mean = [np.mean(column) or 1e-12 for column in x.T]
    spread = [np.var(column, ddof=1) for column in x.T]
    logs = [np.log(s / m) if s > 0 else np.nan for s, m in zip(spread, mean, strict=True)]
    levels = np.log1p(mean)
    edges = np.linspace(levels.min(), levels.max(), 21)
    found = []
    for level, value in zip(levels, logs, strict=True):
        bin_ = next(b for b in range(20) if level <= edges[b + 1] or b == 19)
        low = -np.inf if bin_ == 0 else edges[bin_]
        others = [v for v, u in zip(logs, levels, strict=True) if low < u <= edges[bin_ + 1]]
        others = [v for v in others if not np.isnan(v)]
        if np.isnan(value):
            found.append(np.nan)
        elif len(others) == 1:
            found.append(1.0)
        elif np.std(others, ddof=1) < 1e-10:  # equal up to rounding
            found.append(np.nan)
        else:
            found.append((value - np.mean(others)) / np.std(others, ddof=1))
    return np.array(found)


def top(scores, count):
    least = np.sort(scores[~np.isnan(scores)])[-count]
    return np.flatnonzero(np.nan_to_num(scores, nan=-np.inf) >= least)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=14335)  # a bin of two features with equal dispersions
def test_dispersions_are_the_rule_written_in_loops(seed):
    x = normalised(cell_counts(N, D, seed).astype(np.float64) + 0.01)
    x[:, 5] = 0
    found = normalised_dispersions(x.mean(axis=0), x.var(axis=0, ddof=1))
    np.testing.assert_allclose(found, naive_dispersions(x), atol=1e-8)


def test_equal_dispersions_within_a_bin_are_not_ordered_by_their_rounding():
    mean = np.array([1.0, 1.0, 9.0, 9.0])
    variance = np.array([2.0, 2.0 * (1 + 1e-15), 3.0, 4.0])
    found = normalised_dispersions(mean, variance)
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2:], [-np.sqrt(0.5), np.sqrt(0.5)])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("count", [1, 12, 20])
def test_features_are_selected_after_normalisation_by_the_totals_of_all(make, count):
    x = cell_counts(N, D, 1).astype(np.float64)
    prepared = prepare(make(x), counts="log-normalise", top_variable=count)
    chosen = top(naive_dispersions(normalised(x)), count)
    assert len(chosen) >= count  # more if several are equal
    np.testing.assert_array_equal(prepared.steps[-1].indices, chosen)
    np.testing.assert_allclose(rows_of(prepared), np.log1p(normalised(x))[:, chosen], rtol=1e-12)


def test_logarithms_of_counts_and_given_logarithms_select_by_the_counts():
    x = cell_counts(N, D, 2).astype(np.float64)
    chosen = top(naive_dispersions(x), 9)
    for prepared in (
        prepare(x, counts="log1p", top_variable=9),
        prepare(np.log1p(x), top_variable=9),
        prepare(prepare(x, counts="log1p"), top_variable=9),
    ):
        np.testing.assert_array_equal(prepared.steps[-1].indices, chosen)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_residuals_are_selected_by_their_variance(make):
    x = cell_counts(N, D, 3)
    every = rows_of(prepare(x.astype(np.float64), counts="pearson"))
    prepared = prepare(make(x.astype(np.float64)), counts="pearson", top_variable=7)
    chosen = np.sort(np.argsort(every.var(axis=0))[-7:])
    np.testing.assert_array_equal(prepared.steps[-1].indices, chosen)
    np.testing.assert_allclose(rows_of(prepared), every[:, chosen], atol=1e-12)


def test_raw_counts_without_a_transform_are_refused():
    x = cell_counts(N, D, 4)
    with pytest.raises(SourceError, match=r"(integers|expects logarithms).*counts='log-normalise'"):
        prepare(np.minimum(x, 20), top_variable=9)
    with pytest.raises(SourceError, match="all values are integers"):
        prepare(np.minimum(x, 20), top_variable=9)
    with pytest.raises(SourceError, match=r"row 2, column 3 is 31.0, but top_variable expects"):
        prepare(
            np.where(np.indices(x.shape).sum(axis=0) == 0, 0.5, 0) + at(2, 3, 31.0), top_variable=9
        )
    with pytest.raises(SourceError, match=r"row 2, column 3 is -1.0, but top_variable expects"):
        prepare(at(2, 3, -1.0), top_variable=9)


def at(i, j, value):
    x = np.zeros((N, D))
    x[i, j] = value
    return x


def test_more_features_than_vary_are_refused():
    x = cell_counts(N, D, 5)
    x[:, 10:] = 0
    with pytest.raises(SourceError, match=r"top_variable=11, but only \d+ of 40 features vary"):
        prepare(x, counts="log-normalise", top_variable=11)


def test_options_that_exclude_each_other_are_refused():
    x = cell_counts(N, D, 6)
    with pytest.raises(SourceError, match=r"columns and top_variable=5 were both given"):
        prepare(x, counts="log1p", columns=[1, 2], top_variable=5)
    with pytest.raises(ValueError, match=r"genotypes=True with .*top_variable=5"):
        prepare(x, genotypes=True, top_variable=5)
    with pytest.raises(ValueError, match="top_variable=0"):
        prepare(x, counts="log1p", top_variable=0)


def test_dropped_features_count_neither_for_totals_nor_for_the_selection():
    x = cell_counts(N, D, 7).astype(np.float64)
    prepared = prepare(x, drop=[0, 1], counts="log-normalise", top_variable=6)
    rest = normalised(x[:, 2:])
    chosen = top(naive_dispersions(rest), 6)
    np.testing.assert_allclose(rows_of(prepared), np.log1p(rest)[:, chosen], rtol=1e-12)


def test_a_model_keeps_the_selection_and_applies_it_to_new_rows(tmp_path):
    x, new = cell_counts(N, D, 8), cell_counts(30, D, 9)
    prepared = prepare(x, counts="log-normalise", top_variable=10)
    pca = EigenGamePCA(2, random_state=0).fit(prepared)
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    logs = np.log1p(normalised(new))[:, prepared.steps[-1].indices]
    expected = (logs - pca.mean_) @ pca.components_.T
    for model in (pca, again):
        assert_close(model.transform(new), expected, factor=100)


def test_names_are_selected_only_if_they_are_unique():
    pandas = pytest.importorskip("pandas")
    x = cell_counts(N, D, 10)
    named = prepare(pandas.DataFrame(x, columns=gene_names(D)), counts="log1p", top_variable=4)
    assert list(named.feature_names) == list(named.steps[-1].wanted)
    source = as_source(x)
    source.feature_names = ["same"] * D
    numbered = prepare(source, counts="log1p", top_variable=4)
    assert numbered.steps[-1].wanted == tuple(named.steps[-1].indices.tolist())


@pytest.mark.parametrize("count", [3, 10, 25])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_the_genes_are_those_of_scanpy(make, count):
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    anndata = pytest.importorskip("anndata")
    x = cell_counts(N, D, 11)
    cells = anndata.AnnData(make(x.copy()))
    scanpy.pp.normalize_total(cells, target_sum=1e4)
    scanpy.pp.log1p(cells)
    scanpy.pp.highly_variable_genes(cells, n_top_genes=count, flavor="seurat")
    prepared = prepare(make(x), counts="log-normalise", top_variable=count)
    np.testing.assert_array_equal(
        prepared.steps[-1].indices, np.flatnonzero(cells.var["highly_variable"])
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not unique")  # of anndata, about names of genes
def test_real_genes_and_components_are_those_of_scanpy():
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    path = real("singlecell_10x/GSM4339772_C144_filtered_feature_bc_matrix.h5")
    cells = scanpy.read_10x_h5(path)
    cells.X = cells.X.astype(np.float64)
    scanpy.pp.normalize_total(cells, target_sum=1e4)
    scanpy.pp.log1p(cells)
    scanpy.pp.highly_variable_genes(cells, n_top_genes=2000)
    scanpy.pp.pca(cells, 50, svd_solver="arpack", dtype="float64")
    prepared = prepare(path, counts="log-normalise", top_variable=2000)
    chosen = np.flatnonzero(cells.var["highly_variable"])
    np.testing.assert_array_equal(prepared.steps[-1].indices, chosen)
    pca = EigenGamePCA(50, random_state=0).fit(prepared)
    true = cells.varm["PCs"][chosen].T
    sines = np.linalg.norm(pca.components_ - true, axis=1)  # also of one sign
    assert sines.max() < 1e-4
