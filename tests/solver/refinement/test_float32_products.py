"""Products in float32 with measured errors: the measured bounds hold, and fits use them where they help."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error
from eigengame.solver.certificates.rounding import Rounding
from eigengame.solver.passes import float64_products, host_sums
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.refinement import refine
from eigengame.solver.refinement.block_products import multiply
from eigengame.solver.refinement.float32_products import (
    computed_on_host,
    measurable,
    measured_products,
)
from eigengame.solver.refinement.goal import Goal, play_rounding
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.moments import Moments

N, D, B = 900, 300, 7


def rows_of(seed, dtype=np.float32):
    """Rows with a mean, and graded features."""
    rows = np.random.default_rng(seed).standard_normal((N, D)) / np.sqrt(np.arange(1, D + 1))
    return (rows + 0.2).astype(dtype)


def goal_of(rows, weights=None, mean=None, frame=None, **options):
    batches = Batches(as_source(rows), 400, np.dtype("float32"), weights, frame=frame or Frame())
    about = None if mean is None else jnp.asarray(mean, "float32")
    options = {"tol": 0.05, "dtype": np.float32} | options
    rounding = Rounding.probable(np.float32, D, 400, 3, 1.0)
    return Goal(SourcePasses(batches), about, 3, 3, 1.0, 5, seed=1, rounding=rounding, **options)


@pytest.mark.parametrize("mean", [0.0, 0.2, 50.0])
@pytest.mark.parametrize(
    "kind", ["float32", "compiled", "float64", "bytes", "weights", "uncentred", "origin"]
)
def test_products_of_chunks_are_within_the_rounding_of_the_updates(kind, mean, monkeypatch):
    if kind == "compiled":
        monkeypatch.setattr(host_sums, "LARGE", N * D)
    for seed in range(3):
        rows = (rows_of(seed) + mean).astype(np.float64 if kind == "float64" else np.float32)
        if kind == "bytes":
            rows = np.clip(40 * rows + 90, 0, 255).astype(np.uint8)
        weights = np.random.default_rng(seed).random(N) if kind == "weights" else None
        frame = Frame(np.full(D, 0.5 + mean)) if kind == "origin" else Frame()
        wide = rows.astype(np.float64) - (0 if frame.origin is None else frame.origin)
        counts = np.ones(N) if weights is None else weights
        middle, weight = counts @ wide / counts.sum(), counts.sum()
        goal = goal_of(rows, weights, None if kind == "uncentred" else middle, frame)
        moments = Moments(weight, middle, counts @ (wide - middle) ** 2)
        largest = (counts[:, None] * wide**2).sum(axis=1).max()
        goal = replace(goal, rounding=play_rounding(goal.passes, moments, N, np.float32, largest))
        assert computed_on_host(goal)
        block = np.linalg.qr(np.random.default_rng(seed).standard_normal((D, B)))[0].T
        found = multiply(goal, block, "update")
        np.testing.assert_array_equal(found.directions, block.astype("float32"))
        about = None if kind == "uncentred" else np.asarray(goal.mean, np.float64)
        exact = float64_products.products(goal.passes, found.directions, about)
        off = np.linalg.norm(found.images - exact.images, axis=1)
        level = np.linalg.eigvalsh((wide * counts[:, None]).T @ wide)[-1]
        assert (off <= found.floor(level)).all()
        # Scores about the mean lose few digits: errors are those of float32 relative to the rows.
        lengths = (
            np.sqrt(counts @ wide**2).sum() * np.linalg.norm(found.images, axis=1).max() ** 0.5
        )
        assert (off <= 1e-5 * lengths).all()


def test_products_of_a_pass_do_not_depend_on_the_length_of_batches():
    rows, block = rows_of(0), np.eye(B, D)
    goals = [goal_of(rows, mean=rows.mean(axis=0)) for _ in range(2)]
    goals[1] = replace(goals[1], passes=SourcePasses(replace(goals[1].passes.batches, size=100)))
    one, other = (multiply(goal, block, "update").images for goal in goals)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("wide", [8192, 64], ids=["whole", "panels"])
@pytest.mark.parametrize(
    "kind", ["float32", "compiled", "float64", "bytes", "weights", "uncentred", "unit"]
)
def test_measured_errors_are_bounds(kind, wide, monkeypatch):
    if kind == "compiled":
        monkeypatch.setattr(host_sums, "LARGE", 0)
    monkeypatch.setattr(host_sums, "WIDE", wide)
    monkeypatch.setattr(host_sums, "PANEL", 128 * 256)
    for seed in range(3):
        rows = rows_of(seed, np.float64 if kind == "float64" else np.float32)
        if kind == "bytes":
            rows = np.clip(40 * rows + 90, 0, 255).astype(np.uint8)
        weights = np.random.default_rng(seed).random(N) if kind == "weights" else None
        mean = None if kind == "uncentred" else rows[:100].mean(axis=0)
        frame = None
        if kind == "unit":
            frame, rows = Frame(unit=2.0**40), rows * np.float32(2.0**40)
        block = np.linalg.qr(np.random.default_rng(seed).standard_normal((D, B)))[0].T
        rounded, images, bounds = measured_products(goal_of(rows, weights, mean, frame), block, "")
        np.testing.assert_array_equal(rounded, block.astype("float32"))
        goal = goal_of(rows, weights, mean, frame)
        wide = None if mean is None else np.asarray(goal.mean, np.float64)
        exact = float64_products.products(goal.passes, rounded, wide)
        off = np.linalg.norm(images - exact.images, axis=1)
        assert (off > 0).all()
        assert (off <= bounds + exact.floor).all()
        # Ten times the error is a usual bound with eight draws and a risk of 1e-7.
        assert (bounds <= 200 * off + exact.floor).all()


@pytest.mark.parametrize("options", [{"tol": 1e-4}, {"tol": None}, {"dtype": np.float64}])
def test_goals_that_float32_cannot_reach_are_not_measured(options):
    assert measurable(goal_of(rows_of(0)))
    assert not measurable(goal_of(rows_of(0), **options))


def test_wide_rows_are_refined_in_float32_and_certified(monkeypatch):
    used, multiply = [], refine.multiply

    def counted(goal, block, precision, *task):
        used.append(precision)
        return multiply(goal, block, precision, *task)

    monkeypatch.setattr(refine, "multiply", counted)
    d = 6000
    rows = np.random.default_rng(3).standard_normal((500, d)) / np.sqrt(np.arange(1, d + 1))
    rows = rows.astype(np.float32)
    pca = EigenGamePCA(20, algorithm="remembered", tol=0.01, passes=20, random_state=0)
    pca.fit(rows)
    true = np.linalg.svd((rows - rows.mean(axis=0)).astype(np.float64), full_matrices=False)[2][:20]
    assert set(used) == {"measured"}
    assert pca.outcome_.converged
    assert pca.certificate_.confidence == 0.999
    assert (angular_error(pca.components_, true) <= pca.certificate_.angle).all()


def test_float64_follows_where_measured_errors_are_too_large(monkeypatch):
    # As if errors were as large as the smallest eigenvalue.
    used, measured = [], measured_products

    def poor(*args):
        used.append("measured")
        rounded, images, bounds = measured(*args)
        return rounded, images, bounds + 10.0

    monkeypatch.setattr("eigengame.solver.refinement.block_products.measured_products", poor)
    monkeypatch.setattr(refine, "first_precision", lambda *_: "measured")
    rows = rows_of(5)
    pca = EigenGamePCA(3, algorithm="remembered", tol=0.01, dtype="float32", random_state=0)
    pca.fit(rows)
    true = np.linalg.svd((rows - rows.mean(axis=0)).astype(np.float64), full_matrices=False)[2][:3]
    assert used == ["measured"]
    assert pca.outcome_.converged
    assert (angular_error(pca.components_, true) <= pca.certificate_.angle).all()
