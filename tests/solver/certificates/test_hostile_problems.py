"""The problems of the soundness benchmark are what they say, and true angles in float64 are within their bounds."""

import math

import numpy as np
import pytest
import scipy.linalg
from benchmarks.hostile_claims import Claim
from benchmarks.hostile_families import FAMILIES, light_rows
from benchmarks.hostile_orders import ORDERED, ORDERS
from benchmarks.hostile_problems import PARTS, SETTINGS, Problem, draw_problems
from benchmarks.hostile_routes import MESH_ROUTES, ROUTES, attempt, routes_for
from benchmarks.hostile_streams import in_chain, in_tree, models, ragged_batches
from benchmarks.quick_truth import quick_truth_of
from benchmarks.soundness_score import case_of, checked

from eigengame.solver.passes.forgetting import faded_weights

SMALL = SETTINGS["small64"]


# ------------------------------------------------------------------ the truth in float64


@pytest.mark.parametrize("target", ["plain", "uncentred", "weighted", "faded", "faded parts"])
@pytest.mark.parametrize("family", ["near_tied", "large_mean", "heavy_tails", "scaled_columns"])
def test_angles_in_float64_are_within_their_bound_of_those_to_50_digits(family, target):
    problem = Problem(family, SMALL, seed=9, index=0)
    quick, truth = problem.quick_truth(target), problem.truth(target)
    guesses = np.linalg.qr(np.random.default_rng(0).standard_normal((24, 24)))[0]
    guesses = np.vstack([guesses[:2], quick.vectors[2:6]])
    decided = 0
    for first, last in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (0, 1), (2, 4)]:
        error = quick.error(first, last)
        for vectors in (guesses[first : first + 1], guesses[first : last + 1]):
            difference = quick.angle(vectors, first, last) - truth.angle(vectors, first, last)
            assert abs(difference) <= error
        decided += error < 1e-3
    assert decided >= 4


def test_a_tie_is_left_to_50_digits():
    problem = Problem("ties", SMALL, seed=0, index=0)  # values 25, 16, 16, 9
    quick = problem.quick_truth("plain")
    assert quick.error(1, 1) == math.pi / 2
    assert quick.error(1, 2) < 1e-10


@pytest.mark.parametrize(
    "rows",
    [np.ones((5, 3)), np.array([[1e-200, 1.0], [0.0, -1.0]]), np.array([[1e308, 0], [-1e308, 1]])],
)
def test_rows_that_are_equal_or_of_a_wide_range_are_left_to_50_digits(rows):
    assert quick_truth_of(rows) is None


def test_vectors_far_from_orthonormal_have_no_angle_in_float64():
    quick = Problem("harmonic", SMALL, 0, 0).quick_truth("plain")
    for vector in (np.zeros((1, 24)), np.full((1, 24), math.nan), 2 * np.eye(1, 24)):
        assert math.isnan(quick.angle(vector, 0, 0))


def claimed(problem, bound, off):
    """The checks of a claim with this bound about true components that are turned by `off`."""
    stored = problem.truth("plain").vectors[:4].astype(np.float64)
    stored = stored * math.cos(off) + np.roll(stored, 1, axis=0) * math.sin(off)
    claim = Claim("plain", stored, "certified", np.full(4, bound), 0.999)
    return list(checked(problem, claim))


def test_a_bound_far_above_the_error_is_decided_in_float64(monkeypatch):
    problem = Problem("harmonic", SMALL, 0, 0)
    problem.truth("plain")
    with monkeypatch.context() as patch:
        patch.setattr(Problem, "second_truth", lambda *_: pytest.fail("no violation"))
        checks = claimed(problem, 2e-3, 1e-3)
    assert [check.verdict for check in checks] == ["held"] * 4
    assert all(0 < check.error < 1e-9 for check in checks)  # that of float64
    np.testing.assert_allclose([check.ratio for check in checks], 2, rtol=1e-6)


@pytest.mark.parametrize("off", [1e-3, 1e-12])
def test_violations_and_bounds_close_to_rounding_are_decided_with_50_digits(off):
    checks = claimed(Problem("harmonic", SMALL, 0, 0), 0.9 * off, off)
    assert [check.verdict for check in checks] == ["violated"] * 4
    assert all(check.error < 1e-40 for check in checks)
    held = claimed(Problem("harmonic", SMALL, 0, 0), 1.1e-12, 1e-12)
    assert [check.verdict for check in held] == ["held"] * 4
    assert all(check.error < 1e-40 for check in held)


# ------------------------------------------------------------------ orders and families


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_keeps_all_rows(order):
    plain = Problem("heavy_tails", SMALL, 3, 1).rows
    ordered = Problem("heavy_tails", SMALL, 3, 1, order).rows
    assert np.array_equal(plain, ordered) == (order == "drawn")
    np.testing.assert_array_equal(np.sort(plain.ravel()), np.sort(ordered.ravel()))
    assert {tuple(row) for row in plain} == {tuple(row) for row in ordered}


def variance_along(problem, component):
    """Mean square of the scores along a component, for each batch."""
    direction = problem.quick_truth("plain").vectors[component]
    scores = (problem.rows - problem.rows.mean(axis=0)) @ direction
    return np.mean(scores.reshape(-1, SMALL.batch) ** 2, axis=1)


