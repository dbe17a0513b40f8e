import numpy as np
import pytest

from eigengame.algorithms import Sequential
from eigengame.game import theory
from reproduction.experiments import sequential
from reproduction.experiments.sequential_turns import play_turns
from reproduction.trials import starts


@pytest.fixture(scope="module")
def seen(results):
    return results("sequential")


@pytest.mark.slow
def test_every_player_is_within_the_tolerance_and_the_lemma_and_every_bound_holds(seen):
    reaches, lemma, each, literal, total = sequential.claims(seen)
    assert reaches.holds
    assert lemma.holds
    assert each.holds
    assert total.holds
    assert not literal.holds


def test_turns_equal_alg_1_in_loops():
    spectrum, k, tolerance = np.array([3.0, 2.0, 1.0, 0.5]), 2, 0.3
    algorithm = Sequential(tuple(spectrum[: k + 1]), theta_tol=tolerance)
    turns = play_turns(algorithm, spectrum, k, trials=2, rounds=800)
    assert turns.done
    m, rho = np.diag(spectrum), theory.thresholds(spectrum, k, tolerance).rho
    alpha = 1 / (2 * theory.lipschitz(spectrum, k))
    players = np.asarray(starts(0, 2, k, 4), np.float64)[1]
    for i in range(k):
        used, first = 0, None
        while True:
            v, used = players[i], used + 1
            gradient = 2 * m @ v
            for parent in players[:i]:
                gradient -= 2 * (v @ m @ parent) / (parent @ m @ parent) * m @ parent
            gradient -= (gradient @ v) * v
            norm = np.linalg.norm(gradient)
            first = norm if first is None else first
            if norm <= min(first / 2, rho[i]):
                break
            players[i] = (v + alpha * gradient) / np.linalg.norm(v + alpha * gradient)
        # A threshold reached within rounding may be seen one round apart.
        assert abs(turns.used[1, i] - used) <= 1
        assert turns.first[1, i] == pytest.approx(first)


@pytest.mark.slow
def test_players_wait_for_their_turn(seen):
    angles, used = np.asarray(seen["course"]["angles"]), seen["course"]["used"]
    iterations = np.asarray(seen["course"]["iterations"])
    waiting = angles[iterations <= used[0], 1]
    assert np.ptp(waiting) == 0
    assert np.ptp(angles[iterations > used[0] + 1, 0]) == 0


def test_too_few_rounds_leave_turns_unfinished():
    algorithm = Sequential((3.0, 2.0, 1.0), theta_tol=0.3)
    turns = play_turns(algorithm, np.array([3.0, 2.0, 1.0, 0.5]), 2, trials=2, rounds=5)
    assert not turns.done
    np.testing.assert_array_equal(turns.used, [[5, 0], [5, 0]])
    assert (turns.first[:, 1] == 0).all()


def test_turns_at_the_cap_are_marked():
    assert sequential._turn_lengths([2000, 182, 1], 2000) == "2000 (cut), 182 and 1"


def test_the_summary_compares_the_growth_of_bounds_and_iterations(stored):
    results = stored("sequential")
    said = sequential.summary(results)
    assert "which is quadratic in 1/theta_tol (exponent 2.00)" in said
    assert "a factor of 1.41: slower than the bounds" in said
    results["tolerances"][-1]["bounds"] = results["tolerances"][0]["bounds"]
    said = sequential.summary(results)
    assert "which is not quadratic in 1/theta_tol (exponent 0.00)" in said
    assert "faster than the bounds" in said
    results["tolerances"] = results["tolerances"][:1]
    assert "One tolerance does not show" in sequential.summary(results)


def test_the_summary_depends_on_whether_turns_end_and_rules_meet_the_tolerance(stored):
    results = stored("sequential")
    said = sequential.summary(results)
    assert "the players ended their turns" in said
    assert "misses the tolerance of 0.1" in said
    assert "the scale-free rule meets it" in said
    results["tolerances"][-1]["done"] = False
    last = results["scales"][-1]
    last["literal"]["angle"], last["scale-free"]["angle"] = 0.01, 1.0
    said = sequential.summary(results)
    assert "the players did not all end their turns" in said
    assert "meets the tolerance of 0.1" in said
    assert "the scale-free rule misses it" in said


def test_the_printed_rule_holds_if_no_scale_is_missed(stored):
    results = stored("sequential")
    for one in results["scales"]:
        one["literal"]["angle"] = 0.01
    claim = sequential.claims(results)[3]
    assert claim.holds
    assert "ends above theta_tol = 0.1: none." in claim.measured
