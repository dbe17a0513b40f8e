import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import as_rows, metrics, testing
from eigengame.certificate import (
    _measured,
    _measured_there,
    angle_bounds,
    certificate,
    missed_level,
)
from eigengame.images import improve, measure
from eigengame.outcome import Outcome
from eigengame.probes import draw_probes, power_probes
from eigengame.reading import Given
from eigengame.refine import Goal, certify, refined

D, K = 40, 4
SPECTRA = {
    "harmonic": testing.harmonic(D),
    "exponential": testing.exponential(D, 1, 1e-3),
    "near repeat": np.sort(
        np.concatenate([[1, 0.999, 0.5, 0.499, 0.498, 0.3], 0.2 * testing.harmonic(D - 6)])
    )[::-1],
    "flat tail": np.concatenate([[1, 0.8, 0.6, 0.5], np.full(D - 4, 0.1)]),
}


def settled_players(matrix, players):
    """Orthonormal players settled on the matrix in float64, and their images."""
    q = np.linalg.qr(players.T)[0].T
    _, turn = np.linalg.eigh(q @ matrix @ q.T)
    players = turn[:, ::-1].T @ q
    return players, players @ matrix


def draw(seed, name, noise, extra):
    """Under-converged players: the true ones with noise of any size, settled."""
    rng = np.random.default_rng(seed)
    problem = testing.matrix_with(SPECTRA[name], seed=seed % 7)
    players = problem.components[: K + extra] + noise * rng.normal(size=(K + extra, D)) / math.sqrt(
        D
    )
    return problem, *settled_players(problem.data, players)


def outside_level(matrix, players):
    """The largest eigenvalue outside the players' span, exactly."""
    p = np.eye(D) - players.T @ players
    return np.linalg.eigvalsh(p @ matrix @ p)[-1]


@given(
    st.integers(0, 2**31 - 1),
    st.sampled_from(sorted(SPECTRA)),
    st.sampled_from([1e-6, 1e-3, 0.03, 0.1, 0.3, 1.0, 3.0]),
    st.integers(0, 6),
)
@settings(max_examples=400, deadline=None)
def test_the_bound_is_never_below_the_true_angle_if_nothing_is_missed(seed, name, noise, extra):
    problem, players, images = draw(seed, name, noise, extra)
    level = outside_level(problem.data, players)
    found = certificate(players, images, K, level=level, confidence=1.0)
    true = metrics.angular_error(players[:K], problem.components)
    assert (true <= found.angle + 1e-12).all()
    assert found.streak(0.1) <= metrics.streak_of(true, 0.1)


@pytest.mark.parametrize("name", ["harmonic", "exponential", "flat tail"])
@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.1])
def test_the_bound_is_within_ten_times_the_true_angle_on_separated_spectra(name, noise):
    ratios = []
    for seed in range(20):
        problem, players, images = draw(seed, name, noise, 4)
        found = certificate(players, images, K)
        true = metrics.angular_error(players[:K], problem.components)
        ratios.extend(found.angle / true)
    assert np.median(ratios) < 3
    assert np.quantile(ratios, 0.95) < 10


def test_close_neighbours_cost_only_to_second_order():
    # Two players 0.001 apart, with residuals of 0.01 outside: |r| / gap = 10 says nothing.
    values = np.array([1.0, 0.999, 0.5])
    couplings = np.diag([1e-4, 1e-4, 1e-4])
    assert angle_bounds(values, couplings, 0.1)[0] < 0.2
    apart = angle_bounds(np.array([1.0, 0.8, 0.5]), couplings, 0.1)[0]
    assert apart == pytest.approx(math.atan(0.01 / 0.9), rel=0.01)


def test_nothing_is_said_where_a_larger_direction_may_have_been_missed():
    bounds = angle_bounds(np.array([1.0, 0.5]), np.diag([1e-6, 1e-6]), level=0.7)
    assert bounds[0] < 0.01
    assert bounds[1] == math.pi / 2


