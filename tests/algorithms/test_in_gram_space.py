"""Gram space: every algorithm plays there as it does in d dimensions."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from eigengame import make, play_stream, testing
from eigengame.algorithms import REGISTRY, InGramSpace, in_gram_space
from eigengame.game import as_rows
from eigengame.game.gram_space import coordinates_of
from eigengame.game.rows import DenseRows
from eigengame.linalg import wide
from eigengame.sharding.placement import choose_placement

K, D, M = 3, 60, 8
OPTIONS = {
    "alpha": {"step_size": 0.2, "lag": 2},
    "sequential": {"eigenvalues": (1.0, 0.5, 0.25, 0.1), "cap": 2},
}
"""With lag, so that a state has several arrays of players, and large steps."""


def batches(count=3, dtype=np.float64):
    stream, _ = testing.stream_with(testing.exponential(D, 1, 1e-3), M, count, seed=3)
    return [batch.astype(dtype) for batch in stream]


QUICK = ("alpha", "oja", "remembered")
"""One with several arrays of players, one with QR, and one with its own Gram space; others are slow to compile."""

NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted(REGISTRY)
]


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_gives_the_same_result_as_in_d_dimensions(name):
    algorithm = make(name, **OPTIONS.get(name, {}))
    if name == "remembered":
        # One round in Gram space is exact; in score space many are needed for this accuracy.
        algorithm = make(name, space="gram")
    plain = play_stream(algorithm, batches(), k=K, seed=1)
    small = play_stream(InGramSpace(algorithm), batches(), k=K, seed=1)
    overlaps = np.abs(np.sum(np.asarray(plain.components) * np.asarray(small.components), axis=1))
    lengths = np.linalg.norm(plain.components, axis=1) * np.linalg.norm(small.components, axis=1)
    np.testing.assert_allclose(overlaps, lengths, rtol=1e-9)
    np.testing.assert_allclose(small.info.rewards, plain.info.rewards, rtol=1e-6, atol=1e-12)


def test_players_stay_on_the_sphere_over_hundreds_of_updates():
    stream = batches(20, np.float32) * 25
    played = play_stream(InGramSpace(make("oja", step_size=0.1)), stream, k=K)
    v = np.asarray(played.components, np.float64)
    np.testing.assert_allclose(v @ v.T, np.eye(K), atol=1e-5)
    np.testing.assert_allclose(played.state.overlaps, np.eye(K), atol=1e-5)


def test_overlaps_computed_from_moves_stay_accurate(monkeypatch):
    # Never measured again. Overlaps recomputed from coordinates would have an error of 9e-6 after 400 updates.
    monkeypatch.setattr(in_gram_space, "current_overlaps", lambda wide, rows, known, step: known)
    stream = batches(20, np.float32) * 20
    played = play_stream(InGramSpace(make("oja", step_size=1e-4)), stream, k=K)
    v = np.asarray(played.components, np.float64)
    np.testing.assert_allclose(v @ v.T, np.eye(K), atol=2e-6)


def test_a_basis_marks_empty_directions():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 40))
    vectors[3], vectors[4] = 0, vectors[1]
    coordinates, back, empty = (
        np.asarray(one) for one in coordinates_of(jnp.asarray(vectors @ vectors.T))
    )
    assert empty.sum() == 2
    np.testing.assert_allclose(coordinates @ coordinates.T, vectors @ vectors.T, atol=1e-9)
    np.testing.assert_allclose(coordinates @ back @ vectors, vectors, atol=1e-9)
    assert (coordinates[:, empty] == 0).all()


def test_rows_in_half_precision_are_played_in_float32():
    rows = [DenseRows(jnp.asarray(x, jnp.bfloat16)) for x in batches(2)]
    played = play_stream(InGramSpace(make("oja")), rows, k=K)
    assert played.components.dtype == jnp.float32


@pytest.mark.parametrize(
    ("options", "words"),
    [({"optimizer": optax.sgd(0.1)}, "optimizer"), ({"own_batches": True}, "own_batches")],
)
def test_options_that_are_not_invariant_under_rotations_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        InGramSpace(make("alpha", **options))


def test_rows_on_a_mesh_do_not_use_kernels(monkeypatch):
    asked = []
    monkeypatch.setattr(wide, "kernels_fit", lambda given, rows: bool(asked.append(rows.dtype)))
    place = choose_placement({"data": 1}, 16, 3, D)
    assert place.mesh is not None
    algorithm = InGramSpace(make("alpha", step_size=0.1))
    values = np.random.default_rng(0).normal(size=(16, D))
    rows = place.rows(DenseRows(jnp.asarray(values, jnp.bfloat16)))
    algorithm.update(rows, algorithm.init(jnp.eye(3, D, dtype=jnp.float32)))
    assert set(asked) == {jnp.dtype("float32")}


def test_rows_given_by_a_matrix_are_refused():
    from eigengame.game import as_symmetric_rows

    with pytest.raises(ValueError, match="dense rows"):
        play_stream(InGramSpace(make("oja")), [as_symmetric_rows(np.eye(5))], k=2)
    assert as_rows(np.eye(5)).width == 5
