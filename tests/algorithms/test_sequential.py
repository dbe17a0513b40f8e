import numpy as np
import pytest

from eigengame import Status, metrics, play, testing
from eigengame.algorithms import Sequential
from eigengame.game import as_symmetric_rows, random_players, theory

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


def test_the_length_of_a_turn_follows_the_rule():
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
    np.testing.assert_allclose(played.components[1:], v[1:], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_in_float32_turns_end_at_the_precision_of_the_dtype_and_not_at_the_cap(scale):
    # The first thresholds of the theorem are below the rounding of gradients in float32.
    floor = 8 * np.finfo(np.float32).eps * theory.lipschitz(SPECTRUM, K)
    assert theory.thresholds(SPECTRUM, K, TOL).rho[0] < floor
    algorithm = Sequential(scale * SPECTRUM[: K + 1], theta_tol=TOL)
    rows = as_symmetric_rows((scale * PROBLEM.data).astype("float32"))
    played = play(algorithm, rows, k=K, rounds=3000)
    assert played.outcome.status is Status.ROUNDS_PLAYED
    assert played.components.dtype == "float32"
    assert int(played.state.active) == K
    assert np.count_nonzero(np.asarray(played.info.direction_norms)[:, 0]) < 1000
    assert metrics.angular_error(np.asarray(played.components), PROBLEM.components).max() <= TOL


def test_rows_of_one_in_ten_billion_have_gradients_in_float32():
    problem = testing.rows_with(SPECTRUM, 20, seed=0)
    played = play(
        Sequential(1e-20 * SPECTRUM[: K + 1], theta_tol=TOL),
        (1e-10 * problem.data).astype("float32"),
        k=K,
        rounds=3000,
    )
    assert played.outcome.status is Status.ROUNDS_PLAYED
    assert metrics.angular_error(np.asarray(played.components), problem.components).max() <= TOL


def test_a_cap_beyond_int32_has_no_effect():
    algorithm = Sequential(SPECTRUM[: K + 1], theta_tol=TOL, cap=10**12)
    played = play(algorithm, as_symmetric_rows(PROBLEM.data), k=K, rounds=3)
    assert float(played.state.budget) == 2**31 - 1


@pytest.mark.parametrize(
    ("rule", "budgets"), [("scale-free", [1_426_158, 3_612_982]), ("literal", [1234, 3126])]
)
def test_budgets_are_those_of_the_rule_in_a_trough_and_out_of_it(rule, budgets):
    # One player on diag(4, 2, 1): L = 4 (4 + 2 * 2 / 16) = 17 and rho = 2 theta_tol / (2 pi) = .0318.
    # At an angle from the second eigenvector the Riemannian gradient is 2 (4 - 2) sin cos: far from
    # it the minimum is rho, close to it half the gradient norm.
    algorithm = Sequential((4.0, 2.0), theta_tol=TOL, rule=rule, cap=10**9)
    rows = as_symmetric_rows(np.diag([4.0, 2.0, 1.0]))
    targets = [TOL / np.pi, 2 * np.sin(0.01) * np.cos(0.01)]
    for angle, target, budget in zip((0.7, 0.01), targets, budgets, strict=True):
        start = np.array([[np.sin(angle), np.cos(angle), 0.0]])
        state = play(algorithm, rows, players=start, rounds=1).state
        assert float(state.target) == pytest.approx(target)
        assert float(state.budget) == budget


def algorithm_1(m, players, rho, step_size):
    """Alg. 1 in loops, as printed, for one player after another; return their vectors and numbers of iterations."""
    learnt, counts = [], []

    def gradient(v):
        penalties = sum((v @ m @ p / (p @ m @ p) * p for p in learnt), np.zeros(len(v)))
        return 2 * m @ (v - penalties)

    for v, tolerance in zip(players, rho, strict=True):
        t = int(np.ceil(5 / 4 * min(np.linalg.norm(gradient(v)) / 2, tolerance) ** -2))
        for _ in range(t):
            ambient = gradient(v)
            v = v + step_size * (ambient - (ambient @ v) * v)
            v = v / np.linalg.norm(v)
        learnt.append(v)
        counts.append(t)
    return np.array(learnt), counts


AS_PRINTED = {
    "rule": "literal",
    "start_norm": "ambient",
    "stop_on_gradient": False,
    "cap": 10**9,
}


@pytest.mark.parametrize(
    ("start", "counts"),
    [
        # A random start, and one .1 mrad from the second eigenvector: the ambient norm is as large there,
        # and the number of iterations as small.
        (None, [12, 1]),
        (1e-4, [12, 1]),
    ],
)
def test_algorithm_1_as_printed_equals_its_loops(start, counts):
    spectrum, m = 1e3 * SPECTRUM[:3], 1e3 * PROBLEM.data
    players = np.array(random_players(0, 2, 5, "float64"))
    if start is not None:
        first, second = PROBLEM.components[:2]
        players[0] = np.sin(start) * first + np.cos(start) * second
    rho = theory.thresholds(spectrum, 2, TOL).rho
    expected, taken = algorithm_1(m, players, rho, 1 / (2 * theory.lipschitz(spectrum, 2)))
    assert taken == counts
    algorithm = Sequential(spectrum, theta_tol=TOL, **AS_PRINTED)
    played = play(algorithm, as_symmetric_rows(m), players=players, rounds=20)
    assert int(played.state.active) == 2
    np.testing.assert_allclose(played.components, expected, rtol=1e-10, atol=1e-12)


def test_the_ambient_start_norm_does_not_detect_a_trough():
    # One player .0001 from the second eigenvector of diag(4, 2, 1): the Riemannian gradient is 2 (4 - 2) .0001, the
    # ambient one 2 * 2, and half of it is above rho = .0318.
    rows = as_symmetric_rows(np.diag([4.0, 2.0, 1.0]))
    start = np.array([[1e-4, np.sqrt(1 - 1e-8), 0.0]])
    found = {}
    for norm in ("riemannian", "ambient"):
        algorithm = Sequential((4.0, 2.0), theta_tol=TOL, **(AS_PRINTED | {"start_norm": norm}))
        found[norm] = float(play(algorithm, rows, players=start, rounds=1).state.budget)
    rho = float(theory.thresholds((4.0, 2.0), 1, TOL).rho[0])
    assert found["ambient"] == theory.literal_iterations(rho, np.inf)
    assert found["riemannian"] == pytest.approx(5 / 4 / (2e-4) ** 2, rel=1e-6)


@pytest.mark.parametrize("norm", ["riemannian", "ambient"])
def test_in_three_dimensions_the_first_gradient_does_not_detect_a_trough(norm):
    # On diag(3, 2, 1) a start in the plane of the last two eigenvectors is a right angle from the first. Its
    # gradient is large, so that t_1 is the same for any distance from the plane.
    rows, angles = as_symmetric_rows(np.diag([3.0, 2.0, 1.0])), []
    algorithm = Sequential((3.0, 2.0), theta_tol=1.0, **(AS_PRINTED | {"start_norm": norm}))
    for distance in (1e-1, 1e-2, 1e-3):
        start = np.array([[distance, 1.0, 1.0]]) / np.sqrt(2 + distance**2)
        before, after = (play(algorithm, rows, players=start, rounds=t) for t in (49, 50))
        assert (int(before.state.active), int(after.state.active)) == (0, 1)
        angles.append(float(metrics.angular_error(np.asarray(after.components), np.eye(3))[0]))
    # Within theta_tol = 1 from the first start only.
    assert angles[0] < 0.2
    assert 1.1 < angles[1] < angles[2]


def test_a_turn_that_stops_on_the_gradient_may_end_at_a_saddle_and_a_full_turn_does_not():
    # A start within 1e-6 of the plane of the last two eigenvectors passes close to the second.
    rows, start = (
        as_symmetric_rows(np.diag([3.0, 2.0, 1.0])),
        np.array([[1e-6, 1.0, 1.0]]) / np.sqrt(2),
    )
    for stop, near in ((True, 1), (False, 0)):
        algorithm = Sequential((3.0, 2.0), theta_tol=TOL, stop_on_gradient=stop)
        played = play(algorithm, rows, players=start, rounds=1000)
        assert abs(played.components[0, near]) > 0.999
        assert int(played.state.active) == stop


def test_without_the_stop_on_the_gradient_a_turn_goes_on_at_the_optimum():
    start = PROBLEM.components[:K]
    at_once, going_on = (
        play(
            Sequential(SPECTRUM[: K + 1], theta_tol=TOL, stop_on_gradient=stop),
            as_symmetric_rows(PROBLEM.data),
            players=start,
            rounds=K,
        )
        for stop in (True, False)
    )
    assert int(at_once.state.active) == K
    assert int(going_on.state.active) == 0
    assert going_on.outcome.status is Status.TURNS_LEFT


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
        ({"eigenvalues": (3.0, 2.0), "start_norm": "both"}, "start_norm='both'"),
        ({"eigenvalues": (3.0, 3.0)}, "gap"),
        ({"eigenvalues": (3.0, 2.0), "cap": 0}, "cap=0"),
        ({"eigenvalues": (3.0, 2.0), "theta_tol": 0}, "theta_tol=0"),
        ({"eigenvalues": (3.0, 2.0), "theta_tol": "a"}, "theta_tol='a'"),
        ({"eigenvalues": "32"}, "eigenvalues has dtype .*give numbers"),
        ({"eigenvalues": 3.0}, r"eigenvalues has shape \(\): give a list of eigenvalues"),
    ],
)
def test_errors_name_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        Sequential(**options)


def test_one_more_eigenvalue_than_players_is_required():
    with pytest.raises(ValueError, match="at least 4"):
        play(Sequential((3.0, 2.0)), np.eye(5), k=3, rounds=1)
