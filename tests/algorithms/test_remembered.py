import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import metrics, play, play_stream, testing
from eigengame._play import _update
from eigengame.algorithms import Remembered
from eigengame.game import DenseRows, as_rows, as_symmetric_rows, random_players
from eigengame.game.gram_space import cheaper_in_gram_space, top_eigenvectors
from eigengame.game.krylov_round import krylov_round
from eigengame.game.memory import Memory, RememberedRows
from eigengame.linalg.orthonormal import reorthonormalise
from eigengame.sharding.placement import ONE_DEVICE
from tests.tolerance import assert_close

K, D, M = 3, 20, 32
RNG = np.random.default_rng(0)
# Compiled as a whole: called eagerly, each would be dozens of compilations.
merge = jax.jit(Remembered.merge, static_argnums=0)


@jax.jit
def one_round(*args):
    """Return the players after a round, their scores and their strengths."""
    players, scores, strengths = krylov_round(*args)
    return players, scores.combined(), strengths


@partial(jax.jit, static_argnums=0)
def taken(game, values, weights, state):
    """Return the state after a batch of weighted rows."""
    return game.update(DenseRows.weighted(values, weights), state)[0]


def gaussian(n, spectrum, seed=0):
    basis = testing.orthogonal(len(spectrum), seed)
    draws = np.random.default_rng((seed, 9)).normal(size=(n, len(spectrum)))
    return draws @ (np.sqrt(spectrum)[:, None] * basis)


def stream_of(x, size, game, dtype="float64", k=K):
    """Play x in batches of `size`, the last one padded with rows of weight 0."""
    state = game.init(random_players(0, k, x.shape[1], dtype))
    for begin in range(0, len(x), size):
        block = x[begin : begin + size]
        weights = np.zeros(size, dtype)
        weights[: len(block)] = 1
        values = np.pad(block, ((0, size - len(block)), (0, 0))).astype(dtype)
        state = taken(game, values, weights, state)
    return state


def angles_to(state, x, k=K, center=False):
    about = x - x.mean(axis=0) if center else x
    truth = metrics.true_components(about, k)[1]
    return metrics.angular_error(np.asarray(state.memory.players[:k], np.float64), truth)


def memory_of(seed, k, dtype="float64"):
    players = jnp.asarray(testing.orthogonal(D, seed)[:k], dtype)
    return Memory(
        players,
        jnp.asarray([5.0, 2.0, 1.0, 0.5, 0.1][:k], dtype),
        jnp.asarray(np.linspace(-1, 1, D), dtype),
        jnp.asarray(70.0, dtype),
    )


def test_remembered_rows_are_the_stacked_rows_of_the_docstring():
    memory, x = memory_of(1, 5), RNG.normal(size=(M, D)) + 3
    rows = RememberedRows.of(as_rows(x), memory, center=True).with_past()
    mean, n = x.mean(axis=0), 70.0
    z = np.concatenate(
        [
            np.sqrt(np.asarray(memory.strengths))[:, None] * np.asarray(memory.players),
            x - mean,
            math.sqrt(n * M / (n + M)) * (np.asarray(memory.mean) - mean)[None, :],
        ]
    )
    players = random_players(3, 4, D, "float64")
    scores = rows.scores(players)
    assert_close(scores, z @ np.asarray(players).T)
    assert_close(rows.gram(scores, scores), scores.T @ scores)
    assert_close(rows.directions(scores), np.asarray(scores).T @ z)
    mean_after, weight = rows.mean_and_weight()
    assert_close(mean_after, (n * np.asarray(memory.mean) + M * mean) / (n + M))
    assert float(weight) == n + M


def test_a_first_round_needs_no_product_with_the_memory():
    memory, x = memory_of(1, 5), RNG.normal(size=(M, D)) + 3
    new = RememberedRows.of(as_rows(x), memory, center=True)
    whole = new.with_past()
    short = one_round(new, memory.players, new.scores(memory.players), memory.strengths)
    long = one_round(whole, memory.players, whole.scores(memory.players))
    np.testing.assert_allclose(short[2], long[2], rtol=1e-9)
    assert metrics.angular_error(np.asarray(short[0]), np.asarray(long[0])).max() < 1e-7
    ours, theirs = np.abs(short[1]), np.abs(long[1][len(memory.strengths) :])
    np.testing.assert_allclose(ours, theirs, atol=1e-7 * theirs.max())


