"""What experiments are made of: trials that run together, the protocol, and products read on the host."""

import jax.numpy as jnp
import numpy as np
import pytest
from reproduction.experiments.strict import slowdowns
from reproduction.products import (
    Products,
    angles,
    distances,
    matched_angles,
    products,
    settled_angles,
    truth_of,
)
from reproduction.protocol import TRIED, curve, first_reach, rounded, tune
from reproduction.streaks import streaks
from reproduction.trials import orders, play_trials, starts

from eigengame import metrics, play, testing
from eigengame.algorithms import Alpha
from eigengame.game import as_rows, random_players

K, D = 3, 8
PROBLEM = testing.rows_with(testing.exponential(D, 1, 0.01), 40, seed=0)


def components(found, _):
    return found


def test_trials_played_at_once_are_the_trials_played_alone():
    rows = as_rows(PROBLEM.data.astype(np.float32))
    seen = play_trials(Alpha, 0.1, starts(5, 2, K, D), rows, None, components, updates=6, every=3)
    assert seen.shape == (2, 2, K, D)
    for trial in range(2):
        players = random_players(5 + trial, K, D, jnp.float32)
        alone = play(Alpha(0.1), rows, players=players, rounds=6).components
        np.testing.assert_allclose(seen[trial, -1], alone, atol=1e-5)


def test_each_trial_meets_every_row_once_a_pass_in_an_order_of_its_own():
    order = orders(0, 2, n=10, size=3, updates=6)
    assert order.shape == (2, 6, 3)
    for trial in order:
        for one_pass in (trial[:3], trial[3:]):
            assert len(set(one_pass.ravel().tolist())) == 9
    assert (order[0] != order[1]).any()


def test_the_step_size_is_chosen_on_held_out_runs_and_shown_on_others():
    asked = []

    def runs(step, first_seed):
        asked.append((step, first_seed))
        # On held-out runs 1e-4 is best; on those shown 1e-3 would be.
        return np.full((2, 4), {1e-4: 3.0}.get(step, 1.0) if first_seed else step * 1e4)

    tuned = tune(runs, lambda seen: float(seen.mean()), (1e-3, 1e-4))
    assert tuned.step == 1e-4
    assert asked[:2] == [(1e-3, TRIED), (1e-4, TRIED)]
    assert set(tuned.shown) == {"best", "x10", "x0.1"}
    assert [seed for _, seed in asked[2:]] == [0, 0, 0]
    assert tuned.tried == {"0.001": 1.0, "0.0001": 3.0}
    assert tune(runs, lambda seen: 0.0, None).step is None


def test_curves_have_the_standard_error_of_the_mean():
    values = np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]])
    found = curve(values)
    assert found["mean"] == [3.0, 2.0]
    assert found["error"] == rounded([2 / np.sqrt(3), 0.0])
    assert curve(values[:1])["error"] == [0.0, 0.0]


def test_a_level_is_reached_where_the_mean_first_is():
    assert first_reach([10, 20, 30], [1, 4, 3], 3) == 20
    assert first_reach([10, 20, 30], [1, 2, 2], 3) is None


def test_the_streak_skips_components_that_do_not_count():
    """A bubble: components 2 and 3 are anywhere, those around them are found."""
    seen = np.array([0.1, 1.5, 1.5, 0.1, 1.5])
    assert streaks(seen, 0.3, np.array([0, 3, 4])) == 2


def test_a_stricter_angle_is_told_as_a_multiple_of_the_iterations():
    run = {
        "iterations": [1, 2, 3, 4],
        "curves": {"best": {"loose": {"mean": [0, 4, 8, 8]}, "streak": {"mean": [0, 0, 1, 4]}}},
    }
    never = {
        "iterations": [1, 2],
        "curves": {"best": {"loose": {"mean": [2, 8]}, "streak": {"mean": [0, 0]}}},
    }
    names = ("EigenGame", "EigenGame^R", "GHA", "Oja")
    panel = {"runs": dict.fromkeys(names, run) | {"Oja": never}}
    found = slowdowns({"panels": {"linear": panel}}, "linear")
    assert found == {"EigenGame": 2.0, "EigenGame^R": 2.0, "GHA": 2.0, "Oja": None}


@pytest.fixture(scope="module")
def truth():
    return truth_of(PROBLEM.data.astype(np.float32), K)[1]


def seen_of(players, truth):
    found = products(jnp.asarray(players, jnp.float32), truth)
    return Products(*(np.asarray(one)[None] for one in found))


def test_products_tell_angles_and_distance_as_the_metrics_do(truth):
    players = np.asarray(random_players(3, K, D, "float64"))
    seen, exact = seen_of(players, truth), PROBLEM.components[:K]
    np.testing.assert_allclose(angles(seen)[0], metrics.angular_error(players, exact), atol=1e-3)
    np.testing.assert_allclose(
        distances(seen)[0], metrics.subspace_distance(players, exact), atol=1e-4
    )


def test_matching_undoes_an_order_and_settling_a_rotation(truth):
    exact = PROBLEM.components[:K]
    # float32 cosines near 1 tell angles to about a milliradian.
    assert matched_angles(seen_of(exact[[2, 0, 1]], truth)).max() < 2e-3
    turned = testing.orthogonal(K, seed=1) @ exact
    assert matched_angles(seen_of(turned, truth)).max() > 0.1
    assert settled_angles(seen_of(turned, truth)).max() < 5e-3


def test_players_that_diverged_are_at_right_angles_and_as_far_as_can_be(truth):
    seen = seen_of(np.full((K, D), np.nan), truth)
    assert angles(seen).min() == matched_angles(seen).min() == pytest.approx(np.pi / 2)
    assert distances(seen)[0] == 1
