import numpy as np
import pytest

from reproduction.base import Verdict
from reproduction.experiments import riemann


@pytest.mark.slow
def test_distances_follow_from_the_arctangent(results):
    """A retraction rotates by the arctangent of the length s, the exponential map by s."""
    seen = results("riemann")
    lengths = np.asarray(seen["lengths"])
    turn = np.arctan(lengths)
    expected = {
        "retraction and great circle": 2 * np.abs(np.sin((lengths - turn) / 2)),
        "retraction and step": np.sqrt(1 + lengths**2) - 1,
        "great circle and step": np.hypot(np.sin(lengths) - lengths, np.cos(lengths) - 1),
    }
    for name, values in expected.items():
        # Results are stored with four digits, the lengths too: their cube has three times the error.
        np.testing.assert_allclose(seen["apart"][name], values, rtol=2e-3)


@pytest.mark.slow
def test_the_search_agrees_with_the_retraction_only(results):
    nearest = results("riemann")["nearest"]
    assert nearest["retraction"] < 1e-4
    # The largest step is at most a quarter turn, which the retraction shortens to the arctangent.
    assert 1 < nearest["great circle"] <= np.degrees(np.pi / 2 - np.arctan(np.pi / 2))


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_point_of_the_sphere_is_found_by_search(seed):
    target = 3 * np.random.default_rng(seed).normal(size=3)
    found = riemann.nearest_point(target)
    np.testing.assert_allclose(found, target / np.linalg.norm(target), atol=1e-6)


def test_great_circles_stay_on_the_sphere_and_have_the_length_of_the_step():
    player, step = np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.4, 0.0])
    end = riemann.great_circle(player, step)
    np.testing.assert_allclose(end @ end, 1)
    np.testing.assert_allclose(np.arccos(end @ player), 0.5)


def test_every_verdict_depends_on_its_numbers(stored):
    assert all(claim.verdict is Verdict.HOLDS for claim in riemann.claims(stored("riemann")))
    changes = (
        (0, lambda seen: seen["gradient"].update(slope=1e-3)),
        (1, lambda seen: seen.update(off=1e-3)),
        (1, lambda seen: seen["apart"].update({"retraction and step": seen["lengths"]})),
        (2, lambda seen: seen["nearest"].update({"retraction": 0.5})),
        (2, lambda seen: seen["nearest"].update({"great circle": 0.5})),
        (3, lambda seen: seen["apart"].update({"retraction and great circle": seen["lengths"]})),
    )
    for place, change in changes:
        results = stored("riemann")
        change(results)
        assert riemann.claims(results)[place].verdict is Verdict.DOES_NOT_HOLD


def test_the_summary_depends_on_the_order_of_agreement(stored):
    results = stored("riemann")
    assert "the retraction agrees with the exponential map" in riemann.summary(results)
    results["apart"]["retraction and great circle"] = results["lengths"]
    assert "the retraction does not agree with" in riemann.summary(results)
