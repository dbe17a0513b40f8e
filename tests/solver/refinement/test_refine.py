"""Refinement: further passes until the certificate holds, and what it says when they do not suffice."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, testing
from eigengame.game import as_rows
from eigengame.solver.certificates.krylov_space import KrylovSpace
from eigengame.solver.certificates.risk import (
    EXACT_RISK,
    FIRST_RISK,
    PROBES_RISK,
    RISK,
    ROUNDING_RISK,
    START_RISK,
    share_of_risk,
)
from eigengame.solver.certificates.rounding import Rounding
from eigengame.solver.refinement import refine as refining
from eigengame.solver.refinement import space_certificate
from eigengame.solver.refinement.certify_players import certify, certify_by_one_pass
from eigengame.solver.refinement.goal import Goal
from eigengame.solver.refinement.products import improve, measure
from eigengame.solver.refinement.refine import refine
from eigengame.solver.refinement.refine_on_device import search
from eigengame.solver.results.outcome import Status
from tests.solver.row_passes import RowPasses

D, K = 40, 4
PROBLEM = testing.rows_with(testing.harmonic(D), 120, seed=6)


def halves(dtype="float64"):
    return RowPasses(*(as_rows(half.astype(dtype)) for half in np.split(PROBLEM.data, 2)))


def goal_of(dtype="float64", data=PROBLEM.data, **options):
    squares = float(np.sum(data.astype(np.float64) ** 2))
    rounding = Rounding.probable(dtype, data.shape[1], len(data), 1, squares)
    settings = {
        "max_passes": 40,
        "tol": 1e-3,
        "mean": None,
        "k": K,
        "determined": K,
        "scale": 1.0,
        "seed": 0,
        "dtype": dtype,
    }
    settings |= {"passes": halves(dtype), "rounding": rounding} | options
    return Goal(**settings)


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
    now = measure(RowPasses(rows), start(), jnp.asarray(shifted.mean(axis=0)))
    players, images = (np.asarray(part) for part in now.players)
    np.testing.assert_allclose(images, players @ about.T @ about, atol=1e-9)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-6])
def test_refinement_ends_certified_within_tol(tol):
    found = refine(goal_of(tol=tol), start(), route="test", used=0)
    assert found.outcome.status is Status.CONVERGED
    assert found.certificate.kind == "certified"
    assert found.certificate.angle.max() <= tol
    assert metrics.angular_error(found.players[:K], PROBLEM.components).max() <= tol
    np.testing.assert_allclose(
        found.certificate.rayleigh, PROBLEM.eigenvalues[:K], rtol=max(tol**2, 1e-12)
    )


def test_where_the_probes_allow_more_outside_the_players_are_refined_further():
    # Few extra players: the level shown by the probes is well above the one assumed before.
    found = refine(goal_of(tol=0.01, max_passes=60), start(extra=2), route="test", used=0)
    assert found.outcome.status is Status.CONVERGED
    assert found.certificate.kind == "certified"
    assert found.certificate.angle.max() <= 0.01


def test_components_too_close_to_the_rest_are_unproven():
    # Value 4 is a thousandth above value 5: no probe can tell them apart in a few powers.
    spectrum = np.concatenate([[1.0, 0.8, 0.6, 0.4], 0.3996 * testing.harmonic(D - 4)])
    problem = testing.rows_with(spectrum, 120, seed=6)
    goal = goal_of(data=problem.data, passes=RowPasses(as_rows(problem.data)), max_passes=300)
    found = refine(goal, jnp.asarray(problem.components[:K]), route="test", used=0)
    assert found.outcome.status is not Status.CONVERGED
    assert found.certificate.angle[3] == math.pi / 2
    assert found.certificate.streak(1e-3) <= 3


def test_passes_are_never_exceeded_and_the_outcome_says_so():
    found = refine(goal_of(tol=1e-9, max_passes=3), start(), route="test", used=0)
    assert found.outcome.passes == 3
    assert found.outcome.status is Status.PASSES_SPENT
    assert found.certificate.kind == "certified"


def test_float32_ends_at_its_floor_with_a_certificate_of_the_best_it_had():
    found = refine(
        goal_of("float32", tol=1e-12, max_passes=60), start("float32"), route="test", used=0
    )
    assert found.outcome.status is Status.FLOOR_REACHED
    assert found.outcome.passes < 60
    assert found.certificate.kind == "certified"
    # The data as given are the rows in float32.
    data = PROBLEM.data.astype("float32").astype("float64")
    truth = np.linalg.eigh(data.T @ data)[1].T[::-1][:K]
    true = metrics.angular_error(found.players[:K].astype("float64"), truth)
    assert (true <= found.certificate.angle).all()
    assert true.max() < 1e-4


def test_a_first_component_that_is_much_larger_does_not_end_refinement_for_the_others():
    # All residuals are soon small beside the first value: that is not yet the floor for the others.
    spectrum = np.append(1e4, 0.95 ** np.arange(149))
    problem = testing.rows_with(spectrum, 400, seed=3)
    rows = as_rows(problem.data.astype("float32"))
    goal = goal_of(
        "float32",
        problem.data,
        passes=RowPasses(rows),
        k=12,
        determined=12,
        max_passes=60,
        tol=0.05,
    )
    begun = jnp.asarray(testing.orthogonal(150, 5)[:16], "float32")
    found = refine(goal, begun, route="test", used=0)
    assert found.certificate.angle.max() <= 0.05
    off = metrics.angular_error(found.players[:12].astype("float64"), problem.components[:12])
    assert off.max() < 0.01


def test_with_as_many_players_as_features_nothing_can_be_missed():
    everyone = jnp.asarray(testing.orthogonal(D, 3))
    found = refine(goal_of(tol=1e-6), everyone, route="test", used=0)
    assert found.certificate.confidence == 1
    assert found.certificate.probes == 0
    assert found.outcome.status is Status.CONVERGED
    assert found.outcome.passes == 1


@pytest.mark.parametrize("tol", [0.05, 1e-3, 1e-4, None])
def test_with_rounding_in_float32_nothing_is_sure(tol):
    """Whether errors are measured by random vectors, or taken to be independent: they may be larger."""
    everyone = jnp.asarray(testing.orthogonal(D, 3), "float32")
    found = refine(goal_of("float32", tol=tol), everyone, route="test", used=0).certificate
    assert (found.kind, found.probes) == ("certified", 0)
    assert found.confidence == 1 - RISK


def test_on_a_device_nothing_is_sure():
    """The bound on rounding is a probable one, in float64 too."""
    everyone = jnp.asarray(testing.orthogonal(D, 3))
    goal = goal_of(in_float64=False)
    found, _ = search(goal, measure(goal.passes, everyone, None), 1)
    assert found.confidence == 1 - RISK


def test_a_tie_converges_in_its_cluster():
    spectrum = np.concatenate([[1.0, 0.5, 0.5, 0.2], 0.1 * testing.harmonic(D - 4)])
    # Rows whose scatter matrix has the tie exactly, up to the rounding of the rows.
    problem = testing.rows_with(spectrum, 120, seed=6)
    goal = goal_of(data=problem.data, passes=RowPasses(as_rows(problem.data)))
    found = refine(goal, start(), route="test", used=0)
    assert found.outcome.status is Status.CONVERGED_IN_CLUSTERS
    assert [one.members for one in found.certificate.clusters] == [(1, 2)]
    assert (found.certificate.angle[[0, 3]] <= 1e-3).all()


def test_a_missed_component_is_found_by_the_probes():
    problem = testing.rows_with(testing.exponential(D, 1, 1e-3), 100, seed=1)
    players = np.delete(problem.components[:9], 2, axis=0)
    goal = goal_of(
        data=problem.data, passes=RowPasses(as_rows(problem.data)), max_passes=6, tol=None
    )
    blind = certify_by_one_pass(goal, players)
    assert blind.kind == "conditional"
    assert blind.streak(0.1) == 4  # settled on exact but wrong eigenvectors, it cannot know
    seen = certify(goal, players)
    assert seen.kind == "certified"
    assert seen.level >= problem.eigenvalues[2]
    assert seen.streak(0.1) <= 2


def test_all_looks_together_stay_within_the_risk():
    assert FIRST_RISK + sum(map(share_of_risk, range(1, 1000))) <= PROBES_RISK
    assert share_of_risk(1) == (PROBES_RISK - FIRST_RISK) / 2
    # Routes that follow one another, and what they measure.
    assert PROBES_RISK + START_RISK + EXACT_RISK + 2 * ROUNDING_RISK <= RISK


def test_float32_is_enough_for_a_tolerance_well_above_its_rounding():
    # No pass in float64: the components are the players of the last pass, and the bound allows for their rounding.
    goal = goal_of("float32", tol=0.05)
    found = refine(goal, start("float32"), route="test", used=0)
    assert found.outcome.status is Status.CONVERGED
    assert found.certificate.kind == "certified"
    truth = np.linalg.eigh(PROBLEM.data.T @ PROBLEM.data)[1].T[::-1][:K]
    true = metrics.angular_error(found.players[:K].astype("float64"), truth)
    assert (true <= found.certificate.angle).all()
    assert (found.certificate.angle > 1e-6).all()


def test_float64_measures_what_float32_cannot_separate():
    spectrum = np.concatenate([[1.0, 0.5, 0.5 - 1e-6, 0.2], 0.1 * testing.harmonic(D - 4)])
    problem = testing.rows_with(spectrum, 120, seed=6)
    data = problem.data.astype("float32")
    goal = goal_of("float32", data, passes=RowPasses(as_rows(data)))
    found = refine(goal, start("float32"), route="test", used=0)
    assert found.outcome.status is Status.CONVERGED
    wide = data.astype("float64")
    truth = np.linalg.eigh(wide.T @ wide)[1].T[::-1][:K]
    true = metrics.angular_error(found.players[:K].astype("float64"), truth)
    assert (true <= found.certificate.angle).all()
    # Without float64 the pair is reported as inseparable.
    blind = refine(
        goal_of("float32", data, passes=RowPasses(as_rows(data)), in_float64=False),
        start("float32"),
        route="test",
        used=0,
    )
    assert blind.outcome.status is Status.CONVERGED_IN_CLUSTERS
    assert [one.members for one in blind.certificate.clusters] == [(1, 2)]


def test_a_later_look_takes_a_smaller_risk_and_so_allows_for_more():
    # The same probes, seeded alike: only the share of the risk differs.
    now = measure(halves(), start(), None)
    first, second = (
        search(goal_of(seed=seed, max_passes=1, tol=None, in_float64=False), now, 0, look)[0]
        for seed, look in [(5, 1), (4, 2)]
    )
    assert second.level > first.level * 1.01


def test_the_rounding_of_products_reaches_bounds_and_probes(monkeypatch):
    floors, errors = [], []
    original = space_certificate.certificate

    def spied(*args, **options):
        floors.append(options["floor"])
        return original(*args, **options)

    monkeypatch.setattr(space_certificate, "certificate", spied)
    level = refining.Probes.level
    monkeypatch.setattr(
        refining.Probes, "level", lambda self, risk: errors.append(self.errors) or level(self, risk)
    )
    refine(goal_of(max_passes=2, tol=None), start(), route="test", used=0)
    # The least that scores can be off: d roundings of the largest value.
    least = D * 2.0**-53 * PROBLEM.eigenvalues[0]
    assert all((floor > least).all() for floor in floors)
    assert all(error > least for each in errors for error in each[1:])
    assert len(errors) == 2


def test_players_are_bounded_as_they_are_given():
    given = np.asarray(start())
    given = np.linalg.qr((PROBLEM.components[:10] + 0.01 * given).T)[0].T
    found = certify(goal_of(tol=None, max_passes=5), given)
    true = metrics.angular_error(given[:K], PROBLEM.components)
    assert (true <= found.angle).all()
    assert (found.angle < 10 * true).all()


def test_players_that_are_not_orthonormal_are_measured_as_they_are():
    rng = np.random.default_rng(0)
    given = PROBLEM.components[:6] + 0.02 * rng.normal(size=(6, D))
    for in_float64 in (True, False):
        with jax.enable_x64(True):
            found = certify_by_one_pass(goal_of(tol=None, in_float64=in_float64), given)
        true = metrics.angular_error(given[:K], PROBLEM.components)
        assert found.kind == "conditional"
        assert (true <= found.angle).all()


def test_the_level_outside_the_first_players_allows_for_errors_of_the_images():
    directions, values = np.eye(6)[:4], np.array([4.0, 3.0, 2.0, 1.0])
    exact, rough = (
        KrylovSpace(directions, values[:, None] * directions, np.full(4, error), np.zeros(4))
        for error in (0.0, 0.1)
    )
    assert space_certificate._level_with(exact, 2, 0.5) == pytest.approx(2.0)
    assert space_certificate._level_with(rough, 2, 0.5) > 2.0 + 0.1 * math.sqrt(2)


@pytest.mark.parametrize("seed", range(20))
def test_the_level_outside_the_first_players_bounds_the_eigenvalues_there(seed):
    """Directions of small variance may have large residuals, which raise the level by little."""
    rng = np.random.default_rng(seed)
    count, size, d = 3, 7, 20
    inside = np.diag([9.0, 8.0, 7.0, *np.sort(rng.uniform(0.1, 2.0, size - count))[::-1]])
    across = np.zeros((size, d - size))
    across[count:] = rng.normal(size=(size - count, d - size)) * rng.choice([0.1, 0.3])
    outside = rng.normal(size=(d - size, d - size))
    outside = outside @ outside.T
    outside *= rng.uniform(0.5, 4.0) / np.linalg.eigvalsh(outside)[-1]
    matrix = np.block([[inside, across], [across.T, outside]])
    space = KrylovSpace(np.eye(d)[:size], matrix[:size], np.zeros(size), np.zeros(size))
    level = float(np.linalg.eigvalsh(outside)[-1])
    bound = space_certificate._level_with(space, count, level)
    true = float(np.linalg.eigvalsh(matrix[count:, count:])[-1])
    coupling = np.linalg.norm(across[count:], 2)
    value = inside[count, count]
    plain = (value + level) / 2 + math.hypot((value - level) / 2, coupling)
    assert true <= bound <= plain + 1e-12
