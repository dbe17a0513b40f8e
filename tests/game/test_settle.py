import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import as_rows, as_symmetric_rows, random_players, settle, testing
from eigengame.metrics import angular_error
from tests.tolerance import assert_close

PROBLEM = testing.matrix_with([9.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.1], seed=0)


def test_settling_a_mixed_basis_of_the_top_space_gives_the_components(dtype):
    rows = as_symmetric_rows(PROBLEM.data.astype(dtype))
    mixed = np.random.default_rng(1).normal(size=(3, 3)) @ PROBLEM.components[:3]
    values, players = settle(rows, jnp.asarray(mixed, dtype))
    assert players.dtype == dtype
    assert_close(values, PROBLEM.eigenvalues[:3].astype(dtype))
    # An angle is lost to rounding in proportion to scale over gap, 9 / 1 here.
    assert angular_error(np.asarray(players), PROBLEM.components).max() < 3e3 * np.finfo(dtype).eps


def test_settled_players_are_orthonormal_and_diagonalise_m():
    rows = as_symmetric_rows(PROBLEM.data)
    values, players = settle(rows, random_players(0, 4, 7, "float64"))
    assert_close(players @ players.T, np.eye(4))
    scores = rows.scores(players)
    assert_close(rows.gram(scores, scores), np.diag(values))


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
