"""The bounds of the error analysis, over random draws in NumPy, many at once."""

import math

import numpy as np
import pytest

from eigengame.game import theory

D, DRAWS = 6, 4000
SPECTRA = [
    np.array([10.0, 7.0, 4.0, 2.0, 1.0, 0.5]),
    np.array([1.0, 0.99, 0.98, 0.5, 0.49, 0.0]),
    np.logspace(0, -5, D),
]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def draw_deviations(rng, own):
    """Unit vectors of several shapes, from dense to a single axis, orthogonal to one axis: (DRAWS, D)."""
    away = rng.normal(size=(DRAWS, D)) * 10 ** rng.uniform(-4, 0, (DRAWS, D))
    away[:, own] = 0
    return unit(away)


def draw_parents(rng, i, epsilon):
    """Parents of player i with errors of up to epsilon (DRAWS,); half of the draws have the largest error."""
    share = np.where(rng.random((DRAWS, i)) < 0.5, 1.0, rng.random((DRAWS, i)))
    theta = share * epsilon[:, None] * rng.choice([-1, 1], (DRAWS, i))
    away = np.stack([draw_deviations(rng, j) for j in range(i)], axis=1)
    return np.cos(theta)[..., None] * np.eye(D)[:i] + np.sin(theta)[..., None] * away


def quadratic_form(spectrum, parents):
    """The matrix of the child's utility, eq. obj: (DRAWS, D, D)."""
    seen = parents * spectrum
    rewards = np.sum(seen * parents, axis=-1)
    return np.diag(spectrum) - np.einsum("nja,njb,nj->nab", seen, seen, 1 / rewards)


def sinusoids(form, i, away):
    """A and B of Lemma misspec_loss_function, from the utility itself at three angles: (DRAWS,) each."""

    def utility(theta):
        v = math.cos(theta) * np.eye(D)[i] + math.sin(theta) * away
        return np.einsum("na,nab,nb->n", v, form, v)

    c = utility(0.0)
    a = utility(math.pi / 2) - c
    return a, a + 2 * c - 2 * utility(math.pi / 4)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("j", [0, 1, 3])
def test_the_ratio_of_generalised_inner_products_is_within_its_bound(spectrum, j):
    rng = np.random.default_rng(j)
    epsilon = rng.uniform(0, 1, DRAWS)
    parent = draw_parents(rng, j + 1, epsilon)[:, j]
    child = unit(rng.normal(size=(DRAWS, D)))
    reward = np.sum(parent * spectrum * parent, axis=1)
    kappa = spectrum[0] / spectrum[j]
    bound = theory.ratio_bound(kappa, epsilon)
    assert (np.abs(np.sum(child * spectrum * parent, axis=1)) / reward <= bound).all()
    # The largest over all children, and the smaller bound without the first 1 of the bracket.
    largest = np.linalg.norm(spectrum * parent, axis=1) / reward
    smaller = (1 + kappa * epsilon) / np.sqrt(1 - epsilon**2)
    assert (smaller <= bound).all()
    assert (largest <= smaller * (1 + 1e-12)).all()


def test_the_proof_of_ratio_bound_needs_one_minus_eps_squared_without_a_root():
    kappa, epsilon = 10.0, 0.5
    root = math.sqrt(1 - epsilon**2)
    # The last line but two of the proof, with Lambda_ii = Lambda_jj = 1, and what it equals.
    line = (root + epsilon + epsilon * kappa) / (1 - epsilon**2)
    assert line == pytest.approx(1 / root + (1 + kappa) * epsilon / (1 - epsilon**2))
    assert line > 1.1 * theory.ratio_bound(kappa, epsilon)
    # cos(theta_j) is bounded by sqrt(1 - eps^2) from below, not from above.
    theta = np.linspace(-epsilon, epsilon, 101)
    assert (np.cos(theta) >= root).all()
    # The line holds, since the cosine is also in the denominator.
    assert (np.cos(theta) / np.cos(theta) ** 2 <= root / (1 - epsilon**2)).all()


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("i", [1, 2, 4])
def test_a_and_b_are_within_their_bounds(spectrum, i):
    rng = np.random.default_rng(i)
    epsilon = rng.uniform(0, math.sqrt(0.5), DRAWS)
    form = quadratic_form(spectrum, draw_parents(rng, i, epsilon))
    a, b = sinusoids(form, i, draw_deviations(rng, i))
    slack = 1e-12 * spectrum[0]
    for simple in (False, True):
        assert (a <= theory.a_bound(spectrum, i, epsilon, simple=simple) + slack).all()
        assert (np.abs(b) <= theory.b_bound(spectrum, i, epsilon, simple=simple) + slack).all()
    # The simple bounds follow from the others.
    for bound in (theory.a_bound, theory.b_bound):
        assert (bound(spectrum, i, epsilon) <= bound(spectrum, i, epsilon, simple=True)).all()


