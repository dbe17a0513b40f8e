import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import Alpha, general, metrics, play, random_players, testing
from eigengame.game.rows import DenseRows
from eigengame.game.utilities import gradients
from tests.tolerance import assert_close

K, D = 3, 6
PROBLEM = testing.rows_with([1.0, 0.6, 0.3, 0.1, 0.05, 0.01], 50, seed=0)
X = jnp.asarray(PROBLEM.data)


def linear_parameters(players):
    return [players[:, :, None]]


def test_linear_players_have_the_linear_games_gradients():
    players = random_players(0, K, D, "float64")
    found, utilities = general.general_gradients(general.mlp, linear_parameters(players), X)
    assert_close(found[0][:, :, 0], gradients(DenseRows(X), players))
    assert_close(utilities, play(Alpha(), X, players=players, rounds=1).info.utilities[0])


def test_linear_players_play_the_linear_game_on_the_ball():
    players = random_players(1, K, D, "float64")
    general_game = general.play_general(X, linear_parameters(players), step_size=0.1, rounds=50)
    linear_game = play(Alpha(0.1, riemannian=False, surface="ball"), X, players=players, rounds=50)
    assert_close(general_game.parameters[0][:, :, 0], linear_game.components)


def test_linear_players_find_the_components():
    start = general.mlp_players(0, K, (D, 1))
    played = general.play_general(X, start, step_size=0.2, rounds=600)
    found = np.asarray(played.parameters[0][:, :, 0])
    assert metrics.longest_streak(found, PROBLEM.components, np.pi / 32) == K


def test_networks_earn_more_than_they_began_with_and_end_uncorrelated():
    start = general.mlp_players(0, K, (D, 8, 1))
    played = general.play_general(X, start, step_size=0.05, rounds=3000)
    first, last = np.asarray(played.utilities)[[0, -1]]
    assert (last > first).all()
    out = np.asarray(general.outputs(general.mlp, played.parameters, X))
    overlap = np.corrcoef(out.T) - np.eye(K)
    assert np.abs(overlap).max() < 0.1
    # 1-Lipschitz players cannot earn more than the linear ones at equilibrium.
    assert last[0] <= 1.0 + 1e-9
    assert last[0] > 0.8


def test_a_player_cannot_move_its_parents():
    parameters = general.mlp_players(0, K, (D, 4, 1))

    def childs_utility(first_layer):
        own = general.outputs(general.mlp, [first_layer, parameters[1]], X)
        return general.output_utilities(own, jax.lax.stop_gradient(own))[-1]

    influence = jax.grad(childs_utility)(parameters[0])
    np.testing.assert_array_equal(influence[:-1], 0)
    assert np.abs(influence[-1]).max() > 0


def test_impossible_widths_are_refused():
    with pytest.raises(ValueError, match="widths"):
        general.mlp_players(0, K, (D, 4))
