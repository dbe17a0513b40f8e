import copy

import pytest
from reproduction.experiments import mnist

from tests.reproduction.test_all import here


@pytest.fixture(scope="module")
def seen(results):
    return results(here("mnist"))


def panel_of(streaks, error=0.1, iterations=(10, 20)):
    """A panel whose curves are the streaks given by name, the last of them with this error."""
    curves = {
        name: {"streak": {"mean": list(mean), "error": [error] * len(mean)}}
        for name, mean in streaks.items()
    }
    return {
        "runs": {
            name: {"iterations": list(iterations), "curves": {"best": curve}}
            for name, curve in curves.items()
        }
    }


def results_of(panels):
    return {"components": 16, "panels": panels}


def held(results):
    return [claim.holds for claim in mnist.claims(results)]


WHOLE = {"EigenGame": (8, 12), "GHA": (4, 6), "Oja": (9, 12.5), "remembered": (16, 16)}


def test_the_remembered_game_finds_every_component_and_the_paper_s_games_run_beside_it(seen):
    runs = seen["panels"]["256"]["runs"]
    assert runs["remembered"]["curves"]["best"]["streak"]["mean"][-1] == seen["components"]
    # Two passes over 2048 images: the subspace is found to a percent.
    assert runs["remembered"]["curves"]["best"]["distance"]["mean"][-1] < 0.01
    assert runs["EigenGame"]["step"] in mnist.GRID
    assert set(runs["EigenGame"]["curves"]) == {"best", "x10", "x0.1"}


def test_a_distance_is_between_0_and_1_even_where_a_run_diverges(seen):
    for run in seen["panels"]["256"]["runs"].values():
        for curves in run["curves"].values():
            assert all(0 <= value <= 1 for value in curves["distance"]["mean"])


def test_claims_are_read_from_the_curves():
    worse = WHOLE | {"EigenGame": (5, 9), "remembered": (16, 15.9)}
    found = {"1024": panel_of(WHOLE), "256": panel_of(worse, iterations=(20, 80))}
    assert held(results_of(found)) == [True, True, True, True]
    better = WHOLE | {"EigenGame": (9, 13), "remembered": (10, 12)}
    found = {"1024": panel_of(WHOLE | {"Oja": (14, 16)}), "256": panel_of(better)}
    assert held(results_of(found)) == [False, False, False, False]


def test_the_gap_is_to_methods_other_than_eigengame_itself():
    panel = panel_of(WHOLE | {"EigenGame^R": (9, 12)})
    assert mnist.leads_over(panel) == pytest.approx({"GHA": 5, "Oja": -0.75})


def test_a_fall_within_two_standard_errors_is_none():
    def falls(by):
        worse = panel_of({"EigenGame": (8, 12 - by)}, error=0.3)
        panels = {"1024": panel_of({"EigenGame": (8, 12)}, error=0.4), "256": worse}
        return mnist.degrades(panels, "EigenGame")

    assert not falls(0.9)
    assert falls(1.1)


def test_streaks_after_as_many_iterations_are_those_at_the_shortest_run(seen):
    found = {"1024": panel_of(WHOLE), "256": panel_of(WHOLE, iterations=(20, 80))}
    claim = mnist.claims(results_of(found))[2]
    assert "after as many iterations: 1024 12.0, 256 8.0" in claim.measured


def test_words_say_so_where_the_remembered_game_does_not_get_there(seen):
    short = copy.deepcopy(seen)
    short["panels"]["256"]["runs"]["remembered"]["curves"]["best"]["streak"]["mean"] = [1, 1, 1, 1]
    assert "after no number of" in mnist.words(short)
    assert "after no number of" not in mnist.words(seen)