def test_orders_concentrate_a_direction_in_some_batches():
    last = variance_along(Problem("harmonic", SMALL, 3, 1, "largest_last"), 0)
    first = variance_along(Problem("harmonic", SMALL, 3, 1, "largest_first"), 0)
    assert (np.diff(last) > 0).all()
    assert (np.diff(first) < 0).all()
    turns = variance_along(Problem("harmonic", SMALL, 3, 1, "alternating"), 0)
    assert turns[1::2].min() > 2 * turns[::2].max()


def test_rows_sorted_by_a_small_score_change_their_mean_along_it():
    problem = Problem("harmonic", SMALL, 3, 1, "by_small_score")
    scores = (problem.rows - problem.rows.mean(axis=0)) @ problem.quick_truth("plain").vectors.T
    means = np.abs(scores.reshape(-1, SMALL.batch, 24).mean(axis=1)[0]) / scores.std(axis=0)
    assert np.count_nonzero(means > 1) == 1
    assert np.argmax(means) >= 12


@pytest.mark.parametrize(
    ("family", "inside"), [("first_batch", slice(100)), ("last_batch", slice(-100, None))]
)
def test_a_direction_appears_in_one_batch_only(family, inside):
    rows = Problem(family, SMALL, 2, 0).rows
    others = np.delete(rows, inside, axis=0)
    _, sizes, directions = np.linalg.svd(others, full_matrices=False)
    assert sizes[-1] < 1e-10
    assert np.std(rows[inside] @ directions[-1]) > 0.1


@pytest.mark.parametrize("index", range(4))
def test_light_rows_come_first_and_are_large(index):
    problem = Problem("light_start", SMALL, 3, index)
    light, weight = light_rows(problem.rng, SMALL)
    np.testing.assert_array_equal(problem.weights[:light], weight)
    np.testing.assert_array_equal(problem.weights[light:], 1)
    sizes = np.linalg.norm(problem.rows, axis=1)
    assert np.median(sizes[:light]) > np.median(sizes[light:])
    assert light in (1, 7, SMALL.batch)
    assert weight < 1e-2


def test_families_that_are_ordered_keep_their_order():
    orders = {problem.order for problem in draw_problems(0, ORDERED, ["small64"], 9)}
    assert orders == {"drawn"}
    assert set(ORDERED) < set(FAMILIES)
    drawn = {problem.order for problem in draw_problems(0, ["harmonic"], ["small64"], 60)}
    assert drawn == set(ORDERS)


# ------------------------------------------------------------------ weights, streams and routes


@pytest.mark.parametrize("index", [0, 2])
def test_weights_under_forgetting_are_those_of_the_solver(index):
    problem = Problem("harmonic", SMALL, 0, index)
    stated = faded_weights(SMALL.rows, problem.forget)
    np.testing.assert_allclose((problem.faded() / 2**200).astype(float), stated, rtol=1e-12)
    part = faded_weights(SMALL.rows // PARTS, problem.forget)
    found = (problem.faded(PARTS) / 2**200).astype(float)
    np.testing.assert_allclose(found, np.tile(part, PARTS), rtol=1e-12)


@pytest.mark.parametrize("index", range(4))
def test_ragged_batches_contain_each_row_once(index):
    problem = Problem("harmonic", SMALL, 0, index)
    batches = list(ragged_batches(problem))
    np.testing.assert_array_equal(np.concatenate(batches), problem.rows)
    assert {1, 7, 33, 100} <= {len(batch) for batch in batches}
    assert len(batches[0]) == [1, 100, 7, 33][index]


@pytest.mark.parametrize("merge", [in_tree, in_chain])
def test_merged_models_keep_their_probes(merge):
    problem = Problem("exponential", SETTINGS["small32"], 0, 0)
    merged = merge(models(problem, 8))
    assert merged.n_samples_seen_ == len(problem.rows)
    assert merged.certificate_.kind == "certified"
    assert merged.certificate_.probes > 0
    assert merged.components_.dtype == np.float32


def test_models_of_different_problems_have_different_probes():
    names = [
        ("harmonic", "small64", 0),
        ("flat", "small64", 0),
        ("harmonic", "small32", 0),
        ("harmonic", "small64", 1),
    ]
    states = {
        Problem(family, SETTINGS[setting], 0, index).random_state
        for family, setting, index in names
    }
    assert len(states) == 4


def test_some_routes_are_chosen_for_each_problem():
    every = (*ROUTES, *MESH_ROUTES)
    chosen = [routes_for(Problem("flat", SMALL, 0, index), every, 2) for index in range(100)]
    assert {len(set(names)) for names in chosen} == {2}
    assert set().union(*chosen) == set(every)
    assert chosen[0] == routes_for(Problem("flat", SMALL, 0, 0), every, 2)


def test_an_error_inside_another_library_is_not_a_refusal(monkeypatch):
    problem = Problem("harmonic", SMALL, 0, 0)
    monkeypatch.setitem(ROUTES, "tol", lambda _: scipy.linalg.eigh(np.full((2, 2), math.nan)))
    found = attempt(problem, "tol")
    assert found.refused == ""
    assert found.failed.startswith("ValueError: array must not contain")
    assert case_of(problem, "tol", found).failed == found.failed
