import numpy as np
import pytest

from reproduction.experiments import instability

HIGH, LOW = instability.CIRCLE


@pytest.fixture(scope="module")
def seen(results):
    return results("instability")


@pytest.mark.slow
def test_a_projected_step_rotates_by_the_arctangent_of_the_gap(seen):
    theta = np.radians(seen["angles"])
    for step, moved in zip(seen["steps"], seen["moved"]["EigenGame^R"], strict=True):
        expected = np.degrees(np.arctan(step * (HIGH - LOW) * np.sin(2 * theta)))
        # Angles in float32 near a right angle, in degrees.
        np.testing.assert_allclose(moved, expected, atol=1e-3)


@pytest.mark.slow
def test_a_step_without_the_projection_is_one_of_power_iteration(seen):
    theta = np.radians(seen["angles"])
    for step, moved in zip(seen["steps"], seen["moved"]["EigenGame"], strict=True):
        landed = np.arctan(np.tan(theta) * (1 + 2 * step * LOW) / (1 + 2 * step * HIGH))
        np.testing.assert_allclose(moved, np.degrees(theta - landed), atol=1e-3)


@pytest.mark.slow
def test_the_share_of_the_learning_rate_follows_the_utility(seen):
    theta = np.radians(seen["angles"])
    utility = HIGH * np.cos(theta) ** 2 + LOW * np.sin(theta) ** 2
    for step, share in zip(seen["steps"], seen["share"], strict=True):
        np.testing.assert_allclose(share, 1 / (1 + 2 * step * utility), atol=2e-3)


@pytest.mark.slow
def test_only_projected_steps_leave_the_optimum_and_the_equilibrium(seen):
    larger, farther, decays, stable = (claim.holds for claim in instability.claims(seen)[:4])
    assert larger
    assert farther
    assert decays
    assert stable


@pytest.mark.parametrize(
    ("angles", "expected"), [([0.1, 0.2, 9], 2.0), ([9, 0.1, 0.1], 0.0), ([0.1, 0.1, 0.1], 3.0)]
)
def test_the_largest_stable_step_has_no_unstable_one_below_it(angles, expected):
    spectrum = {"steps": [1.0, 2.0, 3.0], "mine": {"all": angles}}
    assert instability.largest_stable(spectrum, "mine", 0.5) == expected


def test_the_summary_depends_on_the_decay_of_the_rate(stored):
    results = stored("instability")
    assert "it is halved towards the optimum at 1e-3 and 1e-2." in instability.summary(results)
    results["share"] = [[1.0] * len(row) for row in results["share"]]
    assert "it is halved towards the optimum at no step size." in instability.summary(results)


def test_the_summary_depends_on_the_difference_within_the_grid(stored):
    results = stored("instability")
    assert "does not explain a difference" in instability.summary(results)
    results["spectrum"]["EigenGame^R"]["all"][results["spectrum"]["steps"].index(1e-3)] = 40.0
    assert "can explain a difference" in instability.summary(results)


def test_the_explanation_is_undecided_if_the_games_differ_only_beyond_the_grid(stored):
    def verdict(step, angle):
        results = stored("instability")
        seen = results["spectrum"]
        seen["EigenGame^R"] = {who: list(seen["EigenGame"][who]) for who in ("all", "first")}
        seen["EigenGame^R"]["all"][seen["steps"].index(step)] = angle
        return instability.claims(results)[-1].verdict.value

    assert verdict(1e-3, 40.0) == "holds"
    assert verdict(2e-3, 40.0) == "not comparable"
    assert verdict(1e-2, 40.0) == "does not hold"


def test_much_larger_steps_are_judged_at_step_sizes_of_the_grid(stored):
    results = stored("instability")
    assert instability.claims(results)[0].holds
    for place, step in enumerate(results["steps"]):
        if step in instability.GRID:
            results["moved"]["EigenGame^R"][place] = results["moved"]["EigenGame"][place]
    assert not instability.claims(results)[0].holds


def test_the_summary_compares_the_grid_with_the_edge_of_stability(stored):
    results = stored("instability")
    said = instability.summary(results)
    assert "1e-3, is below 1/gap; ten times it, as in its dotted lines, is above" in said
    results["circle"] = [2000.0, 1.0]
    assert "1e-3, is not below 1/gap" in instability.summary(results)
    results["circle"] = [50.0, 1.0]
    assert "as in its dotted lines, is not above" in instability.summary(results)
