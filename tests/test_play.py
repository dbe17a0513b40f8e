import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from eigengame import Status, make, play, play_stream
from eigengame._rounds import BLOCK
from eigengame.algorithms import Alpha, HebbDeflation, Oja, Sequential
from eigengame.game import DenseRows, as_rows, as_symmetric_rows, batches, random_players

X = np.random.default_rng(0).normal(size=(25, 6))
EARLIER = play(Alpha(), X, k=3, rounds=1)


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
    assert stream.outcome.status is Status.STREAM_ENDED
    assert rounds.outcome.status is Status.ROUNDS_PLAYED
    assert stream.info.rewards.shape == (1, 3)


@pytest.mark.parametrize("name", ["alpha", "remembered"])
@pytest.mark.parametrize("rounds", [1, BLOCK + 2])
def test_rounds_give_the_same_bits_as_a_scan(name, rounds):
    algorithm, rows = make(name), as_rows(X)
    start = algorithm.init(random_players(0, 3, 6, "float64"))
    scan = jax.jit(
        lambda rows, state: jax.lax.scan(
            lambda state, _: algorithm.update(rows, state), state, None, length=rounds
        )
    )
    state, info = scan(rows, start)
    played = play(algorithm, rows, k=3, rounds=rounds)
    jax.tree.map(np.testing.assert_array_equal, (played.state, played.info), (state, info))


def test_integers_and_lists_are_converted_to_floats():
    x = [[1, 2, 3], [4, 5, 7], [0, 1, 0]]
    assert play(Alpha(1e-3), np.array(x, np.uint8), k=2, rounds=3).components.dtype == jnp.float64
    assert play(Alpha(1e-3), x, k=2, rounds=3).components.shape == (2, 3)


