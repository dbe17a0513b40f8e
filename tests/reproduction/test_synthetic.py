"""Claims and summaries of `synthetic`, `strict` and `bubble`."""

import pytest

from reproduction.experiments import bubble, strict, synthetic


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


def test_claims_of_synthetic_depend_on_streaks_and_runtimes(stored):
    results = stored("synthetic")
    assert [claim.holds for claim in synthetic.claims(results)] == [True, True, False, False]
    for panel in results["panels"].values():
        for name, run in panel["runs"].items():
            mean = run["curves"]["best"]["streak"]["mean"]
            mean[:] = [50.0 if name == "EigenGame" else 10.0] * len(mean)
            run["runtime"] = 2.0 if name == "EigenGame" else 1.0
    assert [claim.holds for claim in synthetic.claims(results)] == [False, False, True, True]


def test_claims_of_strict_depend_on_the_streak_at_the_smaller_angle(stored):
    results = stored("strict")
    assert [claim.holds for claim in strict.claims(results)] == [True, True, False]
    for panel in results["panels"].values():
        for run in panel["runs"].values():
            curves = run["curves"]["best"]
            curves["streak"]["mean"] = [0.0] * len(curves["streak"]["mean"])
    claims = strict.claims(results)
    assert [claim.holds for claim in claims] == [False, False, False]
    assert "Oja not reached" in claims[1].measured
    for panel in results["panels"].values():
        for run in panel["runs"].values():
            curves = run["curves"]["best"]
            curves["streak"] = curves["loose"]
    assert [claim.holds for claim in strict.claims(results)] == [True, False, True]


def test_the_summary_of_bubble_depends_on_whether_the_streak_passes(stored):
    results = stored("bubble")
    assert "after 200 iterations on the linear spectrum" in bubble.summary(results)
    curve = results["panels"]["linear"]["runs"]["EigenGame"]["curves"]["best"]["streak"]
    curve["mean"] = [9.0] * len(curve["mean"])
    assert "never on the linear spectrum" in bubble.summary(results)
    assert not bubble.claims(results)[0].holds