def test_the_sinusoid_of_the_draws_is_that_of_the_lemma():
    rng, i = np.random.default_rng(0), 2
    theta, away = (
        rng.uniform(-0.5, 0.5, i),
        np.stack([draw_deviations(rng, j)[0] for j in range(3)]),
    )
    parents = np.cos(theta)[:, None] * np.eye(D)[:i] + np.sin(theta)[:, None] * away[:i]
    a, b = sinusoids(quadratic_form(SPECTRA[0], parents[None]), i, away[None, 2])
    lemma = theory.error_propagation(SPECTRA[0], theta, away[:i], away[2])
    assert (float(a[0]), float(b[0])) == pytest.approx((lemma.a, lemma.b))


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("i", [1, 2, 4])
def test_accurate_parents_bound_the_tangent_and_the_childs_optimum_on_the_sphere(spectrum, i):
    rng = np.random.default_rng(i)
    c = np.concatenate([np.full(DRAWS // 2, 1 / 16), rng.uniform(1e-3, 1 / 16, DRAWS - DRAWS // 2)])
    epsilon = c * theory.parent_tolerance(spectrum, i, c=1.0)
    form = quadratic_form(spectrum, draw_parents(rng, i, epsilon))
    a, b = sinusoids(form, i, draw_deviations(rng, i))
    # Rounding of a difference of utilities, relative to the gap that A is compared with.
    slack = 1e-14 * spectrum[0] / (spectrum[i] - spectrum[i + 1])
    assert (a < 0).all()
    assert (np.abs(b / a) <= theory.tangent_bound(c) + slack).all()
    best = np.linalg.eigh(form)[1][:, :, -1]
    away = np.sqrt(np.sum(np.delete(best, i, axis=1) ** 2, axis=1))
    assert (np.arcsin(np.minimum(away, 1)) <= 8 * c + slack).all()


def test_the_lemma_bounds_the_tangent_at_a_sixteenth_by_1_and_not_by_a_half():
    # In the proof of Theorem parent_err_to_child_err.
    assert theory.tangent_bound(1 / 16) == pytest.approx(1)
    assert theory.tangent_bound(1 / 24) == pytest.approx(1 / 2)
    # A half is not needed, since arctan z <= z for every z >= 0: half of the bound is within 8 c.
    c = np.linspace(0, 1 / 16, 101)
    assert (theory.tangent_bound(c) / 2 <= 8 * c + 1e-15).all()
    # The bounds before their simplification give a half as well: at most .16.
    rng = np.random.default_rng(0)
    for spectrum in np.sort(rng.uniform(0, 1, (500, D)) ** rng.uniform(0.1, 9, (500, 1)), axis=1):
        for i in range(1, D - 1):
            epsilon = theory.parent_tolerance(spectrum[::-1], i)
            a, b = (bound(spectrum[::-1], i, epsilon) for bound in (theory.a_bound, theory.b_bound))
            assert b / -a < 0.16


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("i", [0, 1, 4])
def test_gradients_are_within_their_bounds(spectrum, i):
    rng = np.random.default_rng(i)
    epsilon = rng.uniform(0, 0.9, DRAWS)
    child = unit(rng.normal(size=(DRAWS, D)))

    def norms(errors):
        parents = draw_parents(rng, i, errors) if i else np.zeros((DRAWS, 0, D))
        return np.linalg.norm(
            2 * np.einsum("nab,nb->na", quadratic_form(spectrum, parents), child), axis=1
        )

    assert (norms(epsilon) <= theory.gradient_bound(spectrum, i, epsilon)).all()
    accurate = np.full(DRAWS, min(theory.parent_tolerance(spectrum, i), 1.0))
    constant = theory.player_lipschitz(spectrum, np.full(i + 1, 1 / 16))[i]
    assert (norms(accurate) <= constant).all()


def test_bounds_of_a_player_without_parents_are_those_of_the_rayleigh_quotient():
    spectrum = SPECTRA[0]
    assert theory.a_bound(spectrum, 0, 0.3) == pytest.approx(-3)
    assert theory.b_bound(spectrum, 0, 0.3) == theory.b_bound(spectrum, 0, 0.3, simple=True) == 0
    assert theory.gradient_bound(spectrum, 0, 0.3) == pytest.approx(20)


def test_bounds_have_known_values():
    spectrum = SPECTRA[0]
    assert theory.ratio_bound(2.0, 0.6) == pytest.approx((1 + 3 * 0.6) / 0.8)
    # Two parents, tan = .75 at eps = .6: -2 + 2 (10 + 4) .5625 + 4 * 10 * .75.
    assert theory.a_bound(spectrum, 2, 0.6) == pytest.approx(-2 + 15.75 + 30)
    assert theory.a_bound(spectrum, 2, 0.6, simple=True) == pytest.approx(-2 + 96)
    kappa = 1 + 10 / 7
    assert theory.b_bound(spectrum, 2, 0.6) == pytest.approx(8 * 0.6 / 0.64 * (2 + 0.6 * kappa))
    assert theory.b_bound(spectrum, 2, 0.6, simple=True) == pytest.approx(16 * 4 * 10 / 7 * 0.6)
    expected = 20 * (1 + 2 * theory.ratio_bound(10 / 7, 0.6))
    assert theory.gradient_bound(spectrum, 2, 0.6) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.ratio_bound(0.5, 0.1), "kappa=0.5"),
        (lambda: theory.ratio_bound(2.0, 1.0), "epsilon=1.0"),
        (lambda: theory.a_bound([3, 2, 1], 1, 0.8, simple=True), "square root of 1/2"),
        (lambda: theory.a_bound([3, 2], 1, 0.1), "at least 3"),
        (lambda: theory.b_bound([3, 0, 0, 0], 2, 0.1), "positive values for the 2 parents"),
        (lambda: theory.tangent_bound(1 / 8), "below 1/8"),
        (lambda: theory.gradient_bound([3, 2, 1], -1, 0.1), "i=-1"),
    ],
)
def test_values_outside_the_lemmas_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
