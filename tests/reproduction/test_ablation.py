import math

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics
from eigengame.game import random_players
from reproduction.experiments import ablation

K = 6


@pytest.fixture(scope="module")
def seen(results):
    return results("ablation")


def players_near(axes, angle):
    """Players at an angle from the axes given, each turned towards an axis of its own."""
    turned = np.zeros((len(axes), 2 * K))
    turned[np.arange(len(axes)), axes] = math.cos(angle)
    turned[np.arange(len(axes)), K + np.arange(len(axes))] = math.sin(angle)
    return jnp.asarray(turned, jnp.float32)


@pytest.mark.parametrize(
    ("axes", "streak", "found", "crowd"),
    [
        ([0, 1, 2, 3, 4, 5], 6, 6, 1),
        ([5, 4, 3, 2, 1, 0], 0, 6, 1),
        ([0, 0, 2, 2, 0, 1], 1, 3, 3),
        ([0, 0, 0, 0, 0, 0], 1, 1, 6),
    ],
)
def test_counts_of_the_streak_of_found_components_and_of_players_at_the_first(
    axes, streak, found, crowd
):
    truth = jnp.eye(K, 2 * K, dtype=jnp.float32)
    near = ablation.closeness(players_near(axes, 0.3), truth)
    assert ablation.streak(near) == streak
    assert ablation.found(near) == found
    assert near.crowd == crowd
    far = ablation.closeness(players_near(axes, 0.5), truth)
    assert ablation.streak(far) == ablation.found(far) == far.crowd == 0


def test_no_matching_finds_more_components_than_found_counts():
    truth = np.eye(K)
    for seed in range(20):
        players = random_players(seed, K, K)
        matched = np.asarray(players)[metrics.match(players, truth)]
        by_matching = np.sum(metrics.angular_error(matched, truth) <= math.pi / 8)
        counted = ablation.found(ablation.closeness(players, jnp.asarray(truth, jnp.float32)))
        assert by_matching <= counted


@pytest.mark.slow
def test_more_than_one_component_needs_the_order(seen):
    kept = seen["panels"]["exponential"]["EigenGame"]
    assert kept["the game"]["most"]["streak"] > 1
    for game in ("without order", "without both"):
        assert kept[game]["most"]["streak"] <= 1


@pytest.mark.slow
def test_the_chosen_step_size_was_tried(seen):
    for panel in seen["panels"].values():
        for kept in panel["EigenGame"].values():
            assert f"{kept['step']:g}" in kept["tried"]


def without_both(results, **kept):
    """Change the record of the game without order and normaliser, in every variant and spectrum."""
    for panel in results["panels"].values():
        for games in panel.values():
            games["without both"] |= kept
    return results


def test_the_footnotes_5_holds_if_a_final_mean_rounds_to_it(stored):
    assert not ablation.claims(stored("ablation"))[1].holds
    tried = {"0.001": {"streak": 0.0, "found": 5.2}}
    assert ablation.claims(without_both(stored("ablation"), tried=tried))[1].holds


def test_the_summary_compares_streaks_with_the_footnote(stored):
    results = stored("ablation")
    assert "is 1, equal to the footnote's 1" in ablation.summary(results)
    assert "any run is 1, below the footnote's 5" in ablation.summary(results)
    assert "the one without normaliser comes nearest to 5" in ablation.summary(results)
    without_both(results, most={"streak": 6, "found": 9})
    assert "any run is 6, above the footnote's 5" in ablation.summary(results)
    assert "the one without both comes nearest to 5, with streaks of up to 6" in ablation.summary(
        results
    )
    for panel in results["panels"].values():
        panel["EigenGame"]["without order"]["most"]["streak"] = 3
    assert "is 3, above the footnote's 1" in ablation.summary(results)


def test_the_summary_depends_on_players_that_share_the_first_component(stored):
    results = stored("ablation")
    assert "50 of 50 players (linear spectrum)" in ablation.summary(results)
    for panel in results["panels"].values():
        panel["EigenGame"]["without order"]["crowd"] = 1.0
    assert "no two players share the first component" in ablation.summary(results)
