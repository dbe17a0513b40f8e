"""Varimax finds simple structure, and keeps what a rotation must keep."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eigengame.rotation import varimax

SEEDS = st.integers(0, 10**6)


def criterion(loadings):
    """Return the varimax criterion of loadings (k, d), in loops."""
    return sum(np.var(row**2) for row in loadings)


def turned_simple_structure(seed):
    """Return loadings (3, 12) with one component per feature, and a rotation of them."""
    rng = np.random.default_rng(seed)
    simple = np.zeros((3, 12))
    for i, size in enumerate((3.0, 2.0, 1.0)):
        simple[i, 4 * i : 4 * i + 4] = size * rng.uniform(0.8, 1.2, 4)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    return simple, turn @ simple


def largest_gain(loadings):
    """Return the largest increase of the criterion by a rotation of two components, in loops.

    For z = (x + iy)^2, centred, and a rotation by phi, the criterion of the pair is a constant plus
    Re(exp(-4i phi) mean(z^2)) / 4. The real and the imaginary part of z are Kaiser's u and v.
    """
    gains = [0.0]
    for p in range(len(loadings)):
        for q in range(p):
            z = (loadings[p] + 1j * loadings[q]) ** 2
            c = np.mean((z - z.mean()) ** 2)
            gains.append((abs(c) - c.real) / 4)
    return max(gains)


@given(SEEDS)
@example(468)
@example(2287)
@example(2826)
def test_simple_structure_is_recovered_from_any_rotation(seed):
    # For the examples a step of the iteration without normalisation decreases the criterion.
    simple, loadings = turned_simple_structure(seed)
    for normalise in (False, True):
        found = varimax(loadings, normalise=normalise)
        assert found.converged
        np.testing.assert_allclose(found.loadings, simple, atol=1e-5)


def test_the_criterion_of_simple_structure_is_reached():
    for seed in range(2200, 2500):
        simple, loadings = turned_simple_structure(seed)
        found = varimax(loadings, normalise=False)
        assert found.converged
        assert criterion(found.loadings) >= criterion(simple) * (1 - 1e-9), seed


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("shape", [(2, 5), (5, 20), (12, 30), (6, 4)])
def test_no_rotation_of_two_of_many_components_increases_the_criterion(shape, normalise):
    for seed in range(10):
        loadings = np.random.default_rng(seed).standard_normal(shape)
        if normalise:
            loadings /= np.linalg.norm(loadings, axis=0)
        found = varimax(loadings, normalise=normalise)
        assert found.converged
        assert largest_gain(found.loadings) <= 2e-12 * criterion(found.loadings), seed


def test_the_largest_gain_is_that_of_all_angles():
    loadings = np.random.default_rng(1).standard_normal((2, 9))
    angles = np.linspace(0, np.pi / 2, 2001)
    turns = [np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in angles]
    best = max(criterion(turn @ loadings) for turn in turns)
    assert criterion(loadings) + largest_gain(loadings) == pytest.approx(best, rel=1e-5)


def test_two_components_take_few_steps():
    # The best angle of one pair is known. Gradient steps alone take up to 45 here.
    for seed in range(50):
        loadings = np.random.default_rng(seed).standard_normal((2, 5))
        assert varimax(loadings, normalise=False).iterations <= 20


def test_a_stationary_point_that_is_no_maximum_is_left():
    # The given loadings are one: steps by the gradient alone stay there.
    mixed = np.kron(np.eye(2), [[1.0, 1.0], [1.0, -1.0]])
    found = varimax(mixed, normalise=False)
    assert found.converged
    np.testing.assert_allclose(found.loadings.max(axis=1), np.sqrt(2), rtol=1e-6)


@pytest.mark.parametrize("features", [1, 1000])
def test_a_criterion_that_no_rotation_changes_ends_the_iteration(features):
    # All features are equal, so that no component has any variance of its squared loadings.
    loadings = np.random.default_rng(0).standard_normal((4, 1)) * np.ones(features)
    found = varimax(loadings)
    assert found.converged
    assert found.iterations < 10


@given(SEEDS, st.booleans())
def test_a_rotation_keeps_products_and_the_total_variance(seed, normalise):
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((4, 20)) * np.array([4.0, 3, 2, 1])[:, None]
    found = varimax(loadings, normalise=normalise)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(found.matrix.T @ loadings, found.loadings, atol=1e-12)
    np.testing.assert_allclose(found.loadings.T @ found.loadings, loadings.T @ loadings, atol=1e-10)
    np.testing.assert_allclose(found.variance, (found.loadings**2).sum(axis=1))
    assert (np.diff(found.variance) <= 0).all()
    largest = found.loadings[np.arange(4), np.abs(found.loadings).argmax(axis=1)]
    assert (largest > 0).all()


@given(SEEDS)
def test_no_rotation_of_two_components_has_a_larger_criterion(seed):
    # Two components have one angle, so that all rotations can be tried.
    loadings = np.random.default_rng(seed).standard_normal((2, 15))
    best = criterion(varimax(loadings, normalise=False).loadings)
    for angle in np.linspace(0, np.pi / 2, 400):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        assert criterion(turn @ loadings) <= best * (1 + 1e-9)


def test_known_loadings_of_five_variables_are_rotated_as_by_kaisers_formula():
    # For two components Kaiser's angle is known in closed form: tan(4 phi) = num / den, with
    # u = x^2 - y^2 and v = 2xy of the normalised loadings x, y.
    loadings = np.array(
        [[0.758, 0.797, 0.851, 0.404, 0.345], [0.412, 0.388, -0.304, -0.652, 0.701]]
    )
    x, y = loadings / np.linalg.norm(loadings, axis=0)
    u, v, p = x**2 - y**2, 2 * x * y, 5
    num = 2 * (p * (u * v).sum() - u.sum() * v.sum())
    den = p * (u**2 - v**2).sum() - (u.sum() ** 2 - v.sum() ** 2)
    phi = np.arctan2(num, den) / 4
    expected = np.array([[np.cos(phi), np.sin(phi)], [-np.sin(phi), np.cos(phi)]]) @ loadings
    found = varimax(loadings).loadings
    order = np.argsort(-(expected**2).sum(axis=1))
    expected = expected[order] * np.sign((expected[order] * found).sum(axis=1))[:, None]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_scale_and_features_without_loadings_do_not_matter():
    loadings = np.random.default_rng(0).standard_normal((3, 10))
    loadings[:, 4] = 0
    for size in (1e-150, 1e150):
        np.testing.assert_allclose(
            varimax(loadings * size, normalise=False).matrix, varimax(loadings, normalise=False).matrix, atol=1e-6
        )  # fmt: skip
    assert (varimax(loadings).loadings[:, 4] == 0).all()
    one = varimax(loadings[:1])
    assert (one.converged, one.iterations) == (True, 0)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 3)), np.ones((2, 3)) * 1j, "abc"])
def test_bad_loadings_are_refused(bad):
    with pytest.raises(ValueError, match="loadings"):
        varimax(bad)
    with pytest.raises(ValueError, match="loadings"):
        varimax(np.full((2, 3), np.nan))


def test_an_iteration_that_stops_early_says_so():
    loadings = np.random.default_rng(0).standard_normal((6, 40))
    assert not varimax(loadings, max_iterations=1).converged
