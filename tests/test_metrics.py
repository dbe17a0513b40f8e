import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, testing
from eigengame.game import random_players


def rotated(angles, d=8):
    eye = np.eye(d)
    return np.array(
        [math.cos(a) * eye[i] + math.sin(a) * eye[-1 - i] for i, a in enumerate(angles)]
    )


def test_angular_error_equals_the_formula_of_the_paper_and_ignores_sign_and_length():
    rng = np.random.default_rng(0)
    players, truth = np.asarray(random_players(0, 4, 8, "float64")), testing.orthogonal(8, 1)
    inner = np.sum(players * truth[:4], axis=1)
    np.testing.assert_allclose(
        metrics.angular_error(players, truth), np.arcsin(np.sqrt(1 - inner**2)), rtol=1e-12
    )
    scaled = players * -rng.uniform(0.1, 9, size=(4, 1))
    np.testing.assert_allclose(
        metrics.angular_error(scaled, truth), metrics.angular_error(players, truth)
    )


def test_angular_error_is_accurate_at_tiny_angles():
    angles = np.array([1e-12, 1e-9, 1e-3])
    np.testing.assert_allclose(metrics.angular_error(rotated(angles), np.eye(8)), angles, rtol=1e-3)


def test_a_zero_player_has_a_right_angle():
    assert metrics.angular_error(np.zeros((1, 3)), np.eye(3)) == pytest.approx(math.pi / 2)


def test_the_angle_of_a_player_with_nan_is_nan():
    players = np.full((1, 3), np.nan)
    assert np.isnan(metrics.angular_error(players, np.eye(3))).all()
    assert metrics.longest_streak(players, np.eye(3)) == 0


def test_streak_of_the_example_in_the_paper():
    players = rotated([math.pi / 16, math.pi / 4, math.pi / 10])
    assert metrics.longest_streak(players, np.eye(8)) == 1
    assert metrics.longest_streak(players[:1], np.eye(8)) == 1
    assert metrics.longest_streak(players[1:2], np.eye(8)) == 0
    assert metrics.longest_streak(rotated([0.1, 0.1, 0.1]), np.eye(8)) == 3


def test_streak_can_be_jitted_and_vmapped():
    players = jnp.stack(
        [jnp.asarray(rotated([0.1, 0.9, 0.1])), jnp.asarray(rotated([0.1, 0.1, 0.1]))]
    )
    streaks = jax.jit(jax.vmap(lambda p: metrics.longest_streak(p, jnp.eye(8))))(players)
    np.testing.assert_array_equal(streaks, [1, 3])


def test_subspace_distance_equals_its_definition_and_has_range_0_to_1():
    rng = np.random.default_rng(2)
    players, truth = rng.normal(size=(3, 8)), testing.orthogonal(8, 3)[:3]
    p = players.T @ np.linalg.pinv(players.T)
    u = truth.T @ np.linalg.pinv(truth.T)
    assert metrics.subspace_distance(players, truth) == pytest.approx(1 - np.trace(u @ p) / 3)
    mixed = rng.normal(size=(3, 3)) @ truth
    assert metrics.subspace_distance(mixed, truth) == pytest.approx(0, abs=1e-12)
    assert metrics.subspace_distance(np.eye(8)[3:6], np.eye(8)[:3]) == pytest.approx(1)
    assert metrics.subspace_distance(np.eye(8)[[0, 0, 0]], np.eye(8)[:3]) == pytest.approx(2 / 3)


def test_match_recovers_any_permutation():
    order = [2, 0, 3, 1]
    players = -rotated([0.1, 0.2, 0.3, 0.1])[order]
    np.testing.assert_array_equal(np.array(order)[metrics.match(players, np.eye(8))], range(4))


def test_true_components_by_eigh_from_rows_or_matrix():
    problem = testing.rows_with([5.0, 3.0, 1.0, 0.5], 30, seed=4)
    for values, components in (
        metrics.true_components(problem.data, 2),
        metrics.true_components(matrix=problem.data.T @ problem.data, k=2),
    ):
        np.testing.assert_allclose(values, [5, 3])
        assert metrics.angular_error(components, problem.components).max() < 1e-12


def test_mismatched_shapes_are_rejected():
    with pytest.raises(ValueError, match="as many true components"):
        metrics.angular_error(np.eye(8), np.eye(8)[:3])
    with pytest.raises(ValueError, match="give exactly one of them"):
        metrics.true_components()
    with pytest.raises(ValueError, match="as many true components"):
        metrics.subspace_distance(np.eye(8)[:3], np.eye(8)[:2])
    with pytest.raises(ValueError, match="not symmetric"):
        metrics.true_components(matrix=[[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="not symmetric"):
        metrics.true_components(matrix=np.ones((2, 3)))


def test_principal_angles_are_those_by_which_a_subspace_is_turned():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    angles = np.array([1e-9, 0.2, 1.5])
    turned = np.cos(angles)[:, None] * basis[:3] + np.sin(angles)[:, None] * basis[3:6]
    # Any other basis of the same span, in any scale.
    mixed = rng.normal(size=(3, 3)) @ turned
    np.testing.assert_allclose(metrics.principal_angles(basis[:3], mixed), angles, atol=1e-12)
    np.testing.assert_allclose(metrics.principal_angles(mixed, basis[:3]), angles, atol=1e-12)
    # A line within a plane, and one orthogonal to it.
    np.testing.assert_allclose(metrics.principal_angles(basis[:1], basis[:2]), [0], atol=1e-12)
    np.testing.assert_allclose(
        metrics.principal_angles(basis[:2], basis[1:3]), [0, np.pi / 2], atol=1e-12
    )


def test_principal_angles_are_as_many_as_the_smaller_dimension():
    rows = np.eye(4)
    np.testing.assert_allclose(metrics.principal_angles(rows[[0, 0]], rows[:2]), [0], atol=1e-12)
    assert len(metrics.principal_angles(np.zeros((2, 4)), rows[:2])) == 0
    with pytest.raises(ValueError, match="features"):
        metrics.principal_angles(rows[:2], rows[:2, :3])
