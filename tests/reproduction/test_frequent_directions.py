import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, testing
from reproduction.base import Verdict
from reproduction.experiments import frequent_directions as experiment
from reproduction.experiments import frequent_directions_sketches as sketches

N, D, K, L = 64, 12, 4, 8


@pytest.fixture(scope="module")
def seen(results):
    return results("frequent-directions")


def test_a_sharded_sketch_satisfies_the_bound_of_two_levels():
    problem = testing.rows_with(testing.linear(D), N)
    rows = jnp.asarray(problem.data, jnp.float32)
    sketch = np.asarray(sketches.sharded(rows, K, L, 2).sketch, np.float64)
    gone = problem.data.T @ problem.data - sketch.T @ sketch
    tail = problem.eigenvalues[K:].sum() / (L - K)
    assert np.linalg.norm(gone, 2) <= 2 * tail


def test_the_second_pass_gives_the_best_of_the_three_estimates():
    problem = testing.rows_with(testing.linear(D), N, seed=1)
    found = sketches.components_of(jnp.asarray(problem.data, jnp.float32), K, L, 2)
    angles = {
        name: metrics.angular_error(np.asarray(one), problem.components).max()
        for name, one in found.items()
    }
    assert angles["recovered"] <= min(angles.values()) + 1e-6
    assert all(one.shape == (K, D) for one in found.values())


def test_multipliers_are_computed_from_the_times_of_shards_and_merges():
    results = {
        "size": {"n": 64, "l": 8},
        "seconds": {"rows": [16, 32, 64], "sketch": [1.0, 2.0, 4.0], "merge": 0.5},
    }
    costs = experiment.multipliers(results)
    assert costs["shards"] == [1, 2, 4]
    # Times in proportion to rows are the model itself.
    np.testing.assert_allclose(costs["stacked"], costs["model"])
    np.testing.assert_allclose(costs["model"], [1.25, 1.0, 1.25])
    np.testing.assert_allclose(costs["in pairs"], [1.0, 0.625, 0.5])


def test_times_are_measured_for_every_doubling_of_the_rows():
    rows = jnp.asarray(testing.rows_with(testing.linear(D), N).data, jnp.float32)
    taken = sketches.seconds_by_rows(rows, K, L, repeats=1)
    assert list(taken) == [16, 32, 64]
    assert all(0 < one < 60 for one in taken.values())


@pytest.mark.slow
def test_recovered_components_are_found_on_both_spectra(seen):
    for one in seen["found"].values():
        assert one["kinds"]["recovered"]["streak"] == [seen["size"]["k"]]
        assert len(one["kinds"]["EigenGame"]["streak"]) == experiment.PASSES


def test_the_summary_depends_on_the_passes_that_find_all_components(stored):
    results = stored("frequent-directions")
    said = experiment.summary(results)
    assert "remembered game: Frequent Directions needs the second pass." in said
    assert "remembered game: one pass over the data is enough" in said
    for found in results["found"].values():
        found["kinds"]["sketch SVD"]["streak"] = found["kinds"]["recovered"]["streak"] = [3.0]
    said = experiment.summary(results)
    assert said.count("does not find all components in two passes") == 2


def test_the_summary_depends_on_whether_pairs_take_less_than_the_model(stored):
    results = stored("frequent-directions")
    assert "which is less; the paper" in experiment.summary(results)
    results["seconds"]["merge"] = 100.0
    results["seconds"]["sketch"][-1] = 0.001
    assert "which is not less; the paper" in experiment.summary(results)


def judged(results):
    """Return the claims by their first words."""
    return {claim.claim.split(" ")[2]: claim for claim in experiment.claims(results)}


def set_streaks(results, kind, *ends):
    for one, end in zip(results["found"].values(), ends, strict=True):
        one["kinds"][kind]["streak"] = [end]


def test_rows_of_the_sketch_are_judged_in_general(stored):
    results, k = stored("frequent-directions"), 16
    for ends, verdict, where in (
        ((0.7, k), Verdict.HOLDS, "On the exponential spectrum they nearly are."),
        ((0.7, 3), Verdict.HOLDS, "They are on none."),
        ((k, k), Verdict.DOES_NOT_HOLD, "On the linear and exponential spectrum they nearly are."),
    ):
        set_streaks(results, "sketch rows", *ends)
        claim = judged(results)["of"]
        assert claim.verdict is verdict
        assert where in claim.measured


def test_a_verdict_on_speed_needs_all_components_from_both(stored):
    results, k = stored("frequent-directions"), 16
    assert judged(results)["sharded"].verdict is Verdict.NOT_COMPARABLE
    set_streaks(results, "EigenGame", k, k)
    assert judged(results)["sharded"].verdict is Verdict.HOLDS
    results["seconds"]["game"] = 100.0
    assert judged(results)["sharded"].verdict is Verdict.DOES_NOT_HOLD
    set_streaks(results, "recovered", k, 3)
    assert judged(results)["sharded"].verdict is Verdict.NOT_COMPARABLE


def test_the_lower_bound_is_judged_within_one_step_of_merging(stored):
    results = stored("frequent-directions")
    before = judged(results)["multiplier"]
    assert before.verdict is Verdict.NOT_COMPARABLE
    results["seconds"]["merge"] = 1e-9
    assert judged(results)["multiplier"] == before, "pairs do not count"
    slow = stored("frequent-directions")
    slow["seconds"]["sketch"][:-1] = [2 * one for one in slow["seconds"]["sketch"][:-1]]
    assert judged(slow)["multiplier"].verdict is Verdict.HOLDS
    results["seconds"]["sketch"][:-1] = [1e-9] * (len(results["seconds"]["sketch"]) - 1)
    assert judged(results)["multiplier"].verdict is Verdict.DOES_NOT_HOLD
