import math

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics
from eigengame.game import random_players
from reproduction.base import Verdict
from reproduction.experiments import ablation, ablation_games
from reproduction.experiments.ablation_text import best
from tests.reproduction.conftest import assert_curves_are_inside

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_COMPARABLE
K = 6


@pytest.fixture(scope="module")
def seen(results):
    return results("ablation")


def players_near(axes, angle):
    """Players at an angle from the axes given, each turned towards an axis of its own."""
    turned = np.zeros((len(axes), 2 * K))
    turned[np.arange(len(axes)), axes] = math.cos(angle)
    turned[np.arange(len(axes)), K + np.arange(len(axes))] = math.sin(angle)
    return jnp.asarray(turned, jnp.float32)


@pytest.mark.parametrize(
    ("axes", "streak", "found", "crowd"),
    [
        ([0, 1, 2, 3, 4, 5], 6, 6, 1),
        ([5, 4, 3, 2, 1, 0], 0, 6, 1),
        ([0, 0, 2, 2, 0, 1], 1, 3, 3),
        ([0, 0, 0, 0, 0, 0], 1, 1, 6),
    ],
)
def test_counts_of_the_streak_of_found_components_and_of_players_at_the_first(
    axes, streak, found, crowd
):
    truth = jnp.eye(K, 2 * K, dtype=jnp.float32)
    near = ablation_games.closeness(players_near(axes, 0.3), truth)
    assert ablation_games.streak(near) == streak
    assert ablation_games.found(near) == found
    assert near.crowd == crowd
    far = ablation_games.closeness(players_near(axes, 0.5), truth)
    assert ablation_games.streak(far) == ablation_games.found(far) == far.crowd == 0


def test_no_matching_finds_more_components_than_found_counts():
    truth = np.eye(K)
    for seed in range(20):
        players = random_players(seed, K, K)
        matched = np.asarray(players)[metrics.match(players, truth)]
        by_matching = np.sum(metrics.angular_error(matched, truth) <= math.pi / 8)
        counted = ablation_games.found(
            ablation_games.closeness(players, jnp.asarray(truth, jnp.float32))
        )
        assert by_matching <= counted


@pytest.mark.slow
def test_more_than_one_component_needs_the_order(seen):
    for game, several in (("the game", True), ("without order", False)):
        steps = seen["panels"]["exponential"]["EigenGame"][game]["steps"]
        assert any(max(kept["streak"]["high"]) > 1 for kept in steps.values()) == several


@pytest.mark.slow
def test_counts_are_within_their_range_over_trials(seen):
    for panel in seen["panels"].values():
        for kept in panel["EigenGame"].values():
            for one in kept["steps"].values():
                for kind in ("streak", "found"):
                    assert len(one[kind]["mean"]) == len(kept["iterations"])
                    low, mean, high = (
                        np.array(one[kind][part]) for part in ("low", "mean", "high")
                    )
                    assert (low <= mean + 1e-3).all()
                    assert (mean <= high + 1e-3).all()


def course(*mean, spread=0):
    """Return counts over four iterations."""
    high = [math.ceil(one) + spread for one in mean]
    return {"mean": list(mean), "low": [0] * len(mean), "high": high}


def made_up(**games):
    """Return results in which each game has given counts at step sizes 1e-3 and 1e-6; others have 1.

    Counts are the same for both kinds and both spectra. A dictionary gives them by variant.
    """
    panels = {}
    for spectrum in ("linear", "exponential"):
        panels[spectrum] = {variant: {} for variant in ablation_games.VARIANTS}
        for variant, kept in panels[spectrum].items():
            for game in ablation_games.GAMES:
                given = games.get(game.replace(" ", "_"), [course(1, 1, 1, 1)])
                if isinstance(given, dict):
                    given = given[variant]
                kept[game] = {
                    "iterations": [1, 10, 100, 200],
                    "steps": {
                        step: {"streak": one, "found": one, "crowd": 1.0}
                        for step, one in zip(("0.001", "1e-06"), given, strict=False)
                    },
                }
    return {
        "components": 50,
        "size": {"updates": 200, "longer": 200, "trials": 2},
        "panels": panels,
    }


def verdicts(results, said):
    """Return the distinct verdicts on the claims whose sentence contains a text."""
    found = {claim.verdict for claim in ablation.claims(results) if said in claim.claim}
    assert found
    return found