def test_a_missed_component_is_found_by_the_probes():
    problem = testing.rows_with(testing.exponential(D, 1, 1e-3), 100, seed=1)
    rows = as_rows(problem.data)
    players = jnp.asarray(np.delete(problem.components[:9], 2, axis=0))
    now = measure(Given(rows), players, None)
    blind = certificate(*now.players, K)
    assert blind.kind == "conditional"
    assert blind.streak(0.1) == 4  # settled on exact but wrong eigenvectors, it cannot know
    goal = Goal(Given(rows), None, K, 1.0, passes=6, tol=None, seed=0)
    seen = certify(goal, players)
    assert seen.kind == "certified"
    assert seen.level >= problem.eigenvalues[2]
    assert seen.streak(0.1) <= 2


def test_probes_bound_what_is_outside_with_their_stated_probability():
    problem = testing.rows_with(testing.harmonic(D), 100, seed=2)
    rows, risk, misses = as_rows(problem.data), 0.2, 0
    players = jnp.asarray(problem.components[:6])
    trials = 200
    for seed in range(trials):
        probes = draw_probes(seed, 4, players)
        for _ in range(3):
            probes = power_probes(Given(rows), probes, players, None, risk)
        misses += probes.level < problem.eigenvalues[6]
    # At most the stated 20 %, plus three standard errors of 200 trials.
    assert misses / trials <= risk + 3 * math.sqrt(risk * (1 - risk) / trials)
    assert probes.level < 3 * problem.eigenvalues[6]


def test_missed_level_is_the_chi_squared_quantile():
    # One probe, one power: P[chi2_1 < x] = risk at x = 0.0039 for risk 0.05.
    assert missed_level(np.array([4.0]), 1, 0.05) == pytest.approx(
        math.sqrt(4 / 0.00393214), rel=1e-4
    )
    assert missed_level(np.zeros(3), 2, 0.1) == 0


def test_figures_beside_the_bound_are_the_papers():
    problem, players, images = draw(3, "harmonic", 0.1, 3)
    # Unsettled on purpose, so that penalties are not zero.
    mixed = testing.orthogonal(7, 1) @ players
    images = mixed @ problem.data
    found = certificate(mixed, images, K)
    gram = mixed @ problem.data @ mixed.T
    for i in range(K):
        a = problem.data.copy()
        for v in mixed[:i]:
            a -= np.outer(problem.data @ v, problem.data @ v) / (v @ problem.data @ v)
        gradient = 2 * a @ mixed[i]
        gradient -= (gradient @ mixed[i]) * mixed[i]
        gap = gram[i, i] - gram[i + 1, i + 1]
        if gap > 0:
            expected = min(math.pi / gap * np.linalg.norm(gradient), math.pi / 2)
            assert found.gradient_angle[i] == pytest.approx(expected)
        penalty = sum(gram[i, j] ** 2 / gram[j, j] for j in range(i))
        assert found.penalty_ratio[i] == pytest.approx(penalty / gram[i, i])


def test_variances_are_told_in_the_scale_asked_for_and_angles_are_not_changed_by_it():
    _, players, images = draw(4, "harmonic", 0.05, 3)
    plain, scaled = certificate(players, images, K), certificate(players, images, K, scale=10.0)
    np.testing.assert_allclose(scaled.rayleigh, plain.rayleigh / 10)
    np.testing.assert_allclose(scaled.residual, plain.residual / 10)
    np.testing.assert_allclose(scaled.angle, plain.angle)


def test_the_table_reads_well():
    _, players, images = draw(5, "harmonic", 0.05, 3)
    text = str(certificate(players, images, K))
    assert "holds if no larger direction was missed" in text
    assert len(text.splitlines()) == 2 + K


# Refinement

PROBLEM = testing.rows_with(testing.harmonic(D), 120, seed=6)


def halves(dtype="float64"):
    return Given(*(as_rows(half.astype(dtype)) for half in np.split(PROBLEM.data, 2)))


def goal_of(dtype="float64", **options):
    settings = {"passes": 40, "tol": 1e-3, "mean": None, "k": K, "scale": 1.0, "seed": 0} | options
    return Goal(source=halves(dtype), **settings)


def start(dtype="float64", extra=6):
    return jnp.asarray(testing.orthogonal(D, 3)[: K + extra], dtype)


def test_images_are_exact_and_players_settled_after_every_pass():
    now = measure(halves(), start(), None)
    for _ in range(4):
        players, images = (np.asarray(part) for part in now.players)
        np.testing.assert_allclose(images, players @ PROBLEM.data.T @ PROBLEM.data, atol=1e-10)
        np.testing.assert_allclose(players @ players.T, np.eye(10), atol=1e-10)
        gram = players @ images.T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
        now = improve(halves(), now, None)


