"""Probes bound what lies outside the players, with the probability they state, by any polynomial of M."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from eigengame import testing
from eigengame.solver.certificates import probes as probes_module
from eigengame.solver.certificates.krylov_space import extended, fresh_directions, krylov_space
from eigengame.solver.certificates.probes import Probes, draw_probes

D, K = 40, 6
MATRIX = testing.matrix_with(testing.harmonic(D), seed=2)
# Near the components, as after one pass: residuals are small but not zero.
ROUGH = np.linalg.qr(
    (MATRIX.components[:K] + 0.03 * np.random.default_rng(7).standard_normal((K, D))).T
)[0].T


def outside_of(players, matrix=MATRIX.data):
    """The largest eigenvalue of M outside the players, with its eigenvector."""
    rest = np.linalg.svd(players)[2][len(players) :]
    values, vectors = np.linalg.eigh(rest @ matrix @ rest.T)
    return values[-1], vectors[:, -1] @ rest


def played(players, seed, products, *, first, count=8, matrix=MATRIX.data):
    """Probes after a number of products, of which the first may have come before the players."""
    draws = draw_probes(seed, count, D)
    probes = Probes.outside(players, draws)
    if first:
        probes = Probes.after_first_pass(players, draws, draws @ matrix, 0.0)
    space = krylov_space(players, players @ matrix, *np.zeros((2, len(players))))
    while probes.powers < products:
        block = probes.block()
        probes = probes.multiplied(block, block @ matrix, np.zeros(count)).with_space(space)
        fresh = fresh_directions(space, len(players))
        space = extended(space, fresh, fresh @ matrix, *np.zeros((2, len(fresh))))
    return probes


@pytest.mark.parametrize("first", [False, True])
def test_blocks_act_on_the_direction_outside_like_powers_of_its_eigenvalue(first):
    probes = played(ROUGH, 0, 4, first=first)
    value, direction = outside_of(ROUGH)
    expected = probes.blocks[0] @ direction
    for power in range(probes.powers + 1):
        block, lag = probes._exact(power)
        made = block if lag is None else block - value * lag
        np.testing.assert_allclose(made @ direction, value**power * expected, atol=1e-12)


def test_residuals_follow_one_pass_later_than_products():
    probes = played(ROUGH, 0, 3, first=True)
    assert len(probes.residuals) == 2
    known = ROUGH @ MATRIX.data
    known = known - known @ ROUGH.T @ ROUGH
    np.testing.assert_allclose(probes.residuals[0], known, atol=1e-12)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("products", [2, 4])
def test_the_level_is_too_small_no_more_often_than_stated(products, first):
    true, _ = outside_of(ROUGH)
    risk, trials = 0.2, 200
    levels = [
        played(ROUGH, seed, products, first=first, count=4).level(risk) for seed in range(trials)
    ]
    misses = np.mean(np.array(levels) < true)
    # At most the stated 20 %, plus three standard errors of the trials.
    assert misses <= risk + 3 * math.sqrt(risk * (1 - risk) / trials)
    assert np.median(levels) < 2 * true


def test_a_single_direction_outside_is_missed_as_often_as_the_risk_says():
    # One direction outside: the norm of the block is that direction's chi-squared variable, and nothing else.
    matrix = np.diag(np.append(np.zeros(D - 1), 1.0))
    players, risk, trials = np.eye(D)[:3], 0.1, 600
    levels = []
    for seed in range(trials):
        probes = Probes.outside(players, draw_probes(seed, 4, D))
        block = probes.block()
        levels.append(probes.multiplied(block, block @ matrix, np.zeros(4)).level(risk))
    misses = np.mean(np.array(levels) < 1 - 1e-6)
    assert abs(misses - risk) < 3 * math.sqrt(risk * (1 - risk) / trials)


def test_further_products_and_more_probes_lower_the_level():
    levels = [played(ROUGH, 3, products, first=False).level(1e-3) for products in range(1, 7)]
    assert (np.diff(levels) <= 0).all()
    assert levels[-1] < 0.6 * levels[0]
    assert played(ROUGH, 3, 2, first=False, count=30).level(1e-3) < levels[1]


@pytest.mark.parametrize("first", [False, True])
def test_inner_products_of_some_features_at_a_time_give_the_same_level(first, monkeypatch):
    whole = [played(ROUGH, 3, products, first=first).level(1e-3) for products in (1, 2, 5)]
    monkeypatch.setattr(probes_module, "FEATURES", 7)
    parts = [played(ROUGH, 3, products, first=first).level(1e-3) for products in (1, 2, 5)]
    np.testing.assert_allclose(parts, whole, rtol=1e-9)


def test_products_before_the_players_count_as_much_as_those_after():
    early, late = (played(ROUGH, 3, 3, first=first).level(1e-3) for first in (True, False))
    # The block of the largest power lags by one pass.
    assert early == pytest.approx(late, rel=0.2)


def test_one_product_gives_the_chi_squared_quantile_of_the_norm():
    probes = played(ROUGH, 5, 1, first=False)
    norm = np.linalg.norm(probes.blocks[1], 2)
    assert probes.level(0.05) == pytest.approx(norm / math.sqrt(chi2.ppf(0.05, df=8)))
    assert played(ROUGH, 5, 0, first=False).level(0.05) == math.inf


@pytest.mark.parametrize("unit", [1e-3, 1e5])
def test_the_unit_does_not_change_the_level(unit):
    expected = played(ROUGH, 4, 3, first=False).level(1e-3)
    draws = draw_probes(4, 8, D)
    probes = Probes.outside(ROUGH, draws, unit)
    for _ in range(3):
        block = probes.block()
        probes = probes.multiplied(block, block @ MATRIX.data, np.zeros(8))
    assert probes.level(1e-3) == pytest.approx(expected)


def test_rounding_that_hides_a_direction_is_allowed_for():
    # Products that lose a little of every vector, as rounding may.
    matrix, error = np.diag(np.append(np.zeros(D - 1), 1.0)), 0.5
    players, below = np.eye(D)[:3], 0
    for seed in range(200):
        probes = Probes.outside(players, draw_probes(seed, 4, D))
        images = probes.block() @ matrix
        lengths = np.linalg.norm(images, axis=1)
        lost = images * np.minimum(error / np.maximum(lengths, 1e-9), 1)[:, None]
        probes = probes.multiplied(probes.block(), images - lost, np.full(4, error))
        below += probes.level(0.01) < 1
    assert below <= 8


def test_rounded_directions_raise_the_level():
    probes = played(ROUGH, 5, 2, first=False)
    block = probes.block()
    rounded = np.round(block, 2)
    exact, rough = (
        probes.multiplied(given, given @ MATRIX.data, np.zeros(8)) for given in (block, rounded)
    )
    assert rough.errors[2] > 1e-4
    assert rough.level(1e-3) > exact.level(1e-3)


def test_probes_are_independent_of_data_drawn_from_the_same_seed():
    drawn = np.random.default_rng(3).standard_normal((8, D))
    assert np.abs(np.corrcoef(draw_probes(3, 8, D).ravel(), drawn.ravel())[0, 1]) < 0.2


def test_with_players_of_everything_the_rest_has_no_variance():
    matrix = np.diag(np.append(np.ones(3), np.zeros(D - 3)))
    probes = Probes.outside(np.eye(D)[:3], draw_probes(0, 4, D))
    block = probes.block()
    assert probes.multiplied(block, block @ matrix, np.zeros(4)).level(1e-3) < 1e-12
