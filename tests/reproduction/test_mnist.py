import pytest

from reproduction.experiments import mnist, mnist_choices, mnist_growth, mnist_text
from reproduction.experiments.mnist_growth import growth


@pytest.fixture(scope="module")
def seen(results):
    return results("mnist")


def run_of(streak, distance, step=1e-3, error=0.1, others=None):
    """Return the run of an algorithm that ends with a mean streak and a mean distance.

    The errors are `error` for streaks and `error` of the distance for distances. `others` are the final distances
    at ten times and a tenth of the step size.
    """

    def curves(distance):
        return {
            "streak": {"mean": [streak / 2, streak], "error": [error, error]},
            "distance": {"mean": [1.0, distance], "error": [0, error * distance]},
        }

    shown = {"best": distance} if step is None else {"best": distance} | (others or {})
    return {
        "step": step,
        "iterations": [10, 20],
        "curves": {which: curves(value) for which, value in shown.items()},
        "areas": {
            "streak": [streak - error, streak + error],
            "distance": [distance * (1 - error), distance * (1 + error)],
        },
    }


def panel_of(ours=(16, 0.01), oja=(16, 0.01), gha=(12, 0.01), remembered=(16, 1e-6), **options):
    """Return a panel, from the final streak and distance of each algorithm."""
    return {
        "runs": {
            "EigenGame": run_of(*ours, **options),
            "Oja": run_of(*oja),
            "GHA": run_of(*gha),
            "remembered": run_of(*remembered, step=None),
        }
    }


def choices(ours, oja, error=0.1):
    """Return a finer grid of one step size, and a longer run, with equal final streaks."""

    def steps(streak):
        end = {"area": streak, "streak": {"mean": streak, "error": error}}
        return {"0.0002": {"held out": end, "shown": end}}

    found = {"EigenGame": steps(ours), "Oja": steps(oja)}
    return {"batch": 1024, "passes": 40, "steps": found, "longer": found}


def results_of(large, small, finer=None):
    """Return results with the same two panels in both readings."""
    panels = {"1024": large, "256": small}
    reading = {"panels": panels, "eigenvalues": [5.0, 4.0]}
    finer = choices(16, 16) if finer is None else finer
    return {
        "components": 16,
        "readings": {"centred": reading, "uncentred": reading},
        "finer": finer,
    }


def verdicts(results, claim):
    """Return the verdicts on the claims that begin with a text."""
    found = [one for one in mnist.claims(results) if one.claim.startswith(claim)]
    return [one.verdict.value for one in found]


@pytest.mark.slow
def test_the_remembered_game_finds_every_component_and_the_papers_games_are_tuned(seen):
    for reading in ("centred", "uncentred"):
        runs = seen["readings"][reading]["panels"]["256"]["runs"]
        assert runs["remembered"]["curves"]["best"]["streak"]["mean"][-1] == seen["components"]
        # Two passes over 2048 images: the subspace is found to a percent.
        assert runs["remembered"]["curves"]["best"]["distance"]["mean"][-1] < 0.01
        assert runs["EigenGame"]["step"] in mnist.GRID
        assert set(runs["EigenGame"]["curves"]) == {"best", "x10", "x0.1"}
        assert len(runs["EigenGame"]["areas"]["streak"]) == seen["size"]["trials"]


@pytest.mark.slow
def test_the_first_eigenvalue_is_that_of_the_mean_image_without_centring(seen):
    first = {name: found["eigenvalues"][0] for name, found in seen["readings"].items()}
    assert first["uncentred"] > 5 * first["centred"]


@pytest.mark.slow
def test_a_distance_is_between_0_and_1_even_if_a_run_diverges(seen):
    for found in seen["readings"].values():
        for run in found["panels"]["256"]["runs"].values():
            for curves in run["curves"].values():
                assert all(0 <= value <= 1 for value in curves["distance"]["mean"])


def test_every_claim_is_judged_in_both_readings():
    claims = mnist.claims(results_of(panel_of(), panel_of()))
    for name in {claim.claim for claim in claims}:
        readings = [claim.reading for claim in claims if claim.claim == name]
        assert sum("mean image subtracted" in one for one in readings) * 2 == len(readings)
        assert sum("not centred" in one for one in readings) * 2 == len(readings)


def test_competitive_means_a_streak_that_is_shorter_by_at_most_one():
    assert verdicts(results_of(panel_of(ours=(15.1, 0.01)), panel_of()), "EigenGame is comp") == [
        "holds",
        "holds",
    ]
    short = panel_of(ours=(14, 0.01))
    assert verdicts(results_of(short, panel_of(), choices(14, 16)), "EigenGame is comp") == [
        "does not hold",
        "does not hold",
    ]


