import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import metrics, play, testing
from eigengame.algorithms import BestResponse
from eigengame.game import as_rows, as_symmetric_rows, random_players
from eigengame.game.best_response import best_responses, with_scores
from eigengame.game.rows import AffineRows
from tests import oracle
from tests.tolerance import assert_close

K, D = 4, 12
PROBLEM = testing.rows_with(testing.harmonic(D), 40, seed=0)
ROWS = as_rows(PROBLEM.data)
MATRIX = PROBLEM.data.T @ PROBLEM.data
# Compiled as a whole: called eagerly, it would be dozens of compilations.
answered = jax.jit(best_responses)


def three_directions(players, moves, i):
    """The space of player i: its vector, its tangent gradient, its previous move."""
    gradient = oracle.algorithm_2_gradient(PROBLEM.data, players, i)
    gradient = gradient - (gradient @ players[i]) * players[i]
    return np.array([players[i], gradient, moves[i]])


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=25, deadline=None)
def test_each_player_reaches_its_exact_maximum_over_its_three_directions(seed):
    players = np.asarray(random_players(seed, K, D, "float64"))
    moves = np.asarray(random_players(seed + 1, K, D, "float64"))
    after, _, _ = answered(ROWS, with_scores(ROWS, players, moves))
    for i in range(K):
        a = MATRIX.copy()
        for v in players[:i]:
            a -= np.outer(MATRIX @ v, MATRIX @ v) / (v @ MATRIX @ v)
        space = np.linalg.qr(three_directions(players, moves, i).T)[0]
        best = np.linalg.eigvalsh(space.T @ a @ space)[-1]
        assert oracle.utility(np.asarray(after.players)[i], players[:i], MATRIX) == pytest.approx(
            best, rel=1e-9
        )


def test_scores_follow_by_linearity_and_players_stay_unit(dtype):
    rows = as_rows(PROBLEM.data.astype(dtype))
    players = random_players(0, K, D, dtype)
    now = with_scores(rows, players, 0 * players)
    for _ in range(15):
        now, _, _ = answered(rows, now)
    assert_close(now.scores, rows.scores(now.players), factor=10)
    assert_close(np.linalg.norm(now.players, axis=1), np.ones(K, dtype))
    assert now.players.dtype == dtype


def test_all_players_in_parallel_from_random_starts_find_a_long_tail():
    problem = testing.rows_with(testing.harmonic(200), 400, seed=1)
    played = play(BestResponse(rounds=40), problem.data, k=8, rounds=1)
    errors = metrics.angular_error(np.asarray(played.components), problem.components)
    assert metrics.streak_of(errors, np.pi / 32) == 8


def test_players_with_overlapping_parents_never_become_zero_and_find_every_component(dtype):
    """Overlapping parents make utilities negative; a missing direction must not be chosen instead."""
    rows = as_symmetric_rows(np.diag(testing.exponential(50)).astype(dtype))
    played = play(BestResponse(), rows, k=50, rounds=40, seed=1)
    assert_close(np.linalg.norm(played.components, axis=1), np.ones(50, dtype))
    assert metrics.longest_streak(np.asarray(played.components), np.eye(50)) == 50


def test_converges_to_the_precision_of_the_dtype_and_stays_there(dtype):
    problem = testing.rows_with(testing.exponential(D, 1, 1e-2), 40, seed=2)
    played = play(BestResponse(rounds=50), problem.data.astype(dtype), k=K, rounds=4)
    errors = metrics.angular_error(np.asarray(played.components, np.float64), problem.components)
    # Rounding of products with M, divided by a relative gap of about a third, with a factor of 10.
    assert errors.max() < 300 * np.finfo(dtype).eps


@pytest.mark.parametrize("level", [1, 3])
def test_scores_of_moves_are_exact_at_any_optimization_level(level):
    """At an optimum directions are mostly rounding errors, so none may be computed twice."""
    compiled = jax.jit(best_responses, compiler_options={"xla_backend_optimization_level": level})
    spectrum = np.geomspace(1e4, 1, 20)
    problem = testing.rows_with(spectrum, 60, seed=1)
    rows = AffineRows(as_rows(problem.data), jnp.ones(()), jnp.asarray(-1e-4))
    near = problem.components[::-1][:3] + 1e-9 * np.random.default_rng(0).normal(size=(3, 20))
    players = jnp.asarray(near / np.linalg.norm(near, axis=1, keepdims=True))
    now = with_scores(rows, players, 0 * players)
    for _ in range(20):
        now, _, _ = compiled(rows, now)
    assert_close(now.move_scores, rows.scores(now.moves), factor=10)


def test_errors_name_bad_rounds():
    with pytest.raises(ValueError, match="rounds=0"):
        BestResponse(rounds=0)
