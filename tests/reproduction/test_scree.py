import numpy as np
import pytest

from reproduction.experiments import scree, scree_text

FAR = 1.2


@pytest.fixture(scope="module")
def seen(results):
    return results("scree")


def player(ratio, nearest, angle=None, residual=0.5):
    """Return one trial of players."""
    return {
        "step": 1e-3,
        "ratio": [ratio],
        "nearest": [nearest],
        "residual": [[residual] * len(ratio)],
        "angle": [nearest if angle is None else angle],
        "streak": 1.0,
    }


def results_of(centred, uncentred=None, longer=None):
    good = player([0, 0.01], [0.1, 0.1])
    return {
        "size": {"passes": 10, "longer": 30, "k": 2},
        "readings": {
            name: {"players": {"EigenGame": one, "remembered": good}}
            for name, one in (("centred", centred), ("uncentred", uncentred or centred))
        },
        "longer": longer or centred,
    }


def implied(*runs):
    """Return the verdicts on the implication, by the mean and by single players."""
    claims = scree.claims(results_of(*runs))
    assert claims[-1].claim == claims[-2].claim == scree_text.IMPLICATION
    return [claim.verdict.value for claim in claims[-2:]]


@pytest.mark.slow
def test_rewards_of_the_remembered_game_are_eigenvalues_without_penalty(seen):
    for found in seen["readings"].values():
        player = found["players"]["remembered"]
        # Two passes in float32 over 2048 images: errors of quotients are squares of the angles.
        np.testing.assert_allclose(player["rayleigh"], found["eigenvalues"], rtol=0.01)
        np.testing.assert_allclose(player["utility"], player["rayleigh"], rtol=1e-3)
        assert player["streak"] == seen["size"]["k"]


@pytest.mark.slow
def test_utilities_are_quotients_minus_penalties(seen):
    for reading in seen["readings"].values():
        for found in reading["players"].values():
            assert not any(trial[0] for trial in found["ratio"]), "the first has no parents"
            assert all(u <= q for u, q in zip(found["utility"], found["rayleigh"], strict=True))
            nearest, angle = np.array(found["nearest"]), np.array(found["angle"])
            assert (nearest <= angle).all()


def test_the_implication_holds_fails_or_has_no_trial_to_judge():
    good, bad = player([0, 0.02], [0.1, 0.1]), player([0, 0.02], [0.1, FAR])
    assert implied(good) == ["holds", "holds"]
    assert implied(good, bad) == ["does not hold", "does not hold"]
    assert implied(good, good, bad) == ["does not hold", "does not hold"]
    # The mean is not small, a single player's ratio is.
    assert implied(player([0.001, 0.9], [FAR, 0.1])) == ["not comparable", "does not hold"]
    # No ratio is small.
    assert implied(player([0.1, 0.9], [FAR, 0.1])) == ["not comparable", "not comparable"]


def test_eigenvectors_in_another_order_are_eigenvectors():
    moved = player([0, 0.01], [0.1, 0.1], angle=[1.5, 1.5])
    assert implied(moved) == ["holds", "holds"]
    assert "0 are no eigenvectors and 2 are more than pi/8 from their own" in (
        scree.claims(results_of(moved))[-1].measured
    )


def test_a_mixture_of_eigenvectors_with_nearly_equal_eigenvalues_counts_as_one():
    assert implied(player([0, 0.01], [0.1, FAR], residual=0.05)) == ["holds", "holds"]
    assert implied(player([0, 0.01], [0.1, FAR], residual=0.15)) == ["does not hold"] * 2


def test_the_reading_names_the_runs_that_fail():
    good, bad = player([0, 0.02], [0.1, 0.1]), player([0, 0.02], [0.1, FAR])
    claim = scree.claims(results_of(good, bad, good))[-1]
    assert claim.reading.endswith("fails for MNIST uncentred (10 passes)")


def test_claims_about_the_network_are_not_comparable_and_show_whether_the_criterion_is_met():
    good, bad = player([0, 0.01], [0.1, 0.1]), player([0, 0.4], [0.1, 0.1])
    claims = scree.claims(results_of(good, bad))[:-2]
    assert {claim.verdict.value for claim in claims} == {"not comparable"}
    met = ["these data meet the criterion" in claim.measured for claim in claims]
    assert met == [True, False, True, True, False, True]


def test_claims_on_one_trial_are_judged_player_by_player():
    def held(ratio, angle):
        found = {"ratio": ratio, "angle": angle, "streak": 1.0}
        return [one.holds for one in scree.ratio_claims(found, float(np.mean(ratio)))]

    assert held([0, 0.01, 0.02], [0.1, 0.2, 0.1]) == [True, True, True]
    assert held([0, 0.01, 0.2], [0.1, 1.2, 0.1]) == [False, False, False]
    assert held([0, 0.01, 0.2], [0.1, 0.2, 1.5])[2] is True


def test_the_summary_depends_on_players_with_a_small_ratio_and_a_large_angle(stored):
    results = stored("scree")
    runs = [found["players"]["EigenGame"] for found in results["readings"].values()]
    runs.append(results["longer"])
    for run in runs:
        run["residual"] = np.ones_like(run["residual"]).tolist()
        run["nearest"] = np.zeros_like(run["nearest"]).tolist()
    assert "a small ratio comes with eigenvectors in every run" in scree.summary(results)
    runs[1]["nearest"] = np.full_like(run["nearest"], 1.5).tolist()
    said = scree.summary(results)
    assert "does not imply eigenvectors: the implication fails uncentred (10 passes)" in said
    assert "happens to be true centred (10 passes) and uncentred (30 passes)" in said
