import math

import numpy as np
import pytest

from eigengame import Alpha, as_symmetric_rows, metrics, smallest_components, testing

SPECTRUM = np.array([8.0, 5.0, 4.0, 3.0, 1.0, 0.5])
PROBLEM = testing.matrix_with(SPECTRUM, seed=1)
K = 3


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_smallest_components_at_any_scale(scale):
    found = smallest_components(as_symmetric_rows(scale * PROBLEM.data), K)
    np.testing.assert_allclose(found.largest, scale * 8, rtol=1e-6)
    np.testing.assert_allclose(found.eigenvalues, scale * SPECTRUM[::-1][:K], rtol=1e-3)
    truth = PROBLEM.components[::-1]
    assert metrics.longest_streak(np.asarray(found.components), truth, math.pi / 32) == K


def test_from_rows_and_by_another_algorithm():
    problem = testing.rows_with(SPECTRUM, 40, seed=2)
    found = smallest_components(problem.data, K, algorithm=Alpha(0.1))
    truth = problem.components[::-1]
    assert metrics.longest_streak(np.asarray(found.components), truth, math.pi / 32) == K


def test_a_null_space_has_eigenvalue_zero_and_nothing_at_all_gives_no_nan():
    problem = testing.rows_with([3.0, 2.0, 1.0, 0.0, 0.0], 20, seed=3)
    found = smallest_components(problem.data, 2)
    assert np.abs(np.asarray(found.eigenvalues)).max() < 1e-6
    nothing = smallest_components(np.zeros((4, 5)), 2)
    assert np.isfinite(np.asarray(nothing.components)).all()


def test_more_components_than_features_are_refused():
    with pytest.raises(ValueError, match="k=7 is more than the 6 features"):
        smallest_components(PROBLEM.data, 7)
