import math

import numpy as np
import pytest

from reproduction.experiments import errors, errors_text
from reproduction.experiments.errors_child import optimum_angles, played_angles
from reproduction.trials import starts
from tests import oracle


@pytest.fixture(scope="module")
def seen(results):
    return results("errors")


def threshold(results):
    """The claim on the threshold, in the second game."""
    return errors.claims(results)[4]


def turned(degrees):
    """The parents of the game that steps, and its M."""
    theta = math.radians(degrees)
    away = np.array([0, math.sqrt(0.99), 0.1, 0])
    parents = np.stack([math.cos(theta) * np.eye(4)[0] + math.sin(theta) * away, np.eye(4)[1]])
    return parents, np.diag([10.0, 9, 1, 0])


@pytest.mark.parametrize("free", [(1, 0, 1, 0), (1, 1, 1, 1)])
@pytest.mark.parametrize("degrees", [4.0, 18.0, 30.0])
def test_the_exact_optimum_beats_random_children(degrees, free):
    parents, m = turned(degrees)
    angle = optimum_angles(np.diag(m), parents[None], free)[0]
    drawn = np.random.default_rng(0).normal(size=(5000, 4)) * free
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    utilities = [oracle.utility(v, parents, m) for v in drawn]
    best = math.acos(abs(drawn[np.argmax(utilities)][2]))
    # Five thousand on a sphere of three dimensions leave a few degrees between them.
    assert math.degrees(abs(best - angle)) < (0.2 if sum(free) == 2 else 8)


def test_gradient_ascent_reaches_the_exact_optimum():
    parents, m = turned(30.0)
    found = played_angles(np.diag(m), parents[None], (1, 1, 1, 1), starts(0, 3, 1, 4)[:, 0], 2000)
    exact = optimum_angles(np.diag(m), parents[None], (1, 1, 1, 1))
    np.testing.assert_allclose(found, np.broadcast_to(exact, (3, 1)), atol=1e-3)


@pytest.mark.slow
def test_the_examples_own_game_has_no_step_on_the_circle_or_the_sphere(seen):
    for place in ("circle", "sphere"):
        np.testing.assert_allclose(
            seen["games"]["example"][place]["exact"], seen["errors"], atol=1e-2
        )
    assert not errors.claims(seen)[0].holds


@pytest.mark.slow
def test_a_free_child_is_lost_near_the_arcsine_of_the_ratio_of_eigenvalues(seen):
    threshold = math.degrees(math.asin(1 / 9))
    child = np.array(seen["games"]["another parent"]["sphere"]["exact"])
    parents = np.array(seen["errors"])
    assert child[parents < threshold - 1].max() < 10
    assert child[parents > threshold + 1].min() > 80


@pytest.mark.slow
def test_the_lemma_is_the_game_on_the_circle(seen):
    assert errors.claims(seen)[-1].holds


@pytest.mark.parametrize(
    ("child", "expected"), [([0, 40, 50], 1.5), ([50, 60, 70], 0.0), ([0, 1, 2], None)]
)
def test_crossings_are_interpolated(child, expected):
    assert errors_text.crossing([0.0, 1.0, 2.0], child) == expected


def test_the_summary_depends_on_whether_the_example_has_a_step(stored):
    results = stored("errors")
    said = errors.summary(results)
    assert "The game has no step: the child's error equals that of its parents" in said
    example = results["games"]["example"]["sphere"]
    example["exact"] = [90.0 if error > 18 else 0.0 for error in results["errors"]]
    said = errors.summary(results)
    assert "The game has no step" not in said
    assert "differs from that of its parents by up to" in said
    assert (
        "differs from the parents' by at most 0 degrees" not in errors.claims(results)[0].measured
    )


def test_the_summary_compares_the_thresholds_of_circle_and_sphere(stored):
    results = stored("errors")
    said = errors.summary(results)
    assert "on the sphere is stricter than that of the lemma" in said
    assert "nearer to arcsin(1/9) = 6.4 than to the paper's 18 degrees" in said
    second = results["games"]["another parent"]
    second["sphere"]["played"] = [90.0 if error > 21 else 0.0 for error in results["errors"]]
    said = errors.summary(results)
    assert "on the sphere is not stricter than that of the lemma" in said
    assert "nearer to the paper's 18 than to arcsin(1/9) = 6.4 degrees" in said
    assert "nearer to the paper's 18" in threshold(results).measured
    second["sphere"]["played"] = [0.0] * len(results["errors"])
    assert "The thresholds cannot be compared" in errors.summary(results)
    assert not threshold(results).holds


def test_step_and_threshold_are_judged_in_both_games(stored):
    results = stored("errors")
    judged = {claim.claim: [] for claim in errors.claims(results)}
    for claim in errors.claims(results):
        judged[claim.claim].append(claim.verdict.value)
    both = [found for found in judged.values() if len(found) == 2]
    assert both == [["does not hold", "holds"]] * 2
    steep = [90.0 if error > 18 else 0.0 for error in results["errors"]]
    for game in results["games"].values():
        game["circle"]["played"] = game["sphere"]["played"] = steep
    assert all(claim.holds for claim in errors.claims(results)[1:])
    slow = [2 * error for error in results["errors"]]
    for game in results["games"].values():
        game["circle"]["played"] = game["sphere"]["played"] = slow
    claims = errors.claims(results)[1:5]
    assert not any(claim.holds for claim in claims)
    assert "22.5 degrees; it passes 45 at 22.5 degrees" in claims[0].measured
