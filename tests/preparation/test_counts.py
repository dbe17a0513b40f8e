import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import SourceError, prepare
from eigengame.preparation.counts import NotCountsWarning
from tests.preparation.reading import counts, rows_of


def naive(x, target=1e4):
    """Return log-normalised counts, row by row."""
    rows = [row / row.sum() * target if row.sum() > 0 else row * 0.0 for row in x]
    return np.log1p(np.array(rows))


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 7, 40, 64]), start=st.integers(0, 39)
)
def test_log_normalised_is_the_formula_whatever_the_blocks(seed, size, start):
    x = counts(seed)
    prepared = prepare(x, counts="log-normalise")
    np.testing.assert_allclose(rows_of(prepared, size, start), naive(x)[start:], rtol=1e-12)


def test_log1p_takes_the_logarithm_only():
    x = counts(0)
    np.testing.assert_allclose(rows_of(prepare(x, counts="log1p")), np.log1p(x), rtol=1e-12)


def test_rows_can_have_another_total():
    x = counts(1)
    prepared = prepare(x, counts="log-normalise", target=100)
    np.testing.assert_allclose(rows_of(prepared), naive(x, 100), rtol=1e-12)


def test_a_row_of_zeros_stays_zero():
    prepared = prepare(counts(2), counts="log-normalise")
    assert (rows_of(prepared)[3] == 0).all()


@pytest.mark.parametrize("way", ["log1p", "log-normalise"])
def test_sparse_equals_dense_and_stays_sparse(way):
    x = counts(3)
    prepared = prepare(sparse.csc_matrix(x), counts=way)
    assert prepared.sparse
    stored = sum(block.values.nnz for block in prepared.blocks(0, 7))
    assert stored == np.count_nonzero(x)
    np.testing.assert_allclose(rows_of(prepared), rows_of(prepare(x, counts=way)), rtol=1e-12)


def test_duplicate_entries_are_summed_to_one_count():
    parts = sparse.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    np.testing.assert_allclose(rows_of(prepare(parts, counts="log1p")), [[np.log(4), 0]])
    assert parts.nnz == 2  # the input is not changed


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_totals_include_all_columns_if_columns_are_chosen(make):
    x = counts(4)
    once = prepare(make(x), columns=[0, 2], counts="log-normalise")
    twice = prepare(prepare(make(x), counts="log-normalise"), columns=[0, 2])
    np.testing.assert_array_equal(rows_of(once), rows_of(twice))
    np.testing.assert_allclose(rows_of(once), naive(x)[:, [0, 2]], rtol=1e-12)
    assert once.fingerprint() == twice.fingerprint()


def test_totals_include_the_columns_chosen_before():
    x = counts(4)
    prepared = prepare(prepare(x, columns=[0, 2]), counts="log-normalise")
    np.testing.assert_allclose(rows_of(prepared), naive(x[:, [0, 2]]), rtol=1e-12)


def test_all_columns_of_a_table_are_read_for_the_totals():
    pandas = pytest.importorskip("pandas")
    x = counts(4)
    frame = pandas.DataFrame(x, columns=list("abcdef"))
    prepared = prepare(frame, columns=["c", "a"], counts="log-normalise")
    np.testing.assert_allclose(rows_of(prepared), naive(x)[:, [2, 0]], rtol=1e-12)
    turned = prepared.preparation.over(frame[list("fedcba")])
    np.testing.assert_allclose(rows_of(turned), naive(x)[:, [2, 0]], rtol=1e-12)
    with pytest.raises(SourceError, match=r"lacks 4 features of the fit.*count for the totals"):
        prepared.preparation.over(frame[["c", "a"]])


def test_a_table_with_text_is_refused_if_totals_need_all_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2], "who": ["x", "y"], "b": [3.0, 4]})
    with pytest.raises(SourceError, match=r"who.*read all columns.*as_source\(data, columns="):
        prepare(frame, columns=["a"], counts="log-normalise")


@pytest.mark.parametrize(
    ("given", "made"), [("uint8", "float32"), ("int16", "float32"), ("int32", "float64")]
)
def test_integers_become_floats_of_sufficient_precision(given, made):
    prepared = prepare(counts(5).astype(given), counts="log-normalise")
    assert prepared.dtype == made
    assert next(prepared.blocks(0, 9)).values.dtype == made


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_negative_counts_are_refused_by_row_and_column(make):
    x = counts(6)
    x[11, 5] = -2
    with pytest.raises(SourceError, match=r"row 11, column 5 is -2, but counts are never negative"):
        rows_of(prepare(make(x), counts="log1p"))


def test_unknown_options_are_refused():
    with pytest.raises(
        ValueError, match=r"counts='cpm': choose one of 'log1p', 'log-normalise', 'pearson'"
    ):
        prepare(counts(7), counts="cpm")
    with pytest.raises(ValueError, match=r"target=0: give a finite number above 0"):
        prepare(counts(7), counts="log-normalise", target=0)


@pytest.mark.parametrize("way", ["log-normalise", "pearson"])
def test_normalised_counts_are_not_normalised_again_in_silence(way):
    raw = np.random.default_rng(0).poisson(2.0, (40, 6)).astype(np.float32)
    prepared = prepare(raw, counts=way)
    assert len(list(prepared.blocks(0, 40))) == 1
    with pytest.warns(NotCountsWarning, match=f"counts='{way}' is for raw counts"):
        list(prepare(np.log1p(raw), counts=way).blocks(0, 40))
    with pytest.warns(NotCountsWarning):
        list(prepared.preparation.over(np.log1p(raw)).blocks(0, 40))
    assert len(list(prepare(raw / 3, counts="log1p").blocks(0, 40))) == 1
