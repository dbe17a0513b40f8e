import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from eigengame import metrics, play, play_stream, testing
from eigengame.algorithms import Alpha
from eigengame.game import Rules, as_rows, as_symmetric_rows, random_players
from eigengame.game.utilities import gradients, utilities
from tests import oracle
from tests.tolerance import assert_close

K, D = 4, 9
PROBLEM = testing.rows_with([1.0, 0.7, 0.45, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005], 50, seed=1)


def start(seed=0, dtype="float64"):
    return random_players(seed, K, D, dtype)


@pytest.mark.parametrize("riemannian", [True, False])
def test_ten_updates_follow_algorithm_2_in_loops(riemannian):
    batches = np.random.default_rng(0).normal(size=(10, 12, D))
    expected = np.asarray(start())
    for batch in batches:
        expected = oracle.algorithm_2(batch, expected, 0.01, riemannian=riemannian)
    played = play_stream(Alpha(0.01, riemannian=riemannian), batches, players=start())
    assert_close(played.components, expected)


def test_info_reports_utilities_before_the_move():
    x, players = PROBLEM.data, start()
    info = play(Alpha(0.1), x, players=players, rounds=1).info
    v = np.asarray(players)
    expected = np.array([oracle.utility(v[i], v[:i], x.T @ x) for i in range(K)])
    assert_close(info.utilities[0], expected)


def test_a_schedule_gets_the_number_of_previous_updates():
    scheduled = play(Alpha(lambda step: 0.1 / (1 + step)), PROBLEM.data, players=start(), rounds=3)
    expected = np.asarray(start())
    for t in range(3):
        expected = oracle.algorithm_2(PROBLEM.data, expected, 0.1 / (1 + t))
    assert_close(scheduled.components, expected)


def test_optax_sgd_is_a_plain_step_and_adam_finds_the_components():
    plain = play(Alpha(0.1), PROBLEM.data, players=start(), rounds=20)
    sgd = play(Alpha(optimizer=optax.sgd(0.1)), PROBLEM.data, players=start(), rounds=20)
    assert_close(sgd.components, plain.components)
    adam = play(Alpha(optimizer=optax.adam(0.02)), PROBLEM.data, players=start(), rounds=1500)
    assert (
        metrics.longest_streak(np.asarray(adam.components), PROBLEM.components, math.pi / 32) == K
    )


def test_with_own_batches_each_player_uses_only_its_batch():
    own = np.random.default_rng(1).normal(size=(K, 12, D))
    together = play(Alpha(0.01, own_batches=True), own, players=start(), rounds=1)
    for i in range(K):
        alone = oracle.algorithm_2(own[i], np.asarray(start()), 0.01)[i]
        assert_close(together.components[i], alone)
        assert_close(
            together.info.utilities[0, i],
            play(Alpha(), own[i], players=start(), rounds=1).info.utilities[0, i],
        )


def test_equal_own_batches_give_the_game_with_one_batch():
    shared = play(Alpha(0.1), PROBLEM.data, players=start(), rounds=5)
    copies = np.stack([PROBLEM.data] * K)
    own = play(Alpha(0.1, own_batches=True), copies, players=start(), rounds=5)
    assert_close(own.components, shared.components)


def naive_broadcast(x, players, step_size, updates, arrives):
    """Alg. 2 with the last broadcasts of parents; arrives(t) is the mask of broadcasts after update t."""
    broadcast = np.array(players)
    for t in range(updates):
        moved = []
        for i, v in enumerate(players):
            known = np.array([*broadcast[:i], v])
            gradient = oracle.algorithm_2_gradient(x, known, i)
            w = v + step_size * (gradient - (gradient @ v) * v)
            moved.append(w / np.linalg.norm(w))
        players = np.array(moved)
        broadcast = np.where(arrives(t)[:, None], players, broadcast)
    return players


def test_lag_uses_the_last_broadcast_of_the_parents():
    lagged = play(Alpha(0.1, lag=3), PROBLEM.data, players=start(), rounds=7)
    expected = naive_broadcast(
        PROBLEM.data, np.asarray(start()), 0.1, 7, lambda t: np.full(K, (t + 1) % 3 == 0)
    )
    assert_close(lagged.components, expected)


