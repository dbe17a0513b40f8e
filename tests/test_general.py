import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import general, metrics, play, testing
from eigengame.algorithms import Alpha
from eigengame.game import random_players
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


def test_networks_increase_their_rewards_and_end_uncorrelated():
    start = general.mlp_players(0, K, (D, 8, 1))
    played = general.play_general(X, start, step_size=0.05, rounds=3000)
    first, last = np.asarray(played.utilities)[[0, -1]]
    assert (last > first).all()
    out = np.asarray(general.outputs(general.mlp, played.parameters, X))
    overlap = np.corrcoef(out.T) - np.eye(K)
    assert np.abs(overlap).max() < 0.1
    # On this data the first network ends close to the reward of a linear player, which is 1.
    assert 0.8 < last[0] < 1.1


def test_a_player_cannot_move_its_parents():
    parameters = general.mlp_players(0, K, (D, 4, 1))

    def childs_utility(first_layer):
        own = general.outputs(general.mlp, [first_layer, parameters[1]], X)
        return general.output_utilities(own, jax.lax.stop_gradient(own))[-1]

    influence = jax.grad(childs_utility)(parameters[0])
    np.testing.assert_array_equal(influence[:-1], 0)
    assert np.abs(influence[-1]).max() > 0


def test_layers_begin_with_a_spectral_norm_of_one():
    for layer in general.mlp_players(0, K, (D, 8, 1)):
        np.testing.assert_allclose(np.linalg.norm(layer, ord=2, axis=(1, 2)), 1)
    short = general.into_lipschitz_ball([0.1 * jnp.stack([jnp.eye(D)] * K)], fill=True)
    np.testing.assert_allclose(short[0], np.stack([np.eye(D)] * K))
    zero = general.into_lipschitz_ball([jnp.zeros((K, D, 1))], fill=True)
    np.testing.assert_array_equal(zero[0], 0)


def test_the_ball_shortens_long_layers_and_leaves_short_ones_and_biases():
    layer = jnp.stack([2.0 * jnp.eye(3), 0.5 * jnp.eye(3)])
    bias = jnp.full((2, 3), 7.0)
    kept = general.into_lipschitz_ball({"layer": layer, "bias": bias})
    np.testing.assert_allclose(kept["layer"], jnp.stack([jnp.eye(3), 0.5 * jnp.eye(3)]))
    np.testing.assert_array_equal(kept["bias"], 7.0)


def with_bias(parameters, rows):
    return jnp.tanh(rows @ parameters["layer"] + parameters["bias"][None, :])[:, 0]


def test_parameters_may_be_a_tuple_or_a_dictionary_with_biases():
    (layer,) = general.mlp_players(0, K, (D, 1))
    as_tuple = general.play_general(X, (layer,), rounds=3)
    assert isinstance(as_tuple.parameters, tuple)
    as_list = general.play_general(PROBLEM.data, [layer], rounds=3)
    np.testing.assert_array_equal(as_tuple.parameters[0], as_list.parameters[0])
    biased = {"layer": layer, "bias": jnp.zeros((K, 1))}
    played = general.play_general(X, biased, apply=with_bias, step_size=0.05, rounds=50)
    assert np.abs(played.parameters["bias"]).max() > 0
    assert (np.asarray(played.utilities)[-1, 0] > np.asarray(played.utilities)[0, 0]).all()


@pytest.mark.parametrize(
    ("rows", "parameters", "options", "words"),
    [
        (np.ones(D), None, {}, "rows has shape"),
        (np.full((2, D), np.nan), None, {}, r"rows\[0, 0\] is nan"),
        (X, None, {"step_size": 0.0}, r"step_size=0\.0"),
        (X, None, {"rounds": 0}, "rounds=0"),
        (X[:, :4], None, {}, r"apply fails on rows of shape \(50, 4\)"),
        (X, [jnp.ones((2, D, 3)), jnp.ones((3, 3, 1))], {}, "leading axis of length k"),
        (X, [jnp.full((2, D, 1), jnp.nan)], {}, "parameters"),
        (X, None, {"apply": lambda p, x: x @ p[0]}, "apply has outputs"),
    ],
)
def test_invalid_general_games_are_refused(rows, parameters, options, words):
    parameters = parameters or general.mlp_players(0, K, (D, 1))
    with pytest.raises(ValueError, match=words):
        general.play_general(rows, parameters, **options)


def test_impossible_widths_are_refused():
    with pytest.raises(ValueError, match="widths"):
        general.mlp_players(0, K, (D, 4))
