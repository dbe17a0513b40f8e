import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import metrics, play, play_stream, testing
from eigengame.algorithms import FrequentDirections, frequent_directions, recover_components
from eigengame.algorithms.frequent_directions import (
    best_shards,
    runtime_multiplier,
    sketch_size,
)
from eigengame.game import as_rows, as_symmetric_rows, batches, random_players
from eigengame.game.rows import DenseRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.linalg.products import LONG

K, D, N, L = 3, 24, 160, 8
# Compiled as a whole: called eagerly, it would be dozens of compilations. `test_merge_works_under_jit` has both.
merge = jax.jit(FrequentDirections.merge, static_argnums=0)


def covariance_error(x, state):
    b = np.asarray(state.sketch)
    return np.linalg.norm(x.T @ x - b.T @ b, 2)


def bound(x, l):
    """The smallest of |X - X_k|_F^2 / (l - k) over k < l."""
    tail = np.cumsum((np.linalg.svd(x)[1] ** 2)[::-1])[::-1]
    return min(tail[k] / (l - k) for k in range(l))


@given(st.integers(0, 2**31 - 1), st.sampled_from([5, 16, 160]))
@settings(max_examples=15, deadline=None)
def test_a_streamed_sketch_satisfies_its_covariance_bound(seed, batch):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)) * testing.exponential(D, 10, 0.1)
    stream = [x[i : i + batch] for i in range(0, N, batch)]
    state = play_stream(FrequentDirections(L), stream, k=K).state
    assert covariance_error(x, state) <= bound(x, L) * (1 + 1e-9)
    # The sketch never overestimates.
    b = np.asarray(state.sketch)
    assert np.linalg.eigvalsh(x.T @ x - b.T @ b).min() > -1e-8 * np.linalg.norm(x, 2) ** 2


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=10, deadline=None)
def test_sharded_and_merged_sketches_satisfy_the_bound(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)) * testing.exponential(D, 10, 0.1)
    algorithm = FrequentDirections(L)
    one, two, three, four = (
        play_stream(algorithm, shard.reshape(4, 10, D), k=K).state for shard in np.split(x, 4)
    )
    merged = merge(algorithm, merge(algorithm, one, two), merge(algorithm, three, four))
    assert merged.sketch.shape == (2 * L, D)
    assert covariance_error(x, merged) <= bound(x, L) * (1 + 1e-9)
    on = play_stream(algorithm, [x[:10]], state=merged).state
    assert np.isfinite(np.asarray(on.sketch)).all()


def test_a_shrink_subtracts_the_next_squared_singular_value():
    # Large directions first, then a new one many times. Only dropping the smallest directions
    # would always lose the new one; subtracting the same from all keeps it.
    x = np.concatenate([10 * np.eye(D)[:L], np.repeat(np.eye(D)[L : L + 1], 400, axis=0)])
    state = play_stream(FrequentDirections(L), np.split(x, 51), k=K).state
    assert covariance_error(x, state) <= bound(x, L)
    assert covariance_error(x, state) == pytest.approx(100)


def test_a_shrink_follows_the_formula():
    # 2 l distinct directions: the (l + 1)th is subtracted from every square, and l are left.
    sizes = np.arange(2 * L, 0, -1.0)
    rotated = testing.orthogonal(2 * L, 0) @ (sizes[:, None] * testing.orthogonal(D, 1)[: 2 * L])
    algorithm = FrequentDirections(L)
    state = play_stream(algorithm, [rotated, np.zeros((1, D))], k=K).state
    expected = np.zeros(2 * L)
    expected[:L] = np.sqrt(sizes[:L] ** 2 - sizes[L] ** 2)
    np.testing.assert_allclose(
        np.linalg.svd(np.asarray(state.sketch))[1], expected, atol=1e-6 * sizes[0]
    )
    assert int(state.filled) == L + 1


def slowly_decaying():
    problem = testing.rows_with(testing.exponential(D, 3.0, 1.0), N, seed=1)
    state = play_stream(FrequentDirections(L), np.split(problem.data, 8), k=K).state
    return problem, state


