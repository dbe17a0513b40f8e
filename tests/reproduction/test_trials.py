"""Shared parts of the experiments: trials, protocol, curves, and products."""

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, play, testing
from eigengame.algorithms import Alpha
from eigengame.game import Rows, SymmetricRows, as_rows, random_players
from reproduction.curves import (
    FLAT,
    chosen_steps,
    crossing,
    final,
    finals,
    first_reach,
    late_change,
    listed,
    mean_curve,
    mean_over_run,
    rounded,
    run_mean,
    trend,
    trend_of,
)
from reproduction.diagonal_rows import DiagonalRows
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
from reproduction.streaks import ALGORITHMS, runs_of, streaks
from reproduction.trials import components, log_points, orders, play_trials, seeded_runs, starts

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


def test_measurements_at_unequal_distances_are_those_of_a_run_that_measures_every_update():
    rows = as_rows(PROBLEM.data.astype(np.float32))
    begun = starts(5, 2, K, D)
    every = play_trials(Alpha, 0.1, begun, rows, None, components, updates=6, every=1)
    seen = play_trials(Alpha, 0.1, begun, rows, None, components, points=[1, 2, 6])
    np.testing.assert_allclose(seen, every[:, [0, 1, 5]], atol=1e-6)


def test_batches_are_taken_in_order_at_unequal_distances():
    rows = jnp.asarray(PROBLEM.data, jnp.float32)
    begun, order = starts(5, 2, K, D), orders(5, 2, 40, 10, 6)
    every, seen = (
        play_trials(Alpha, 0.1, begun, rows, None, components, order=order, **size)
        for size in ({"updates": 6, "every": 1}, {"points": [1, 2, 6]})
    )
    np.testing.assert_allclose(seen, every[:, [0, 1, 5]], atol=1e-6)
    for trial in range(2):
        players, single = begun[trial], Alpha(0.1)
        state = single.init(players)
        for batch in order[trial]:
            state, _ = single.update(as_rows(rows[batch]), state)
        np.testing.assert_allclose(seen[trial, -1], single.components(state), atol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": [2, 2]},
        {"points": [0, 1]},
        {"points": []},
        {"points": [1], "every": 1},
        {"updates": 3},
    ],
)
def test_points_of_measurement_are_checked(wrong):
    with pytest.raises(ValueError, match="give"):
        play_trials(Alpha, 0.1, starts(5, 2, K, D), None, None, components, **wrong)


@pytest.mark.parametrize(("updates", "count"), [(40_000, 150), (1000, 150), (400, 10), (3, 10)])
def test_points_increase_in_equal_ratios_from_the_first_iteration_to_the_last(updates, count):
    points = np.array(log_points(updates, count))
    assert points[0] == 1
    assert points[-1] == updates
    assert (np.diff(points) >= 1).all()
    assert len(points) == min(count, updates)
    # While the distance of two points is well below one iteration, every iteration is a point. Later, distances
    # are proportional to iterations, up to rounding.
    ratio = (points[-1] / points[-2] - 1) if updates > count else 0
    assert (np.diff(points[points * ratio < 0.4]) == 1).all()
    assert (np.diff(points) <= points[1:] * ratio + 2).all()


def test_rows_of_a_diagonal_matrix_have_the_products_of_the_matrix():
    values = testing.exponential(D)
    dense, diagonal = (
        SymmetricRows(jnp.diag(jnp.asarray(values, jnp.float32))),
        DiagonalRows.of(values),
    )
    assert isinstance(diagonal, Rows)
    assert diagonal.width == D
    players = np.asarray(random_players(0, K, D, jnp.float32))
    for rows in (dense, diagonal):
        scores = rows.scores(players)
        np.testing.assert_allclose(
            rows.gram(scores, scores),
            players * values @ players.T,
            rtol=1e-5,
            atol=1e-4,
        )
        np.testing.assert_allclose(rows.directions(scores), players * values, rtol=1e-5)


def test_every_algorithm_moves_equally_on_a_diagonal_matrix_and_on_its_diagonal():
    values = testing.exponential(D, 10, 1)
    dense, diagonal = (
        SymmetricRows(jnp.diag(jnp.asarray(values, jnp.float32))),
        DiagonalRows.of(values),
    )
    for family, _ in ALGORITHMS.values():
        first, second = (
            play_trials(family, 0.01, starts(0, 2, K, D), rows, None, components, points=[1, 2, 6])
            for rows in (dense, diagonal)
        )
        np.testing.assert_allclose(first, second, atol=1e-4)