@pytest.mark.parametrize("part", ["steps", "longer"])
def test_uncentred_the_verdict_is_open_if_it_depends_on_grid_or_length(part):
    finer = choices(9, 16)
    finer[part] = choices(15.5, 16)[part]
    results = results_of(panel_of(ours=(9, 0.4)), panel_of(), finer)
    assert verdicts(results, "EigenGame is comp") == ["does not hold", "not comparable"]


def test_a_streak_that_may_be_competitive_within_errors_leaves_the_verdict_open():
    short = panel_of(ours=(9, 0.4))
    for error, verdict in ((0.1, "does not hold"), (1.0, "not comparable")):
        results = results_of(short, panel_of(), choices(14, 16, error))
        assert verdicts(results, "EigenGame is comp") == ["does not hold", verdict]


def test_other_choices_are_competitive_open_or_not():
    for ours, error, said in (
        (15.5, 0.1, "(± 0.1), competitive"),
        (14, 1.0, "(± 1.0), open within errors"),
        (14, 0.1, "(± 0.1), not competitive"),
    ):
        finer = choices(ours, 16, error)
        text = mnist_choices.describe_choices(finer, mnist_choices.other_choices(finer))
        assert text.count(said) == 3


def test_a_step_size_of_the_finer_grid_is_chosen_on_held_out_runs():
    def outcome(area, end):
        return {"area": area, "streak": {"mean": end}}

    steps = {
        "0.001": {"held out": outcome(8, 9), "shown": outcome(1, 1)},
        "0.0002": {"held out": outcome(7, 15), "shown": outcome(2, 2)},
    }
    assert mnist_choices.best_step(steps, "area") == "0.001"
    assert mnist_choices.best_step(steps, "end") == "0.0002"


def test_the_gap_shrinks_grows_or_is_undecided():
    def gap(streak, distance=0.01):
        return verdicts(results_of(panel_of(), panel_of(ours=(streak, distance))), "The gap")

    # By streak and by distance, centred and uncentred.
    assert gap(12) == ["holds", "not comparable"] * 2
    assert gap(20, 0.001) == ["does not hold", "does not hold"] * 2
    assert gap(16, 0.05) == ["not comparable", "holds"] * 2


def test_a_lead_is_a_longer_streak_or_a_smaller_distance():
    panel = panel_of(ours=(14, 0.01), oja=(16, 0.02), gha=(10, 0.04))
    assert mnist_growth.lead(panel, ("Oja", "GHA"), "streak")[0] == pytest.approx(1)
    assert mnist_growth.lead(panel, ("Oja", "GHA"), "distance")[0] == pytest.approx(0.02)


def test_a_lead_over_equally_many_iterations_ends_with_the_shortest_run():
    large, small = panel_of(ours=(14, 0.01), oja=(10, 0.01)), panel_of(ours=(14, 0.01))
    for run in small["runs"].values():
        run["iterations"] = [20, 80]
    # Means over both points of the first panel, and over the first point of the second.
    found = mnist_growth.early_lead({"1024": large, "256": small}, ("Oja",), "streak")
    assert found == pytest.approx({"1024": 3, "256": -1})


def test_degrading_is_a_larger_distance_beyond_two_standard_errors():
    def judged(distance):
        results = results_of(panel_of(error=0.05), panel_of(ours=(16, distance), error=0.05))
        return set(verdicts(results, "EigenGame's performance degrades"))

    assert judged(0.02) == {"holds"}
    assert judged(0.0105) == {"not comparable"}
    assert judged(0.005) == {"does not hold"}


def test_distances_are_compared_at_one_step_size_for_all_batches():
    large = panel_of(ours=(9, 0.4), others={"x0.1": 0.0018})
    small = panel_of(ours=(12, 0.0022), step=1e-4, others={"x10": 0.45})
    panels = {"1024": large, "256": small}
    found = growth(panels, "EigenGame", "distance")
    # Both step sizes are chosen once: the larger one is taken, unless another is asked for.
    assert (found.step, found.means) == (1e-3, {"1024": 0.4, "256": 0.45})
    found = growth(panels, "EigenGame", "distance", 1e-4)
    assert found.means == {"1024": 0.0018, "256": 0.0022}
    assert found.ratio == pytest.approx(0.0022 / 0.0018)
    assert growth(panels, "EigenGame", "distance", 1e-5) is None
    assert mnist_growth.shared_steps(panels, "EigenGame") == [1e-3, 1e-4]


