"""Shared parts of the experiments: trials, protocol, curves, and products."""

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, play, testing
from eigengame.algorithms import Alpha
from eigengame.game import as_rows, random_players
from reproduction.curves import (
    chosen_steps,
    final,
    finals,
    first_reach,
    listed,
    mean_curve,
    rounded,
    run_mean,
)
from reproduction.experiments.strict import slowdowns
from reproduction.products import (
    Products,
    angles,
    distances,
    matched_angles,
    nearest_angles,
    products,
    residuals,
    settled_angles,
    truth_of,
)
from reproduction.protocol import HELD_OUT, Protocol, tune
from reproduction.streaks import streaks
from reproduction.trials import components, orders, play_trials, seeded_runs, starts

K, D = 3, 8
PROBLEM = testing.rows_with(testing.exponential(D, 1, 0.01), 40, seed=0)


def test_vmapped_trials_equal_single_runs():
    rows = as_rows(PROBLEM.data.astype(np.float32))
    seen = play_trials(Alpha, 0.1, starts(5, 2, K, D), rows, None, components, updates=6, every=3)
    assert seen.shape == (2, 2, K, D)
    for trial in range(2):
        players = random_players(5 + trial, K, D, jnp.float32)
        alone = play(Alpha(0.1), rows, players=players, rounds=6).components
        np.testing.assert_allclose(seen[trial, -1], alone, atol=1e-5)


def test_each_trial_has_every_row_once_per_pass_in_its_own_order():
    order = orders(0, 2, n=10, size=3, updates=6)
    assert order.shape == (2, 6, 3)
    for trial in order:
        for one_pass in (trial[:3], trial[3:]):
            assert len(set(one_pass.ravel().tolist())) == 9
    assert (order[0] != order[1]).any()


def test_step_sizes_are_chosen_on_held_out_runs():
    asked = []

    def runs(step, first_seed):
        asked.append((step, first_seed))
        # On held-out runs 1e-4 is best; on those shown 1e-3 would be.
        return np.full((2, 4), {1e-4: 3.0}.get(step, 1.0) if first_seed else step * 1e4)

    tuned = tune(runs, lambda seen: float(seen.mean()), (1e-3, 1e-4))
    assert tuned.step == 1e-4
    assert asked[:2] == [(1e-3, HELD_OUT), (1e-4, HELD_OUT)]
    assert set(tuned.shown) == {"best", "x10", "x0.1"}
    assert [seed for _, seed in asked[2:]] == [0, 0, 0]
    assert tuned.tried == {"0.001": 1.0, "0.0001": 3.0}
    assert tune(runs, lambda seen: 0.0, None).step is None


def test_seeded_runs_shuffle_by_seed_and_equal_play_trials():
    rows = jnp.asarray(PROBLEM.data, jnp.float32)
    size = {"updates": 4, "every": 2}
    runs = seeded_runs(Alpha, rows, None, components, k=K, trials=2, batch=10, **size)
    for seed in (0, HELD_OUT):
        order = orders(seed, 2, 40, 10, 4)
        plain = play_trials(
            Alpha, 0.1, starts(seed, 2, K, D), rows, None, components, order=order, **size
        )
        np.testing.assert_array_equal(runs(0.1, seed), plain)


def test_a_quick_protocol_overrides_sizes_of_the_full_one():
    protocol = Protocol(full={"trials": 10, "k": 4}, quick={"trials": 2})
    assert vars(protocol.size()) == {"trials": 10, "k": 4}
    assert vars(protocol.size(quick=True)) == {"trials": 2, "k": 4}


def test_numbers_are_rounded_to_significant_digits_in_nested_lists():
    assert rounded(0.123456) == 0.1235
    assert rounded(np.array([[1.23456, 1e-9], [12345.6, 0]]), 3) == [[1.23, 1e-9], [12300.0, 0.0]]


def test_values_of_a_panel_are_read_from_its_mean_curves():
    curves = {"best": {"streak": {"mean": [1, 3]}}, "x10": {"streak": {"mean": [0, 1]}}}
    runs = {"a": {"step": 0.1, "curves": curves}, "b": {"step": None, "curves": curves}}
    panel = {"runs": runs}
    assert final(panel, "a") == 3
    assert final(panel, "a", step="x10") == 1
    assert run_mean(panel, "a") == 2
    assert finals(panel) == {"a": 3, "b": 3}
    assert chosen_steps(panel) == {"a": 0.1}
    assert listed({"a": 1.04, "b": 2}) == "a 1.0, b 2.0"


def test_curves_have_the_standard_error_of_the_mean():
    values = np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]])
    found = mean_curve(values)
    assert found["mean"] == [3.0, 2.0]
    assert found["error"] == rounded([2 / np.sqrt(3), 0.0])
    assert mean_curve(values[:1])["error"] == [0.0, 0.0]


def test_a_level_is_reached_at_the_first_mean_above_it():
    assert first_reach([10, 20, 30], [1, 4, 3], 3) == 20
    assert first_reach([10, 20, 30], [1, 2, 2], 3) is None


def test_the_streak_is_over_counted_components():
    seen = np.array([0.1, 1.5, 1.5, 0.1, 1.5])
    assert streaks(seen, 0.3, np.array([0, 3, 4])) == 2


def test_slowdowns_are_ratios_of_iterations():
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


def test_angles_and_distances_of_products_equal_the_metrics(truth):
    players = np.asarray(random_players(3, K, D, "float64"))
    seen, exact = seen_of(players, truth), PROBLEM.components[:K]
    np.testing.assert_allclose(angles(seen)[0], metrics.angular_error(players, exact), atol=1e-3)
    np.testing.assert_allclose(
        distances(seen)[0], metrics.subspace_distance(players, exact), atol=1e-4
    )


def test_matching_undoes_a_permutation_and_settling_a_rotation(truth):
    exact = PROBLEM.components[:K]
    # float32 cosines near 1 resolve angles to about a milliradian.
    assert matched_angles(seen_of(exact[[2, 0, 1]], truth)).max() < 2e-3
    assert nearest_angles(seen_of(exact[[2, 0, 1]], truth)).max() < 2e-3
    turned = testing.orthogonal(K, seed=1) @ exact
    assert nearest_angles(seen_of(turned, truth)).max() > 0.1
    assert matched_angles(seen_of(turned, truth)).max() > 0.1
    assert settled_angles(seen_of(turned, truth)).max() < 5e-3


def test_residuals_are_those_of_the_matrix():
    values, truth = truth_of(PROBLEM.data.astype(np.float32), D)
    players = np.asarray(random_players(3, K, D, "float64"))
    matrix = np.asarray(truth.matrix, np.float64)
    quotients = np.einsum("id,de,ie->i", players, matrix, players)
    left = np.linalg.norm(players @ matrix - quotients[:, None] * players, axis=1)
    found = residuals(seen_of(players, truth), values)[0]
    np.testing.assert_allclose(found, left / quotients, rtol=1e-4)
    assert residuals(seen_of(PROBLEM.components[:K], truth), values).max() < 1e-2
    assert residuals(seen_of(np.full((K, D), np.nan), truth), values).min() == 1


def test_diverged_players_have_right_angles_and_distance_1(truth):
    seen = seen_of(np.full((K, D), np.nan), truth)
    assert angles(seen).min() == matched_angles(seen).min() == pytest.approx(np.pi / 2)
    assert distances(seen)[0] == 1
