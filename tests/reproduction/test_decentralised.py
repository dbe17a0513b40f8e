import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.algorithms import Alpha
from eigengame.game import DenseRows, random_players
from reproduction.experiments import decentralised, decentralised_text
from reproduction.experiments.decentralised_trials import Decentralised, family

K = decentralised.K


@pytest.fixture(scope="module")
def seen(results):
    return results("decentralised")


def cost(*taken, heard=1.0):
    return {"taken": list(taken), "heard": heard}


def test_the_first_iteration_with_all_components_counts():
    streaks = np.array([[0, K, 3, K], [1, 2, 3, K], [K, K, K, K], [0, 1, 2, 3]])
    assert decentralised.iterations_to_all(streaks) == [2, 4, 1, None]


def test_costs_are_means_received_broadcasts_and_geometric_means_of_ratios():
    slow, fast = cost(20, 80, heard=0.25), cost(10, 20)
    assert decentralised_text.average(slow) == pytest.approx((50, 30))
    assert decentralised_text.broadcasts(slow) == pytest.approx(12.5)
    # Twice and four times as many: their geometric mean.
    assert decentralised_text.factor(slow, fast) == pytest.approx(2 * math.sqrt(2))


def test_a_trial_that_does_not_find_all_components_has_infinite_cost():
    never = cost(10, None)
    assert decentralised_text.average(never) is None
    assert decentralised_text.broadcasts(never) == math.inf
    assert decentralised_text.factor(never, cost(10, 10)) == math.inf


def test_losses_differ_between_trials_and_repeat_between_runs():
    game = Decentralised(Alpha(dropout=0.5))
    keys = [game.init(random_players(seed, 3, 5)).key for seed in (0, 1, 0)]
    assert not np.array_equal(keys[0], keys[1])
    np.testing.assert_array_equal(keys[0], keys[2])
    together = jax.vmap(game.init)(jnp.stack([random_players(seed, 3, 5) for seed in (0, 1)]))
    np.testing.assert_array_equal(together.key, jnp.stack(keys[:2]))
    assert Decentralised(Alpha(lag=2)).init(random_players(0, 3, 5)).key is None


def test_each_player_has_its_own_rows():
    players = random_players(0, 3, 5)
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(12, 5)), jnp.float32)
    alpha = Alpha(0.01, own_batches=True)
    game, plain = Decentralised(alpha), alpha.init(players)
    expected, _ = alpha.update(DenseRows(rows.reshape(3, 4, 5)), plain)
    found, _ = game.update(DenseRows(rows), game.init(players))
    np.testing.assert_array_equal(game.components(found), alpha.components(expected))


def test_families_are_cached_so_that_they_are_compiled_once():
    assert family(lag=2) is family(lag=2)
    assert family(lag=2) is not family(lag=4)


@pytest.mark.slow
def test_a_lag_saves_broadcasts_down_to_one_per_parent(seen):
    (step,) = seen["lag"]["1"]
    full, lagged = seen["lag"]["1"][step], seen["lag"]["8"][step]
    assert K - 1 <= decentralised_text.broadcasts(lagged) < decentralised_text.broadcasts(full)
    assert decentralised_text.factor(lagged, full) > 1
    assert seen["dropout"]["0"] == seen["lag"]["1"]


def test_a_lag_is_costly_only_beyond_standard_errors():
    none, noisy, clear = cost(10, 10, 10), cost(5, 30, 12), cost(20, 21, 22)
    assert decentralised_text.factor(noisy, none) > 1.1
    results = {"lag": {"1": {"s": none}, "2": {"s": noisy}, "4": {"s": clear}}}
    assert not decentralised_text.takes_more(noisy, none)
    assert decentralised_text.first_costly(results, "s") == "4"
    results["lag"]["4"] = {"s": noisy}
    assert decentralised_text.first_costly(results, "s") is None
    assert decentralised_text.takes_more(cost(None, 1, 1), none)


def costs_of(**kinds):
    """Results with one step size, and costs for each lag and dropout."""
    runs = {"own": cost(10, 11), "shared": cost(10, 11)}
    return {
        "batches": {"runs": runs},
        **{
            kind: {value: {"s": one} for value, one in each.items()} for kind, each in kinds.items()
        },
    }


def test_efficiency_is_judged_by_broadcasts_and_by_iterations():
    none = cost(20, 22)
    slower, faster = cost(30, 34, heard=0.5), cost(10, 11, heard=0.5)
    results = costs_of(lag={"1": none, "2": slower}, dropout={"0": none, "0.5": faster})
    assert [claim.holds for claim in decentralised.claims(results)] == [
        True,
        False,
        True,
        True,
        True,
    ]
    lost = cost(60, 66, heard=0.5)
    results = costs_of(lag={"1": none, "2": lost}, dropout={"0": none, "0.5": lost})
    results["batches"]["runs"]["own"] = cost(10, None)
    assert [claim.holds for claim in decentralised.claims(results)] == [False] * 5


def test_the_summary_depends_on_how_iterations_grow_with_the_lag(stored):
    results = stored("decentralised")
    said = decentralised.summary(results)
    assert "is 8 at step size 0.001, 32 at step size 0.0001, none at step size 1e-05" in said
    assert "in proportion to the lag at step size 0.001 (slope 0.9" in said
    for lag, costs in results["lag"].items():
        costs["0.001"]["taken"] = [30 * int(lag) ** 2] * 10
        costs["0.0001"]["taken"] = [30 * int(lag)] * 10
        costs["1e-05"]["taken"] = [round(300 * int(lag) ** 0.5)] * 10
    said = decentralised.summary(results)
    assert "faster than the lag at step size 0.001 (slope 2.00" in said
    assert "in proportion to the lag at step size 0.0001 (slope 1.00" in said
    assert "more slowly than the lag at step size 1e-05 (slope 0.50" in said


def test_the_summary_compares_broadcasts_with_parents(stored):
    results = stored("decentralised")
    assert "are 7.1, at least one for each of the 7 parents" in decentralised.summary(results)
    results["lag"]["64"]["0.001"] |= {"taken": [64] * 10}
    assert "are 1.0, less than one for each of the 7 parents" in decentralised.summary(results)


def test_too_few_lags_show_no_growth(stored):
    results = stored("decentralised")
    results["lag"] = {lag: results["lag"][lag] for lag in ("1", "4")}
    assert "too few such lags" in decentralised.summary(results)
