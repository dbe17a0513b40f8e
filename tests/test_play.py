import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import (
    Alpha,
    DenseRows,
    Outcome,
    as_rows,
    as_symmetric_rows,
    batches,
    make,
    play,
    play_stream,
)

X = np.random.default_rng(0).normal(size=(25, 6))


def test_batches_cover_every_row_once_in_one_shape():
    parts = list(batches(X, 10))
    assert [part.values.shape for part in parts] == [(10, 6)] * 3
    stacked = np.concatenate([part.values for part in parts])
    np.testing.assert_array_equal(stacked[:25], X)
    np.testing.assert_array_equal(stacked[25:], 0)


def test_shuffled_passes_cover_every_row_each_in_a_new_order_and_repeat_for_a_seed():
    def run(seed):
        return np.concatenate([b.values for b in batches(X, 5, passes=2, seed=seed)])

    once, twice = np.split(run(0), 2)
    for part in (once, twice):
        np.testing.assert_array_equal(np.sort(part[:, 0]), np.sort(X[:, 0]))
    assert not np.array_equal(once, twice)
    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))


def test_a_stream_of_one_batch_is_one_round():
    stream = play_stream(Alpha(0.01), [X], k=3)
    rounds = play(Alpha(0.01), X, k=3, rounds=1)
    np.testing.assert_allclose(stream.components, rounds.components)
    assert stream.outcome is Outcome.STREAM_ENDED
    assert rounds.outcome is Outcome.ROUNDS_PLAYED
    assert stream.info.rewards.shape == (1, 3)


def test_integers_and_lists_are_taken_as_numbers():
    x = [[1, 2, 3], [4, 5, 7], [0, 1, 0]]
    assert play(Alpha(1e-3), np.array(x, np.uint8), k=2, rounds=3).components.dtype == jnp.float64
    assert play(Alpha(1e-3), x, k=2, rounds=3).components.shape == (2, 3)


def test_reduced_precision_rows_play_with_players_of_their_own_precision():
    rows = as_rows(jnp.asarray(X, jnp.bfloat16))
    players = np.eye(6, dtype=np.float32)[:2]
    assert play(Alpha(1e-3), rows, players=players, rounds=2).components.dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: play(Alpha(), [[1.0, np.nan]], k=1), r"rows\[0, 1\] is nan.*remove or fill"),
        (lambda: play(Alpha(), [[np.inf, 1.0]], k=1), r"rows\[0, 0\] is inf"),
        (lambda: play(Alpha(), np.ones(5), k=1), r"rows has shape \(5,\).*reshape"),
        (lambda: play(Alpha(), np.ones((2, 2, 2, 2)), k=1), r"rows has shape \(2, 2, 2, 2\)"),
        (lambda: play(Alpha(), np.ones((0, 5)), k=1), "at least one row"),
        (lambda: play(Alpha(), np.array([["a", "b"]]), k=1), "give numbers"),
        (lambda: play(Alpha(), np.ones((2, 2)) * 1j, k=1), "give real numbers"),
        (
            lambda: play(Alpha(), X, k=7),
            "k=7 is more than the 6 features: give a number from 1 to 6",
        ),
        (lambda: play(Alpha(), X, k=0), "k=0: give a whole number of at least 1"),
        (lambda: play(Alpha(), X, k=2.0), r"k=2\.0"),
        (lambda: play(Alpha(), X), "k=None: give the number of components"),
        (lambda: play(Alpha(), X, k=2, rounds=0), "rounds=0"),
        (
            lambda: play(Alpha(), X, players=np.ones((2, 5))),
            "players has 5 features but rows has 6",
        ),
        (lambda: play(Alpha(), X, players=np.full((2, 6), np.nan)), r"players\[0, 0\] is nan"),
        (lambda: play_stream(Alpha(), []), "stream has no batch"),
        (
            lambda: play_stream(Alpha(), [X, X[:, :4]], k=2),
            "batch 1 has 4 features but batch 0 has 6",
        ),
        (lambda: make("omega"), "algorithm='omega': choose one of 'alpha', 'sequential'"),
        (lambda: make("oja", speed=1), "algorithm='oja'.*speed"),
        (lambda: make("sequential"), "algorithm='sequential'.*eigenvalues"),
        (lambda: make("mu", step_size=0.0), r"step_size=0\.0: give a finite number above 0"),
        (lambda: as_symmetric_rows(np.ones((2, 3))), "give a square matrix"),
        (lambda: as_symmetric_rows([[1.0, 2.0], [3.0, 4.0]]), "differs from its transpose by 1"),
        (lambda: batches(X, 0), "size=0"),
        (lambda: batches([[np.nan]], 1), "data"),
    ],
)
def test_bad_input_is_named_with_its_value_and_the_fix(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_rows_pass_through_as_they_are():
    rows = DenseRows(jnp.asarray(X))
    assert as_rows(rows) is rows
