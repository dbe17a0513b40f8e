import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import SourceError, prepare
from tests.preparation.reading import rows_of


def calls(seed):
    """Return calls (40, 6), some missing; SNP 1 is constant, SNP 5 has no calls."""
    rng = np.random.default_rng(seed)
    x = rng.binomial(2, rng.uniform(0.2, 0.8, 6), (40, 6)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:, 1] = 2
    x[:, 5] = np.nan
    return x


def naive(x):
    """Return standardised calls, SNP by SNP."""
    out = np.zeros(x.shape)
    for j, snp in enumerate(x.astype(float).T):
        there = ~np.isnan(snp)
        p = snp[there].mean() / 2 if there.any() else 0
        if 0 < p < 1:
            out[there, j] = (snp[there] - 2 * p) / np.sqrt(2 * p * (1 - p))
    return out


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 7, 40, 64]), start=st.integers(0, 39)
)
def test_calls_are_standardised_by_their_frequency_whatever_the_blocks(seed, size, start):
    x = calls(seed)
    prepared = prepare(x, genotypes=True)
    np.testing.assert_allclose(rows_of(prepared, size, start), naive(x)[start:], atol=1e-6)
    assert prepared.dtype == np.float32


def test_integers_and_dosages_are_valid_calls():
    whole = np.array([[0, 1], [1, 2], [2, 2]], np.int8)
    np.testing.assert_allclose(rows_of(prepare(whole, genotypes=True)), naive(whole), atol=1e-6)
    dosages = np.array([[0.1, 1.0], [1.5, 0.3], [2.0, 0.0]])
    np.testing.assert_allclose(rows_of(prepare(dosages, genotypes=True)), naive(dosages))


def test_sparse_calls_become_dense_block_by_block():
    x = np.nan_to_num(calls(1))
    prepared = prepare(sparse.csr_array(x), genotypes=True)
    assert not prepared.sparse
    np.testing.assert_allclose(rows_of(prepared), naive(x), atol=1e-6)


def test_columns_are_chosen_before():
    x = calls(2)
    chosen = prepare(x, columns=[3, 0], genotypes=True)
    np.testing.assert_allclose(rows_of(chosen), naive(x)[:, [3, 0]], atol=1e-6)


@pytest.mark.parametrize("value", [-1, 3, -127, np.inf])
def test_invalid_calls_are_refused_by_row_and_column(value):
    x = calls(3)
    x[21, 4] = value
    with pytest.raises(SourceError, match=r"row 21, column 4 is .*, but genotypes are 0, 1 or 2"):
        prepare(x, genotypes=True)


@pytest.mark.parametrize("other", [{"missing": "skip"}, {"counts": "log1p"}, {"scale": "two-pass"}])
def test_other_steps_cannot_be_combined_with_genotypes(other):
    with pytest.raises(ValueError, match=r"genotypes=True with .*leave out the other options"):
        prepare(calls(4), genotypes=True, **other)
