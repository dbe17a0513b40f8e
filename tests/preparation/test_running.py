import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import prepare
from eigengame.preparation.running import AT_ONCE, EARLY
from tests.preparation.reading import rows_of

N, D = EARLY + 60, 4


def table(seed, n=N):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, D)) * [1e-3, 1, 50, 0] + [0, 5, -20, 0.1]
    return np.round(x, 6)


def naive(x, weights=None):
    """Return each row divided by the standard deviations of the rows up to it."""
    weights = np.ones(len(x)) if weights is None else weights
    out = np.empty_like(x)
    for i, row in enumerate(x):
        end = max(i + 1, EARLY)
        mean = np.average(x[:end], axis=0, weights=weights[:end])
        deviation = np.sqrt(np.average((x[:end] - mean) ** 2, axis=0, weights=weights[:end]))
        out[i] = row / np.where(deviation > 1e-9, deviation, 1)
    return out


def test_each_row_is_divided_by_the_deviations_of_the_rows_up_to_it():
    x = table(0)
    np.testing.assert_allclose(rows_of(prepare(x, scale="running")), naive(x), rtol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1, 17, 100, 400]),
    start=st.integers(0, N - 1),
)
def test_rows_are_the_same_to_the_last_bit_from_any_row_on_in_any_blocks(make, seed, size, start):
    x = table(seed)
    x[np.abs(x) < 1e-3] = 0
    prepared = prepare(make(x), scale="running")
    np.testing.assert_array_equal(rows_of(prepared, size, start), rows_of(prepared, N)[start:])


def test_pieces_of_wide_rows_change_nothing(monkeypatch):
    x = table(1)
    expected = rows_of(prepare(x, scale="running"), N)
    monkeypatch.setattr("eigengame.preparation.running.AT_ONCE", 3 * D)
    assert AT_ONCE > N * D
    np.testing.assert_array_equal(rows_of(prepare(x, scale="running"), N), expected)


def test_sparse_equals_dense_and_stays_sparse():
    x = table(2)
    x[np.random.default_rng(2).random(x.shape) < 0.6] = 0
    prepared = prepare(sparse.csr_array(x), scale="running")
    assert prepared.sparse
    np.testing.assert_allclose(rows_of(prepared), rows_of(prepare(x, scale="running")), rtol=1e-9)


def test_a_feature_that_never_changes_is_left_as_it_is():
    x = table(3)
    for rows in (x, sparse.csr_array(x)):
        np.testing.assert_array_equal(rows_of(prepare(rows, scale="running"))[:, 3], x[:, 3])


def test_rows_passed_over_do_not_count():
    x = table(4)
    weights = np.ones(N)
    weights[[0, 3, EARLY + 5]] = 0
    holed, zeroed = x.copy(), x.copy()
    holed[weights == 0, 1] = np.nan
    zeroed[weights == 0] = 0
    prepared = prepare(holed, missing="skip", scale="running")
    np.testing.assert_allclose(rows_of(prepared), naive(zeroed, weights), rtol=1e-9)


def test_a_stream_that_can_be_read_once_is_scaled_in_its_one_pass():
    x = table(5)
    prepared = prepare((x[i : i + 50] for i in range(0, N, 50)), scale="running")
    np.testing.assert_allclose(rows_of(prepared, 33), naive(x), rtol=1e-9)


def test_what_is_kept_is_the_deviations_at_the_end_of_the_pass():
    x = table(6)
    prepared = prepare(x, scale="running")
    next(prepared.blocks(0, 10))
    assert rows_of(prepared).shape == x.shape
    next(prepared.blocks(0, 10))  # a look at the beginning later on changes nothing
    kept = prepared.preparation.steps[-1]
    np.testing.assert_allclose(kept.deviations, x.std(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(kept.constant, [3])


def test_fewer_rows_than_the_early_ones_share_one_deviation():
    x = table(7, 20)
    expected = x / np.where(x.std(axis=0) > 1e-9, x.std(axis=0), 1)
    np.testing.assert_allclose(rows_of(prepare(x, scale="running")), expected, rtol=1e-9)


def test_a_stream_not_yet_read_has_nothing_to_keep():
    prepared = prepare(iter([table(8)]), scale="running")
    with pytest.raises(ValueError, match="before a pass is made"):
        _ = prepared.preparation
