import math

import jax.numpy as jnp
import numpy as np
import pytest
from reproduction.experiments import ablation

from eigengame import metrics
from eigengame.game import random_players

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
def test_counts_are_of_the_streak_of_components_found_by_anyone_and_of_a_crowd(
    axes, streak, found, crowd
):
    truth = jnp.eye(K, 2 * K, dtype=jnp.float32)
    near = ablation.look(players_near(axes, 0.3), truth)
    assert ablation.streak(near) == streak
    assert ablation.found(near) == found
    assert near.crowd == crowd
    far = ablation.look(players_near(axes, 0.5), truth)
    assert ablation.streak(far) == ablation.found(far) == far.crowd == 0


def test_no_matching_finds_more_components_than_are_counted():
    truth = np.eye(K)
    for seed in range(20):
        players = random_players(seed, K, K)
        matched = np.asarray(players)[metrics.match(players, truth)]
        by_matching = np.sum(metrics.angular_error(matched, truth) <= math.pi / 8)
        counted = ablation.found(ablation.look(players, jnp.asarray(truth, jnp.float32)))
        assert by_matching <= counted


def test_only_the_order_brings_more_than_one_component(seen):
    kept = seen["panels"]["exponential"]["EigenGame"]
    assert kept["the game"]["most"]["streak"] > 1
    for game in ("without order", "without both"):
        assert kept[game]["most"]["streak"] <= 1


def test_a_step_size_is_chosen_that_was_tried(seen):
    for panel in seen["panels"].values():
        for kept in panel["EigenGame"].values():
            assert f"{kept['step']:g}" in kept["tried"]


def test_a_footnote_that_comes_out_holds(seen):
    """The rule looks at the means of the best runs, in either way of counting."""
    kept = seen["panels"]["linear"]["EigenGame"]["without both"]
    better = kept | {"tried": {"0.001": {"streak": 0.0, "found": 5.2}}}
    panel = seen["panels"]["linear"]["EigenGame"] | {"without both": better}
    changed = seen | {"panels": seen["panels"] | {"linear": {"EigenGame": panel}}}
    assert [ablation.claims(one)[1].holds for one in (seen, changed)] == [False, True]
