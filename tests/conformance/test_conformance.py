"""One table, every algorithm of the registry: what it must do to be in it.

A new algorithm is a new line in TABLE; the first test fails until it has one.

Every number of rounds and every shape of rows is a compilation for each line: tests that may as well
play the same ones do.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from eigengame import make, metrics, play, play_stream, testing
from eigengame._play import _block, _update
from eigengame.algorithms import REGISTRY
from eigengame.game import as_rows, random_players
from eigengame.game.rayleigh_ritz import settle
from eigengame.sharding.placement import ONE_DEVICE

K, D, N = 4, 10, 60
SPECTRUM = np.array([1.0, 0.7, 0.45, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002])
PROBLEM = testing.rows_with(SPECTRUM, N, seed=0)


class Case(NamedTuple):
    """How to ask an algorithm for the easy problem above, whose largest eigenvalue is 1."""

    name: str
    options: dict[str, Any]
    rounds: int
    # Whether only the subspace is found: settled and matched before the angles are taken.
    subspace: bool = False
    # Whether the start makes no difference in the end: a sketch of the rows has no random start, and
    # a memory of the whole of small data forgets its own.
    forgets_its_start: bool = False


# Made once: two optimisers made alike are not equal, and neither are two lambdas.
SGD, SCHEDULE = optax.sgd(0.2), lambda step: 0.3 / (1 + step / 200)

TABLE = {
    "remembered": Case("remembered", {}, 1, forgets_its_start=True),
    "best_response": Case("best_response", {}, 6),
    "alpha": Case("alpha", {"step_size": 0.2}, 200),
    "alpha plain": Case("alpha", {"step_size": 0.2, "riemannian": False}, 300),
    "alpha lag": Case("alpha", {"step_size": 0.2, "lag": 3}, 400),
    "alpha dropout": Case("alpha", {"step_size": 0.2, "dropout": 0.3}, 400),
    "alpha ball": Case("alpha", {"step_size": 0.2, "surface": "ball", "riemannian": False}, 300),
    "alpha optimizer": Case("alpha", {"optimizer": SGD}, 200),
    "alpha schedule": Case("alpha", {"step_size": SCHEDULE}, 200),
    "alpha own batches": Case("alpha", {"step_size": 0.2, "own_batches": True}, 200),
    "sequential": Case(
        "sequential",
        {"eigenvalues": tuple(SPECTRUM[: K + 1]), "theta_tol": math.pi / 32, "cap": 2000},
        8000,
    ),
    "mu": Case("mu", {"step_size": 0.4}, 200),
    "mu optimizer": Case("mu", {"optimizer": optax.sgd(0.4)}, 200),
    "oja": Case("oja", {"step_size": 1.0}, 100),
    "hebb_deflation": Case("hebb_deflation", {"step_size": 1.0}, 600),
    "gha": Case("gha", {"step_size": 0.2}, 200),
    "krasulina": Case("krasulina", {"step_size": 1.0}, 100, subspace=True),
    "frequent_directions": Case("frequent_directions", {}, 3, forgets_its_start=True),
}
names = pytest.mark.parametrize("name", sorted(TABLE))
# For what depends on the shapes of rows and not on options: each shape is a compilation.
plain_names = pytest.mark.parametrize("name", sorted(REGISTRY))


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Let go in the end of what was compiled for this table alone."""
    yield
    _block.clear_cache()
    _update.clear_cache()


def algorithm_of(name):
    return make(TABLE[name].name, **TABLE[name].options)


def rows_of(name, x):
    """The rows as the algorithm wants them: a copy for each player where each has its own."""
    return np.stack([x] * K) if TABLE[name].options.get("own_batches") else x


def fitted(name, dtype="float32", seed=0):
    case = TABLE[name]
    rows = as_rows(rows_of(name, PROBLEM.data.astype(dtype)))
    return play(algorithm_of(name), rows, k=K, rounds=case.rounds, seed=seed)


def test_the_table_is_the_registry():
    assert {case.name for case in TABLE.values()} == set(REGISTRY)
    # Each in its plain form too.
    assert set(REGISTRY) <= set(TABLE)


@names
def test_converges_on_an_easy_spectrum(name, dtype):
    found = fitted(name, dtype).components
    if TABLE[name].subspace:
        assert metrics.subspace_distance(np.asarray(found), PROBLEM.components) < 1e-3
        found = settle(as_rows(PROBLEM.data.astype(dtype)), found)[1]
        found = np.asarray(found)[metrics.match(found, PROBLEM.components)]
    errors = metrics.angular_error(np.asarray(found), PROBLEM.components)
    assert metrics.streak_of(errors, math.pi / 8) == K
    assert metrics.streak_of(errors, math.pi / 32) == K