def test_a_memory_of_low_rank_data_is_the_scatter_about_the_mean():
    # Rank below K: nothing is lost, so the memory is exact, the bridge row included.
    low = RNG.normal(size=(50, 4)) @ RNG.normal(size=(4, D)) + 7
    for space in ("score", "gram"):
        state = stream_of(low, 25, Remembered(extra=5, center=True, space=space))
        about = low - low.mean(axis=0)
        values = metrics.true_components(about, 8)[0]
        np.testing.assert_allclose(state.memory.strengths[:4], values[:4], rtol=1e-9)
        assert np.abs(np.asarray(state.memory.strengths[4:])).max() < 1e-8 * values[0]
        assert_close(state.memory.mean, low.mean(axis=0))
        assert angles_to(state, low, center=True).max() < 1e-6


def test_a_krylov_round_gives_the_ritz_vectors_within_players_and_directions():
    rows, players = (
        as_rows(RNG.normal(size=(M, D))),
        reorthonormalise(jnp.asarray(testing.orthogonal(D, 2)[:4])),
    )
    moved, scores, strengths = one_round(rows, players, rows.scores(players))
    m = np.asarray(rows.values.T @ rows.values)
    space = np.linalg.qr(np.concatenate([players, players @ m]).T)[0]
    values, vectors = np.linalg.eigh(space.T @ m @ space)
    assert_close(strengths, values[::-1][:4])
    assert (
        metrics.angular_error(np.asarray(moved), (space @ vectors[:, ::-1][:, :4]).T).max() < 1e-7
    )
    assert_close(scores, rows.scores(moved))
    assert_close(moved @ moved.T, np.eye(4))


def test_rounds_reach_the_eigenvectors():
    problem = testing.rows_with(testing.harmonic(D), 60, seed=5)
    rows = as_rows(problem.data)
    players = reorthonormalise(jnp.asarray(testing.orthogonal(D, 3)[:6]))
    scores = rows.scores(players)
    for _ in range(40):
        players, scores, _ = one_round(rows, players, scores)
    assert metrics.angular_error(np.asarray(players[:4]), problem.components).max() < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_gram_space_is_exact_and_score_space_converges_to_it(weighted):
    rng = np.random.default_rng(5)
    memory, x = memory_of(1, 5), rng.normal(size=(8, D))
    weights = jnp.asarray(rng.uniform(0, 2, 8)) if weighted else None
    plain = jnp.asarray(x)
    rows = DenseRows(plain) if weights is None else DenseRows.weighted(plain, weights)
    state = (
        Remembered(extra=2, center=True)
        .init(memory.players[:3])
        ._replace(memory=memory, step=jnp.asarray(1, jnp.int32))
    )
    gram, _ = _update(Remembered(extra=2, center=True, space="gram"), ONE_DEVICE, rows, state)
    score, _ = _update(
        Remembered(extra=2, center=True, space="score", rounds=60), ONE_DEVICE, rows, state
    )
    np.testing.assert_allclose(gram.memory.strengths, score.memory.strengths, rtol=1e-6)
    assert (
        metrics.angular_error(
            np.asarray(gram.memory.players), np.asarray(score.memory.players)
        ).max()
        < 1e-4
    )
    assert_close(gram.memory.mean, score.memory.mean)
    assert_close(gram.memory.players @ gram.memory.players.T, np.eye(5))


def test_the_cost_model_takes_gram_space_for_wide_rows_and_score_space_for_tall_batches():
    assert cheaper_in_gram_space(32, 32, 1_000_000)
    assert not cheaper_in_gram_space(1024, 32, 784)
    assert not cheaper_in_gram_space(1024, 32, 1_000_000)


def test_nothing_is_nan_with_fewer_rows_than_players_and_players_beyond_the_rank(dtype):
    x = gaussian(7, testing.harmonic(D)).astype(dtype)
    state = stream_of(x, 2, Remembered(extra=9, center=True), dtype)
    memory = state.memory
    assert np.isfinite(np.asarray(memory.players)).all()
    assert (np.asarray(memory.strengths) >= 0).all()
    assert_close(memory.players @ memory.players.T, np.eye(12, dtype=dtype), factor=10)
    # 7 centred rows have rank 6, which the memory holds exactly.
    values = metrics.true_components(x.astype("float64") - x.mean(axis=0), 6)[0]
    np.testing.assert_allclose(
        memory.strengths[:6], values, rtol=1e-4 if dtype == "float32" else 1e-9
    )


@pytest.mark.parametrize("size", [1, 7, 64, 500])
def test_the_batch_size_hardly_matters(size):
    x = gaussian(1000, testing.exponential(D, 1, 1e-3), seed=4) + 1
    whole = angles_to(stream_of(x, 1000, Remembered(extra=8, center=True)), x, center=True)
    cut = angles_to(stream_of(x, size, Remembered(extra=8, center=True)), x, center=True)
    assert whole.max() < 1e-3
    assert cut.max() < 0.01


