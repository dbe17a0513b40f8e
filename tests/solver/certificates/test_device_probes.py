"""Probes on the device bound what lies outside the players, with the probability they state."""

import math

import jax
import numpy as np
import pytest
from scipy.stats import chi2

from eigengame import testing
from eigengame.solver.certificates.device_probes import draw_probes, missed_level, outside, powered

D = 40


def level_after(matrix, players, seed, powers, risk, count=4, error=0.0):
    probes = draw_probes(seed, count, players)
    for _ in range(powers):
        probes = powered(probes, probes.directions @ matrix, players, risk=risk, error=error)
    return probes.level


@pytest.mark.parametrize("powers", [1, 3])
def test_probes_bound_what_is_outside_with_their_stated_probability(powers):
    problem = testing.matrix_with(testing.harmonic(D), seed=2)
    players, true, risk, trials = problem.components[:6], problem.eigenvalues[6], 0.2, 300
    levels = [level_after(problem.data, players, seed, powers, risk) for seed in range(trials)]
    misses = np.mean(np.array(levels) < true)
    # At most the stated 20 %, plus three standard errors of the trials.
    assert misses <= risk + 3 * math.sqrt(risk * (1 - risk) / trials)
    assert np.median(levels) < (10 if powers == 1 else 2.5) * true


def test_a_single_direction_outside_is_missed_as_often_as_the_risk_says():
    # One direction outside: the norm of the block is that direction's chi-squared variable, and nothing else.
    matrix = np.diag(np.append(np.zeros(D - 1), 1.0))
    players, risk, trials = np.eye(D)[:3], 0.1, 600
    levels = [level_after(matrix, players, seed, 1, risk) for seed in range(trials)]
    misses = np.mean(np.array(levels) < 1 - 1e-6)
    assert abs(misses - risk) < 3 * math.sqrt(risk * (1 - risk) / trials)


def test_the_level_is_that_of_the_chi_squared_quantile_and_grows_with_rounding():
    least = math.sqrt(chi2.ppf(0.05, df=3))
    assert missed_level((0.0, math.log(4.0)), 3, 0.05) == pytest.approx(4 / least, rel=1e-6)
    assert missed_level((0.0, 0.0, math.log(4.0)), 3, 0.05) == pytest.approx(
        (4 / least) ** 0.5, rel=1e-6
    )
    # One power: the error of each of three unit probes is added to the norm.
    wider = missed_level((0.0, math.log(4.0)), 3, 0.05, error=0.1)
    assert wider == pytest.approx((4 + 0.1 * math.sqrt(3)) / least, rel=1e-6)
    assert missed_level((0.0, -math.inf), 3, 0.1) == 0
    assert missed_level((0.0, -math.inf), 3, 0.1, error=0.1) > 0


def test_rounding_that_hides_a_direction_is_allowed_for():
    # Products that lose a little of every vector, as rounding may.
    matrix, error = np.diag(np.append(np.zeros(D - 1), 1.0)), 0.5
    players, below = np.eye(D)[:3], 0
    for seed in range(200):
        probes = draw_probes(seed, 4, players)
        images = probes.directions @ matrix
        lost = (
            images
            * np.minimum(error / np.maximum(np.linalg.norm(images, axis=1), 1e-9), 1)[:, None]
        )
        probes = powered(probes, images - lost, players, risk=0.01, error=error)
        below += probes.level < 1
    assert below <= 8


@pytest.mark.parametrize("there", [False, True])
def test_probes_have_no_part_in_the_players_even_where_most_of_them_lay_within(there):
    rng = np.random.default_rng(0)
    players = np.linalg.qr(rng.standard_normal((D, 6)))[0].T
    # Each lies within the span but for a hundred-millionth: subtracting once leaves a part as large.
    within = rng.standard_normal((3, 6)) @ players
    directions = within + 1e-9 * rng.standard_normal((3, D))
    with jax.enable_x64(True):
        given = (
            (jax.numpy.asarray(directions), jax.numpy.asarray(players))
            if there
            else (directions, players)
        )
        found = np.asarray(outside(*given))
    left = np.linalg.norm(found @ players.T, axis=1) / np.linalg.norm(found, axis=1)
    assert (left < 1e-12).all()


def test_probes_on_the_device_are_powered_alike():
    problem = testing.matrix_with(testing.harmonic(D), seed=3)
    players = problem.components[:4]
    with jax.enable_x64(True):
        there = jax.numpy.asarray(players)
        probes = draw_probes(5, 8, there)
        host = probes._replace(directions=np.asarray(probes.directions))
        for _ in range(2):
            probes = powered(probes, probes.directions @ problem.data, there, risk=0.01, error=1e-9)
            host = powered(host, host.directions @ problem.data, players, risk=0.01, error=1e-9)
    assert probes.level == pytest.approx(host.level, rel=1e-9)
    assert probes.powers == host.powers == 2
