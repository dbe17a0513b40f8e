import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reproduction.experiments import decentralised
from reproduction.experiments.decentralised_trials import Apart, family

from eigengame.algorithms import Alpha
from eigengame.game import DenseRows, random_players

K = decentralised.K


@pytest.fixture(scope="module")
def seen(results):
    return results("decentralised")


def cost(*taken, heard=1.0):
    return {"taken": list(taken), "heard": heard}


def test_the_first_whole_streak_counts_and_not_the_last():
    streaks = np.array([[0, K, 3, K], [1, 2, 3, K], [K, K, K, K], [0, 1, 2, 3]])
    assert decentralised.reaching(streaks) == [2, 4, 1, None]


def test_costs_are_means_broadcasts_the_heard_part_and_factors_trial_by_trial():
    slow, fast = cost(20, 80, heard=0.25), cost(10, 20)
    assert decentralised.average(slow) == pytest.approx((50, 30))
    assert decentralised.broadcasts(slow) == pytest.approx(12.5)
    # Twice and four times as many: their geometric mean.
    assert decentralised.factor(slow, fast) == pytest.approx(2 * math.sqrt(2))


def test_a_trial_that_does_not_come_to_the_end_is_never_cheap():
    never = cost(10, None)
    assert decentralised.average(never) is None
    assert decentralised.broadcasts(never) == math.inf
    assert decentralised.factor(never, cost(10, 10)) == math.inf


def test_trials_lose_broadcasts_of_their_own_and_the_same_ones_when_played_again():
    game = Apart(Alpha(dropout=0.5))
    keys = [game.init(random_players(seed, 3, 5)).key for seed in (0, 1, 0)]
    assert not np.array_equal(keys[0], keys[1])
    np.testing.assert_array_equal(keys[0], keys[2])
    together = jax.vmap(game.init)(jnp.stack([random_players(seed, 3, 5) for seed in (0, 1)]))
    np.testing.assert_array_equal(together.key, jnp.stack(keys[:2]))
    assert Apart(Alpha(lag=2)).init(random_players(0, 3, 5)).key is None


def test_each_player_has_the_rows_of_its_turn():
    players = random_players(0, 3, 5)
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(12, 5)), jnp.float32)
    alpha = Alpha(0.01, own_batches=True)
    apart, plain = Apart(alpha), alpha.init(players)
    expected, _ = alpha.update(DenseRows(rows.reshape(3, 4, 5)), plain)
    found, _ = apart.update(DenseRows(rows), apart.init(players))
    np.testing.assert_array_equal(apart.components(found), alpha.components(expected))


def test_a_family_is_the_same_each_time_so_that_it_is_compiled_once():
    assert family(lag=2) is family(lag=2)
    assert family(lag=2) is not family(lag=4)


def test_a_lag_saves_broadcasts_but_word_still_goes_down_one_player_at_a_time(seen):
    (step,) = seen["lag"]["1"]
    full, lagged = seen["lag"]["1"][step], seen["lag"]["8"][step]
    assert K - 1 <= decentralised.broadcasts(lagged) < decentralised.broadcasts(full)
    assert decentralised.factor(lagged, full) > 1
    assert seen["dropout"]["0"] == seen["lag"]["1"]