ONE, TWO, RISING = course(0, 1, 1, 1), course(0, 1, 2, 2), course(0, 0, 0.2, 1)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ([ONE], HOLDS),
        ([ONE, course(0, 3, 1, 1)], HOLDS),
        ([ONE, RISING], OPEN),
        ([TWO], FAILS),
        ([ONE, TWO], FAILS),
        ({"EigenGame": [ONE], "EigenGame^R": [TWO]}, OPEN),
        ([course(1, 1, 1, 1, spread=1)], HOLDS),
        ([course(1, 1, 1.2, 1.2)], OPEN),
    ],
)
def test_the_footnotes_1_is_the_most_at_any_step_size(given, verdict):
    assert verdicts(made_up(without_order=given), "at most 1") == {verdict}


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ([course(1, 3, 5, 5)], HOLDS),
        ([course(0, 0, 0, 0), course(1, 3, 4.8, 5.2)], HOLDS),
        ([course(1, 3, 4, 5)], OPEN),
        ([course(1, 5, 9, 9)], OPEN),
        ([course(1, 3, 3, 3), course(0, 0, 0, 1)], OPEN),
        ([course(1, 3, 3, 3, spread=2)], OPEN),
        ({"EigenGame": [course(1, 1, 1, 1)], "EigenGame^R": [course(1, 3, 5, 5)]}, OPEN),
        ([course(1, 3, 3, 3)], FAILS),
    ],
)
def test_the_footnotes_5_is_judged_only_if_it_does_not_depend_on_unstated_choices(given, verdict):
    assert verdicts(made_up(without_both=given), "learns 5") == {verdict}


@pytest.mark.parametrize("game", ["without order", "without both"])
def test_a_count_that_rises_leaves_the_other_one_open(game):
    results = made_up()
    closed = {"without order": HOLDS, "without both": FAILS}[game]
    said = {"without order": "at most 1", "without both": "learns 5"}[game]
    assert verdicts(results, said) == {closed}
    for panel in results["panels"].values():
        for games in panel.values():
            games[game]["steps"]["0.001"]["found"] = course(0, 0, 0.2, 1)
    assert verdicts(results, said) == {OPEN}


def test_convergence_is_compared_by_the_mean_over_the_run():
    full = [course(5, 20, 50, 50)]
    better = made_up(the_game=full)
    assert verdicts(better, "order improves") == {HOLDS}
    assert verdicts(better, "normaliser improves") == {HOLDS}
    slower = made_up(the_game=full, without_normaliser=[course(5, 10, 40, 50)])
    assert verdicts(slower, "normaliser improves") == {HOLDS}
    assert verdicts(made_up(the_game=full, without_normaliser=full), "normaliser improves") == {
        FAILS
    }


def test_the_best_step_size_has_the_largest_mean_over_iterations():
    results = made_up(without_both=[course(3, 3, 3, 3), course(0, 0, 4, 4)])
    assert best(results, "without both", "found")["linear, EigenGame"].step == "1e-06"


def test_the_summary_compares_counts_with_the_footnote():
    said = ablation.summary(made_up(without_both=[course(1, 2, 6, 6)]))
    assert "without order the longest streak of any trial is 1, equal to" in said.lower()
    assert "at most 1 component is found" in said
    assert "normaliser the longest streak is 6, above the footnote's 5" in said
    assert "linear, EigenGame (step size 0.001): 2.7, 6.0, 6.0, flat" in said
    said = ablation.summary(made_up(without_order=[TWO], without_both=[course(0, 0, 1, 3)]))
    assert "is 2, above the footnote's 1, and at most 2 components are found" in said
    assert "is 3, below the footnote's 5" in said
    assert "still rising" in said


def test_the_summary_depends_on_players_that_share_the_first_component():
    results = made_up()
    assert "no two players share the first component" in ablation.summary(results)
    results["panels"]["linear"]["EigenGame"]["without order"]["steps"]["0.001"]["crowd"] = 50.0
    assert "50 of 50 players (linear spectrum, step size 0.001)" in ablation.summary(results)


def test_the_figure_has_a_panel_per_variant_and_spectrum_with_labels_in_the_margin():
    pytest.importorskip("matplotlib")
    figure = ablation.draw(made_up(the_game=[course(0, 20, 50, 50)]))
    assert len(figure.axes) == 4
    assert [len(axes.texts) for axes in figure.axes] == [0, 2, 0, 2]
    assert_curves_are_inside(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(ablation_games.GAMES)