def test_runs_on_one_spectrum_are_made_once():
    spectrum = tuple(testing.linear(50).tolist())
    one, other = (runs_of("GHA", spectrum, 2, (1, 3)) for _ in range(2))
    assert one(1e-4, 0) is other(1e-4, 0)
    assert one(1e-4, 0).angles.shape == (2, 2, 50)
    assert one(1e-4, 0).seconds > 0
    assert (one(1e-4, HELD_OUT).angles != one(1e-4, 0).angles).any()
    assert (runs_of("GHA", spectrum[::-1], 2, (1, 3))(1e-4, 0).angles != one(1e-4, 0).angles).any()


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
    runs = {
        "a": {"step": 0.1, "iterations": [1, 2], "curves": curves},
        "b": {"step": None, "iterations": [3, 4], "curves": curves},
    }
    panel = {"runs": runs}
    assert final(panel, "a") == 3
    assert final(panel, "a", step="x10") == 1
    assert run_mean(panel, "a") == 2
    assert run_mean(panel, "b") == (3 * 1 + 1 * 3) / 4
    assert trend_of(panel, "a") == "still rising"
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


def test_a_mean_over_the_run_does_not_depend_on_where_a_step_is_measured():
    def curve(iterations):
        return np.where(np.asarray(iterations) > 200, 7.0, 2.0)

    equal = np.arange(1, 1001)
    fine = mean_over_run(curve(equal), equal)
    assert fine == pytest.approx(curve(equal).mean())
    assert mean_over_run(curve(equal[9::10]), equal[9::10]) == pytest.approx(fine)
    # The step lies within one interval, which is a fifteenth of the iterations before it.
    points = log_points(1000, 80)
    assert mean_over_run(curve(points), points) == pytest.approx(fine, abs=5 * 200 / 15 / 1000)
    assert abs(curve(points).mean() - fine) > 1
    two = mean_over_run(np.stack([curve(points), np.zeros(80)]), points)
    np.testing.assert_allclose(two, [mean_over_run(curve(points), points), 0])


def test_step_sizes_are_chosen_by_the_mean_over_iterations():
    points = [1, 2, 3, 4, 100]
    early, late = [9.0, 9.0, 9.0, 9.0, 9.0], [0.0, 0.0, 0.0, 0.0, 10.0]
    runs = {1e-3: np.array([early]), 1e-4: np.array([late])}
    tuned = tune(
        lambda step, seed: runs.get(step, runs[1e-3]),
        lambda seen: float(mean_over_run(seen, points).mean()),
        (1e-3, 1e-4),
    )
    assert tuned.step == 1e-4
    kept = tuned.record(points[-1], 1, {"streak": lambda seen: seen}, points=points)
    assert kept["iterations"] == points
    assert tuned.record(9, 3, {})["iterations"] == [3, 6, 9]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (10.0, "flat"),
        (10 + FLAT, "flat"),
        (10 - FLAT, "flat"),
        (10.6, "still rising"),
        (9.4, "falling"),
    ],
)
def test_a_curve_is_flat_if_the_second_half_of_the_run_changes_little(last, said):
    assert trend([1, 10, 100, 200], [0.0, 5.0, 10.0, last]) == said
    assert late_change([1, 10, 100, 200], [0.0, 5.0, 10.0, last]) == pytest.approx(last - 10)


def test_a_curve_at_its_maximum_has_reached_its_asymptote():
    assert trend([1, 100, 200], [0.0, 8.0, 10.0], limit=10) == "at the maximum"
    assert trend([1, 100, 200], [0.0, 8.0, 9.9], limit=10) == "still rising"


def test_the_middle_of_a_run_is_interpolated():
    assert late_change([1, 80, 120, 200], [0.0, 4.0, 8.0, 8.0]) == pytest.approx(2)


def test_a_crossing_is_interpolated_between_measurements():
    assert crossing([10, 20, 40], [1, 2, 6], 4) == 30
    assert crossing([10, 20, 40], [1, 2, 6], 2) == 20
    assert crossing([10, 20, 40], [1, 2, 6], 0.5) == 10
    assert crossing([10, 20, 40], [1, 6, 2], 6) == 20
    assert crossing([10, 20, 40], [1, 2, 6], 7) is None


def test_the_streak_is_over_counted_components():
    seen = np.array([0.1, 1.5, 1.5, 0.1, 1.5])
    assert streaks(seen, 0.3, np.array([0, 3, 4])) == 2


def test_slowdowns_are_ratios_of_iterations():
    run = {
        "iterations": [1, 2, 3, 4],
        "curves": {"best": {"loose": {"mean": [0, 4, 8, 8]}, "streak": {"mean": [0, 0, 2, 6]}}},
    }
    never = {
        "iterations": [1, 2],
        "curves": {"best": {"loose": {"mean": [2, 8]}, "streak": {"mean": [0, 0]}}},
    }
    names = ("EigenGame", "EigenGame^R", "GHA", "Oja")
    panel = {"runs": dict.fromkeys(names, run) | {"Oja": never}}
    found = slowdowns({"panels": {"linear": panel}}, "linear")
    # Level 4 is reached at 2, and halfway between 3 and 4.
    assert found == {"EigenGame": 1.75, "EigenGame^R": 1.75, "GHA": 1.75, "Oja": None}


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
