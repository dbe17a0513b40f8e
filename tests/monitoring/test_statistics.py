"""T2, SPE and their contributions equal loops over rows, components and features."""

import numpy as np
import pytest
from scipy import sparse

from eigengame.model import Model
from eigengame.monitoring.statistics import statistics_of
from eigengame.sources import Block

RNG = np.random.default_rng(0)
D, K = 6, 3
COMPONENTS = np.linalg.qr(RNG.standard_normal((D, D)))[0][:, :K].T
MODEL = Model(COMPONENTS, np.array([4.0, 2.0, 0.5]), RNG.standard_normal(D), 0.1)
ROWS = RNG.standard_normal((5, D)) * 3


def looped(row):
    """Return T2, SPE and both lists of contributions of one row."""
    away = [row[f] - MODEL.mean[f] for f in range(D)]
    scores = [sum(MODEL.components[i][f] * away[f] for f in range(D)) for i in range(K)]
    t2 = sum(scores[i] ** 2 / MODEL.variance[i] for i in range(K))
    left = [away[f] - sum(scores[i] * MODEL.components[i][f] for i in range(K)) for f in range(D)]
    parts = [
        sum(scores[i] * MODEL.components[i][f] / MODEL.variance[i] ** 0.5 for i in range(K)) ** 2
        for f in range(D)
    ]
    return t2, sum(e**2 for e in left), parts, [e**2 for e in left]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, np.float32])
def test_statistics_equal_loops(convert):
    rows = convert(ROWS)
    found = statistics_of(MODEL, Block(rows), "X", 0)
    dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
    for i, row in enumerate(dense):
        for array, expected in zip(found, looped(row), strict=True):
            np.testing.assert_allclose(array[i], expected, rtol=1e-12)
    np.testing.assert_allclose(found.t2_contributions.sum(axis=1), found.t2, rtol=1e-12)
    np.testing.assert_allclose(found.spe_contributions.sum(axis=1), found.spe, rtol=1e-12)


def test_rows_that_are_skipped_have_nan():
    found = statistics_of(MODEL, Block(ROWS, np.array([1.0, 0, 1, 1, 1])), "X", 0)
    for array in found:
        assert np.isnan(array[1]).all()
        assert np.isfinite(array[[0, 2, 3, 4]]).all()


def test_a_missing_value_is_refused_with_its_place():
    rows = ROWS.copy()
    rows[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"X\[12, 4\] is nan"):
        statistics_of(MODEL, Block(rows), "X", 10)