def test_recovered_components_match_eigh_on_a_decaying_spectrum():
    problem = testing.rows_with(testing.exponential(D, 100, 1e-3), N, seed=1)
    state = play_stream(FrequentDirections(L), np.split(problem.data, 8), k=K).state
    values, components = recover_components(problem.data, state)
    np.testing.assert_allclose(values, problem.eigenvalues[:K], rtol=1e-3)
    assert metrics.longest_streak(np.asarray(components), problem.components, math.pi / 32) == K
    np.testing.assert_allclose(components @ components.T, np.eye(K), atol=1e-9)


def test_the_second_pass_explains_more_than_the_sketch_for_a_slowly_decaying_spectrum():
    problem, state = slowly_decaying()
    values, components = recover_components(problem.data, state)
    own = np.asarray(FrequentDirections(L).components(state))
    # The optimum within the span of the sketch has more variance than the sketch's directions.
    assert values.sum() > 1.01 * np.sum((problem.data @ own.T) ** 2)
    np.testing.assert_allclose(values, np.sum((problem.data @ components.T) ** 2, axis=0))


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: as_rows(x),
        lambda x: as_symmetric_rows(x.T @ x),
        lambda x: batches(x, 32),
        lambda x: iter(np.split(x, 5)),
    ],
    ids=["rows", "matrix", "batches", "arrays"],
)
def test_components_are_recovered_from_rows_of_any_kind_and_from_a_stream(rows):
    problem, state = slowly_decaying()
    values, components = recover_components(problem.data, state)
    other_values, others = recover_components(rows(problem.data), state)
    np.testing.assert_allclose(other_values, values)
    assert metrics.angular_error(np.asarray(others), np.asarray(components)).max() < 1e-7


def test_info_contains_the_rewards_of_the_sketch_before_the_update():
    x = np.random.default_rng(3).normal(size=(2, 4, D))
    info = play_stream(FrequentDirections(L), x, k=K).info
    np.testing.assert_array_equal(info.rewards[0], 0)
    leading = x[0, :K] / np.linalg.norm(x[0, :K], axis=1, keepdims=True)
    np.testing.assert_allclose(info.rewards[1], np.sum((x[1] @ leading.T) ** 2, axis=0))


def test_weighted_and_sparse_rows_are_sketched_like_equivalent_dense_rows():
    x = np.random.default_rng(0).normal(size=(6, D)) * (np.arange(D) % 3 == 0)
    weights = np.array([1.0, 2.0, 0.0, 1.0, 3.0, 0.5])
    row, column = np.nonzero(x)
    sparse = SparseRows(
        jnp.asarray(x[row, column]), jnp.asarray(row), jnp.asarray(column), jnp.asarray(weights), D
    )
    dense = DenseRows.weighted(jnp.asarray(x), jnp.asarray(weights))
    algorithm = FrequentDirections(L)
    for rows in (sparse, dense):
        np.testing.assert_allclose(rows.dense(), np.sqrt(weights)[:, None] * x)
        state, _ = algorithm.update(rows, algorithm.init(random_players(0, K, D, "float64")))
        assert covariance_error(np.sqrt(weights)[:, None] * x, state) < 1e-12


def test_a_sketch_with_room_for_everything_is_exact():
    x = np.random.default_rng(0).normal(size=(10, 6))
    state = play(FrequentDirections(8), x, k=K, rounds=1).state
    assert covariance_error(x, state) < 1e-12
    truth = metrics.true_components(x, K)[1]
    assert (
        metrics.angular_error(np.asarray(FrequentDirections(8).components(state)), truth).max()
        < 1e-7
    )


def test_sizes_are_the_papers():
    assert sketch_size(25, 0.25 / 25) == 125
    assert sketch_size(3, 0.3) == 7
    assert best_shards(1_200_000, 125) == pytest.approx(69.28, abs=0.01)
    n, l = 1_200_000, 125
    b = best_shards(n, l)
    assert runtime_multiplier(b, n, l) == pytest.approx(2 * math.sqrt(2) * math.sqrt(l / n))
    assert runtime_multiplier(b, n, l) < min(
        runtime_multiplier(b + 1, n, l), runtime_multiplier(b - 1, n, l)
    )
    assert FrequentDirections().init(jnp.zeros((25, 30))).sketch.shape == (250, 30)


