import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import DenseRows, Rows, SampleRows, as_rows, as_symmetric_rows, random_players
from eigengame.game.memory import Memory, RememberedRows
from eigengame.game.sparse_rows import SparseRows
from tests.tolerance import assert_close

X = np.random.default_rng(0).normal(size=(7, 5))


class ScaledRows:
    """Rows with three products only, of which `gram` is not the plain product of scores: M = 4 X'X."""

    width = 5

    def scores(self, players):
        return jnp.asarray(X) @ players.T

    def gram(self, left, right):
        return 4 * left.T @ right

    def directions(self, scores):
        return 4 * scores.T @ jnp.asarray(X)


def memory():
    return Memory(
        random_players(0, 2, 5, "float64"), jnp.array([3.0, 1.0]), jnp.zeros(5), jnp.ones(())
    )


def test_dense_and_sparse_rows_are_samples_and_a_matrix_is_not():
    entries = jnp.asarray(X.ravel()), jnp.repeat(jnp.arange(7), 5), jnp.tile(jnp.arange(5), 7)
    sparse = SparseRows(*entries, jnp.ones(7), 5)
    for rows in (DenseRows(jnp.asarray(X)), sparse):
        assert isinstance(rows, SampleRows)
        assert (rows.mean, rows.parts) == (None, 1)
        players = random_players(1, 2, 5, "float64")
        assert_close(rows.pass_scores(players), X @ players.T)
        assert_close(rows.add_directions(players, X @ players.T), players + players @ X.T @ X)
    for rows in (as_symmetric_rows(X.T @ X), ScaledRows()):
        assert isinstance(rows, Rows)
        assert not isinstance(rows, SampleRows)
        assert as_rows(rows) is rows


def test_a_memory_uses_only_the_products_of_rows_that_are_not_samples():
    past, rows = memory(), RememberedRows.of(ScaledRows(), memory(), center=False).with_past()
    m = past.players.T @ jnp.diag(past.strengths) @ past.players + 4 * X.T @ X
    players = random_players(1, 3, 5, "float64")
    scores = rows.scores(players)
    assert_close(rows.gram(scores, scores), players @ m @ players.T)
    assert_close(rows.directions(scores), players @ m)
    with pytest.raises(ValueError, match=r"center=True but rows is a matrix.*give as_rows\(X\)"):
        RememberedRows.of(ScaledRows(), past, center=True)