def test_dropout_loses_broadcasts_at_its_rate_and_repeats_for_a_seed():
    algorithm = Alpha(1e-3, dropout=0.3, seed=5)
    state = algorithm.init(start())
    update = jax.jit(algorithm.update)
    arrived = []
    for _ in range(400):
        before = state
        state, _ = update(as_rows(PROBLEM.data), before)
        arrived.append(np.any(np.asarray(state.broadcast) != np.asarray(before.broadcast), axis=1))
    # 1600 broadcasts: five standard errors of a share of .7 are .057.
    assert np.mean(arrived) == pytest.approx(0.7, abs=0.057)
    replay = naive_broadcast(PROBLEM.data, np.asarray(start()), 1e-3, 400, lambda t: arrived[t])
    assert_close(state.players, replay, factor=10)
    again = play(algorithm, PROBLEM.data, players=start(), rounds=400)
    assert_close(again.components, state.players)
    other = play(Alpha(1e-3, dropout=0.3, seed=6), PROBLEM.data, players=start(), rounds=400)
    assert not np.array_equal(other.components, again.components)


@pytest.mark.parametrize(
    "algorithm", [Alpha(0.2, lag=4), Alpha(0.2, dropout=0.5), Alpha(0.2, lag=2, dropout=0.5)]
)
def test_late_and_lost_broadcasts_still_reach_the_components(algorithm):
    played = play(algorithm, PROBLEM.data, k=K, rounds=600)
    assert (
        metrics.longest_streak(np.asarray(played.components), PROBLEM.components, math.pi / 32) == K
    )


def test_on_the_ball_players_grow_to_the_sphere_and_find_the_components():
    played = play(
        Alpha(0.2, surface="ball", riemannian=False), PROBLEM.data, players=start() / 2, rounds=600
    )
    assert_close(jnp.linalg.norm(played.components, axis=1), np.ones(K))
    assert (
        metrics.longest_streak(np.asarray(played.components), PROBLEM.components, math.pi / 32) == K
    )


def test_without_the_hierarchy_some_nash_is_found_but_not_the_order():
    rules = Rules(hierarchy=False)
    played = play(Alpha(0.1, rules=rules), PROBLEM.data, k=K, rounds=3000)
    streak = metrics.longest_streak(np.asarray(played.components), PROBLEM.components)
    assert streak < K
    assert float(played.info.direction_norms[-1].max()) < 1e-2


@pytest.mark.parametrize(
    ("rules", "step_size"),
    [
        (Rules(hierarchy=False), 1e-4),
        (Rules(hierarchy=False), 1e-5),
        # Without the normaliser penalties have the size of M squared, and so has the inverse of the step size.
        (Rules(hierarchy=False, normaliser=False), 1e-6),
        (Rules(hierarchy=False, normaliser=False), 3e-7),
    ],
)
def test_without_the_hierarchy_no_leading_components_are_found_on_the_papers_spectrum(
    rules, step_size
):
    # A footnote of Message Passing on a DAG: at most 1 without the hierarchy, and 5 also without the normaliser.
    rows = as_symmetric_rows(np.diag(testing.linear(50)))
    for seed in range(2):
        played = play(Alpha(step_size, rules=rules), rows, k=50, rounds=3000, seed=seed)
        found = np.asarray(played.components)
        assert metrics.longest_streak(found, np.eye(50)) <= 1
        # Nor among all players in any order.
        matched = found[metrics.match(found, np.eye(50))]
        assert metrics.longest_streak(matched, np.eye(50)) <= 1
        assert np.sum(metrics.angular_error(matched, np.eye(50)) <= math.pi / 8) <= 3


def test_with_the_hierarchy_the_same_game_finds_them():
    rows = as_symmetric_rows(np.diag(testing.linear(50)))
    played = play(Alpha(1e-3), rows, k=50, rounds=3000)
    assert metrics.longest_streak(np.asarray(played.components), np.eye(50)) >= 48


