"""Properties that every algorithm of the registry must have.

A new algorithm needs a new line in TABLE; the first test fails without it.

Properties that options can break are tested for every line, the others for one line of each algorithm. Each line,
shape and dtype is a compilation, so tests use the same ones where they can.
"""

import functools
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
    """Options and rounds of an algorithm for the problem above, whose largest eigenvalue is 1."""

    name: str
    options: dict[str, Any]
    rounds: int
    # Whether the algorithm only finds the subspace: settle and match before taking angles.
    subspace: bool = False
    # Whether the result does not depend on the seed: a sketch has no random start, and a memory that holds
    # all of small data does not depend on its start.
    independent_of_seed: bool = False


# Created once: two optimizers with the same numbers are not equal, and neither are two lambdas.
SGD, SCHEDULE = optax.sgd(0.2), lambda step: 0.3 / (1 + step / 200)

TABLE = {
    "remembered": Case("remembered", {}, 1, independent_of_seed=True),
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
    "frequent_directions": Case("frequent_directions", {}, 3, independent_of_seed=True),
}
every_case = pytest.mark.parametrize("name", sorted(TABLE))
every_algorithm = pytest.mark.parametrize("name", sorted(REGISTRY))


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Free the programs compiled for this table at the end."""
    yield
    _block.clear_cache()
    _update.clear_cache()


def algorithm_of(name):
    return make(TABLE[name].name, **TABLE[name].options)


def rows_of(name, x):
    """Return the rows, with one copy for each player for `own_batches`."""
    return np.stack([x] * K) if TABLE[name].options.get("own_batches") else x


def fitted(name, dtype, seed=0):
    rows = as_rows(rows_of(name, PROBLEM.data.astype(dtype)))
    return play(algorithm_of(name), rows, k=K, rounds=TABLE[name].rounds, seed=seed)


known_fit = functools.cache(fitted)


def test_the_table_is_the_registry():
    assert {case.name for case in TABLE.values()} == set(REGISTRY)
    # One line of each algorithm has its name.
    assert set(REGISTRY) <= set(TABLE)


@every_case
def test_converges_on_an_easy_spectrum(name, dtype):
    found = known_fit(name, dtype).components
    if TABLE[name].subspace:
        assert metrics.subspace_distance(np.asarray(found), PROBLEM.components) < 1e-3
        found = settle(as_rows(PROBLEM.data.astype(dtype)), found)[1]
        found = np.asarray(found)[metrics.match(found, PROBLEM.components)]
    errors = metrics.angular_error(np.asarray(found), PROBLEM.components)
    assert metrics.streak_of(errors, math.pi / 32) == K


@every_case
def test_keeps_its_dtype(name, dtype):
    played = known_fit(name, dtype)
    assert played.components.dtype == dtype
    assert played.info.rewards.dtype == played.info.direction_norms.dtype == dtype
    floats = [
        leaf for leaf in jax.tree.leaves(played.state) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    assert floats
    assert {str(leaf.dtype) for leaf in floats} == {dtype}


@every_case
def test_is_deterministic_for_a_seed(name):
    one, same, other = (fitted(name, "float32", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.components, same.components)
    if not TABLE[name].independent_of_seed:
        assert not np.array_equal(one.components, other.components)


@every_case
def test_compiles_once_for_a_stream_and_for_any_number_of_rounds(name):
    rows = rows_of(name, PROBLEM.data.astype("float32"))
    play_stream(algorithm_of(name), [rows, rows], k=K)
    play(algorithm_of(name), rows, k=K, rounds=2)
    before = _update._cache_size(), _block._cache_size()
    # Neither an equal algorithm, nor another seed, nor another number of rounds compiles again.
    play_stream(algorithm_of(name), [rows, rows], k=K, seed=1)
    play(algorithm_of(name), rows, k=K, rounds=5)
    # Nor do rows of a higher precision: they are cast to the precision of the state.
    mixed = [rows, rows_of(name, PROBLEM.data)]
    assert play_stream(algorithm_of(name), mixed, k=K).components.dtype == jnp.float32
    assert (_update._cache_size(), _block._cache_size()) == before


@every_case
def test_state_is_a_stable_pytree(name):
    algorithm = algorithm_of(name)
    rows = as_rows(rows_of(name, PROBLEM.data.astype("float32")))
    before = algorithm.init(random_players(0, K, D))
    after, info = _update(algorithm, ONE_DEVICE, rows, before)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    described = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(s)] for s in (before, after)]
    assert described[0] == described[1]
    assert [field.shape for field in info] == [(K,), (K,), (K,)]
    # Through NumPy and back, as in a checkpoint: the next update is the same.
    restored = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), after)
    again, expected = (
        _update(algorithm, ONE_DEVICE, rows, state)[0] for state in (restored, after)
    )
    jax.tree.map(np.testing.assert_array_equal, again, expected)


@every_case
def test_axes_name_exactly_the_axes_that_grow_with_the_features(name):
    algorithm = algorithm_of(name)
    narrow, wide = (
        jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((K, d), "float32")) for d in (100, 101)
    )

    def check(one, other, axes):
        grows = [
            i
            for i, sizes in enumerate(zip(one.shape, other.shape, strict=True))
            if len(set(sizes)) > 1
        ]
        assert grows == [i for i, axis in enumerate(axes) if axis == "features"]

    jax.tree.map(check, narrow, wide, narrow.axes())


@every_algorithm
@pytest.mark.parametrize(
    ("what", "x"),
    [
        ("batch smaller than k", PROBLEM.data[:2]),
        ("one row", PROBLEM.data[:1]),
        ("d smaller than batch", PROBLEM.data),
        ("zero rows", np.zeros((2, D))),
        ("zero rows among others", np.concatenate([PROBLEM.data[:30], np.zeros((30, D))])),
        ("rank-deficient M", np.outer(np.full(N, 0.1), PROBLEM.components[0])),
    ],
)
def test_awkward_rows_give_no_nan(name, what, x):
    played = play(algorithm_of(name), x.astype("float32"), k=K, rounds=20)
    for leaf in jax.tree.leaves((played.components, played.state, played.info)):
        assert np.isfinite(np.asarray(leaf)).all(), what


@every_algorithm
def test_zero_rows_added_change_nothing(name):
    rows = PROBLEM.data[:40]
    padded = np.concatenate([rows, np.zeros((20, D))])
    plain, more = (play(algorithm_of(name), x, k=K, rounds=5).components for x in (rows, padded))
    # Up to sign: singular vectors of a sketch have none.
    assert metrics.angular_error(np.asarray(more), np.asarray(plain)).max() < 1e-8


@every_algorithm
@pytest.mark.parametrize(
    ("of_players", "of_rows"), [("float32", "float64"), ("float64", "float32")]
)
def test_players_and_rows_of_different_precision_use_the_higher(name, of_players, of_rows):
    players = random_players(0, K, D, of_players)
    rows = PROBLEM.data.astype(of_rows)
    played = play(algorithm_of(name), rows, players=players, rounds=5)
    assert played.components.dtype == jnp.float64
    streamed = play_stream(algorithm_of(name), [rows] * 5, players=players)
    np.testing.assert_allclose(streamed.components, played.components, atol=1e-6)


@every_case
def test_a_state_keeps_its_precision_on_rows_of_a_higher_one(name):
    # In a stream: see test_compiles_once_for_a_stream_and_for_any_number_of_rounds.
    algorithm = algorithm_of(name)
    low, high = (rows_of(name, PROBLEM.data.astype(t)) for t in ("float32", "float64"))
    state = play(algorithm, low, k=K, rounds=20).state
    played = play(algorithm, high, state=state, rounds=20)
    assert played.components.dtype == jnp.float32


@every_case
def test_repeats_a_run_played_in_two_halves(name):
    rows, algorithm = rows_of(name, PROBLEM.data), algorithm_of(name)
    whole = play(algorithm, rows, k=K, rounds=10)
    half = play(algorithm, rows, k=K, rounds=5)
    rest = play(algorithm, rows, rounds=5, state=half.state)
    np.testing.assert_array_equal(whole.components, rest.components)
