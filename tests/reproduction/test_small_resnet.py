"""Deflation, EigenGame and Frequent Directions on stored rows, and the claims about them."""

import numpy as np
import pytest

from eigengame import activations, metrics, testing
from reproduction.base import Verdict
from reproduction.experiments import small_resnet
from reproduction.experiments.resnet.stored import StoredRows
from reproduction.experiments.small_resnet import methods, text

N, D, K, BATCH = 64, 24, 3, 16


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def problem(request):
    """Rows with eigenvalues in equal ratios, and the same rows in the memory of the device."""
    problem = testing.rows_with(testing.exponential(D, 8.0, 1e-3), N)
    x = problem.data.astype(np.float32)
    batches = [x[i : i + BATCH] for i in range(0, N, BATCH)]
    source = activations(lambda x: {"out": x}, batches, dtype=request.param)
    return problem, StoredRows(source)


def test_deflation_finds_the_components_with_a_step_size_for_each(problem):
    known, rows = problem
    scales = known.eigenvalues[:K] / N
    found = methods.deflate(rows, scales, step=0.5, slower=8, batch=BATCH, turn=60)
    assert found.updates == K * 60 * (N // BATCH)
    assert metrics.angular_error(np.asarray(found.components), known.components).max() < 0.1
    # Quotients of the last two passes: those of the components, which no longer change.
    np.testing.assert_allclose(found.quotients, np.stack([scales, scales], axis=1), rtol=0.02)


def test_frequent_directions_recovers_the_components_and_times_its_parts(problem):
    known, rows = problem
    found = methods.sketch(rows, K, size=15, shard=N // 2)
    assert metrics.angular_error(np.asarray(found.components), known.components).max() < 0.01
    assert min(found.sketch, found.recovery, found.shard) > 0


def test_correlations_of_maps_ignore_their_mean_and_scale():
    rng = np.random.default_rng(0)
    one = rng.normal(size=(2, 9))
    np.testing.assert_allclose(small_resnet._correlations(one, -3 * one + 1), [-1, -1])
    flat = np.ones((1, 9))
    np.testing.assert_array_equal(small_resnet._correlations(flat, one[:1]), 0)


# ---------------------------------------------------------------- claims


def made_up(change=0.001, **changes):
    """Return results in which every method found all components, and EigenGame is faster."""
    k = 10

    def method(seconds, passes, name):
        angle = changes.pop(name, [0.1] * k)
        alike = np.abs(np.cos(angle)).tolist()
        streak = int(metrics.streak_of(np.array(angle)))
        truths = ("certified", "deflation")
        return {"seconds": seconds, "passes": passes, "step": 1.0} | {
            "angle": dict.fromkeys(truths, angle),
            "streak": dict.fromkeys(truths, streak),
            "maps": dict.fromkeys(truths, alike),
        }

    long = method(0.5, 900, "long")
    long["halfway"] = {"passes": 450, "streak": changes.pop("halfway", long["streak"]["certified"])}
    return {
        "size": {"k": k, "turn": 8, "batch": 128},
        "rows": 4000,
        "features": 6_322_176,
        "l": 50,
        "shards": 4,
        "tried": {"1": 2, "4": 3},
        "methods": {
            "certified": method(5.0, 12, "certified"),
            "deflation": method(9.0, 80, "deflation"),
            "EigenGame, short": method(0.1, 3, "short"),
            "EigenGame, long": long,
            "FD": method(3.0, 2, "sketch"),
        },
        "certificate": {"kind": "certified", "streak": k},
        "deflation": {"change": [change] * k},
        "seconds": {"sketch": 2.0, "recovery": 1.0, "shard": 0.6},
        **changes,
    }


def verdicts(**changes):
    return [claim.verdict for claim in text.claims(made_up(**changes))]


WRONG, FEW = [0.1] * 9 + [1.0], [0.1] * 3 + [1.0] * 7


def test_every_claim_that_can_hold_holds_for_numbers_that_support_it():
    held = [Verdict.HOLDS] * 5
    assert verdicts() == [*held, Verdict.NOT_COMPARABLE, Verdict.HOLDS]


def test_a_verdict_on_speed_needs_all_components_from_both():
    short, long = 0, 1
    slow = {"seconds": {"sketch": 2.0, "recovery": 1.0, "shard": 0.3}}
    assert verdicts(**slow)[long] is Verdict.DOES_NOT_HOLD
    assert verdicts(**slow)[short] is Verdict.HOLDS
    for name in ("long", "sketch"):
        assert verdicts(**slow, **{name: WRONG})[long] is Verdict.NOT_COMPARABLE
        assert verdicts(**{name: WRONG})[long] is Verdict.NOT_COMPARABLE
    assert verdicts(short=WRONG)[short] is Verdict.NOT_COMPARABLE


def test_maps_that_differ_count_only_if_the_run_is_long_enough_and_few_agree():
    short, long = 2, 3
    assert verdicts(long=FEW)[long] is Verdict.DOES_NOT_HOLD
    assert verdicts(long=FEW, halfway=1)[long] is Verdict.NOT_COMPARABLE
    assert verdicts(long=WRONG)[long] is Verdict.NOT_COMPARABLE
    assert verdicts(short=FEW)[short] is Verdict.NOT_COMPARABLE
    assert verdicts(sketch=FEW)[long] is Verdict.DOES_NOT_HOLD
    # The first map need not be among those that agree.
    assert verdicts(long=WRONG[::-1])[long] is Verdict.NOT_COMPARABLE


def test_quotients_control_quality_if_no_component_with_a_stable_one_is_wrong():
    assert text.stable_and_wrong(made_up()) == (10, 0)
    assert text.stable_and_wrong(made_up(deflation=FEW)) == (10, 7)
    assert text.stable_and_wrong(made_up(change=0.5, deflation=FEW)) == (0, 0)
    for changes in ({"deflation": FEW}, {"change": 0.5}):
        assert verdicts(**changes)[4] is Verdict.NOT_COMPARABLE


def test_the_summary_depends_on_whether_deflation_finds_all_components():
    assert "Deflation finds all of them" in text.summary(made_up())
    results = made_up()
    results["methods"]["deflation"]["streak"]["certified"] = 4
    assert "Deflation finds the first 4 of 10 only" in text.summary(results)


def test_the_summary_names_the_fastest_method_among_those_that_found_all_components():
    assert "is: EigenGame, short, 0.10 s." in text.summary(made_up())
    assert "is: EigenGame, long, 0.50 s." in text.summary(made_up(short=WRONG))
    assert "is: FD, 3.0 s." in text.summary(made_up(short=WRONG, long=WRONG))


@pytest.mark.slow
def test_a_quick_run_finds_the_components_by_deflation_and_by_frequent_directions(results):
    seen = results("small-resnet")
    k = seen["size"]["k"]
    assert seen["certificate"] == {"kind": "certified", "streak": k}
    # Components 3 and 4 have nearly equal eigenvalues, which takes deflation more passes than a quick run has.
    for name, count in (("deflation", 2), ("FD", k)):
        assert seen["methods"][name]["streak"]["certified"] >= count
        assert min(seen["methods"][name]["maps"]["certified"][:count]) > 0.9
    maps = seen["arrays"]["maps"]
    assert maps.shape == (len(seen["methods"]), len(seen["section"]), 16, 16)
    assert maps.dtype == np.uint8
