import numpy as np
import pytest

from eigengame import Sequential, as_symmetric_rows, metrics, play, random_players, testing
from eigengame.game import theory

SPECTRUM = np.array([3.0, 2.0, 1.0, 0.5, 0.25])
K, TOL = 3, 0.1
PROBLEM = testing.matrix_with(SPECTRUM, seed=0)


def run(scale, seed=0, rounds=20_000, **options):
    algorithm = Sequential(scale * SPECTRUM[: K + 1], theta_tol=TOL, **options)
    rows = as_symmetric_rows(scale * PROBLEM.data)
    played = play(algorithm, rows, players=random_players(seed, K, 5, "float64"), rounds=rounds)
    return played, metrics.angular_error(np.asarray(played.components), PROBLEM.components)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_scale_free_rule_reaches_theta_tol_at_any_scale(scale, seed):
    played, errors = run(scale, seed)
    assert int(played.state.active) == K
    assert errors.max() <= TOL


def test_the_scale_free_rule_takes_the_same_path_at_any_scale():
    (small, _), (large, _) = run(1e-3), run(1e3)
    np.testing.assert_allclose(small.components, large.components, atol=1e-9)


def test_the_literal_rule_stops_far_too_soon_on_large_data():
    # As printed, t_i shrinks with the square of the data's scale: 12 iterations, then 1.
    algorithm = Sequential(
        1e3 * SPECTRUM[:3], theta_tol=TOL, rule="literal", stop_on_gradient=False
    )
    players = random_players(0, 2, 5, "float64")
    played = play(algorithm, as_symmetric_rows(1e3 * PROBLEM.data), players=players, rounds=20)
    assert int(played.state.active) == 2
    norms = np.asarray(played.info.direction_norms)[:13]
    np.testing.assert_array_equal(np.count_nonzero(norms, axis=0), [12, 1])
    errors = metrics.angular_error(np.asarray(played.components), PROBLEM.components)
    assert errors.min() > 5 * TOL


def test_a_turn_lasts_as_long_as_the_rule_says():
    played, _ = run(1.0, rule="literal", stop_on_gradient=False, cap=50, rounds=200)
    norms = np.asarray(played.info.direction_norms)
    rho = theory.thresholds(SPECTRUM, K, TOL).rho
    for i in range(K):
        first = norms[np.argmax(norms[:, i] > 0), i]
        expected = min(theory.literal_iterations(rho[i], first), 50)
        if i < K - 1:
            assert np.count_nonzero(norms[:, i]) == expected


def test_each_iteration_is_a_riemannian_step_of_one_over_2l():
    players = random_players(0, K, 5, "float64")
    algorithm = Sequential(SPECTRUM[: K + 1], theta_tol=TOL)
    played = play(algorithm, as_symmetric_rows(PROBLEM.data), players=players, rounds=1)
    v = np.asarray(players)
    gradient = 2 * PROBLEM.data @ v[0]
    w = v[0] + (gradient - (gradient @ v[0]) * v[0]) / (2 * theory.lipschitz(SPECTRUM, K))
    np.testing.assert_allclose(played.components[0], w / np.linalg.norm(w), rtol=1e-12)
    np.testing.assert_array_equal(played.components[1:], v[1:])


def test_players_stop_where_the_gradient_is_within_rho():
    played, _ = run(1.0)
    rows, v = as_symmetric_rows(PROBLEM.data), played.components
    norms = np.asarray(
        play(Sequential(SPECTRUM[: K + 1]), rows, players=v, rounds=1).info.direction_norms
    )
    assert norms[0, 0] <= theory.thresholds(SPECTRUM, K, TOL).rho[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"eigenvalues": (3.0, 2.0), "rule": "guess"}, "rule='guess'"),
        ({"eigenvalues": (3.0, 3.0)}, "gap"),
        ({"eigenvalues": (3.0, 2.0), "cap": 0}, "cap=0"),
        ({"eigenvalues": (3.0, 2.0), "theta_tol": 0}, "theta_tol=0"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Sequential(**options)


def test_one_eigenvalue_more_than_players_is_asked_for():
    with pytest.raises(ValueError, match="at least 4"):
        play(Sequential((3.0, 2.0)), np.eye(5), k=3, rounds=1)
