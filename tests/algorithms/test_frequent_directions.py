import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import (
    FrequentDirections,
    as_rows,
    as_symmetric_rows,
    metrics,
    play,
    play_stream,
    testing,
)
from eigengame.algorithms.frequent_directions import (
    best_shards,
    recover,
    runtime_multiplier,
    sketch_size,
)

K, D, N, L = 3, 24, 160, 8


def covariance_error(x, state):
    b = np.asarray(state.sketch)
    return np.linalg.norm(x.T @ x - b.T @ b, 2)


def bound(x, l):
    """The smallest of |X - X_k|_F^2 / (l - k) over k < l."""
    tail = np.cumsum((np.linalg.svd(x)[1] ** 2)[::-1])[::-1]
    return min(tail[k] / (l - k) for k in range(l))


@given(st.integers(0, 2**31 - 1), st.sampled_from([5, 16, 160]))
@settings(max_examples=15, deadline=None)
def test_a_streamed_sketch_meets_its_covariance_bound(seed, batch):
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
def test_sharded_and_merged_sketches_meet_the_bound(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D)) * testing.exponential(D, 10, 0.1)
    algorithm = FrequentDirections(L)
    one, two, three, four = (
        play_stream(algorithm, shard.reshape(4, 10, D), k=K).state for shard in np.split(x, 4)
    )
    merged = algorithm.merge(algorithm.merge(one, two), algorithm.merge(three, four))
    assert merged.sketch.shape == (2 * L, D)
    assert covariance_error(x, merged) <= bound(x, L) * (1 + 1e-9)
    on, _ = algorithm.update(as_rows(x[:10]), merged)
    assert np.isfinite(np.asarray(on.sketch)).all()


def test_recovered_components_match_eigh_on_a_decaying_spectrum():
    problem = testing.rows_with(testing.exponential(D, 100, 1e-3), N, seed=1)
    state = play_stream(FrequentDirections(L), np.split(problem.data, 8), k=K).state
    values, components = recover(as_rows(problem.data), state)
    np.testing.assert_allclose(values, problem.eigenvalues[:K], rtol=1e-3)
    assert metrics.longest_streak(np.asarray(components), problem.components, math.pi / 32) == K
    # The second look helps: the sketch's own directions are no better.
    own = FrequentDirections(L).components(state)
    assert (
        metrics.angular_error(np.asarray(components), problem.components).max()
        <= metrics.angular_error(np.asarray(own), problem.components).max()
    )
    np.testing.assert_allclose(components @ components.T, np.eye(K), atol=1e-9)


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


def test_a_matrix_has_no_rows_to_sketch():
    with pytest.raises(ValueError, match="needs rows themselves"):
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
