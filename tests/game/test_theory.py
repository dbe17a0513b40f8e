import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame.game import as_symmetric_rows, random_players, theory
from eigengame.game.sphere import project_tangent
from eigengame.game.utilities import gradients
from tests import oracle

SPECTRUM = np.array([10.0, 7.0, 4.0, 2.0, 1.0, 0.5])
D = SPECTRUM.size
seeds = st.integers(0, 2**31 - 1)


def draw_deviations(rng, count):
    """Unit directions, the jth orthogonal to the jth eigenvector (the jth axis)."""
    away = rng.normal(size=(count, D))
    away[np.arange(count), np.arange(count)] = 0
    return away / np.linalg.norm(away, axis=1, keepdims=True)


def turned(j, theta, away):
    return math.cos(theta) * np.eye(D)[j] + math.sin(theta) * away


@given(seeds, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_utility_along_any_great_circle_is_the_predicted_sinusoid(seed, i):
    rng = np.random.default_rng(seed)
    away, angles = draw_deviations(rng, i + 1), rng.uniform(-1.5, 1.5, i)
    predicted = theory.error_propagation(SPECTRUM, angles, away[:i], away[i])
    parents = [turned(j, angles[j], away[j]) for j in range(i)]

    theta = np.linspace(-math.pi / 2, math.pi / 2, 2001)
    measured = [oracle.utility(turned(i, t, away[i]), parents, np.diag(SPECTRUM)) for t in theta]
    np.testing.assert_allclose(predicted.utility(theta), measured, atol=1e-12 * SPECTRUM[0])

    # The argmax is that of the arctan formula, with its sign (both ends of the circle are one point).
    best = theta[np.argmax(measured)]
    off = abs(predicted.argmax() - best)
    assert min(off, math.pi - off) <= theta[1] - theta[0]
    assert predicted.deviation() == pytest.approx(abs(predicted.argmax()), abs=1e-12)


def test_with_exact_parents_the_sinusoid_is_lemma_player_i_obj():
    rng = np.random.default_rng(0)
    away = draw_deviations(rng, 3)
    sinusoid = theory.error_propagation(SPECTRUM, [0, 0], away[:2], away[2])
    assert sinusoid.a == pytest.approx(
        -(SPECTRUM[2] - (away[2] ** 2 @ SPECTRUM - away[2, :2] ** 2 @ SPECTRUM[:2]))
    )
    assert sinusoid.b == 0
    assert sinusoid.c == SPECTRUM[2]
    assert sinusoid.deviation() == 0


@pytest.mark.parametrize(
    ("a", "expected"), [(0.0, math.pi / 4), (-1.0, math.pi / 8), (1.0, 3 * math.pi / 8)]
)
def test_the_three_cases_of_the_arctan(a, expected):
    assert theory.Sinusoid(a, 1.0, 0.0).deviation() == pytest.approx(expected)


def test_printed_worked_example_steps_near_18_degrees_for_kappa_10():
    degrees = np.linspace(0, 45, 45_001)
    child = np.degrees(theory.worked_example(np.radians(degrees), kappa=10.0))
    threshold = degrees[np.searchsorted(child, 45.0)]
    assert threshold == pytest.approx(math.degrees(math.asin(math.sqrt(1 / 10.1))), abs=0.01)
    assert 18 < threshold < 19


@pytest.mark.parametrize("kappa", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("degrees", [5.0, 18.3, 30.0, 60.0])
def test_the_game_of_the_worked_example_has_no_step(degrees, kappa):
    # Delta_1 = v_i and Delta_i = v_1, as in the example, for i = 2, optimised numerically.
    theta = math.radians(degrees)
    m = np.diag([kappa, 1.0])
    parent = np.array([math.cos(theta), math.sin(theta)])
    grid = np.linspace(-math.pi / 2, math.pi / 2, 20_001)
    best = max(
        grid, key=lambda t: oracle.utility(np.array([math.sin(t), math.cos(t)]), [parent], m)
    )
    # The error is that of the parent for any kappa: orthogonal to the parent, on the other side.
    assert best == pytest.approx(-theta, abs=2e-4)
    assert theory.worked_example_corrected(theta) == theta
    by_lemma = theory.error_propagation([kappa, 1.0], [theta], [[0.0, 1.0]], [1.0, 0.0])
    assert by_lemma.argmax() == pytest.approx(-theta)
    assert by_lemma.deviation() == pytest.approx(theta)


def test_the_printed_example_differs_from_its_game_at_the_step():
    theta = math.radians(25.0)
    assert math.degrees(theory.worked_example(theta, 10.0)) > 60
    assert math.degrees(theory.worked_example_corrected(theta)) == pytest.approx(25)


@pytest.mark.parametrize(("a", "b"), [(-2.0, 1.0), (-2.0, -1.0), (2.0, 1.0), (2.0, -1.0)])
def test_the_printed_phase_has_the_other_sign_and_for_positive_a_another_quadrant(a, b):
    sinusoid = theory.Sinusoid(a, b, 0.3)
    theta = np.linspace(-math.pi / 2, math.pi / 2, 101)

    def with_phase(phase):
        return (math.hypot(a, b) * np.cos(2 * theta + phase) + a) / 2 + 0.3

    phase, printed = math.atan2(b, -a), math.atan(b / a)
    np.testing.assert_allclose(with_phase(phase), sinusoid.utility(theta), atol=1e-12)
    assert np.abs(with_phase(printed) - sinusoid.utility(theta)).max() > 0.5
    turn = -phase if a < 0 else math.pi - phase
    assert math.remainder(printed - turn, 2 * math.pi) == pytest.approx(0, abs=1e-12)


def test_the_optimum_of_the_arctan_bends_by_2_cos_and_not_2_over_cos():
    # Lemma arctan_error_prop: u'' = 2 cos(2 theta) [A + B tan(2 theta)], by differences.
    sinusoid, theta, h = theory.Sinusoid(-1.3, 0.8, 0.2), 0.3, 1e-4
    u = sinusoid.utility
    second = (u(theta + h) - 2 * u(theta) + u(theta - h)) / h**2
    bracket = sinusoid.a + sinusoid.b * math.tan(2 * theta)
    assert second == pytest.approx(2 * math.cos(2 * theta) * bracket, rel=1e-6)
    assert abs(second - 2 / math.cos(2 * theta) * bracket) > 0.1


@pytest.mark.parametrize("i", [0, 2])
def test_the_smoothness_lemmas_with_their_factors_of_two(i):
    # u = <v, A v> and grad = 2 A v: u is half of <v, grad>, so |u| <= L / 2, and u(v + eta) - u(v) is
    # <eta, grad> + u(eta), without a 2 before the cross term.
    rows = as_symmetric_rows(np.diag(SPECTRUM))
    players = random_players(3, i + 1, D, "float64")
    v, parents = np.asarray(players[i]), np.asarray(players[:i])
    gradient = np.asarray(gradients(rows, players)[i])
    m = np.diag(SPECTRUM)
    assert oracle.utility(v, parents, m) == pytest.approx(v @ gradient / 2)
    eta = np.random.default_rng(0).normal(size=D)
    gain = oracle.utility(v + eta, parents, m) - oracle.utility(v, parents, m)
    assert gain == pytest.approx(eta @ gradient + oracle.utility(eta, parents, m))


def test_a_step_of_one_over_2l_gains_the_corrected_share_of_the_gradient():
    # With both factors of 2 corrected: at least |grad^R|^2 / (5 L), of a range of at most L.
    k, m = 3, np.diag(SPECTRUM)
    top, rows = theory.lipschitz(SPECTRUM, k), as_symmetric_rows(np.diag(SPECTRUM))
    for seed in range(20):
        players = jnp.concatenate([jnp.eye(D)[: k - 1], random_players(seed, 1, D, "float64")])
        v, parents = np.asarray(players[-1]), np.eye(D)[: k - 1]
        uphill = np.asarray(project_tangent(players, gradients(rows, players))[-1])
        moved = v + uphill / (2 * top)
        moved = moved / np.linalg.norm(moved)
        before, after = (oracle.utility(w, parents, m) for w in (v, moved))
        assert after - before >= uphill @ uphill / (5 * top)
        assert abs(before) <= top / 2


def test_without_parents_the_utility_is_a_plain_rayleigh_quotient():
    sinusoid = theory.error_propagation([3.0, 1.0], [], [], [0.0, 1.0])
    assert sinusoid == (-2.0, 0.0, 3.0)


def test_a_parent_error_towards_another_parent_has_a_step_near_19_degrees():
    degrees = np.linspace(1, 40, 391)
    child = np.degrees(theory.soft_step(np.radians(degrees), kappa=10.0))
    threshold = degrees[np.argmax(child > 45)]
    assert threshold == pytest.approx(19.4, abs=0.11)
    assert child[degrees < 15].max() < 5
    assert child[degrees > 25].min() > 80
    # The step is where A is 0, in the limit of a lean of 0.
    narrow = np.degrees(theory.soft_step(np.radians(degrees), kappa=10.0, lean=1e-3))
    limit = math.degrees(math.asin(math.sqrt(10 / (90 + 10 - 9))))
    assert degrees[np.argmax(narrow > 45)] == pytest.approx(limit, abs=0.11)
    # Measured in the game, not only by the lemma.
    m, e = np.diag([10.0, 9.0, 1.0]), np.eye(3)
    towards = math.sqrt(0.99) * e[1] + 0.1 * e[2]
    grid = np.linspace(-math.pi / 2, math.pi / 2, 4001)
    for angle in (10.0, 18.0, 21.0, 30.0):
        t = math.radians(angle)
        parents = [math.cos(t) * e[0] + math.sin(t) * towards, e[1]]
        best = max(
            grid, key=lambda s: oracle.utility(math.cos(s) * e[2] + math.sin(s) * e[0], parents, m)
        )
        assert abs(best) == pytest.approx(theory.soft_step(t, 10.0)[0], abs=1e-3)


def test_a_child_on_the_whole_sphere_is_lost_at_6_degrees_in_the_same_game():
    # The best response on the sphere is the top eigenvector of the quadratic form of the utility.
    m, e = np.diag([10.0, 9.0, 1.0]), np.eye(3)
    towards = math.sqrt(0.99) * e[1] + 0.1 * e[2]

    def child(degrees):
        theta, form = math.radians(degrees), m.copy()
        for parent in (math.cos(theta) * e[0] + math.sin(theta) * towards, e[1]):
            form -= np.outer(m @ parent, m @ parent) / (parent @ m @ parent)
        return math.degrees(math.acos(abs(np.linalg.eigh(form)[1][2, -1])))

    degrees = np.linspace(0, 20, 2001)
    found = np.array([child(one) for one in degrees])
    assert degrees[np.argmax(found > 45)] == pytest.approx(6.38, abs=0.015)
    assert math.degrees(math.asin(1 / 9)) == pytest.approx(6.38, abs=0.005)
    assert found[degrees < 5].max() < 10
    assert found[degrees > 8].min() > 80


@given(seeds, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_accurate_parents_keep_the_childs_optimum_within_8c(seed, i):
    rng = np.random.default_rng(seed)
    c = rng.uniform(0, 1 / 16)
    allowed = theory.parent_tolerance(SPECTRUM, i, c)
    away = draw_deviations(rng, i + 1)
    angles = rng.uniform(-allowed, allowed, i)
    assert theory.error_propagation(SPECTRUM, angles, away[:i], away[i]).deviation() <= 8 * c


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_riemannian_gradient_bounds_the_angle_to_the_optimum(seed):
    rng = np.random.default_rng(seed)
    i, rows = 2, as_symmetric_rows(np.diag(SPECTRUM))
    allowed = theory.parent_tolerance(SPECTRUM, i)
    away, theta = draw_deviations(rng, i + 1), rng.uniform(-math.pi / 4, math.pi / 4)
    angles = [*rng.uniform(-allowed, allowed, i), theta]
    players = jnp.asarray([turned(j, angles[j], away[j]) for j in range(i + 1)])
    norm = np.linalg.norm(project_tangent(players, gradients(rows, players))[i])
    optimum = theory.error_propagation(SPECTRUM, angles[:i], away[:i], away[i]).argmax()
    if abs(theta - optimum) <= math.pi / 4:
        assert abs(theta - optimum) <= theory.angle_bound(norm, theory.gaps(SPECTRUM)[i])


def test_thresholds_follow_the_closed_form_of_the_theorem():
    k, tol = 4, 0.2
    c, rho = theory.thresholds(SPECTRUM, k, tol)
    g, top = theory.gaps(SPECTRUM), SPECTRUM[0]
    for i in range(1, k + 1):
        product = np.prod([g[j - 1] for j in range(i + 1, k + 1)])
        expected = math.factorial(i - 1) * product / ((16 * top) ** (k - i) * math.factorial(k - 1))
        assert c[i - 1] == pytest.approx(expected * tol / 16)
    for i in range(1, k):
        assert rho[i - 1] == pytest.approx(g[i - 1] * g[i] / (2 * math.pi * i * top) * c[i])
    assert rho[-1] == pytest.approx(g[k - 1] * tol / (2 * math.pi))


def test_lipschitz_is_the_theorems_and_bounds_the_gradient():
    expected = 4 * (10 * 3 + (1 + 10 / 7) * 2 / 16)
    assert theory.lipschitz(SPECTRUM, 3) == pytest.approx(expected)
    rows = as_symmetric_rows(np.diag(SPECTRUM))
    exact = jnp.eye(D)[:2]
    for seed in range(20):
        players = jnp.concatenate([exact, random_players(seed, 1, D, "float64")])
        assert np.linalg.norm(gradients(rows, players)[2]) <= expected


def test_literal_iterations_change_with_the_scale_of_the_data_and_scale_free_ones_do_not():
    counts = {"literal": [], "scale-free": []}
    for scale in (1e-3, 1.0, 1e3):
        rho = theory.thresholds(scale * SPECTRUM, 2, 0.1).rho[-1]
        top = theory.lipschitz(scale * SPECTRUM, 2)
        counts["literal"].append(theory.literal_iterations(rho, math.inf))
        counts["scale-free"].append(theory.scale_free_iterations(rho, math.inf, top))
    assert counts["literal"][0] > 1e5 * counts["literal"][1] > 1e5
    assert counts["literal"][2] == 1
    assert max(counts["scale-free"]) - min(counts["scale-free"]) <= 1


def test_iterations_have_known_values():
    # min(.) is rho = .1, then half of a gradient norm of .1.
    assert theory.literal_iterations(0.1, 1.0) == 125
    assert theory.literal_iterations(0.1, 0.1) == 500
    assert theory.scale_free_iterations(0.1, 1.0, 4.0) == 8000
    assert theory.scale_free_iterations(0.1, 0.1, 4.0) == 32_000
    assert theory.literal_iterations(1e-200, 1) == math.inf
    assert theory.scale_free_iterations(0.0, 1, 1) == math.inf
    # Scaled by 1e-200 the count is the same: nothing underflows.
    assert theory.scale_free_iterations(1e-201, 1e-200, 4e-200) == pytest.approx(8000)


def test_bounds_have_known_values():
    assert theory.angle_bound(0.5, 2.0) == pytest.approx(math.pi / 4)
    assert theory.parent_tolerance([10, 7, 4, 2], 2, c=0.05) == pytest.approx(0.05 * 2 / (2 * 10))
    assert theory.parent_tolerance([10, 7, 4], 1) == pytest.approx(3 / (16 * 10))
    assert theory.parent_tolerance([10, 7], 0) == math.inf
    assert theory.subspace_bound(3, 10, 0.1) == pytest.approx(3 * math.sin(0.1) ** 2)
    assert theory.subspace_bound(3, 10, 2.0) == 3
    assert theory.subspace_bound(10, 10, 0.1) == 0
    assert theory.lipschitz([10, 7], 1) == pytest.approx(4 * (10 + 2 * 3 / 16))


def test_every_start_is_within_a_right_angle():
    np.testing.assert_array_equal(theory.start_probability([math.pi / 2, 2.0, 3.0], 5), 1)


def test_total_iterations_put_the_16_inside_the_power():
    k, tol = 2, 0.5
    g = theory.gaps(SPECTRUM)
    expected = k * ((16 * 10.0) ** k * 1 / (g[0] * g[1]) / tol) ** 2
    assert theory.total_iterations(SPECTRUM, k, tol) == pytest.approx(expected)
    assert theory.total_iterations(np.linspace(1, 0.5, 200), 150, 1e-3) == math.inf


@pytest.mark.parametrize("d", [2, 3, 10, 50])
@pytest.mark.parametrize("phi", [math.pi / 8, math.pi / 4, 1.3])
def test_start_probability_against_monte_carlo(d, phi):
    draws = np.random.default_rng(d).normal(size=(40_000, d))
    along = np.abs(draws[:, 0]) / np.linalg.norm(draws, axis=1)
    share = np.mean(np.arccos(along) <= phi)
    probability = theory.start_probability(phi, d)
    # Five standard errors of a proportion of 40 000 draws.
    assert (
        abs(share - probability) <= 5 * math.sqrt(probability * (1 - probability) / 40_000) + 1e-4
    )
    assert theory.start_probability(math.pi / 2, d) == pytest.approx(1)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_angles_bound_the_subspace_error(seed):
    rng = np.random.default_rng(seed)
    k, tol = 3, rng.uniform(0, 1)
    players = np.array(
        [turned(j, rng.uniform(-tol, tol), away) for j, away in enumerate(draw_deviations(rng, k))]
    )
    assert np.sum(players[:, k:] ** 2) <= theory.subspace_bound(k, D, tol)


def test_the_bound_of_the_corollary_holds_with_k_in_place_of_k_times_d_minus_k():
    # All players err towards one vector: the bound is attained.
    k, tol = 3, 0.3
    players = np.array([turned(j, tol, np.eye(D)[k]) for j in range(k)])
    error = np.sum(players[:, k:] ** 2)
    assert error == pytest.approx(theory.subspace_bound(k, D, tol))
    assert error < k * tol**2 < k * (D - k) * tol**2


def test_the_starts_of_all_players_are_near_with_a_power_of_the_printed_probability():
    # Three players in three dimensions. The line of each is the start of the player before: an optimum
    # depends on the parents, and the starts are independent nevertheless.
    k, d, draws = 3, 3, 40_000
    starts = np.random.default_rng(0).normal(size=(draws, k, d))
    starts /= np.linalg.norm(starts, axis=2, keepdims=True)
    lines = np.concatenate([np.broadcast_to(np.eye(d)[0], (draws, 1, d)), starts[:, :-1]], axis=1)
    near = np.abs(np.sum(starts * lines, axis=2)) >= math.cos(math.pi / 4)
    one, share = float(theory.start_probability(math.pi / 4, d)), near.all(axis=1).mean()
    assert theory.start_probability(math.pi / 4, d, players=k) == pytest.approx(one**k)
    error = math.sqrt(one**k * (1 - one**k) / draws)
    assert abs(share - one**k) < 5 * error
    # The printed value, for one player, is not that of all.
    assert one - share > 50 * error
    assert near[:, 1].mean() == pytest.approx(one, abs=5 * math.sqrt(one * (1 - one) / draws))


@pytest.mark.parametrize("squared", [True, False])
def test_the_norms_of_deviations_in_lemma_misspec_loss_function_are_squared(squared):
    # A as in the lemma, with <Delta, Lambda Delta> for both norms, or with its root. The utility at a right
    # angle less that at 0 is A.
    rng = np.random.default_rng(0)
    i, angles, away = 2, np.array([0.4, -0.7]), draw_deviations(rng, 3)
    norms = away**2 @ SPECTRUM if squared else np.sqrt(away**2 @ SPECTRUM)
    own, a = away[i], norms[i] - SPECTRUM[i]
    for j, (theta, delta) in enumerate(zip(angles, away[:i], strict=True)):
        cross = own @ (SPECTRUM * delta)
        top = (SPECTRUM[j] * math.cos(theta) * own[j]) ** 2
        top -= (SPECTRUM[i] * math.sin(theta) * delta[i]) ** 2
        top += (math.sin(theta) * cross) ** 2
        top += SPECTRUM[j] * math.sin(2 * theta) * own[j] * cross
        a -= top / (SPECTRUM[j] * math.cos(theta) ** 2 + norms[j] * math.sin(theta) ** 2)
    parents = [turned(j, angles[j], away[j]) for j in range(i)]
    m = np.diag(SPECTRUM)
    measured = oracle.utility(own, parents, m) - oracle.utility(np.eye(D)[i], parents, m)
    assert bool(abs(a - measured) < 1e-12) is squared
    assert theory.error_propagation(SPECTRUM, angles, away[:i], own).a == pytest.approx(measured)


def test_the_constant_of_each_player_is_that_of_the_lemma_and_below_the_common_one():
    k = 4
    c = theory.thresholds(SPECTRUM, k, 0.2).c
    found = theory.player_lipschitz(SPECTRUM, c)
    # 1-based, as in the lemma; the first player has no parents.
    for i in range(1, k + 1):
        kappa = SPECTRUM[0] / SPECTRUM[max(i - 2, 0)]
        expected = 4 * (SPECTRUM[0] * i + (1 + kappa) * c[i - 1] * theory.gaps(SPECTRUM)[i - 1])
        assert found[i - 1] == pytest.approx(expected)
    largest = theory.player_lipschitz(SPECTRUM, np.full(k, 1 / 16))
    assert largest[-1] == pytest.approx(theory.lipschitz(SPECTRUM, k))
    rng = np.random.default_rng(0)
    for spectrum in np.sort(rng.uniform(0.01, 1, (200, 6)) ** 3, axis=1)[:, ::-1]:
        largest = theory.player_lipschitz(spectrum, np.full(5, 1 / 16))
        assert (largest <= theory.lipschitz(spectrum, 5) * (1 + 1e-12)).all()


def ascend(spectrum, start, lipschitz, rounds):
    """Return the angle from the first axis after each Riemannian step of 1 / (2 L), without parents."""
    v, angles = np.asarray(start) / np.linalg.norm(start), []
    for _ in range(rounds):
        gradient = 2 * spectrum * v
        v = v + (gradient - (gradient @ v) * v) / (2 * lipschitz)
        v /= np.linalg.norm(v)
        angles.append(math.acos(min(abs(v[0]), 1.0)))
    return np.array(angles)


def test_iterations_out_of_a_trough_have_known_values():
    # 5/4 (pi / 2)^2 / (pi/2 - pi/4)^2 = 5.
    assert theory.trough_iterations(2.0, math.pi / 4) == 5
    assert theory.trough_iterations(2.0, math.pi / 4, lipschitz=3.0) == 5 * 4 * 9
    assert theory.trough_iterations(2.0, math.pi / 2) == math.inf
    # Not the count to the optimum, which depends on rho.
    assert theory.trough_iterations(2.0, 0.0) == 2


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_printed_iterations_out_of_a_trough_are_too_few_on_large_data(scale):
    spectrum, start = scale * np.array([3.0, 2.0]), math.pi / 2 - 0.1
    top, gap = theory.lipschitz(spectrum, 1), float(theory.gaps(spectrum)[0])
    angles = ascend(spectrum, [math.cos(start), math.sin(start)], top, 200)
    needed = 1 + int(np.argmax(angles <= math.pi / 4))
    assert 20 < needed < 50
    assert theory.trough_iterations(gap, start, top) >= needed
    assert (theory.trough_iterations(gap, start) >= needed) is (scale == 1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.thresholds([3, 2, 1], 3, 0.1), "at least 4"),
        (lambda: theory.player_lipschitz([3, 2, 1], [0.0, 0.1]), "fraction from 0 to 1/16"),
        (lambda: theory.player_lipschitz([3, 2], [0.0, 0.0]), "at least 3"),
        (lambda: theory.trough_iterations(1.0, 2.0), "start_angle=2.0"),
        (lambda: theory.trough_iterations(0.0, 1.0), "gap=0.0"),
        (lambda: theory.start_probability(1.0, 3, players=0), "players=0"),
        (lambda: theory.thresholds([3, 3, 1], 2, 0.1), "gap"),
        (lambda: theory.thresholds([1, 2, 3], 2, 0.1), "largest first"),
        (lambda: theory.thresholds([3, 2, 1], 2, 2.0), "theta_tol=2.0"),
        (lambda: theory.gaps([3, math.nan]), "finite"),
        (lambda: theory.lipschitz([3, 2, 1], 0), "k=0"),
        (lambda: theory.total_iterations([3, 2, 1], 0, 0.1), "k=0"),
        (lambda: theory.total_iterations([3, 3, 1], 2, 0.1), "gap"),
        (lambda: theory.total_iterations([3, 2, 1], 2, 0), "theta_tol=0"),
        (lambda: theory.subspace_bound(0, 5, 0.1), "k=0"),
        (lambda: theory.subspace_bound(6, 5, 0.1), "k=6"),
        (lambda: theory.parent_tolerance([3, 2, 1], -1), "i=-1"),
        (lambda: theory.literal_iterations(-1.0, 1.0), r"rho=-1\.0"),
        (lambda: theory.start_probability(-1.0, 3), r"phi=-1\.0"),
        (
            lambda: theory.error_propagation([3, 2], [0, 0], np.eye(2), [1, 0]),
            "at most 1 for 2 eigenvalues",
        ),
        (
            lambda: theory.error_propagation([3, 2, 1], [0], np.eye(2), [1, 0, 0]),
            "parent_deviations has shape",
        ),
    ],
)
def test_impossible_spectra_and_angles_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
