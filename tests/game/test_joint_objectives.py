"""What the objectives of all players together determine, over orthonormal players on a diagonal M."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import testing
from eigengame.game import joint_objectives

SPECTRUM = np.array([5.0, 3.0, 2.0, 1.0])
D, DRAWS = SPECTRUM.size, 2000
OBJECTIVES = {
    name: jax.jit(jax.vmap(getattr(joint_objectives, name)))
    for name in ("trace", "off_diagonal", "trace_minus_off_diagonal")
}


def values(name, players):
    """The objective of each of (n, k, D) players."""
    return np.asarray(
        OBJECTIVES[name](jnp.asarray((players * SPECTRUM) @ players.transpose(0, 2, 1)))
    )


def draw_orthonormal(k, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(DRAWS, D, D)))[0][:, :k]


def turned(players, p, q, angle):
    """The players after a rotation by an angle in the plane of axes p and q."""
    turn = np.eye(D)
    turn[[p, q], [p, q]] = math.cos(angle)
    turn[p, q], turn[q, p] = -math.sin(angle), math.sin(angle)
    return players @ turn.T


@pytest.mark.parametrize("k", [2, D])
def test_objectives_are_sums_over_the_entries_of_r(k):
    players = draw_orthonormal(k)[:5]
    for v, trace, off, both in zip(
        players, *(values(name, players) for name in OBJECTIVES), strict=True
    ):
        r = np.array([[v[i] @ (SPECTRUM * v[j]) for j in range(k)] for i in range(k)])
        assert trace == pytest.approx(sum(r[i, i] for i in range(k)))
        squares = [r[i, j] ** 2 for i in range(k) for j in range(k) if i != j]
        assert off == pytest.approx(sum(squares))
        assert both == pytest.approx(trace - off)


def test_with_as_many_players_as_features_the_trace_is_constant():
    np.testing.assert_allclose(values("trace", draw_orthonormal(D)), SPECTRUM.sum())


def test_the_trace_is_largest_at_any_basis_of_the_top_subspace():
    assert (values("trace", draw_orthonormal(2)) < 8).all()
    mixed = testing.orthogonal(2, seed=1) @ np.eye(D)[:2]
    assert values("trace", mixed[None]) == pytest.approx(8)
    assert np.abs(mixed).max(axis=1).max() < 0.99


def test_with_as_many_players_as_features_only_eigenvectors_have_no_off_diagonal():
    assert (values("off_diagonal", draw_orthonormal(D)) > 1e-6).all()
    orders = np.stack([np.eye(D)[np.random.default_rng(seed).permutation(D)] for seed in range(20)])
    np.testing.assert_array_equal(values("off_diagonal", orders), 0)
    # Any rotation away from eigenvectors increases it, by (Lambda_p - Lambda_q)^2 sin^2(2 angle) / 2.
    for p, q in ((0, 1), (1, 3)):
        expected = (SPECTRUM[p] - SPECTRUM[q]) ** 2 * math.sin(0.2) ** 2 / 2
        assert values("off_diagonal", turned(orders[:1], p, q, 0.1)) == pytest.approx(expected)


def test_with_fewer_players_the_ritz_vectors_of_any_subspace_have_no_off_diagonal():
    # The paper says that a minimum of the off-diagonal enforces eigenvectors, also for k < d.
    v = draw_orthonormal(2)
    r = (v * SPECTRUM) @ v.transpose(0, 2, 1)
    ritz = np.linalg.eigh(r)[1].transpose(0, 2, 1) @ v
    np.testing.assert_allclose(values("off_diagonal", ritz), 0, atol=1e-24)
    # The largest overlap of each with an eigenvector: most are far from all.
    assert np.mean(np.abs(ritz).max(axis=2) < math.cos(0.1)) > 0.9


@pytest.mark.parametrize("k", [2, 3, D])
def test_trace_minus_off_diagonal_is_largest_at_the_top_eigenvectors_in_any_order(k):
    best = SPECTRUM[:k].sum()
    top = np.eye(D)[:k]
    for order in (np.arange(k), np.arange(k)[::-1], np.roll(np.arange(k), 1)):
        assert values("trace_minus_off_diagonal", top[None, order]) == pytest.approx(best)
    assert (values("trace_minus_off_diagonal", draw_orthonormal(k)) < best).all()
    # Small rotations too, within the subspace and out of it.
    for p in range(D):
        for q in range(p):
            if q < k:
                assert (
                    values("trace_minus_off_diagonal", turned(top[None], p, q, 0.01))[0]
                    < best - 1e-6
                )


def test_none_of_the_objectives_depends_on_the_order_of_the_players():
    players = draw_orthonormal(3)
    for name in OBJECTIVES:
        np.testing.assert_allclose(values(name, players), values(name, players[:, ::-1]))
