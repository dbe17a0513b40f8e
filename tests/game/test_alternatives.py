"""Alternatives of appendix Design Decisions: a penalty that fails, and an update that is not a gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics
from eigengame.game import as_symmetric_rows, random_players, sphere
from eigengame.game.alternatives import gram_schmidt_directions, naive_utilities
from eigengame.game.utilities import gradients, utilities
from tests.tolerance import assert_close

D, K = 5, 3
LARGE = np.array([10.0, 5.0, 3.0, 2.0, 1.0])
naive = jax.jit(naive_utilities, static_argnames="squared")
directions = jax.jit(gram_schmidt_directions)
of_the_paper = jax.jit(utilities)


def utility_of_last(spectrum, last, squared):
    """The naive and the paper's utility of player K, with exact parents."""
    players = np.concatenate([np.eye(D)[: K - 1], np.asarray(last)[None]])
    gram = (players * spectrum) @ players.T
    found = naive(gram, players @ players.T, squared=squared)[-1]
    return float(found), float(of_the_paper(gram)[-1])


@pytest.mark.parametrize("squared", [False, True])
def test_naive_utilities_equal_loops(squared):
    v = np.asarray(random_players(0, K, D, "float64"))
    found = naive(jnp.asarray((v * LARGE) @ v.T), jnp.asarray(v @ v.T), squared=squared)
    for i in range(K):
        penalty = sum((v[i] @ v[j]) ** (2 if squared else 1) for j in range(i))
        assert float(found[i]) == pytest.approx(v[i] @ (LARGE * v[i]) - penalty)


@pytest.mark.parametrize("squared", [False, True])
def test_with_a_naive_penalty_the_last_player_prefers_the_first_component(squared):
    first, own = -np.eye(D)[0], np.eye(D)[K - 1]
    taken, papers_taken = utility_of_last(LARGE, first, squared)
    left, papers_left = utility_of_last(LARGE, own, squared)
    assert taken > left + 5
    # The utility of the paper prefers the player's own component.
    assert papers_left > papers_taken + 2


def test_a_squared_naive_penalty_is_sufficient_only_for_small_eigenvalues():
    # The best response to exact parents is the top eigenvector of M - sum_j v_j v_j'.
    parents = np.diag(np.arange(D) < K - 1).astype(float)
    for scale, best in ((1.0, 0), (0.1, K - 1)):
        values = scale * LARGE - np.diag(parents)
        assert np.argmax(values) == best
        own, first = (utility_of_last(scale * LARGE, np.eye(D)[j], True)[0] for j in (K - 1, 0))
        assert (own > first) is (best == K - 1)
        drawn = random_players(1, D, D, "float64")
        assert all(utility_of_last(scale * LARGE, v, True)[0] < values[best] for v in drawn)


def test_a_naive_penalty_without_a_square_fails_at_any_scale():
    for scale in (1e-3, 1.0):
        first, own = (
            utility_of_last(scale * LARGE, v, False)[0] for v in (-np.eye(D)[0], np.eye(D)[K - 1])
        )
        assert first > own + 0.9


def test_euclidean_directions_equal_loops():
    v, m = np.asarray(random_players(2, K, D, "float64")), np.diag(LARGE)
    expected = [2 * m @ (v[i] - sum((v[i] @ v[j]) * v[j] for j in range(i))) for i in range(K)]
    assert_close(directions(as_symmetric_rows(m), jnp.asarray(v)), np.array(expected))


def test_euclidean_updates_solve_pca():
    rows = as_symmetric_rows(np.diag(LARGE))

    @jax.jit
    def climb(players):
        def step(players, _):
            uphill = sphere.project_tangent(players, gram_schmidt_directions(rows, players))
            return sphere.retract(players + 0.02 * uphill), None

        return jax.lax.scan(step, players, None, length=2000)[0]

    for seed in range(5):
        found = np.asarray(climb(random_players(seed, K, D, "float64")))
        assert metrics.angular_error(found, np.eye(D)).max() < 1e-6


def test_the_euclidean_direction_is_not_a_gradient_and_that_of_the_game_is():
    # The Jacobian of a gradient is symmetric.
    rows = as_symmetric_rows(np.diag(LARGE))
    players = random_players(3, 2, D, "float64")

    def jacobian(field):
        return np.asarray(
            jax.jit(jax.jacobian(lambda v: field(rows, players.at[1].set(v))[1]))(players[1])
        )

    euclidean, game = jacobian(gram_schmidt_directions), jacobian(gradients)
    parent = np.outer(players[0], players[0])
    assert_close(euclidean, 2 * np.diag(LARGE) @ (np.eye(D) - parent))
    assert np.abs(euclidean - euclidean.T).max() > 0.1
    assert_close(game, game.T)


def test_on_the_identity_half_the_gradient_in_sequence_is_the_gram_schmidt_process():
    # Players of any length: each gradient divides by the squared length of the parents.
    rows = as_symmetric_rows(np.eye(D))
    players = 3 * random_players(4, D, D, "float64")
    start, step = np.asarray(players), jax.jit(gradients)
    for i in range(D):
        players = players.at[i].set(step(rows, players)[i] / 2)
    found = np.asarray(players)
    # The process in loops.
    expected = []
    for v in start:
        w = v - sum(((v @ u) / (u @ u) * u for u in expected), np.zeros(D))
        expected.append(w)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # Orthogonal, with the directions of a QR factorisation.
    q = np.linalg.qr(start.T)[0].T
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(np.sum(units * q, axis=1)), 1, atol=1e-9)


def test_on_the_identity_the_euclidean_direction_equals_the_gradient():
    rows, players = as_symmetric_rows(np.eye(D)), random_players(5, K, D, "float64")
    assert_close(directions(rows, players), jax.jit(gradients)(rows, players))