def test_rows_of_reduced_precision_keep_float32_players():
    rows = as_rows(jnp.asarray(X, jnp.bfloat16))
    players = np.eye(6, dtype=np.float32)[:2]
    assert play(Alpha(1e-3), rows, players=players, rounds=2).components.dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: play(Alpha(), [[1.0, np.nan]], k=1), r"rows\[0, 1\] is nan.*missing="),
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
        (lambda: make("omega"), "algorithm='omega': choose one of .*'alpha', 'sequential'"),
        (lambda: make("oja", speed=1), "algorithm='oja'.*speed"),
        (lambda: make("sequential"), "algorithm='sequential'.*eigenvalues"),
        (lambda: make("mu", step_size=0.0), r"step_size=0\.0: give a finite number above 0"),
        (lambda: as_symmetric_rows(np.ones((2, 3))), "give a square matrix"),
        (lambda: as_symmetric_rows([[1.0, 2.0], [3.0, 4.0]]), "differs from its transpose by 1"),
        (lambda: batches(X, 0), "size=0"),
        (lambda: list(batches([[1.0], [2.0], [np.nan]], 2)), r"data\[2, 0\] is nan"),
        (lambda: list(batches([[np.nan], [2.0], [3.0]], 2, seed=0)), r"data\[0, 0\] is nan"),
        (lambda: batches(X, 2, seed=1.5), r"seed=1\.5"),
        (lambda: play(Alpha(), X, k=2, players=np.eye(6)[:3]), "k=2 but players has 3 rows"),
        (lambda: play(Alpha(), X, k=2, state=EARLIER.state), "k=2 but state has 3 players"),
        (lambda: play(Alpha(), X, players=np.eye(6), state=EARLIER.state), "give one of them"),
        (lambda: play(Alpha(lag=2), X, state=EARLIER.state), "state is AlphaState but not one of"),
        (lambda: play(Oja(), X, state=EARLIER.state), "state is AlphaState but not one of Oja"),
        (lambda: play(Alpha(), X, state=X), "not one of Alpha"),
        (
            lambda: play(Alpha(), X[:, :5], state=EARLIER.state),
            "state has 6 features but rows has 5",
        ),
        (lambda: play(Alpha(), np.ones((3, 4, 6)), k=3), r"give Alpha\(own_batches=True\)"),
        (lambda: play(Alpha(), [[[1.0, 2.0]]], k=1), r"give Alpha\(own_batches=True\)"),
        (lambda: play(Alpha(own_batches=True), X, k=3), "own_batches=True but rows is one batch"),
        (
            lambda: play(Alpha(own_batches=True), DenseRows(jnp.ones((3, 4, 6)), jnp.ones(4)), k=3),
            r"rows\.roots has shape \(4,\) .*give one for each batch, shape \(3, 4\)",
        ),
        (lambda: play(Alpha(), X, k=2, seed=1.0), r"seed=1\.0: give a whole number from 0"),
        (lambda: play(Alpha(), X, k=2, seed=None), "seed=None"),
        (lambda: play(Alpha(), X, k=2, seed=-1), "seed=-1"),
        (lambda: play(Alpha(), np.array([["1", "2"]]), k=1), "give numbers"),
        (lambda: play(Alpha(), np.array([[1.0, []]], object), k=1), "dtype object: give numbers"),
        (lambda: play(Alpha(), np.array([[1.0, None]]), k=1), r"rows\[0, 1\] is nan"),
        (lambda: play(Alpha(), np.ones((2, 2), "m8[s]"), k=1), "give numbers"),
        (lambda: play(Alpha(), [[1.0, 2.0], [3.0]], k=1), "rows of one length"),
        (lambda: play(Alpha(), csr_matrix(X), k=1), "fit it with EigenGamePCA"),
        (lambda: play("alpha", X, k=1), r"give make\('alpha'\)"),
        (lambda: play(Alpha, X, k=1), "algorithm=Alpha: give an instance with its options"),
        (lambda: play_stream(None, [X], k=1), "algorithm=None: give an object with methods init"),
        (lambda: play(Alpha(), X, players=np.zeros((1, 6))), r"players\[0\] is zero"),
        (
            lambda: as_rows([[1e300]], dtype="float32"),
            r"rows\[0, 0\] is 1e\+300, which is out of range for float32",
        ),
        (lambda: as_rows(jnp.full((1, 2), jnp.nan)), r"rows\[0, 0\] is nan"),
        (
            lambda: as_symmetric_rows(np.diag([1.0, -2.0])),
            r"matrix\[1, 1\] is -2.*give matrix \+ shift \* I",
        ),
    ],
)
def test_errors_name_the_argument_its_value_and_the_fix(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_file_is_checked_batch_by_batch(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    data, sizes, plain = np.load(tmp_path / "x.npy", mmap_mode="r"), [], np.isfinite

    def counted(array):
        sizes.append(len(array))
        return plain(array)

    monkeypatch.setattr(np, "isfinite", counted)
    stacked = np.concatenate([part.values for part in batches(data, 10)])
    np.testing.assert_array_equal(stacked[:25], X)
    assert sizes[:3] == [10, 10, 5]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_batches_of_integers_become_floats(dtype):
    data = (X > 0).astype(dtype)
    (batch,) = batches(data, 25)
    assert batch.values.dtype == jnp.float64
    played = play_stream(Alpha(1e-3), batches(data, 10), k=2)
    np.testing.assert_array_equal(
        played.components, play_stream(Alpha(1e-3), batches(data.astype(float), 10), k=2).components
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32"])
def test_players_are_never_coarser_than_float32(dtype):
    rows = DenseRows(jnp.asarray(10 * X, dtype))
    assert play(Alpha(1e-6), rows, k=2, rounds=2).components.dtype == jnp.float32


def test_initial_players_are_scaled_to_the_sphere_or_into_the_ball():
    start = np.array([[3.0, 0, 0, 0, 0, 0], [0, 0.5, 0, 0, 0, 0]])
    still = play(Alpha(1e-300), X, players=start, rounds=1).components
    np.testing.assert_allclose(still, np.eye(6)[:2], atol=1e-15)
    ball = Alpha(1e-300, surface="ball", riemannian=False)
    still = play(ball, X, players=start, rounds=1).components
    np.testing.assert_allclose(still, np.diag([1.0, 0.5]) @ np.eye(6)[:2], atol=1e-15)


def test_a_numpy_integer_is_a_seed():
    one, same = (play(Alpha(), X, k=2, seed=s, rounds=1).components for s in (3, np.int64(3)))
    np.testing.assert_array_equal(one, same)


def test_object_arrays_of_numbers_are_converted():
    rows = as_rows(np.array([[1, 2.5], [3, 4]], dtype=object))
    np.testing.assert_array_equal(rows.values, [[1, 2.5], [3, 4]])


def test_the_status_reports_players_that_have_not_finished():
    spectrum = (3.0, 2.0, 1.0)
    for algorithm in (Sequential(spectrum), HebbDeflation(1e-3)):
        played = play(algorithm, np.eye(6)[:3], k=2, rounds=1)
        assert played.outcome.status is Status.TURNS_LEFT
        assert "smaller cap" in played.outcome.advice
        assert play_stream(algorithm, [X], k=2).outcome.status is Status.TURNS_LEFT
    over = play(Sequential(spectrum, cap=1), np.eye(6)[:3], k=2, rounds=2)
    assert over.outcome.status is Status.ROUNDS_PLAYED


def test_a_long_stream_keeps_every_update_in_its_info():
    # A few thousand updates are stacked at once, in seconds.
    played = play_stream(Oja(1e-3), (X for _ in range(3000)), k=2)
    assert played.info.rewards.shape == (3000, 2)
    assert (np.diff(np.asarray(played.info.rewards).sum(axis=1))[1:] > -1e-9).all()


def test_as_rows_returns_rows_unchanged():
    rows = DenseRows(jnp.asarray(X))
    assert as_rows(rows) is rows
