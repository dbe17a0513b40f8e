"""Preparation in float64, for fits in float64."""

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, as_source, prepare, shuffled
from eigengame.dask.partitions import Range
from eigengame.preparation import PreparedSource
from eigengame.sources import ArraySource
from eigengame.sources.concatenation import ConcatenatedSource
from tests.preparation.reading import counts, rows_of

CALLS = np.random.default_rng(0).binomial(2, [0.1, 0.3, 0.5, 0.7, 0.9], (60, 5)).astype(np.int8)


def standardised(calls):
    p = calls.mean(axis=0) / 2
    return (calls - 2 * p) / np.sqrt(2 * p * (1 - p))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_genotypes_are_standardised_in_float64_if_needed(dtype):
    prepared = prepare(CALLS.astype(dtype), genotypes=True)
    assert prepared.dtype == np.float32
    precise = prepared.in_float64()
    assert precise.dtype == np.float64
    np.testing.assert_allclose(rows_of(precise), standardised(CALLS), rtol=1e-14)
    assert precise.preparation.same_as(prepared.preparation)
    assert precise.fingerprint() == prepared.fingerprint()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_every_step_computes_in_float64(make):
    x = counts(1).astype(np.float32)
    x[5, 1] = np.nan
    steps = {"missing": "mean", "counts": "log-normalise", "scale": "two-pass"}
    single = prepare(make(x), **steps)
    double = single.in_float64()
    by_hand = single.preparation.over(make(x.astype(np.float64)))
    np.testing.assert_array_equal(rows_of(double), rows_of(by_hand))
    assert np.abs(rows_of(double) - rows_of(single)).max() > 0
    assert double.sparse == single.sparse


def test_a_step_learns_the_same_in_both_precisions():
    x = counts(2).astype(np.float32)
    single = prepare(x, counts="log1p")
    after = [prepare(one, scale="two-pass") for one in (single, single.in_float64())]
    np.testing.assert_array_equal(after[0].steps[-1].deviations, after[1].steps[-1].deviations)
    assert [one.dtype for one in after] == [np.float32, np.float64]


def test_sources_that_only_read_numbers_return_themselves():
    x = counts(3).astype(np.float32)
    whole = prepare(x, columns=[0, 1])
    for source in (
        as_source(x),
        whole,
        ConcatenatedSource([as_source(x)]),
        shuffled(as_source(x), 0),
    ):
        assert source.in_float64() is source


class Thirds(ArraySource):
    """Rows that are divided by three when they are read."""

    def read(self, begin, end):
        return self.data[begin:end] / np.asarray(3, self.data.dtype)

    def in_float64(self):
        return Thirds(self.data.astype(np.float64))


def test_wrapping_sources_pass_float64_on():
    x = counts(4).astype(np.float32)
    parts = [Thirds(x[:20]), Thirds(x[20:])]
    wrapped = [
        ConcatenatedSource(parts),
        shuffled(Thirds(x), 0),
        Range(Thirds(x), 0, 40),
        PreparedSource(prepare(Thirds(x))),
    ]
    expected = np.sort(counts(4) / 3, axis=0)
    for source in wrapped:
        precise = source.in_float64()
        assert precise.dtype == np.float64
        np.testing.assert_allclose(np.sort(rows_of(precise), axis=0), expected, rtol=1e-15)


def test_a_fit_in_float64_reads_rows_prepared_in_float64():
    pca = EigenGamePCA(2, passes=8, random_state=0).fit(prepare(CALLS, genotypes=True))
    values = np.linalg.eigvalsh(np.cov(standardised(CALLS), rowvar=False))[::-1][:2]
    np.testing.assert_allclose(pca.explained_variance_, values, rtol=1e-11)
    np.testing.assert_allclose(pca.certify(CALLS).rayleigh, values, rtol=1e-11)


def test_partial_fit_in_float64_reads_rows_prepared_in_float64():
    pca = EigenGamePCA(2, dtype="float64", random_state=0)
    pca.partial_fit(prepare(CALLS, genotypes=True))
    np.testing.assert_allclose(pca.var_, standardised(CALLS).var(axis=0), rtol=1e-12)


def test_workers_of_dask_prepare_in_float64():
    da = pytest.importorskip("dask.array")
    blocks = da.from_array(CALLS, chunks=(30, 5))
    pca = EigenGamePCA(2, dtype="float64", random_state=0).fit(prepare(blocks, genotypes=True))
    np.testing.assert_allclose(pca.var_, standardised(CALLS).var(axis=0), rtol=1e-12)
