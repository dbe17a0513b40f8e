import numpy as np
import pytest

from reproduction.experiments import scree


@pytest.fixture(scope="module")
def seen(results):
    return results("scree")


def results_of(ratio, angle):
    found = {"ratio": ratio, "ratios": [float(np.mean(ratio))], "angle": angle, "streak": 1.0}
    return {"players": {"EigenGame": found}}


def held(ratio, angle):
    return [claim.holds for claim in scree.claims(results_of(ratio, angle))]


@pytest.mark.slow
def test_rewards_of_the_remembered_game_are_eigenvalues_without_penalty(seen):
    found = seen["players"]["remembered"]
    # Two passes in float32 over 2048 images: errors of quotients are squares of the angles.
    np.testing.assert_allclose(found["rayleigh"], seen["eigenvalues"], rtol=0.01)
    np.testing.assert_allclose(found["utility"], found["rayleigh"], rtol=1e-3)
    assert found["streak"] == seen["size"]["k"]


@pytest.mark.slow
def test_utilities_are_quotients_minus_penalties(seen):
    for found in seen["players"].values():
        assert found["ratio"][0] == 0, "the first player has no parents"
        assert all(u <= q for u, q in zip(found["utility"], found["rayleigh"], strict=True))


def test_claims_are_judged_player_by_player():
    assert held([0, 0.01, 0.02], [0.1, 0.2, 0.1]) == [True, True, True]
    assert held([0, 0.01, 0.2], [0.1, 1.2, 0.1]) == [False, False, False]


def test_players_with_a_large_ratio_do_not_count_against_small_ones():
    assert held([0, 0.01, 0.2], [0.1, 0.2, 1.5])[2] is True


def test_the_summary_depends_on_players_with_a_small_ratio_and_a_large_angle(stored):
    results = stored("scree")
    assert "a small ratio does not imply eigenvectors" in scree.summary(results)
    player = results["players"]["EigenGame"]
    player["angle"] = [0.0] * len(player["angle"])
    assert "a small ratio comes with eigenvectors" in scree.summary(results)
