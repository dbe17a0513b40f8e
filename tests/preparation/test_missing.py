import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.impute import SimpleImputer

from eigengame import SourceError, prepare
from eigengame.sources import ArraySource
from tests.preparation.reading import Weighted, rows_of, weights_of


def holed(seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 6)).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[2, 1] = np.nan
    return x


def stored(x):
    """Return sparse rows that store all nonzero values, including NaN."""
    return sparse.csr_array(x)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 7, 40, 64]), start=st.integers(0, 39)
)
def test_mean_is_that_of_scikit_learn_whatever_the_blocks(seed, size, start):
    x = holed(seed)
    prepared = prepare(x, missing="mean")
    expected = SimpleImputer().fit_transform(x)
    np.testing.assert_allclose(rows_of(prepared, size, start), expected[start:], rtol=1e-12)


@pytest.mark.parametrize("policy", ["mean", "skip"])
def test_sparse_equals_dense(policy):
    x = holed(1)
    x[np.abs(x) < 0.5] = 0
    one, other = prepare(x, missing=policy), prepare(stored(x), missing=policy)
    assert other.sparse
    np.testing.assert_allclose(rows_of(other), rows_of(one), rtol=1e-12)
    np.testing.assert_array_equal(weights_of(other), weights_of(one))


def test_skip_gives_weight_0_and_zeros_to_rows_with_a_missing_value():
    x = holed(2)
    gone = np.isnan(x).any(axis=1)
    prepared = prepare(x, missing="skip")
    np.testing.assert_array_equal(weights_of(prepared), ~gone)
    np.testing.assert_array_equal(rows_of(prepared), np.where(gone[:, None], 0, x))


def test_means_are_weighted_and_weights_are_kept():
    x, w = holed(3), np.arange(40.0)
    prepared = prepare(Weighted(x), missing="mean")
    there = ~np.isnan(x)
    means = np.nansum(w[:, None] * x, axis=0) / (w[:, None] * there).sum(axis=0)
    np.testing.assert_allclose(rows_of(prepared), np.where(there, x, means), rtol=1e-12)
    np.testing.assert_array_equal(weights_of(prepared), w)
    skipped = weights_of(prepare(Weighted(x), missing="skip"))
    np.testing.assert_array_equal(skipped, w * there.all(axis=1))


def test_the_dtype_is_kept():
    prepared = prepare(holed(4, np.float32), missing="mean")
    assert prepared.dtype == np.float32
    assert next(prepared.blocks(0, 9)).values.dtype == np.float32
    whole = prepare(np.eye(3, dtype=np.uint8), missing="mean")
    assert next(whole.blocks(0, 3)).values.dtype == np.uint8


@pytest.mark.parametrize("make", [ArraySource, stored], ids=["dense", "sparse"])
def test_a_missing_value_is_refused_by_row_and_column(make):
    x = np.ones((40, 6))
    x[17, 4] = np.nan
    with pytest.raises(
        SourceError, match=r"row 17, column 4 is nan, which is missing: give missing="
    ):
        rows_of(prepare(make(x)))
    with pytest.raises(SourceError, match=r"row 17, column 4 is nan"):
        rows_of(prepare(make(x), columns=[5, 4]), size=3)


def test_a_missing_value_is_refused_by_the_name_of_its_feature():
    source = ArraySource(np.array([[1.0, np.nan]]), "table")
    source.feature_names = ["height", "weight"]
    with pytest.raises(
        SourceError, match=r"^table: the value in row 0, column 1 \(weight\) is nan"
    ):
        rows_of(prepare(source))


@pytest.mark.parametrize("policy", ["raise", "mean", "skip"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_under_every_policy(policy, value):
    x = np.ones((40, 6))
    x[9, 2], x[8, 2] = value, np.nan if policy != "raise" else 1.0
    with pytest.raises(
        SourceError, match=r"row 9, column 2 is -?inf, which is not a missing value"
    ):
        rows_of(prepare(x, missing=policy))


def test_large_numbers_whose_sum_is_infinite_are_not_missing():
    x = np.full((4, 3), 3e38, np.float32)
    np.testing.assert_array_equal(rows_of(prepare(x)), x)


def test_means_need_data_that_can_be_read_again():
    stream = (np.ones((2, 3)) for _ in range(3))
    with pytest.raises(
        SourceError, match=r"can be read once, and missing='mean' needs an extra pass"
    ):
        prepare(stream, missing="mean")


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match=r"missing='drop': choose one of 'raise', 'mean', 'skip'"):
        prepare(np.eye(3), missing="drop")


@pytest.mark.parametrize("make", [np.asarray, stored], ids=["dense", "sparse"])
def test_a_column_without_any_value_has_no_mean(make):
    x = holed(8)
    x[:, [1, 4]] = np.nan
    with pytest.raises(
        SourceError, match=r"without any value.*: 1, 4\. Leave them out by columns="
    ):
        prepare(make(x), missing="mean")
    source = ArraySource(x)
    source.feature_names = list("abcdef")
    with pytest.raises(SourceError, match=r"1 \(b\), 4 \(e\)"):
        prepare(source, missing="mean")
    assert prepare(x, columns=[0, 2], missing="mean").shape == (40, 2)
