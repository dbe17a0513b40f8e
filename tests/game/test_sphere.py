import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import random_players, sphere
from eigengame.linalg import orthonormal
from eigengame.linalg.orthonormal import inner, norms, orthonormalise, safe_norms
from tests.tolerance import assert_close


def test_tangent_projection_is_orthogonal_to_the_player_and_keeps_the_rest(dtype):
    players = random_players(0, 4, 9, dtype)
    directions = 3 * random_players(1, 4, 9, dtype)
    tangent = sphere.project_tangent(players, directions)
    assert_close(1 + inner(tangent, players), np.ones((4, 1)))
    assert_close(tangent + inner(directions, players) * players, directions)


def test_retraction_gives_unit_rows_over_sixty_orders_of_magnitude():
    scales = 10.0 ** jnp.arange(-30, 31, 10)
    players = scales[:, None] * random_players(0, 7, 9, "float64")
    for dtype in ("float32", "float64"):
        retracted = sphere.retract(players.astype(dtype))
        assert_close(norms(retracted), np.ones((7, 1), dtype))
        assert_close(retracted, random_players(0, 7, 9, "float64").astype(dtype))


def test_retraction_leaves_a_zero_row_zero():
    np.testing.assert_array_equal(sphere.retract(jnp.zeros((2, 3))), 0)


def test_safe_norms_do_not_underflow_nor_overflow():
    scales = np.array([1e-30, 1e-10, 1.0, 1e10, 1e30], "float32")
    lengths = safe_norms(jnp.asarray(scales)[:, None] * jnp.ones((5, 4), "float32"))
    assert_close(lengths / scales, np.full(5, 2.0))
    np.testing.assert_array_equal(safe_norms(jnp.zeros((2, 4))), 0)


def test_ball_keeps_short_rows_and_shortens_long_ones():
    players = jnp.array([[0.3, 0.4], [3.0, 4.0]])
    assert_close(sphere.into_ball(players), np.array([[0.3, 0.4], [0.6, 0.8]]))


def test_orthonormalise_keeps_span_order_and_sign(dtype):
    players = random_players(2, 4, 9, dtype)
    q = orthonormalise(players)
    assert_close(q @ q.T, np.eye(4))
    # Row i of players is made of the first i + 1 rows of q, with a positive last coefficient.
    coordinates = players @ q.T
    assert_close(1 + jnp.triu(coordinates, 1), np.ones((4, 4)))
    assert (jnp.diag(coordinates) > 0).all()


WIDE = (5, orthonormal.WIDE)


def wide_rows(kind):
    """Five wide rows: apart, leaning on each other, of all sizes, or such that only QR can tell."""
    rows = np.random.default_rng(3).normal(size=WIDE)
    if kind == "leaning":
        rows = rows + 3 * rows[:1]
    if kind == "of all sizes":
        rows = rows * np.array([1e-15, 1e15, 1.0, -1e-10, 1e10])[:, None]
    if kind == "nearly parallel":
        rows[3] = rows[1] + 1e-4 * rows[3]
    if kind == "parallel":
        rows[3] = 2 * rows[1]
    if kind == "zero":
        rows[2] = 0
    return rows


@pytest.mark.parametrize("kind", ["apart", "leaning", "of all sizes"])
def test_wide_players_are_orthonormalised_by_products_as_by_qr(dtype, kind):
    rows = wide_rows(kind)
    q, r = np.linalg.qr(rows.T)
    found = orthonormalise(jnp.asarray(rows, dtype))
    assert found.dtype == dtype
    assert_close(np.asarray(found) @ np.asarray(found).T, np.eye(5))
    assert_close(found, (q * np.sign(np.diag(r))).T)
    # Products it was, not the QR they replace: the last digits differ.
    assert (found != orthonormal._by_qr(jnp.asarray(rows, dtype))).any()


@pytest.mark.parametrize("kind", ["nearly parallel", "parallel", "zero"])
def test_wide_players_that_are_not_apart_are_left_to_qr(dtype, kind):
    rows = jnp.asarray(wide_rows(kind), dtype)
    found = np.asarray(orthonormalise(rows))
    np.testing.assert_array_equal(found, orthonormal._by_qr(rows))
    assert_close(found @ found.T, np.eye(5))


def test_random_players_are_repeatable_and_spread_evenly():
    one = random_players(7, 3, 5)
    np.testing.assert_array_equal(one, random_players(7, 3, 5))
    assert not np.allclose(one, random_players(8, 3, 5))
    many = np.concatenate([random_players(seed, 5, 5, "float64") for seed in range(400)])
    # 2000 unit rows: the mean of v v' is I / 5, each entry within 5 standard errors of about .005.
    np.testing.assert_allclose(many.T @ many / len(many), np.eye(5) / 5, atol=0.025)


@pytest.mark.parametrize(
    ("k", "d", "words"), [(0, 5, "k=0"), (6, 5, "5 features"), (2.5, 5, "2.5")]
)
def test_random_players_refuse_impossible_counts(k, d, words):
    with pytest.raises(ValueError, match=words):
        random_players(0, k, d)
