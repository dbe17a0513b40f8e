import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, testing
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


def test_the_summary_depends_on_whether_pairs_undercut_the_model(stored):
    results = stored("frequent-directions")
    assert "the multiplier of the model is not a lower bound" in experiment.summary(results)
    results["seconds"]["merge"] = 100.0
    results["seconds"]["sketch"][-1] = 0.001
    assert "the multiplier of the model is not undercut" in experiment.summary(results)
