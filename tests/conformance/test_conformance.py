"""One table, every algorithm of the registry: what it must do to be in it.

A new algorithm is a new line in TABLE; the first test fails until it has one.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import REGISTRY, as_rows, make, metrics, play, play_stream, random_players, testing
from eigengame.game.settle import settle
from eigengame.play import _rounds, _update

K, D, N = 4, 10, 60
SPECTRUM = np.array([1.0, 0.7, 0.45, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002])
PROBLEM = testing.rows_with(SPECTRUM, N, seed=0)


class Case(NamedTuple):
    """How to ask an algorithm for the easy problem above, whose largest eigenvalue is 1."""

    options: dict[str, Any]
    rounds: int
    # Whether only the subspace is found: settled and matched before the angles are taken.
    subspace: bool = False


TABLE = {
    "remembered": Case({}, 1),
    "best_response": Case({}, 6),
    "alpha": Case({"step_size": 0.2}, 200),
    # float32 cannot reach the theorem's gradient norms: the cap ends a turn there.
    "sequential": Case(
        {"eigenvalues": tuple(SPECTRUM[: K + 1]), "theta_tol": math.pi / 32, "cap": 2000}, 8000
    ),
    "mu": Case({"step_size": 0.4}, 200),
    "oja": Case({"step_size": 1.0}, 100),
    "hebb_deflation": Case({"step_size": 1.0}, 600),
    "gha": Case({"step_size": 0.2}, 200),
    "krasulina": Case({"step_size": 1.0}, 100, subspace=True),
    "frequent_directions": Case({}, 3),
}
names = pytest.mark.parametrize("name", sorted(TABLE))


def algorithm_of(name):
    return make(name, **TABLE[name].options)


def fitted(name, dtype="float32", seed=0):
    case = TABLE[name]
    rows = as_rows(PROBLEM.data.astype(dtype))
    return play(algorithm_of(name), rows, k=K, rounds=case.rounds, seed=seed)


def test_the_table_is_the_registry():
    assert sorted(TABLE) == sorted(REGISTRY)


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
    # A sketch of the rows has no random start, and a memory of the whole of small data forgets its own.
    if name not in ("frequent_directions", "remembered"):
        assert not np.array_equal(one.components, other.components)


@names
def test_compiles_once_for_a_stream(name):
    batches = [PROBLEM.data[start : start + 10].astype("float32") for start in range(0, N, 10)]
    _update.clear_cache()
    play_stream(algorithm_of(name), batches, k=K)
    # An equal algorithm made anew must not compile again either.
    play_stream(algorithm_of(name), batches, k=K, seed=1)
    assert _update._cache_size() == 1


@names
def test_state_is_a_stable_pytree(name):
    algorithm, rows = algorithm_of(name), as_rows(PROBLEM.data)
    before = algorithm.init(random_players(0, K, D, "float64"))
    after, info = algorithm.update(rows, before)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    described = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(s)] for s in (before, after)]
    assert described[0] == described[1]
    assert [field.shape for field in info] == [(K,), (K,), (K,)]
    # Through NumPy and back, as a checkpoint would: the next update is the same.
    restored = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), after)
    again, expected = algorithm.update(rows, restored)[0], algorithm.update(rows, after)[0]
    jax.tree.map(np.testing.assert_array_equal, again, expected)


@names
def test_update_changes_nothing_it_was_given(name):
    algorithm, rows = algorithm_of(name), as_rows(PROBLEM.data)
    state = algorithm.init(random_players(0, K, D, "float64"))
    kept = jax.tree.map(np.array, state)
    algorithm.update(rows, state)
    jax.tree.map(np.testing.assert_array_equal, kept, state)


@names
@pytest.mark.parametrize(
    ("what", "x"),
    [
        ("batch smaller than k", PROBLEM.data[:2]),
        ("one row", PROBLEM.data[:1]),
        ("d smaller than batch", PROBLEM.data),
        ("zero rows", np.zeros((5, D))),
        ("zero rows among others", np.concatenate([PROBLEM.data[:5], np.zeros((5, D))])),
        ("rank-deficient M", np.outer(np.full(5, 0.4), PROBLEM.components[0])),
    ],
)
def test_awkward_rows_give_no_nan(name, what, x):
    played = play(algorithm_of(name), x.astype("float32"), k=K, rounds=20)
    for leaf in jax.tree.leaves((played.components, played.state, played.info)):
        assert np.isfinite(np.asarray(leaf)).all(), what


@names
def test_zero_rows_added_change_nothing(name):
    rows = PROBLEM.data[:20]
    padded = np.concatenate([rows, np.zeros((12, D))])
    plain, more = (play(algorithm_of(name), x, k=K, rounds=5).components for x in (rows, padded))
    # Up to sign: the sketch's singular vectors have none of their own.
    assert metrics.angular_error(np.asarray(more), np.asarray(plain)).max() < 1e-8


@names
def test_repeats_a_run_played_in_two_halves(name):
    rows, algorithm = PROBLEM.data, algorithm_of(name)
    whole = play(algorithm, rows, k=K, rounds=10)
    half = play(algorithm, rows, k=K, rounds=5)
    rest = play(algorithm, rows, rounds=5, state=half.state)
    np.testing.assert_array_equal(whole.components, rest.components)
    _rounds.clear_cache()
