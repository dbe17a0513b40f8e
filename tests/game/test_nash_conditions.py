"""Conditions of the Nash equilibrium (Theorem eigvec_opt, appendix Without the Hierarchy), by counter-examples."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame.game import Rules, random_players
from eigengame.game.utilities import PAPER, utilities

SPECTRUM = np.array([5.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1])
K, D = 4, SPECTRUM.size
seeds = st.integers(0, 2**31 - 1)
compiled = jax.jit(utilities, static_argnums=1)


def utility_of(spectrum, players, i, rules=PAPER):
    """The utility of one player on diag(spectrum)."""
    players = np.asarray(players)
    return float(compiled((players * spectrum) @ players.T, rules)[i])


@pytest.mark.parametrize("angle", [0.3, np.pi / 2, 2.0])
def test_a_tie_after_the_last_player_leaves_an_equilibrium_that_is_neither_strict_nor_unique(angle):
    # The top two eigenvalues of diag(3, 2, 2) are positive and distinct, as Theorem eigvec_opt assumes.
    truth, spectrum = np.eye(3), np.array([3.0, 2.0, 2.0])
    other = np.cos(angle) * truth[1] + np.sin(angle) * truth[2]
    assert utility_of(spectrum, truth[:2], 1) == 2
    assert utility_of(spectrum, [truth[0], other], 1) == pytest.approx(2)
    # With a gap after the last player the same deviation loses.
    assert utility_of(np.array([3.0, 2.0, 1.9]), [truth[0], other], 1) < 2 - 0.005


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_at_a_tie_any_orthonormal_basis_of_the_eigenspace_is_an_equilibrium_and_not_strict(seed):
    spectrum, angle = np.array([3.0, 3.0, 1.0]), seed % 7
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    basis = np.concatenate([turn, np.zeros((2, 1))], axis=1)
    away = np.asarray(random_players(seed, 2, 3, "float64"))
    for i in range(2):
        assert utility_of(spectrum, basis, i) == pytest.approx(3)
        deviated = basis.copy()
        deviated[i] = away[i]
        assert utility_of(spectrum, deviated, i) <= 3 + 1e-12
    # Not strict: player 1 is indifferent within the eigenspace.
    assert utility_of(spectrum, [basis[1], basis[1]], 0) == pytest.approx(3)


def test_a_last_eigenvalue_of_zero_or_below_has_no_strict_equilibrium_at_its_eigenvector():
    truth = np.eye(3)
    # Of 0: every vector has utility 0, so that the best response is not strict.
    spectrum = np.array([3.0, 1.0, 0.0])
    for last in truth:
        assert utility_of(spectrum, [*truth[:2], last], 2) == pytest.approx(0)
    # Below 0: a parent's vector is a better response.
    spectrum = np.array([3.0, 1.0, -1.0])
    assert utility_of(spectrum, truth, 2) == -1
    assert utility_of(spectrum, [*truth[:2], truth[0]], 2) == pytest.approx(0)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_without_the_hierarchy_eigenvalues_after_the_last_player_remain_in_the_utility(seed):
    # Printed: Lambda_ii z_i, which is the utility for k = d only.
    rules, v = Rules(hierarchy=False), np.asarray(random_players(seed, 1, D, "float64"))[0]
    for k in (K, D):
        for i in range(k):
            players = np.eye(D)[:k]
            players[i] = v
            found = utility_of(SPECTRUM, players, i, rules)
            rest = float(SPECTRUM[k:] @ v[k:] ** 2)
            assert found == pytest.approx(SPECTRUM[i] * v[i] ** 2 + rest, abs=1e-12)
            assert (rest == 0) is (k == D)


def test_without_the_hierarchy_a_tie_after_the_last_player_is_not_strict_either():
    # diag(3, 2, 2) has rank 3, above k = 2, which is all that the proposition assumes.
    truth, spectrum = np.eye(3), np.array([3.0, 2.0, 2.0])
    rules = Rules(hierarchy=False)
    for last in (truth[1], truth[2], (truth[1] + truth[2]) / np.sqrt(2)):
        assert utility_of(spectrum, [truth[0], last], 1, rules) == pytest.approx(2)
    # With k = d a tie does not matter: every other player penalises its own component.
    assert utility_of(spectrum, truth, 1, rules) == 2
    mixed = (truth[1] + truth[2]) / np.sqrt(2)
    assert utility_of(spectrum, [truth[0], mixed, truth[2]], 1, rules) == pytest.approx(1)