def test_one_pass_finds_components_with_a_long_tail_and_with_sorted_rows():
    d, k = 200, 8
    x = gaussian(8000, testing.harmonic(d), seed=6)
    first = metrics.true_components(x, 1)[1][0]
    for rows in (x, x[np.argsort(x @ first)]):
        state = stream_of(rows, 256, Remembered(), "float32", k)
        assert metrics.streak_of(angles_to(state, x, k), math.pi / 32) == k


def test_merging_low_rank_memories_is_exact_and_order_hardly_matters():
    game = Remembered(extra=8, center=True)
    parts = np.split(
        gaussian(600, testing.exponential(D, 1, 1e-3), seed=7) + np.linspace(0, 2, D), 3
    )
    a, b, c = (stream_of(part, 50, game) for part in parts)
    left, right = merge(game, merge(game, a, b), c), merge(game, a, merge(game, b, c))
    whole = np.concatenate(parts)
    for merged in (left, right, merge(game, merge(game, c, a), b)):
        assert float(merged.memory.weight) == 600
        assert_close(merged.memory.mean, whole.mean(axis=0))
        assert angles_to(merged, whole, center=True).max() < 0.01
    assert (
        metrics.angular_error(
            np.asarray(left.memory.players[:K]), np.asarray(right.memory.players[:K])
        ).max()
        < 0.01
    )


# Compiled, and called eagerly, which is a hundred compilations.
@pytest.mark.parametrize("how", [merge, pytest.param(Remembered.merge, marks=pytest.mark.slow)])
def test_merging_memories_of_few_directions_is_exact(how):
    game = Remembered(extra=8, center=True)
    low = RNG.normal(size=(40, 4)) @ RNG.normal(size=(4, D))
    halves = [stream_of(half, 20, game) for half in np.split(low, 2)]
    exact = metrics.true_components(low - low.mean(axis=0), 4)[0]
    np.testing.assert_allclose(how(game, *halves).memory.strengths[:4], exact, rtol=1e-9)


def test_merging_with_an_empty_memory_changes_nothing():
    game = Remembered(extra=8, center=True)
    seen = stream_of(gaussian(100, testing.harmonic(D)), 50, game)
    empty = game.init(random_players(5, K, D, "float64"))
    for merged in (merge(game, seen, empty), merge(game, empty, seen)):
        assert_close(merged.memory.strengths, seen.memory.strengths, factor=10)
        assert_close(merged.memory.mean, seen.memory.mean)


def test_forgetting_weights_rows_by_age_for_any_batch_size():
    x, forget = gaussian(60, testing.exponential(6, 1, 1e-2)), 0.95
    weights = forget ** np.arange(len(x) - 1, -1, -1)
    mean = weights @ x / weights.sum()
    values = metrics.true_components(np.sqrt(weights)[:, None] * (x - mean), 6)[0]
    for size in (1, 7, 60):
        state = stream_of(x, size, Remembered(extra=3, center=True, forget=forget))
        np.testing.assert_allclose(state.memory.strengths, values, rtol=1e-6)
        assert_close(state.memory.mean, mean)
        assert float(state.memory.weight) == pytest.approx(weights.sum())


@pytest.mark.parametrize("rate", [1e-4, 1e-6, 1e-8])
def test_slow_forgetting_is_accurate_in_float32(rate):
    rows, forget = as_rows(np.ones((1000, 2), np.float32)), 1 - rate
    faded, keep = jax.jit(Remembered(forget=forget).fade, static_argnums=1)(rows, "float32")
    assert keep.dtype == np.float32
    # Half a unit in the last place below 1, and the rounding of the exponent.
    np.testing.assert_allclose(float(keep), forget**1000, rtol=0, atol=7e-8)
    weights = np.asarray(faded.roots, np.float64) ** 2
    np.testing.assert_allclose(weights, forget ** np.arange(1000)[::-1], rtol=3e-7)


def test_forgetting_follows_a_stream_that_drifts():
    before, after = (
        gaussian(2000, testing.exponential(D, 1, 1e-2), 1),
        gaussian(2000, testing.exponential(D, 1, 1e-2), 2),
    )
    x = np.concatenate([before, after])
    remembers = angles_to(stream_of(x, 50, Remembered()), after)
    forgets = angles_to(stream_of(x, 50, Remembered(forget=0.99)), after)
    assert forgets.max() < 0.5 < remembers.max()