def test_a_mean_is_taken_off_exactly():
    shifted = PROBLEM.data + np.linspace(1, 3, D)
    about = shifted - shifted.mean(axis=0)
    rows = as_rows(shifted)
    now = measure(Given(rows), start(), jnp.asarray(shifted.mean(axis=0)))
    players, images = (np.asarray(part) for part in now.players)
    np.testing.assert_allclose(images, players @ about.T @ about, atol=1e-9)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-6])
def test_refinement_ends_certified_within_tol(tol):
    found = refined(goal_of(tol=tol), start(), route="test", used=0)
    assert found.ending.outcome is Outcome.CONVERGED
    assert found.certificate.kind == "certified"
    assert found.certificate.angle.max() <= tol
    assert metrics.angular_error(found.components, PROBLEM.components).max() <= tol
    np.testing.assert_allclose(found.strengths, PROBLEM.eigenvalues[:K], rtol=max(tol**2, 1e-12))


def test_where_the_probes_allow_more_outside_the_players_are_refined_further():
    # Few extra players: the level shown by the probes is well above the one assumed before.
    found = refined(goal_of(tol=0.01, passes=60), start(extra=2), route="test", used=0)
    assert found.ending.outcome is Outcome.CONVERGED
    assert found.certificate.kind == "certified"
    assert found.certificate.angle.max() <= 0.01


def test_components_too_close_to_the_rest_are_said_to_be_unproven():
    # Value 4 is a thousandth above value 5: no probe can tell them apart in a few powers.
    spectrum = np.concatenate([[1.0, 0.8, 0.6, 0.4], 0.3996 * testing.harmonic(D - 4)])
    problem = testing.rows_with(spectrum, 120, seed=6)
    goal = Goal(Given(as_rows(problem.data)), None, K, 1.0, passes=300, tol=1e-3, seed=0)
    found = refined(goal, jnp.asarray(problem.components[:K]), route="test", used=0)
    assert found.ending.outcome is not Outcome.CONVERGED
    assert found.certificate.angle[3] == math.pi / 2
    assert found.certificate.streak(1e-3) <= 3


def test_passes_are_never_exceeded_and_what_was_reached_is_said():
    found = refined(goal_of(tol=1e-9, passes=3), start(), route="test", used=0)
    assert found.ending.passes == 3
    assert found.ending.outcome is Outcome.PASSES_SPENT
    assert found.certificate.kind == "conditional"


def test_float32_ends_at_its_floor_and_keeps_the_best_it_had():
    found = refined(
        goal_of("float32", tol=1e-12, passes=60), start("float32"), route="test", used=0
    )
    assert found.ending.outcome is Outcome.FLOOR_REACHED
    assert found.ending.passes < 60
    assert (
        metrics.angular_error(found.components.astype("float64"), PROBLEM.components).max() < 1e-4
    )


def test_a_first_component_that_is_much_larger_does_not_end_refinement_for_the_others():
    # All residuals are soon small beside the first value: that is not yet the floor for the others.
    spectrum = np.append(1e4, 0.95 ** np.arange(149))
    problem = testing.rows_with(spectrum, 400, seed=3)
    rows = as_rows(problem.data.astype("float32"))
    goal = Goal(Given(rows), None, 12, 1.0, passes=60, tol=0.05, seed=0)
    begun = jnp.asarray(testing.orthogonal(150, 5)[:16], "float32")
    found = refined(goal, begun, route="test", used=0)
    assert found.certificate.angle.max() <= 0.05
    off = metrics.angular_error(found.components.astype("float64"), problem.components[:12])
    assert off.max() < 0.01


def test_with_as_many_players_as_features_nothing_can_be_missed():
    everyone = jnp.asarray(testing.orthogonal(D, 3))
    found = refined(goal_of(tol=1e-6), everyone, route="test", used=0)
    assert found.certificate.confidence == 1
    assert found.ending.passes == 1


def test_players_too_large_to_be_sent_for_are_measured_alike_where_they_are():
    _, players, images = draw(4, "exponential", 0.1, 2)
    given = jnp.asarray(players), jnp.asarray(images)
    for one, other in zip(_measured(*given), _measured_there(*given), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
