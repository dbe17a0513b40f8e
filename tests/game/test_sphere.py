import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import random_players, sphere
from eigengame.linalg.orthonormal import inner, norms
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


def test_ball_keeps_short_rows_and_shortens_long_ones():
    players = jnp.array([[0.3, 0.4], [3.0, 4.0]])
    assert_close(sphere.into_ball(players), np.array([[0.3, 0.4], [0.6, 0.8]]))


def test_random_players_are_reproducible_and_uniform():
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
