import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import testing
from eigengame.game import as_rows, as_symmetric_rows, random_players, settle
from eigengame.game.rayleigh_ritz import settle_coefficients
from eigengame.metrics import angular_error
from tests.tolerance import assert_close

PROBLEM = testing.matrix_with([9.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.1], seed=0)


def test_settling_a_mixed_basis_of_the_top_space_gives_the_components(dtype):
    rows = as_symmetric_rows(PROBLEM.data.astype(dtype))
    mixed = np.random.default_rng(1).normal(size=(3, 3)) @ PROBLEM.components[:3]
    values, players = settle(rows, jnp.asarray(mixed, dtype))
    assert players.dtype == dtype
    assert_close(values, PROBLEM.eigenvalues[:3].astype(dtype))
    # The error of an angle is rounding times scale over gap, 9 / 1 here.
    assert angular_error(np.asarray(players), PROBLEM.components).max() < 3e3 * np.finfo(dtype).eps


def test_settled_players_are_orthonormal_and_diagonalise_m():
    rows = as_symmetric_rows(PROBLEM.data)
    values, players = settle(rows, random_players(0, 4, 7, "float64"))
    assert_close(players @ players.T, np.eye(4))
    scores = rows.scores(players)
    assert_close(rows.gram(scores, scores), np.diag(values))


def test_arrays_and_lists_settle_as_rows_do():
    x, players = np.random.default_rng(0).normal(size=(20, 7)), random_players(0, 3, 7, "float64")
    values, settled = settle(x.tolist(), np.asarray(players).tolist())
    expected_values, expected = settle(as_rows(x), players)
    assert_close(values, expected_values)
    assert_close(settled, expected)
    with pytest.raises(ValueError, match="players has 6 features but rows has 7"):
        settle(x, players[:, :6])


def test_a_direction_above_the_cutoff_counts_and_one_below_it_does_not(dtype):
    # Overlaps diag(1, 1, s): s is kept above k eps and dropped below it.
    eps = float(np.finfo(dtype).eps)
    for size, kept in ((10 * eps, True), (eps, False)):
        overlaps = jnp.asarray(np.diag([1.0, 1.0, size]), dtype)
        gram = jnp.asarray(np.diag([3.0, 2.0, 5.0 * size]), dtype)
        values, coefficients = settle_coefficients(gram, overlaps)
        assert_close(values, np.array([5.0, 3, 2] if kept else [3.0, 2, 0], dtype))
        assert np.isfinite(coefficients).all()


@pytest.mark.parametrize("nearness", [0.0, 1e-12, 1e-9])
def test_parallel_players_settle_without_nan(nearness, dtype):
    rows = as_rows(np.random.default_rng(0).normal(size=(20, 7)).astype(dtype))
    one, other = random_players(0, 2, 7, dtype)
    players = jnp.stack([one, other, one + nearness * other])
    values, settled = settle(rows, players)
    assert np.isfinite(settled).all()
    assert (np.asarray(values) > -1e-3).all()
    exact, _ = settle(rows, jnp.stack([one, other]))
    # The third player adds nothing (or noise): the two real values stay.
    assert_close(values[:2], exact, factor=100)
