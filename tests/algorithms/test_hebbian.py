"""Oja, GHA, Krasulina, Hebb with deflation and mu against their formulas."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from eigengame import metrics, play, testing
from eigengame.algorithms import GHA, HebbDeflation, Krasulina, Mu, Oja
from eigengame.algorithms.gha import gha_direction
from eigengame.game import as_rows, as_symmetric_rows, random_players
from eigengame.linalg.orthonormal import orthonormalise
from tests import oracle
from tests.tolerance import assert_close

K, D = 4, 8
SPECTRUM = [1.0, 0.7, 0.45, 0.25, 0.1, 0.05, 0.02, 0.01]
PROBLEM = testing.rows_with(SPECTRUM, 40, seed=2)
MATRIX = PROBLEM.data.T @ PROBLEM.data


def start(seed=0):
    return random_players(seed, K, D, "float64")


def one_update(algorithm):
    return np.asarray(play(algorithm, PROBLEM.data, players=start(), rounds=1).components)


def test_gha_update_is_the_papers_formula():
    v = np.asarray(start())
    expected = np.array([v[i] + 0.1 * oracle.gha(MATRIX, v, i) for i in range(K)])
    assert_close(one_update(GHA(0.1)), expected)


def test_with_exact_parents_gha_is_alpha_with_only_its_reward_projected():
    # Prop. gha_equiv_eigengame.
    for i in range(1, K):
        v = np.array(PROBLEM.components[: i + 1])
        v[i] = np.asarray(start(i))[0]
        reward = MATRIX @ v[i]
        projected = 2 * (reward - (reward @ v[i]) * v[i])
        penalty = oracle.algorithm_2_gradient(PROBLEM.data, v, i) - 2 * reward
        delta, _ = gha_direction(as_rows(PROBLEM.data), jnp.asarray(v))
        assert_close(delta[i], projected + penalty)


def test_gha_is_the_gradient_of_no_function():
    # Prop. gha_not_grad: the Jacobian is the paper's, and it is not symmetric.
    players, i = start(), 2

    def own(v):
        return gha_direction(as_symmetric_rows(MATRIX), players.at[i].set(v))[0][i]

    jacobian = np.asarray(jax.jacobian(own)(players[i]))
    v = np.asarray(players)
    expected = MATRIX - (v[i] @ MATRIX @ v[i]) * np.eye(D) - 2 * np.outer(v[i], v[i] @ MATRIX)
    for j in range(i):
        expected = expected - np.outer(v[j], v[j] @ MATRIX)
    assert_close(jacobian, 2 * expected)
    assert np.abs(jacobian - jacobian.T).max() > 0.1


def test_mu_update_is_its_formula():
    v = np.asarray(start())
    expected = []
    for i in range(K):
        delta = oracle.mu(MATRIX, v, i)
        w = v[i] + 0.1 * (delta - (delta @ v[i]) * v[i])
        expected.append(w / np.linalg.norm(w))
    assert_close(one_update(Mu(0.1)), np.array(expected))


def test_mu_is_unbiased_directions_of_batches_sum_to_that_of_all_rows():
    # The retraction hides the move, so the direction is recorded by an
    # optimizer that does not move.
    caught = []
    listener = optax.GradientTransformation(
        lambda params: optax.EmptyState(),
        lambda updates, state, params=None: (caught.append(-updates) or updates, state),
    )
    algorithm = Mu(optimizer=listener)

    def direction(x):
        algorithm.update(as_rows(x), algorithm.init(start()))
        return caught.pop()

    parts = sum(direction(part) for part in (PROBLEM.data[:15], PROBLEM.data[15:]))
    assert_close(parts, direction(PROBLEM.data))


def test_mu_with_sgd_is_mu_with_that_step_size_and_not_with_its_own():
    assert_close(one_update(Mu(1e-9, optimizer=optax.sgd(0.1))), one_update(Mu(0.1)))


def test_oja_update_is_qr_with_the_sign_rule():
    v = np.asarray(start()).T
    q, r = np.linalg.qr(v + 0.5 * MATRIX @ v)
    signs = np.sign(np.sign(np.diag(r)) + 0.5)
    assert_close(one_update(Oja(0.5)), (q * signs).T)


def test_the_sign_rule_treats_zero_as_positive():
    # The second player is zero, and so is its entry on the diagonal of R; the sign must not be.
    players = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    made = orthonormalise(players)
    assert_close(jnp.linalg.norm(made, axis=1), np.ones(3))
    assert_close(made[0], np.array([1.0, 0.0, 0.0]))


def test_krasulina_moves_orthogonally_to_its_span():
    w = np.linalg.qr(np.asarray(start()).T)[0]
    q, _ = np.linalg.qr(w + 0.5 * (np.eye(D) - w @ w.T) @ MATRIX @ w)
    assert_close(metrics.subspace_distance(one_update(Krasulina(0.5)), q.T) + 1, np.ones(()))
    mixed = testing.orthogonal(K, 3) @ PROBLEM.components[:K]
    stays = play(Krasulina(0.5), PROBLEM.data, players=mixed, rounds=50).components
    assert metrics.angular_error(np.asarray(stays), mixed).max() < 1e-7


def test_hebb_moves_one_player_at_a_time_on_rows_without_its_parents():
    v = np.asarray(start())
    moved = v[0] + 0.5 * MATRIX @ v[0]
    expected = np.array([moved / np.linalg.norm(moved), *v[1:]])
    assert_close(one_update(HebbDeflation(0.5)), expected)

    algorithm = HebbDeflation(0.5)
    state = algorithm.init(start())._replace(active=jnp.asarray(2, jnp.int32))
    state, _ = algorithm.update(as_rows(PROBLEM.data), state)
    left = PROBLEM.data @ (np.eye(D) - np.outer(v[0], v[0]) - np.outer(v[1], v[1]))
    moved = v[2] + 0.5 * left.T @ left @ v[2]
    assert_close(state.players, np.array([v[0], v[1], moved / np.linalg.norm(moved), v[3]]))


def test_hebb_passes_the_turn_when_the_reward_is_steady_and_after_the_longest_turn():
    steady = play(HebbDeflation(1.0), PROBLEM.data, players=start(), rounds=600)
    assert int(steady.state.active) == K
    hurried = play(HebbDeflation(1e-3, turn=5), PROBLEM.data, players=start(), rounds=17)
    assert int(hurried.state.active) == 3
    assert int(hurried.state.taken) == 2
    done = play(HebbDeflation(1.0), PROBLEM.data, rounds=3, state=steady.state)
    np.testing.assert_array_equal(done.components, steady.components)


def turn_lengths(algorithm, rewards):
    """Return the number of updates of each player on a row (r, 0), whose reward for players at (1, 0) is r^2."""
    state = algorithm.init(jnp.eye(2, dtype="float64"))
    taken = [0, 0]
    for reward in rewards:
        active = int(state.active)
        if active == 2:
            break
        taken[active] += 1
        row = np.zeros((1, 2))
        row[0, active] = math.sqrt(reward)
        state, _ = algorithm.update(as_rows(row), state)
    return taken, state


def test_hebb_waits_for_patience_consecutive_steady_updates():
    # The first update has no previous reward; then `patience` steady ones follow.
    for patience in (1, 3, 10):
        taken, _ = turn_lengths(HebbDeflation(1e-3, patience=patience), [4.0] * 30)
        assert taken[0] == patience + 1
    # A change restarts the count: 4, 4, 4 (two steady), 5 (none), 5, 5, 5 (three).
    taken, _ = turn_lengths(HebbDeflation(1e-3, patience=3), [4.0] * 3 + [5.0] * 30)
    assert taken[0] == 7


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_hebbs_tolerance_is_relative_to_the_reward(scale):
    grows = [scale * 1.01**t for t in range(30)]
    within = HebbDeflation(1e-9, patience=2, tolerance=0.02, turn=20)
    beyond = HebbDeflation(1e-9, patience=2, tolerance=0.005, turn=20)
    assert turn_lengths(within, grows)[0][0] == 3
    assert turn_lengths(beyond, grows)[0][0] == 20


def test_hebbs_smoothing_is_a_running_mean_that_begins_with_the_first_reward():
    _, state = turn_lengths(HebbDeflation(1e-9, smoothing=0.75), [4.0, 8.0, 8.0])
    assert float(state.reward) == pytest.approx(0.75 * (0.75 * 4 + 0.25 * 8) + 0.25 * 8)


def test_a_turn_beyond_int32_never_ends():
    played = play(HebbDeflation(1.0, turn=10**12, patience=10**12), PROBLEM.data, k=K, rounds=3)
    assert int(played.state.active) == 0


@pytest.mark.parametrize("make", [GHA, Mu, Oja, Krasulina, HebbDeflation])
def test_step_sizes_below_zero_are_refused(make):
    with pytest.raises(ValueError, match="step_size=-1"):
        make(step_size=-1)


def test_a_step_too_large_is_an_outcome_with_advice_not_an_exception():
    played = play(GHA(100.0), PROBLEM.data, players=start(), rounds=50)
    assert "finite" in str(played.outcome)
    assert "smaller" in played.outcome.advice
