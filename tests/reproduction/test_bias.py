import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import testing
from eigengame.game import random_players
from eigengame.game.rows import DenseRows, SymmetricRows
from reproduction.curves import log_slope
from reproduction.experiments import bias
from reproduction.experiments.bias_draws import GAMES, directions, gaussian_bias
from tests import oracle

K, D = 4, 6
COVARIANCE = np.diag(testing.exponential(D, 1.0, 0.1))
PLAYERS = random_players(3, K, D, jnp.float32)


@pytest.fixture(scope="module")
def seen(results):
    return results("bias")


def gradient_of(players, covariance):
    """Alg. 2 on rows whose square is the covariance."""
    rows = np.sqrt(covariance)
    return np.array([oracle.algorithm_2_gradient(rows, players, i) for i in range(len(players))])


def test_the_gradient_of_one_row_loses_one_reward_per_parent_as_in_the_closed_form():
    """The penalties of one row are its reward once for each parent: what is left is 2 - i rewards."""
    row = np.random.default_rng(0).normal(size=(1, D)).astype(np.float32)
    players = np.asarray(PLAYERS, np.float64)
    shares = 2 * (1 - np.arange(K))[:, None]
    gradient = directions(DenseRows(jnp.asarray(row)), PLAYERS)[0]
    np.testing.assert_allclose(gradient, shares * (players @ row.T @ row), rtol=1e-3, atol=1e-4)
    expected = gradient_of(players, COVARIANCE) + gaussian_bias(players, COVARIANCE)
    np.testing.assert_allclose(expected, shares * (players @ COVARIANCE), atol=1e-12)


def test_the_closed_form_is_the_mean_over_many_small_batches():
    m, draws = 3, 4000
    rng, players = np.random.default_rng(1), np.asarray(PLAYERS, np.float64)
    batches = rng.normal(size=(draws, m, D)) * np.sqrt(np.diag(COVARIANCE))
    each = np.array(
        [[oracle.algorithm_2_gradient(x, players, i) for i in range(K)] for x in batches]
    )
    each /= m
    expected = gradient_of(players, COVARIANCE) + gaussian_bias(players, COVARIANCE) / m
    error = each.std(axis=0) / np.sqrt(draws)
    # 24 numbers: five standard errors come up by chance once in 70 000 such tests.
    assert (np.abs(each.mean(axis=0) - expected) < 5 * error).all()


def test_at_the_equilibrium_the_bias_is_parallel_to_the_players():
    players = np.eye(K, D)
    seen = gaussian_bias(players, COVARIANCE)
    along = -2 * np.arange(K) * np.diag(COVARIANCE)[:K]
    np.testing.assert_allclose(seen, along[:, None] * players, atol=1e-15)


def test_the_direction_of_mu_is_its_formula():
    players = np.asarray(PLAYERS, np.float64)
    naive = np.array([oracle.mu(COVARIANCE, players, i) for i in range(K)])
    naive -= np.sum(naive * players, axis=1, keepdims=True) * players
    rows = SymmetricRows(jnp.asarray(COVARIANCE, jnp.float32))
    seen = directions(rows, PLAYERS)[GAMES.index("mu")]
    np.testing.assert_allclose(seen, naive, atol=1e-6)


@pytest.mark.slow
def test_subtracting_the_linear_part_reduces_noise_and_keeps_the_mean(seen):
    found = seen["streams"]["Gaussian"]["EigenGame"]
    plain, paired = (
        {key: one[-1] for key, one in found[how].items()} for how in ("plain", "paired")
    )
    assert paired["chance"] < 0.5 * plain["chance"]
    assert abs(paired["mean"] - plain["mean"]) < 3 * plain["chance"]


@pytest.mark.slow
def test_the_measured_bias_is_the_closed_form_and_linear_games_have_none(seen):
    assert max(seen["off exact"]) < 2
    for name in ("GHA", "mu"):
        assert max(seen["streams"]["Gaussian"][name]["paired"]["mean"]) < 1e-5
    gaussian = seen["streams"]["Gaussian"]["EigenGame"]["paired"]
    assert gaussian["bias"][-1] > 5 * gaussian["chance"][-1]


@pytest.mark.slow
def test_the_first_batch_has_the_bias_of_its_size(seen):
    memory = seen["memory"]
    assert memory["rows"][0] == 0
    alone = seen["exact"]["one row"] / memory["batch"]
    for one in memory["kept"].values():
        assert abs(one["bias"][0] - alone) < 3 * one["chance"][0]


def test_a_slope_is_the_power_and_ignores_zeros():
    assert log_slope([1, 4, 16, 64], [8, 2, 0.5, 0]) == pytest.approx(-1)


def test_the_claim_of_the_bias_depends_on_its_size_and_its_fall(stored):
    results = stored("bias")
    assert bias.claims(results)[0].holds
    seen = results["streams"]["heavy-tailed"]["EigenGame"]["paired"]
    seen["bias"][-1] = 2 * seen["bias"][-2]
    assert not bias.claims(results)[0].holds
    results = stored("bias")
    seen = results["streams"]["Gaussian"]["EigenGame"]["paired"]
    seen["chance"][0] = seen["bias"][0]
    assert not bias.claims(results)[0].holds


def test_the_summary_depends_on_the_distance_from_the_closed_form(stored):
    results = stored("bias")
    assert "the measured bias agrees with it" in bias.summary(results)
    results["off exact"][0] = 5.0
    assert "the measured bias differs from it (at most 5.00" in bias.summary(results)


def test_the_summary_compares_heavy_tails_with_gaussian_rows(stored):
    results = stored("bias")
    assert "have a larger bias" in bias.summary(results)
    results["streams"]["heavy-tailed"]["EigenGame"]["paired"]["bias"][-1] = 1e-9
    assert "have a smaller bias" in bias.summary(results)


def test_the_summary_depends_on_whether_linear_games_show_a_bias(stored):
    results = stored("bias")
    assert "GHA and mu are linear in M and show no bias" in bias.summary(results)
    results["streams"]["Gaussian"]["GHA"]["paired"]["mean"][0] = 0.1
    assert "Beyond chance or rounding, GHA deviates" in bias.summary(results)


def test_the_summary_depends_on_how_the_bias_falls_under_a_memory(stored):
    results = stored("bias")
    said = bias.summary(results)
    assert "rows falls like that of one batch of all rows seen" in said
    assert "with 16 players the bias levels off" in said
    assert "more players reduce it" in said
    kept = results["memory"]["kept"]
    for record in kept.values():
        record["bias"] = [
            2.0**-i if record is kept["16"] else 1.0 for i in range(len(record["bias"]))
        ]
    said = bias.summary(results)
    assert "rows does not fall like that of one batch" in said
    assert "with 16 players the bias keeps falling" in said
    assert "more players do not reduce it" in said
