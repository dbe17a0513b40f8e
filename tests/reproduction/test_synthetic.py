"""Claims and summaries of `synthetic`, `strict` and `bubble`, on stored and on made-up results."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import play
from eigengame.game import SymmetricRows
from eigengame.metrics import longest_streak
from reproduction.base import Run, Verdict
from reproduction.experiments import bubble, strict, synthetic
from reproduction.streaks import ALGORITHMS, add_longer_runs, spectra
from reproduction.trials import eigengame, starts
from tests.reproduction.conftest import assert_curves_are_inside

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_COMPARABLE
FLAT, RISING = [10.0, 40.0, 50.0, 50.0], [1.0, 5.0, 10.0, 20.0]


def made_up(curves=None, *, components=50, **spectra):
    """Return results with given mean streaks by spectrum and algorithm; all others are `curves`."""
    panels = {}
    for spectrum in ("linear", "exponential"):
        given = spectra.get(spectrum, {})
        panels[spectrum] = {
            "runs": {
                name: {
                    "step": 1e-3,
                    "iterations": [1, 10, 100, 200],
                    "runtime": 2.0,
                    "curves": {
                        "best": {
                            kind: {"mean": given.get(name, curves or FLAT)}
                            for kind in ("streak", "loose")
                        },
                        "x10": {"streak": {"mean": FLAT}},
                    },
                }
                for name in ALGORITHMS
            }
        }
    size = {"updates": 200, "longer": 800, "trials": 2}
    return {"components": components, "size": size, "panels": panels}


def verdicts(module, results, said):
    """Return the verdicts on the claims whose sentence contains a text."""
    found = [claim.verdict for claim in module.claims(results) if said in claim.claim]
    assert found
    return found


@pytest.mark.parametrize(
    ("plain", "projected", "said"),
    [
        (34.7, 0.0, "EigenGame without the projection tolerates it better"),
        (0.0, 34.7, "EigenGame with the projection tolerates it better"),
        (30.0, 30.5, "the projection makes no difference of more than one component"),
    ],
)
def test_the_summary_compares_large_steps_with_and_without_the_projection(
    stored, plain, projected, said
):
    results = stored("synthetic")
    for name, end in (("EigenGame", plain), ("EigenGame^R", projected)):
        curves = results["panels"]["exponential"]["runs"][name]["curves"]
        curves["x10"]["streak"]["mean"][-1] = end
    assert said in synthetic.summary(results)


def longer(results, spectrum, name, mean):
    """Add a longer run of an algorithm."""
    run = results["panels"][spectrum]["runs"][name]
    run["longer"] = {"iterations": [1, 10, 400, 800], "streak": {"mean": mean}}
    return results


def test_the_summary_says_where_longer_runs_end():
    assert "No mean curve at these step sizes still rises" in synthetic.summary(made_up())
    moving = longer(made_up(linear={"GHA": RISING}), "linear", "GHA", RISING)
    said = "GHA 20.0 after 800 iterations, still rising (linear spectrum)"
    for module in (synthetic, bubble):
        assert said in module.summary(moving)


def test_algorithms_that_still_rise_are_run_for_longer():
    results = made_up(linear={"EigenGame": [0.0, 0.0, 5.0, 10.0], "best response": RISING})
    results |= {"angle": math.pi / 8, "size": {"longer": 400, "points": 3, "trials": 2}}
    results["panels"]["linear"]["runs"]["best response"]["step"] = None
    said = []
    add_longer_runs(Run(progress=said.append), results, spectra(), np.arange(50))
    assert said == ["linear spectrum: EigenGame, 400 iterations"]
    added = results["panels"]["linear"]["runs"]["EigenGame"]["longer"]
    assert added["iterations"] == [1, 20, 400]
    # Equal to a run by `play` from the same starts.
    matrix = SymmetricRows(jnp.diag(jnp.asarray(spectra()["linear"], jnp.float32)))
    ends = [
        longest_streak(
            np.asarray(play(eigengame(1e-3), matrix, players=players, rounds=400).components),
            np.eye(50),
        )
        for players in starts(0, 2, 50, 50)
    ]
    # Rounding differs between the two, and with it the time at which the last components are found.
    assert added["streak"]["mean"][-1] == pytest.approx(np.mean(ends), abs=2)
    assert added["streak"]["mean"][-1] > 10


def test_a_longer_run_decides_on_asymptotes():
    rising = made_up(linear={"GHA": RISING})
    assert verdicts(synthetic, rising, "similar asymptotes") == [OPEN]
    for mean, verdict in (([0, 0, 48, 48], HOLDS), ([0, 0, 40, 40], FAILS), (RISING, OPEN)):
        results = longer(made_up(linear={"GHA": RISING}), "linear", "GHA", mean)
        assert verdicts(synthetic, results, "similar asymptotes") == [verdict]
    results = made_up([40.0] * 4, components=40, exponential={"EigenGame": RISING})
    longer(results, "exponential", "EigenGame", [0.0, 10.0, 30.0, 40.0])
    assert verdicts(bubble, results, "approaches 40") == [HOLDS, HOLDS]
    assert "runs of 800 iterations" in bubble.claims(results)[-1].reading


def test_the_summary_of_bubble_names_curves_that_fall():
    falling = made_up(components=40, linear={"GHA": [1.0, 40.0, 25.0, 40.0]})
    said = "GHA from 40.0 to 25.0 after 100 iterations, and to 40.0 at the end (linear spectrum)"
    assert said in bubble.summary(falling)
    assert "fall" not in bubble.summary(made_up(components=40))


def test_a_tie_is_not_best():
    assert verdicts(synthetic, made_up(), "Oja's") == [FAILS, FAILS]


def test_oja_is_best_if_no_other_is_larger_and_all_are_smaller_on_one_spectrum():
    others = {key: [5.0, 20.0, 45.0, 45.0] for key in synthetic.IN_PAPER[:3]}
    assert verdicts(synthetic, made_up(linear=others), "Oja's") == [HOLDS, HOLDS]
    worse = made_up(linear=others, exponential={"Oja": [10.0, 40.0, 49.0, 49.0]})
    assert verdicts(synthetic, worse, "Oja's") == [FAILS, FAILS]


def test_final_and_mean_streak_are_two_readings_of_performance():
    late = {key: [0.0, 0.0, 40.0, 50.0] for key in synthetic.IN_PAPER[:3]}
    assert verdicts(synthetic, made_up(linear=late), "Oja's") == [FAILS, HOLDS]
    last = made_up(exponential={"EigenGame": [10.0, 40.0, 40.0, 51.0]})
    for other in ("EigenGame^R", "GHA"):
        assert verdicts(synthetic, last, f"better than {other}") == [HOLDS, FAILS]
        assert verdicts(synthetic, made_up(), f"better than {other}") == [FAILS, FAILS]
    lower = made_up(exponential={"GHA": [0.0, 0.0, 40.0, 40.0]})
    assert verdicts(synthetic, lower, "better than GHA") == [HOLDS, HOLDS]
    assert verdicts(synthetic, lower, "better than EigenGame^R") == [FAILS, FAILS]


def test_asymptotes_are_judged_only_if_the_curves_are_flat():
    assert verdicts(synthetic, made_up(), "similar asymptotes") == [HOLDS]
    late = made_up(linear={"GHA": [10.0, 30.0, 48.0, 50.0]})
    assert verdicts(synthetic, late, "similar asymptotes") == [HOLDS]
    assert "GHA 50.0 after 200 iterations, at the maximum" in synthetic.claims(late)[2].measured
    lower = made_up(linear={"GHA": [10.0, 30.0, 40.0, 40.0]})
    assert verdicts(synthetic, lower, "similar asymptotes") == [FAILS]
    for curve in (RISING, [10.0, 30.0, 47.0, 49.0]):
        moving = made_up(linear={"GHA": curve})
        assert verdicts(synthetic, moving, "similar asymptotes") == [OPEN]
        assert "still rising" in synthetic.claims(moving)[2].measured


def test_runtimes_of_another_machine_are_not_comparable():
    results = made_up()
    for runtime in (1.0, 3.0):
        results["panels"]["linear"]["runs"]["EigenGame"]["runtime"] = runtime
        assert verdicts(synthetic, results, "takes longer") == [OPEN]
        assert f"EigenGame {runtime:.0f}" in synthetic.claims(results)[-1].measured


def test_readings_name_the_length_of_the_runs():
    for module in (synthetic, bubble):
        readings = [claim.reading for claim in module.claims(made_up())]
        assert any("runs of 200 iterations" in reading for reading in readings)


def test_claims_of_strict_depend_on_the_streak_at_the_smaller_angle(stored):
    results = stored("strict")
    for panel in results["panels"].values():
        for run in panel["runs"].values():
            curves = run["curves"]["best"]
            curves["streak"] = {"mean": [0.0] * len(curves["streak"]["mean"])}
    claims = strict.claims(results)
    assert [claim.verdict for claim in claims] == [FAILS] * 5
    assert "Oja not reached" in claims[1].measured
    assert "not reached" in strict.summary(results)
    assert "every algorithm changes by at least one" in strict.summary(results)
    for panel in results["panels"].values():
        for run in panel["runs"].values():
            curves = run["curves"]["best"]
            curves["streak"] = curves["loose"]
    assert [claim.verdict for claim in strict.claims(results)] == [
        HOLDS,
        FAILS,
        HOLDS,
        HOLDS,
        HOLDS,
    ]
    assert "EigenGame and EigenGame^R and GHA and Oja change by none" in strict.summary(results)


@pytest.mark.parametrize(
    ("strictly", "expected"),
    [
        ([0.0, 30.0, 50.0, 50.0], [FAILS, HOLDS, HOLDS]),
        ([0.0, 30.0, 49.5, 49.5], [FAILS, HOLDS, HOLDS]),
        ([0.0, 30.0, 45.0, 49.1], [FAILS, HOLDS, FAILS]),
        ([0.0, 40.0, 50.0, 48.0], [HOLDS, FAILS, HOLDS]),
    ],
)
def test_a_change_has_three_readings(strictly, expected):
    results = made_up([0.0, 40.0, 50.0, 50.0])
    curves = results["panels"]["exponential"]["runs"]["GHA"]["curves"]["best"]
    curves["streak"] = {"mean": strictly}
    assert verdicts(strict, results, "difficult to see") == expected
    assert "and Oja change by none of the three measures, GHA by at least one" in strict.summary(
        results
    )


def test_the_change_at_the_smaller_angle_is_finer_than_the_sampling():
    results = made_up([0.0, 20.0, 30.0, 50.0])
    for panel in results["panels"].values():
        for run in panel["runs"].values():
            # Level 25 is reached within the same interval, after 55 and after 59.5 iterations.
            run["curves"]["best"]["streak"] = {"mean": [0.0, 19.0, 29.909, 50.0]}
    assert strict.slowdowns(results, "linear")["GHA"] == pytest.approx(59.5 / 55, rel=1e-3)
    assert [claim.verdict for claim in strict.claims(results)] == [HOLDS] * 5


def test_the_summary_of_bubble_depends_on_whether_the_streak_passes():
    passes = made_up(components=40, linear={"EigenGame": [0.0, 11.0, 40.0, 40.0]})
    assert "after 10 iterations on the linear spectrum" in bubble.summary(passes)
    assert verdicts(bubble, passes, "either side") == [HOLDS]
    stuck = made_up(components=40, linear={"EigenGame": [9.0] * 4})
    assert "never on the linear spectrum" in bubble.summary(stuck)
    assert verdicts(bubble, stuck, "either side") == [FAILS]


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [
        ([1.0, 20.0, 39.8, 39.9], HOLDS),
        ([1.0, 20.0, 30.0, 39.6], HOLDS),
        ([1.0, 20.0, 30.0, 39.0], OPEN),
        ([1.0, 20.0, 39.0, 39.2], FAILS),
        ([1.0, 20.0, 39.9, 20.0], FAILS),
    ],
)
def test_a_streak_below_the_optimum_is_judged_only_if_it_is_flat(curve, verdict):
    results = made_up([40.0] * 4, components=40, exponential={"EigenGame": curve})
    assert verdicts(bubble, results, "approaches 40") == [HOLDS, verdict]


@pytest.mark.parametrize("module", [synthetic, bubble])
def test_no_curve_leaves_its_panel_and_no_label_covers_one(stored, module):
    pytest.importorskip("matplotlib")
    figure = module.draw(stored(module.__name__.rpartition(".")[2]))
    assert_curves_are_inside(figure)
    labelled = [bool(axes.texts) for axes in figure.axes]
    assert labelled == [False, module is bubble] * 2
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(names) == len(ALGORITHMS) + 3