WIDE = LONG
"""Features from which sketches are decomposed by products. A tolerance of eps times this width would be 3 %."""


def wide_rows(d):
    """Return float32 rows (16, d) with singular values from 1 to 0.02, and their right singular vectors."""
    sizes = np.geomspace(1, 0.02, 2 * L)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(d, 2 * L)))[0].T
    return ((testing.orthogonal(2 * L, 0) * sizes) @ axes).astype(np.float32), sizes, axes


def test_a_shrink_by_products_equals_one_by_a_singular_value_decomposition(monkeypatch):
    sketch = jnp.asarray(wide_rows(400)[0])
    # Compiled anew for each value of the constant.
    expected = np.asarray(jax.jit(lambda x: frequent_directions._shrink(x, L))(sketch))
    monkeypatch.setattr(frequent_directions, "LONG", 100)
    found = np.asarray(jax.jit(lambda x: frequent_directions._shrink(x, L))(sketch))
    np.testing.assert_allclose(found.T @ found, expected.T @ expected, atol=1e-6)
    assert not np.array_equal(found, expected), "both by the same method"


def test_small_components_of_wide_rows_are_recovered_in_float32():
    x, sizes, axes = wide_rows(WIDE)
    algorithm, k = FrequentDirections(2 * L), 12
    state, _ = jax.jit(algorithm.update)(DenseRows(x), algorithm.init(jnp.zeros((k, WIDE), "f4")))
    values, components = recover_components(x, state)
    np.testing.assert_allclose(values, sizes[:k] ** 2, rtol=1e-3)
    # Products of float32 have an error of eps, which is 2e-4 of the smallest squares; neighbours are 40 % apart.
    assert metrics.angular_error(np.asarray(components), axes).max() < 1e-3
    assert metrics.angular_error(np.asarray(algorithm.components(state)), axes).max() < 1e-3
    np.testing.assert_allclose(components @ components.T, np.eye(k), atol=1e-5)


def test_a_wide_sketch_never_decomposes_an_array_of_its_width():
    algorithm, shapes = FrequentDirections(L), []
    empty = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((K, WIDE), np.float32))
    rows = DenseRows(jax.ShapeDtypeStruct((2 * L, WIDE), np.float32))
    for function in (algorithm.update, lambda _, state: algorithm.components(state)):
        text = str(jax.make_jaxpr(function)(rows, empty))
        shapes += [line for line in text.splitlines() if " svd[" in line or "qr[" in line]
    assert not [line for line in shapes if str(WIDE) in line]
    assert shapes


def test_rows_given_by_a_matrix_are_refused():
    with pytest.raises(ValueError, match="needs rows of data"):
        play(FrequentDirections(), as_symmetric_rows(np.eye(5)), k=2, rounds=1)


def test_a_sketch_smaller_than_k_is_refused():
    with pytest.raises(ValueError, match="size=2 is less than the 3"):
        play(FrequentDirections(2), np.eye(5), k=3, rounds=1)


def test_merge_works_under_jit():
    x = np.random.default_rng(0).normal(size=(40, D))
    algorithm = FrequentDirections(L)
    one, other = (play(algorithm, half, k=K, rounds=1).state for half in np.split(x, 2))
    jitted, plain = jax.jit(algorithm.merge)(one, other), algorithm.merge(one, other)
    np.testing.assert_allclose(
        jitted.sketch.T @ jitted.sketch, plain.sketch.T @ plain.sketch, atol=1e-9
    )


@pytest.mark.parametrize(("size", "width", "k"), [(L + 1, D, K), (L, D - 1, K), (L, D, K - 1)])
def test_sketches_of_different_shapes_do_not_merge(size, width, k):
    one = FrequentDirections(L).init(jnp.zeros((K, D)))
    other = FrequentDirections(size).init(jnp.zeros((k, width)))
    with pytest.raises(ValueError, match="same size, width and number of components"):
        FrequentDirections(L).merge(one, other)