def test_weights_count_like_repetitions():
    x = gaussian(30, testing.harmonic(8), seed=3)
    counts = np.random.default_rng(1).integers(0, 4, 30)
    rows = DenseRows.weighted(jnp.asarray(x), jnp.asarray(counts, "float64"))
    game = Remembered(extra=5, center=True, rounds=3)
    start = game.init(random_players(0, K, 8, "float64"))
    weighted = _update(game, ONE_DEVICE, rows, start)[0].memory
    repeated = _update(game, ONE_DEVICE, as_rows(np.repeat(x, counts, axis=0)), start)[0].memory
    assert_close(weighted.strengths, repeated.strengths, factor=10)
    assert_close(weighted.mean, repeated.mean)
    assert float(weighted.weight) == counts.sum()


@pytest.mark.parametrize("scale", [1e-20, 1e-10, 1.0, 1e10, 1e20])
@pytest.mark.parametrize("space", ["score", "gram"])
def test_eigenvalues_from_1e_minus_20_to_1e20_work_in_float32(scale, space):
    x = gaussian(400, testing.exponential(D, 1, 1e-3), seed=8)
    rows = x * math.sqrt(scale / metrics.true_components(x, 1)[0][0])
    state = stream_of(rows, 40, Remembered(extra=8, center=True, space=space), "float32")
    assert float(state.memory.strengths[0]) == pytest.approx(scale, rel=0.05)
    assert angles_to(state, rows, center=True).max() < 0.03


def test_players_stay_orthonormal_over_very_many_updates():
    game = Remembered(extra=5, center=True, forget=0.999)
    x = gaussian(64, testing.harmonic(D), seed=9).astype("float32")
    rows = as_rows(x)

    @jax.jit
    def many(state):
        return jax.lax.fori_loop(0, 5000, lambda _, s: game.update(rows, s)[0], state)

    players = many(game.init(random_players(0, K, D))).memory.players
    players = np.asarray(players)
    assert np.abs(players @ players.T - np.eye(8)).max() < 1e-5


def test_rows_can_be_given_by_a_matrix():
    problem = testing.matrix_with(testing.exponential(D, 1, 1e-3), seed=2)
    played = play(Remembered(), as_symmetric_rows(problem.data), k=K, rounds=1)
    assert metrics.angular_error(np.asarray(played.components), problem.components).max() < 0.01


def test_top_eigenvectors_with_no_new_information_keeps_everything():
    memory = memory_of(4, 5)
    none = jnp.zeros(D, bool)
    players, strengths = top_eigenvectors(memory.players, memory.strengths, jnp.zeros((3, D)), none)
    assert_close(strengths, memory.strengths)
    assert metrics.angular_error(np.asarray(players), np.asarray(memory.players)).max() < 1e-7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"extra": -1}, "extra=-1"),
        ({"rounds": 0}, "rounds=0"),
        ({"forget": 0}, "forget=0"),
        ({"forget": 1.5}, r"forget=1\.5"),
        ({"space": "outer"}, "space='outer'"),
    ],
)
def test_errors_name_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        Remembered(**options)


def test_forgetting_needs_rows():
    with pytest.raises(ValueError, match=r"forget=0\.9 needs dense rows"):
        play_stream(Remembered(forget=0.9), [as_symmetric_rows(np.eye(5))], k=2)


def test_players_stay_orthonormal_if_they_are_half_as_many_as_features():
    """New directions fill the whole space: errors in the rounds of a first batch must not grow."""
    game, d, k = Remembered(extra=16), 48, 8
    scales = jnp.asarray(np.sqrt(testing.exponential(d, 1, 0.01)), jnp.float32)

    def stream(key):
        of_start, of_rows = jax.random.split(key)
        state = game.init(random_players(of_start, k, d, jnp.float32))

        def update(state, key):
            rows = jax.random.normal(key, (64, d), jnp.float32) * scales[None, :]
            state = game.update(DenseRows(rows), state)[0]
            players = state.memory.players
            return state, jnp.max(jnp.abs(players @ players.T - jnp.eye(k + 16)))

        return jax.lax.scan(update, state, jax.random.split(of_rows, 6))[1]

    # One after another: several calls of LAPACK at the same time can deadlock on the threads of XLA.
    play = jax.jit(stream)
    off = [float(jnp.max(play(key))) for key in jax.random.split(jax.random.key(0), 300)]
    # Rounding errors, and those of single rounds of later batches before the next correction.
    assert max(off) < 1e-3


def test_the_mean_is_exact_in_gram_space_for_rows_of_nearly_low_rank():
    """A basis omits directions within rounding, a thousandth of the rows here; the mean must not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 2)) @ rng.normal(size=(2, D)) + 1e-3 * rng.normal(size=(8, D))
    game = Remembered(extra=2, center=True, space="gram")
    played = play_stream(game, [x.astype(np.float32), (x[::-1] + 1).astype(np.float32)], k=3)
    true = (2 * x.mean(axis=0) + 1) / 2
    np.testing.assert_allclose(played.state.memory.mean, true, atol=1e-6)
