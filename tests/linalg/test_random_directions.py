"""Random directions are orthonormal, and outside the span of given ones."""

import numpy as np
import pytest

from eigengame.linalg.random_directions import random_orthonormal, random_outside


@pytest.mark.parametrize(("count", "d"), [(5, 8), (5, 400), (8, 8)])
@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-6), ("float64", 1e-14)])
def test_random_directions_are_orthonormal(count, d, dtype, error):
    found = random_orthonormal(count, d, np.dtype(dtype), 0)
    assert found.dtype == dtype
    np.testing.assert_allclose(found @ found.T, np.eye(count), atol=error)


@pytest.mark.parametrize(("m", "count", "d"), [(3, 2, 5), (3, 4, 300), (0, 2, 6)])
def test_directions_outside_complete_an_orthonormal_set(m, count, d):
    others = random_orthonormal(m, d, np.float64, 0)
    # The seed of the others: what is drawn first lies in their span.
    both = np.concatenate([others, random_outside(others, count, 0)])
    np.testing.assert_allclose(both @ both.T, np.eye(m + count), atol=1e-13)
