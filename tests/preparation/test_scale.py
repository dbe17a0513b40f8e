import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from eigengame import SourceError, prepare
from tests.preparation.reading import counts, rows_of


def table(seed):
    """Return rows whose features differ in mean and deviation; one feature is constant."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 6)) * 10.0 ** rng.integers(-3, 4, 6) + rng.integers(-9, 9, 6)
    x[:, 4] = 0.1
    return x


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 7, 40, 64]), start=st.integers(0, 39)
)
def test_two_passes_divide_as_scikit_learn_does_whatever_the_blocks(seed, size, start):
    x = table(seed)
    expected = StandardScaler(with_mean=False).fit_transform(x)
    prepared = prepare(x, scale="two-pass")
    np.testing.assert_allclose(rows_of(prepared, size, start), expected[start:], rtol=1e-9)


def test_a_constant_feature_is_not_changed_and_is_listed():
    x = table(0)
    prepared = prepare(x, scale="two-pass")
    np.testing.assert_array_equal(rows_of(prepared)[:, 4], x[:, 4])
    np.testing.assert_array_equal(np.flatnonzero(prepared.steps[-1].deviations == 0), [4])


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_sparse_equals_dense_and_stays_sparse(value):
    x = counts(1).astype(float)
    x[:, 2] = value
    prepared = prepare(sparse.csr_array(x), scale="two-pass")
    assert prepared.sparse
    assert prepared.most_entries(7) >= max(block.values.nnz for block in prepared.blocks(0, 7))
    expected = rows_of(prepare(x, scale="two-pass"))
    np.testing.assert_allclose(rows_of(prepared), expected, rtol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(prepared.steps[-1].deviations == 0), [2])


def test_a_mean_far_from_zero_does_not_lose_precision():
    x = np.random.default_rng(2).standard_normal((4000, 3)) + 1e6
    deviations = prepare(x, scale="two-pass").steps[-1].deviations
    np.testing.assert_allclose(deviations, (x - 1e6).std(axis=0), rtol=1e-9)


def test_skipped_rows_do_not_count():
    x = table(3)
    x[5, 1] = np.nan
    prepared = prepare(x, missing="skip", scale="two-pass")
    kept = np.delete(x, 5, axis=0)
    expected = StandardScaler(with_mean=False).fit_transform(kept)
    np.testing.assert_allclose(np.delete(rows_of(prepared), 5, axis=0), expected, rtol=1e-9)


def test_scale_learns_from_the_output_of_earlier_steps():
    x = counts(4)
    logs = np.log1p(x)
    prepared = prepare(x, columns=[1, 3], counts="log1p", scale="two-pass")
    np.testing.assert_allclose(rows_of(prepared), (logs / logs.std(axis=0))[:, [1, 3]], rtol=1e-9)


def test_two_passes_need_data_that_can_be_read_again():
    stream = (np.ones((2, 3)) for _ in range(3))
    with pytest.raises(SourceError, match=r"scale='two-pass' needs an extra pass.*a part of it"):
        prepare(stream, scale="two-pass")


def test_data_without_rows_is_refused():
    with pytest.raises(
        SourceError, match=r"has no rows: scale='two-pass' has nothing to learn from"
    ):
        prepare(np.zeros((0, 3)), scale="two-pass")


def test_scaling_by_a_running_deviation_is_refused_and_the_replacement_is_named():
    with pytest.raises(ValueError, match=r"scale='running' was removed.*Use scale='two-pass'"):
        prepare(np.eye(3), scale="running")


def test_a_stream_can_be_scaled_by_deviations_of_a_part():
    x = table(5)
    learnt = prepare(x[:20], scale="two-pass").preparation
    prepared = learnt.over(iter([x[:7], x[7:]]))
    expected = StandardScaler(with_mean=False).fit(x[:20]).transform(x)
    np.testing.assert_allclose(rows_of(prepared), expected, rtol=1e-9)


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match=r"scale='unit': choose one of 'two-pass'"):
        prepare(np.eye(3), scale="unit")