def test_the_bias_of_alphas_direction_falls_with_the_batch():
    rng = np.random.default_rng(0)
    players, x = start(), PROBLEM.data * math.sqrt(len(PROBLEM.data))

    @jax.jit
    def direction(batch):
        return gradients(as_rows(batch), players)

    def bias(size, draws=20_000):
        """Return the distance of the last player's mean direction from its direction on all rows."""
        picks = rng.integers(0, len(x), size=(draws, size))
        batches = jnp.asarray(x[picks]) / math.sqrt(size)
        off = jax.vmap(direction)(batches).mean(axis=0) - exact
        return float(jnp.linalg.norm(off[-1]))

    exact = direction(jnp.asarray(x) / math.sqrt(len(x)))
    small, large = bias(4), bias(32)
    # A ratio of two sums over a batch, whose bias is inversely proportional to the batch size.
    assert small > 4 * large
    assert small > 0.05 * float(jnp.linalg.norm(exact[-1]))


@pytest.mark.parametrize("rules", [Rules(h, n) for h in (True, False) for n in (True, False)])
def test_an_update_follows_the_autodiff_gradient_of_the_utility_of_its_rules(rules):
    players, rows = start(), as_rows(PROBLEM.data)

    def own_utility(v, i):
        scores = rows.scores(players.at[i].set(v))
        return utilities(rows.gram(scores, scores), rules)[i]

    moved = []
    found = jax.jit(jax.vmap(jax.grad(own_utility)))(players, jnp.arange(K))
    for v, gradient in zip(np.asarray(players), np.asarray(found), strict=True):
        w = v + 0.1 * (gradient - (gradient @ v) * v)
        moved.append(w / np.linalg.norm(w))
    for given in (rules, tuple(rules)):
        played = play(Alpha(0.1, rules=given), PROBLEM.data, players=players, rounds=1)
        assert_close(played.components, np.stack(moved))


@pytest.mark.parametrize("options", [{"lag": 2}, {"dropout": 0.5, "seed": 3}])
def test_own_batches_use_the_last_broadcast(options):
    own = np.random.default_rng(2).normal(size=(K, 12, D))
    algorithm = Alpha(0.01, own_batches=True, **options)
    state, update = algorithm.init(start()), jax.jit(algorithm.update)
    for _ in range(5):
        broadcast, players = np.asarray(state.broadcast), np.asarray(state.players)
        expected = []
        for i, v in enumerate(players):
            gradient = oracle.algorithm_2_gradient(own[i], np.array([*broadcast[:i], v]), i)
            w = v + 0.01 * (gradient - (gradient @ v) * v)
            expected.append(w / np.linalg.norm(w))
        state, _ = update(as_rows(own), state)
        assert_close(state.players, np.array(expected))
    # Broadcasts are earlier players, which can differ from the current ones.
    assert np.any(np.asarray(state.broadcast) != np.asarray(state.players))


def test_a_short_player_stays_short_on_the_ball_and_not_on_the_sphere():
    ball = Alpha(1e-3, surface="ball", riemannian=False)
    state = ball.init(start() / 2)
    moved = ball.update(as_rows(PROBLEM.data), state)[0].players
    gradient = gradients(as_rows(PROBLEM.data), start() / 2)
    assert_close(moved, start() / 2 + 1e-3 * gradient)
    plain = Alpha(1e-3, riemannian=False)
    moved = plain.update(as_rows(PROBLEM.data), state)[0].players
    assert_close(jnp.linalg.norm(moved, axis=1), np.ones(K))


def test_a_lag_beyond_int32_never_broadcasts():
    played = play(Alpha(0.1, lag=10**12), PROBLEM.data, players=start(), rounds=3)
    assert_close(played.state.broadcast, start())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step_size": 0}, "step_size=0"),
        ({"step_size": -1e-3}, "step_size=-0.001"),
        ({"step_size": math.nan}, "step_size=nan"),
        ({"step_size": "fast"}, "step_size='fast'"),
        ({"surface": "cube"}, "surface='cube'"),
        ({"lag": 0}, "lag=0"),
        ({"dropout": 1.0}, r"dropout=1\.0"),
        ({"surface": "ball"}, "give riemannian=False"),
        ({"optimizer": "adam"}, "optimizer='adam': give an optax optimiser"),
        ({"rules": (True,)}, r"rules=\(True,\): give Rules"),
        ({"rules": ("yes", "no")}, "each True or False"),
        ({"seed": 1.5}, r"seed=1\.5"),
    ],
)
def test_errors_name_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        Alpha(**options)


def test_own_batches_must_be_one_for_each_player():
    with pytest.raises(ValueError, match="3 batches for 4 players"):
        play(Alpha(own_batches=True), np.ones((3, 5, D)), players=start(), rounds=1)