def test_without_a_common_step_size_nothing_is_judged():
    results = results_of(panel_of(), panel_of(step=1e-5))
    assert set(verdicts(results, "EigenGame's performance degrades")) == {"not comparable"}
    assert set(verdicts(results, "The degradation")) == {"not comparable"}


def test_bias_is_the_cause_only_if_unbiased_methods_do_not_degrade():
    def judged(ours, oja):
        results = results_of(panel_of(), panel_of(ours=(16, ours), oja=(16, oja)))
        (verdict,) = set(verdicts(results, "The degradation"))
        said = next(one for one in mnist.claims(results) if one.claim.startswith("The degradation"))
        return verdict, "not due to bias alone" in said.measured

    assert judged(0.02, 0.01) == ("holds", False)
    assert judged(0.02, 0.016) == ("not comparable", True)
    assert judged(0.01, 0.01) == ("not comparable", False)
    assert judged(0.005, 0.01) == ("does not hold", False)


def test_noisy_methods_without_bias_decide_nothing():
    large, small = panel_of(), panel_of(ours=(16, 0.02))
    for panel in (large, small):
        panel["runs"]["Oja"] = run_of(16, 0.01, error=0.5)
    results = results_of(large, small)
    assert set(verdicts(results, "The degradation")) == {"not comparable"}
    said = next(one for one in mnist.claims(results) if one.claim.startswith("The degradation"))
    assert "the distance of Oja does not grow beyond errors, but" in said.measured


def test_methods_that_diverge_are_no_comparison():
    panels = {"1024": panel_of(gha=(0, 1.0)), "256": panel_of(gha=(0, 1.0))}
    assert set(mnist_text.controls(panels)) == {"Oja"}


def test_the_remembered_game_degrades_by_distance_or_streak():
    def judged(streak, distance):
        results = results_of(panel_of(), panel_of(remembered=(streak, distance)))
        return set(verdicts(results, "The remembered game"))

    assert judged(16, 1e-6) == {"holds"}
    assert judged(16, 2e-6) == {"does not hold"}
    assert judged(15, 1e-6) == {"does not hold"}


def test_the_summary_depends_on_whether_the_remembered_game_finds_all_components(stored):
    results = stored("mnist")
    assert "remembered game finds all of them after" in mnist.summary(results)
    panels = results["readings"]["centred"]["panels"]
    curve = panels["1024"]["runs"]["remembered"]["curves"]["best"]["streak"]
    curve["mean"] = [min(one, 15) for one in curve["mean"]]
    assert "does not find all of them (batches of 1024)" in mnist.summary(results)


def test_the_reading_depends_on_step_sizes(stored):
    results = stored("mnist")
    before = mnist.reading(results)
    for found in results["readings"].values():
        for panel in found["panels"].values():
            panel["runs"]["EigenGame"]["step"] = 1e-5
    assert mnist.reading(results) != before


def test_the_summary_depends_on_the_end_at_a_tenth_of_the_step_size(stored):
    results = stored("mnist")
    for found in results["readings"].values():
        for panel in found["panels"].values():
            panel["runs"]["EigenGame"]["curves"]["x0.1"]["streak"]["mean"][-1] = 0.0
    said = mnist.summary(results)
    assert said.count("not more than at the chosen one") == 2
    panel["runs"]["EigenGame"]["curves"]["x0.1"]["streak"]["mean"][-1] = 17.0
    assert "more than at the chosen one for batches of 256," in mnist.summary(results)


def test_the_summary_depends_on_the_best_step_size_of_the_finer_grid(stored):
    results = stored("mnist")
    steps = results["finer"]["steps"]["EigenGame"]
    steps["0.0002"]["shown"]["streak"]["mean"] = 20.0
    assert "is at 0.0002, which is not a step size of the paper's grid" in mnist.summary(results)
    steps["0.001"]["shown"]["streak"]["mean"] = 30.0
    assert "is at 0.001, which is a step size of the paper's grid" in mnist.summary(results)


def test_the_summary_depends_on_what_the_rotation_gains(stored):
    results = stored("mnist")
    for gain, said in ((9.0, "at batches of 1024 and 512 and 256."), (-9.0, "at no batch size.")):
        for found in results["readings"].values():
            for panel in found["panels"].values():
                run = panel["runs"]["Krasulina"]
                run["settled"] = run["curves"]["best"]["streak"]["mean"][-1] + gain
        assert mnist.summary(results).count(f"gains a component or more {said}") == 2