@names
def test_keeps_its_dtype(name, dtype):
    played = fitted(name, dtype)
    assert played.components.dtype == dtype
    assert played.info.rewards.dtype == played.info.direction_norms.dtype == dtype
    floats = [
        leaf for leaf in jax.tree.leaves(played.state) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    assert floats
    assert {str(leaf.dtype) for leaf in floats} == {dtype}


@names
def test_is_deterministic_for_a_seed(name):
    one, same, other = fitted(name), fitted(name), fitted(name, seed=1)
    np.testing.assert_array_equal(one.components, same.components)
    if not TABLE[name].forgets_its_start:
        assert not np.array_equal(one.components, other.components)


@names
def test_compiles_once_for_a_stream(name):
    parts = np.split(PROBLEM.data.astype("float32"), N // 10)
    batches = [rows_of(name, part) for part in parts]
    _update.clear_cache()
    play_stream(algorithm_of(name), batches, k=K)
    # An equal algorithm made anew must not compile again either.
    play_stream(algorithm_of(name), batches, k=K, seed=1)
    assert _update._cache_size() == 1
    # Nor must finer rows: they are played in the precision of the state.
    finer = [batches[0], rows_of(name, parts[1].astype("float64"))]
    assert play_stream(algorithm_of(name), finer, k=K).components.dtype == jnp.float32
    assert _update._cache_size() == 1


@names
def test_state_is_a_stable_pytree(name):
    algorithm, rows = algorithm_of(name), as_rows(rows_of(name, PROBLEM.data))
    before = algorithm.init(random_players(0, K, D, "float64"))
    after, info = _update(algorithm, ONE_DEVICE, rows, before)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    described = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(s)] for s in (before, after)]
    assert described[0] == described[1]
    assert [field.shape for field in info] == [(K,), (K,), (K,)]
    # Through NumPy and back, as a checkpoint would: the next update is the same.
    restored = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), after)
    again, expected = (
        _update(algorithm, ONE_DEVICE, rows, state)[0] for state in (restored, after)
    )
    jax.tree.map(np.testing.assert_array_equal, again, expected)


@names
def test_update_changes_nothing_it_was_given(name):
    algorithm, rows = algorithm_of(name), as_rows(rows_of(name, PROBLEM.data))
    state = algorithm.init(random_players(0, K, D, "float64"))
    kept = jax.tree.map(np.array, state)
    # The one update here that is not compiled as a whole: it may be called so too.
    algorithm.update(rows, state)
    jax.tree.map(np.testing.assert_array_equal, kept, state)


@plain_names
@pytest.mark.parametrize(
    ("what", "x"),
    [
        ("batch smaller than k", PROBLEM.data[:2]),
        ("one row", PROBLEM.data[:1]),
        ("d smaller than batch", PROBLEM.data),
        ("zero rows", np.zeros((5, D))),
        ("zero rows among others", np.concatenate([PROBLEM.data[:30], np.zeros((30, D))])),
        ("rank-deficient M", np.outer(np.full(5, 0.4), PROBLEM.components[0])),
    ],
)
def test_awkward_rows_give_no_nan(name, what, x):
    played = play(algorithm_of(name), rows_of(name, x.astype("float32")), k=K, rounds=20)
    for leaf in jax.tree.leaves((played.components, played.state, played.info)):
        assert np.isfinite(np.asarray(leaf)).all(), what


@names
def test_zero_rows_added_change_nothing(name):
    rows = PROBLEM.data[:40]
    padded = np.concatenate([rows, np.zeros((20, D))])
    plain, more = (
        play(algorithm_of(name), rows_of(name, x), k=K, rounds=5).components for x in (rows, padded)
    )
    # Up to sign: the sketch's singular vectors have none of their own.
    assert metrics.angular_error(np.asarray(more), np.asarray(plain)).max() < 1e-8


@names
@pytest.mark.parametrize(
    ("of_players", "of_rows"), [("float32", "float64"), ("float64", "float32")]
)
def test_players_and_rows_of_different_precision_play_in_the_finer(name, of_players, of_rows):
    players = random_players(0, K, D, of_players)
    rows = rows_of(name, PROBLEM.data.astype(of_rows))
    played = play(algorithm_of(name), rows, players=players, rounds=5)
    assert played.components.dtype == jnp.float64
    streamed = play_stream(algorithm_of(name), [rows] * 5, players=players)
    np.testing.assert_allclose(streamed.components, played.components, atol=1e-6)


@names
def test_a_state_keeps_its_precision_on_finer_rows(name):
    # In a stream too: see test_compiles_once_for_a_stream.
    algorithm = algorithm_of(name)
    coarse, fine = (rows_of(name, PROBLEM.data.astype(t)) for t in ("float32", "float64"))
    state = play(algorithm, coarse, k=K, rounds=20).state
    played = play(algorithm, fine, state=state, rounds=20)
    assert played.components.dtype == jnp.float32


@names
def test_repeats_a_run_played_in_two_halves(name):
    rows, algorithm = rows_of(name, PROBLEM.data), algorithm_of(name)
    whole = play(algorithm, rows, k=K, rounds=10)
    half = play(algorithm, rows, k=K, rounds=5)
    rest = play(algorithm, rows, rounds=5, state=half.state)
    np.testing.assert_array_equal(whole.components, rest.components)
