"""Merged models in float32 are about as accurate as one fit of all rows, in any order of merges."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from eigengame import metrics
from eigengame.solver.streams import stream as streams
from tests.game_pca import game_pca

N, D, K = 1600, 24, 6
DIGITS = load_digits().data


def spread(name, seed):
    """Rows (N, D) in float32 whose scatter beyond the players is small, so that rounding is what is measured."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0]
    # Variances graded over 1e6; in the other cases over 1e8.
    deviations = np.geomspace(1, 1e-3 if name == "graded" else 1e-4, D)
    x = rng.normal(size=(N, D)) * deviations @ turn
    if name == "means":
        # Each eighth of the rows has a mean of its own.
        x += np.repeat(rng.normal(size=(8, 4)) @ turn[:4], N // 8, axis=0)
    if name == "far":
        # Each eighth has an origin of its own, which its model subtracts.
        x += np.repeat(100 * np.arange(1, 9)[:, None] * turn[0], N // 8, axis=0)
    return x.astype("float32")


def fitted(x, k=K, **options):
    options = {"random_state": 0, "batch_size": 200} | options
    return game_pca(k, **options).partial_fit(x)


def chain(models):
    merged = models[0]
    for other in models[1:]:
        merged = merged.merge(other)
    return merged


def tree(models):
    while len(models) > 1:
        pairs = [models[i : i + 2] for i in range(0, len(models), 2)]
        models = [pair[0].merge(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return models[0]


def right_chain(models):
    return chain(models[::-1])


def angles(pca, x, k=K):
    x = x.astype("float64")
    truth = metrics.true_components(x - x.mean(axis=0), k)[1]
    return metrics.angular_error(pca.components_.astype("float64"), truth)


SHAPES = [chain, right_chain, tree]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["graded", "means"])
@pytest.mark.parametrize("where", ["host", "device"])
def test_merges_of_parts_are_as_accurate_as_one_fit(name, seed, where, monkeypatch):
    if where == "device":
        monkeypatch.setattr(streams, "MOST_PRECISE", 0)
    x = spread(name, seed)
    alone = angles(fitted(x), x).max()
    for parts in (2, 3, 8):
        models = [fitted(part) for part in np.split(x, np.arange(1, parts) * 8 // parts * 200)]
        for shape in SHAPES:
            merged = shape(models)
            assert merged._result.options.dtype == np.float32
            # Twice the angle of one fit, and a few hundred roundings of float32 over the gap of the last component.
            assert angles(merged, x).max() <= 2 * alone + 1e-5, (parts, shape.__name__)


@pytest.mark.parametrize("seed", [0, 1])
def test_parts_with_origins_of_their_own_merge_in_full_precision(seed):
    """One fit of all rows is off by 5e-4 here: it has one origin for means that are far apart."""
    x = spread("far", seed)
    models = [fitted(part) for part in np.split(x, 8)]
    assert all(model._result.frame.origin is not None for model in models)
    for shape in SHAPES:
        assert angles(shape(models), x).max() <= 3e-5


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_parts_whose_means_are_far_from_zero(seed):
    """A difference of means that is computed in the units of the data has lost the digits of the mean."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((200, 8)) / np.arange(1, 9) + 1e6 * rng.random(8)
    x[100:, :3] += 3
    models = [game_pca(8, algorithm="auto", random_state=seed).fit(part) for part in np.split(x, 2)]
    merged = models[0].merge(models[1])
    near = x - x[0]  # exact, and so is the mean up to rounding of its own size
    truth = metrics.true_components(near - near.mean(axis=0), 8)[1]
    off = metrics.angular_error(merged.components_, truth)
    assert (off <= merged.certificate_.angle).all()
    assert off.max() < 1e-13


def test_merges_of_digits_that_keep_all_directions_are_as_accurate_as_one_fit():
    alone = angles(fitted(DIGITS, 8, extra=56), DIGITS, 8).max()
    models = [fitted(part, 8, extra=56) for part in np.array_split(DIGITS, 8)]
    for shape in SHAPES:
        assert angles(shape(models), DIGITS, 8).max() <= 2 * alone + 1e-5


def test_merges_of_digits_lose_no_more_than_in_float64():
    """With 16 players each part drops variance of its own: this, not rounding, limits these angles."""
    for shape in SHAPES:
        found = [
            angles(
                shape([fitted(part, 8, dtype=dtype) for part in np.array_split(DIGITS, 8)]),
                DIGITS,
                8,
            )
            for dtype in ("float32", "float64")
        ]
        assert found[0].max() <= 1.5 * found[1].max()


def test_the_order_of_merges_changes_rounding_only():
    x = spread("graded", 2)
    models = [fitted(part) for part in np.split(x, 8)]
    one, *others = (shape(models).components_.astype("float64") for shape in SHAPES)
    for other in others:
        assert metrics.angular_error(one, other).max() <= 1e-5


def test_merged_players_are_orthonormal():
    x = spread("graded", 3)
    for models in ([fitted(part) for part in np.split(x, 8)], [fitted(x)] * 3, [fitted(x[:4])] * 2):
        players = np.asarray(tree(models)._result.stream.state.memory.players, np.float64)
        np.testing.assert_allclose(players @ players.T, np.eye(len(players)), atol=3e-7)
