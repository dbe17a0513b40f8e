"""A Krylov space holds eigenvectors within its span, exact images, and a bound on their errors."""

import numpy as np
import pytest

from eigengame import testing
from eigengame.solver.certificates import krylov_space as krylov_space_module
from eigengame.solver.certificates.krylov_space import (
    extended,
    fresh_directions,
    krylov_space,
    truncated,
)

D, K = 40, 6
MATRIX = testing.matrix_with(testing.harmonic(D), seed=2).data
START = testing.orthogonal(D, 3)[:K]


def grown(passes):
    space = krylov_space(START, START @ MATRIX, np.zeros(K), np.zeros(K))
    for _ in range(passes):
        fresh = fresh_directions(space, K)
        space = extended(space, fresh, fresh @ MATRIX, *np.zeros((2, len(fresh))))
    return space


@pytest.mark.parametrize("passes", [0, 1, 3])
def test_directions_are_eigenvectors_within_their_span_with_exact_images(passes):
    space = grown(passes)
    assert space.directions.shape == (K * (passes + 1), D)
    np.testing.assert_allclose(
        space.directions @ space.directions.T, np.eye(K * (passes + 1)), atol=1e-12
    )
    np.testing.assert_allclose(space.images, space.directions @ MATRIX, atol=1e-12)
    gram = space.directions @ space.images.T
    np.testing.assert_allclose(gram, np.diag(space.values), atol=1e-12)
    assert (np.diff(space.values) <= 1e-12).all()


def test_a_space_is_extended_by_some_features_at_a_time(monkeypatch):
    whole, before = grown(2), grown(1)
    kept = before.directions.copy(), before.images.copy()
    monkeypatch.setattr(krylov_space_module, "FEATURES", 7)
    fresh = fresh_directions(before, K)
    given = fresh.copy()
    parts = extended(before, fresh, fresh @ MATRIX, *np.zeros((2, len(fresh))))
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    # The space before and the new directions are unchanged.
    np.testing.assert_array_equal(before.directions, kept[0])
    np.testing.assert_array_equal(before.images, kept[1])
    np.testing.assert_array_equal(fresh, given)


def test_the_space_is_the_block_krylov_space_of_the_start():
    blocks = np.concatenate([START, START @ MATRIX, START @ MATRIX @ MATRIX])
    inside, rest = grown(2).image_of(blocks)
    np.testing.assert_allclose(rest, 0, atol=1e-9)
    np.testing.assert_allclose(inside, blocks @ MATRIX, atol=1e-9)


def test_errors_of_images_stay_within_their_bound():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((K, D))
    noise *= 1e-6 / np.linalg.norm(noise, axis=1, keepdims=True)
    space = krylov_space(START, START @ MATRIX + noise, np.full(K, 1e-6), np.zeros(K))
    fresh = fresh_directions(space, K)
    space = extended(space, fresh, fresh @ MATRIX, *np.zeros((2, len(fresh))))
    off = np.linalg.norm(space.images - space.directions @ MATRIX, axis=1)
    assert (off <= space.floor).all()
    assert space.floor.max() < 1e-4


def test_players_that_are_settled_have_no_fresh_directions():
    problem = testing.matrix_with(testing.harmonic(D), seed=2)
    players = problem.components[:K]
    space = krylov_space(players, players @ problem.data, np.full(K, 1e-9), np.zeros(K))
    assert len(fresh_directions(space, K)) == 0


def test_a_truncated_space_keeps_the_first_eigenvectors_and_the_given_directions():
    space = grown(3)
    short = truncated(space, START, 2 * K)
    assert len(short.directions) <= 3 * K
    np.testing.assert_allclose(short.images, short.directions @ MATRIX, atol=1e-10)
    np.testing.assert_allclose(short.values[:K], space.values[:K], rtol=1e-12)
    np.testing.assert_allclose(short.image_of(START)[1], 0, atol=1e-7)


@pytest.mark.parametrize("missing", [1, 2, K])
def test_a_space_that_lacks_few_directions_is_completed(missing):
    """Residuals of eigenvectors are rounding. They would never show what is left outside."""
    vectors = np.linalg.eigh(MATRIX)[1].T[missing:]
    space = krylov_space(vectors, vectors @ MATRIX, *np.zeros((2, D - missing)))
    fresh = fresh_directions(space, K)
    assert fresh.shape == (missing, D)
    whole = np.concatenate([space.directions, fresh])
    np.testing.assert_allclose(whole @ whole.T, np.eye(D), atol=1e-12)
    complete = extended(space, fresh, fresh @ MATRIX, *np.zeros((2, missing)))
    np.testing.assert_allclose(complete.values, np.linalg.eigvalsh(MATRIX)[::-1], atol=1e-12)
    assert len(fresh_directions(complete, K)) == 0
