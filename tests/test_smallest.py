import math

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, testing
from eigengame.algorithms import Alpha, Krasulina
from eigengame.game import DenseRows, as_symmetric_rows
from eigengame.smallest import smallest_components

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
    found = smallest_components(problem.data, K, algorithm=Alpha(0.1), rounds=2000)
    truth = problem.components[::-1]
    assert metrics.longest_streak(np.asarray(found.components), truth, math.pi / 32) == K


def test_a_null_space_has_eigenvalue_zero_and_zero_rows_give_no_nan():
    problem = testing.rows_with([3.0, 2.0, 1.0, 0.0, 0.0], 20, seed=3)
    found = smallest_components(problem.data, 2)
    assert np.abs(np.asarray(found.eigenvalues)).max() < 1e-6
    nothing = smallest_components(np.zeros((4, 5)), 2)
    assert np.isfinite(np.asarray(nothing.components)).all()


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_rows_of_any_scale_in_float32(scale):
    problem = testing.rows_with(SPECTRUM, 40, seed=2)
    found = smallest_components((scale * problem.data).astype("float32"), K)
    np.testing.assert_allclose(found.eigenvalues / scale**2, SPECTRUM[::-1][:K], rtol=1e-5)
    assert (
        metrics.angular_error(np.asarray(found.components), problem.components[::-1]).max() < 1e-5
    )


def test_eigenvalues_over_four_orders_of_magnitude(dtype):
    spectrum = np.geomspace(1e4, 1, 20)
    problem = testing.rows_with(spectrum, 60, seed=1)
    found = smallest_components(problem.data.astype(dtype), K)
    assert found.components.dtype == dtype
    np.testing.assert_allclose(found.eigenvalues, spectrum[::-1][:K], rtol=1e-4)
    assert (
        metrics.angular_error(np.asarray(found.components), problem.components[::-1]).max() < 0.01
    )


def test_the_smallest_come_first_even_from_players_in_no_order():
    # This algorithm only finds the subspace; settling sorts the components.
    found = smallest_components(PROBLEM.data, K, algorithm=Krasulina(0.5), rounds=500)
    assert (np.diff(np.asarray(found.eigenvalues)) > 0).all()
    # PROBLEM.data is a matrix, used as rows here: its square has the same components.
    truth = PROBLEM.components[::-1]
    assert metrics.longest_streak(np.asarray(found.components), truth, math.pi / 32) == K


def test_a_margin_keeps_the_largest_component_above_zero_in_the_second_game():
    # An estimate from below would give the largest component a negative reward.
    found = smallest_components(as_symmetric_rows(PROBLEM.data), 6)
    np.testing.assert_allclose(found.played.info.rewards[-1, -1], 1e-3, rtol=0.01)


def test_bfloat16_rows_play_in_float32():
    rows = DenseRows(jnp.asarray(PROBLEM.data, jnp.bfloat16))
    assert smallest_components(rows, 2, rounds=2).components.dtype == jnp.float32


def test_more_components_than_features_are_refused():
    with pytest.raises(ValueError, match="k=7 is more than the 6 features"):
        smallest_components(PROBLEM.data, 7)
