import numpy as np
import pytest
from reproduction.experiments import scree

from tests.reproduction.test_all import here


@pytest.fixture(scope="module")
def seen(results):
    return results(here("scree"))


def results_of(ratio, angle):
    found = {"ratio": ratio, "ratios": [float(np.mean(ratio))], "angle": angle, "streak": 1.0}
    return {"players": {"EigenGame": found}}


def held(ratio, angle):
    return [claim.holds for claim in scree.claims(results_of(ratio, angle))]


def test_the_remembered_game_earns_the_eigenvalues_and_pays_no_penalty(seen):
    found = seen["players"]["remembered"]
    # Two passes in float32 over 2048 images: errors of quotients are squares of the angles.
    np.testing.assert_allclose(found["rayleigh"], seen["eigenvalues"], rtol=0.01)
    np.testing.assert_allclose(found["utility"], found["rayleigh"], rtol=1e-3)
    assert found["streak"] == seen["size"]["k"]


def test_utilities_are_quotients_less_their_ratio(seen):
    for found in seen["players"].values():
        assert found["ratio"][0] == 0, "the first player has no parents"
        assert all(u <= q for u, q in zip(found["utility"], found["rayleigh"], strict=True))


def test_claims_are_read_player_by_player():
    assert held([0, 0.01, 0.02], [0.1, 0.2, 0.1]) == [True, True, True]
    assert held([0, 0.01, 0.2], [0.1, 1.2, 0.1]) == [False, False, False]


def test_a_player_with_a_large_ratio_says_nothing_of_small_ones():
    assert held([0, 0.01, 0.2], [0.1, 0.2, 1.5])[2] is True
