"""The rounding of products with M: bounds are not exceeded by real products, and are not far from them."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest

from eigengame.game import as_rows
from eigengame.solver.certificates.krylov_space import krylov_space
from eigengame.solver.certificates.rounding import UNIT, Rounding, gamma
from eigengame.solver.passes.float64_products import orthonormal, products
from tests.solver.row_passes import RowPasses

D, N = 24, 96


def exact_products(rows, directions):
    """V M for M = X'X about the exact mean, in rational arithmetic, rounded once at the end."""
    exact = [[Fraction(float(x)) for x in row] for row in rows]
    mean = [sum(column) / len(exact) for column in zip(*exact, strict=True)]
    centred = [[x - m for x, m in zip(row, mean, strict=True)] for row in exact]
    found = np.zeros(directions.shape)
    for i, direction in enumerate(directions):
        weights = [Fraction(float(v)) for v in direction]
        scores = [sum(a * b for a, b in zip(row, weights, strict=True)) for row in centred]
        for f in range(rows.shape[1]):
            total = sum(s * row[f] for s, row in zip(scores, centred, strict=True))
            found[i, f] = float(total)
    return found


@pytest.mark.parametrize("far", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("dominant", [1.0, 1e5])
def test_products_in_float64_are_within_their_bound_of_exact_ones(far, dominant):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((N, D)) / np.arange(1, D + 1) + far
    rows[:, 0] *= dominant
    directions = orthonormal(rng.standard_normal((5, D)))
    with jax.enable_x64(True):
        source = RowPasses(*(as_rows(half) for half in np.split(rows - far, 2)))
        found = products(source, directions, (rows - far).mean(axis=0))
    exact = exact_products(rows - far, directions)
    off = np.linalg.norm(found.images - exact, axis=1)
    assert (off <= found.floor).all()
    # A worst case, but of this problem: within four digits of what is seen.
    assert (found.floor <= 1e4 * off.max()).all()


@pytest.mark.parametrize("left", [1.0, 1e4, 1e8])
def test_a_wrong_guess_of_the_mean_costs_precision_and_the_bound_says_so(left):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((N, D)) / np.arange(1, D + 1) + left
    directions = orthonormal(rng.standard_normal((5, D)))
    with jax.enable_x64(True):
        found = products(RowPasses(as_rows(rows)), directions, np.zeros(D))
    off = np.linalg.norm(found.images - exact_products(rows, directions), axis=1)
    assert (off <= found.floor).all()


def test_settling_adds_its_own_rounding_to_the_bound():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((N, D)) / np.arange(1, D + 1)
    with jax.enable_x64(True):
        before = products(
            RowPasses(as_rows(rows)), orthonormal(rng.standard_normal((5, D))), rows.mean(axis=0)
        )
    after = krylov_space(before.directions, before.images, before.sums, before.scores)
    off = np.linalg.norm(after.images - exact_products(rows, after.directions), axis=1)
    assert (off <= after.floor).all()
    assert (after.floor > before.floor.min()).all()
    gram = after.directions @ after.images.T
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-12 * gram[0, 0]
    assert (np.diff(np.diag(gram)) < 0).all()


def test_the_bound_grows_with_the_trace_and_with_the_longest_sum():
    values = np.array([4.0, 1.0])
    one = Rounding.worst(100, 1000, trace=10.0).of_products(values)
    assert one[0] > one[1]  # its own share of the sum over rows
    np.testing.assert_allclose(Rounding.worst(100, 1000, trace=40.0).of_products(values), 2 * one)
    assert (Rounding.worst(1000, 1000, 10.0).of_products(values) > 1.5 * one).all()
    assert (Rounding.worst(100, 10000, 10.0).of_products(values) > 2 * one).all()
    expected = gamma(108) * math.sqrt(40) + gamma(1008) * math.sqrt(10)
    assert one[1] == pytest.approx(expected)
    # A mean that makes all of the trace: twice the error of scores, three times that of sums.
    far = Rounding.worst(100, 1000, 10.0, mean=10.0).of_products(values)
    more = gamma(108) * math.sqrt(40) + 2 * gamma(1008) * math.sqrt(10)
    assert far[1] == pytest.approx(expected + more)
    # Scores that are longer than the value says, because a mean is left in them.
    longer = Rounding.worst(100, 1000, 10.0).of_products(values, np.array([4.0, 9.0]))
    more = (2 + math.sqrt(8)) * gamma(1008) * math.sqrt(10)
    assert longer[1] == pytest.approx(expected + more)


def test_gamma_is_the_relative_error_of_a_sum():
    assert gamma(1) == pytest.approx(UNIT)
    assert gamma(2**52) == pytest.approx(1)
    # Numbers that are rounded down each time: the bound is nearly reached.
    numbers = np.append(1.0, np.full(1000, UNIT * (1 - 1e-3)))
    total = 0.0
    for number in numbers:
        total += number
    lost = math.fsum(numbers) - total
    assert 0.9 * gamma(1000) < lost / math.fsum(numbers) <= gamma(1001)


def test_single_precision_is_off_by_less_than_its_probable_error():
    rng = np.random.default_rng(2)
    for n in (200, 3000):
        rows = (rng.standard_normal((n, D)) / np.arange(1, D + 1)).astype(np.float32)
        directions = orthonormal(rng.standard_normal((5, D))).astype(np.float32)
        # Row by row, the worst order of a sum.
        found = np.zeros_like(directions)
        for row in rows:
            found += np.outer((directions @ row).astype(np.float32), row)
        wide = rows.astype(np.float64)
        exact = directions.astype(np.float64) @ wide.T @ wide
        squares = wide**2
        rounding = Rounding.probable(np.float32, D, n, 1, float(squares.sum()))
        values = np.sum(exact * directions, axis=1)
        floor = rounding.of_products(values)
        off = np.linalg.norm(found - exact, axis=1)
        assert (off <= floor).all()
        assert np.median(off) > floor.max() / 300
        # With the shares of rows and features the bound is smaller, and holds.
        largest, feature = (float(squares.sum(axis=axis).max()) for axis in (1, 0))
        tight = Rounding.probable(
            np.float32, D, n, 1, float(squares.sum()), largest=largest, feature=feature
        )
        assert (off <= tight.of_products(values)).all()
        assert (tight.of_products(values) < 0.9 * floor).all()
        # Scores are off by less along directions of little variance.
        sums, scores = tight.parts(values)
        little = np.linalg.eigh(wide.T @ wide)[1][:, 0]
        along = np.abs((found - exact) @ little)
        assert (along <= sums + scores * np.sqrt(little @ wide.T @ wide @ little)).all()


def test_wide_scores_are_summed_in_chunks():
    wide = Rounding.probable(np.float32, 2**24, 128, 10, 1.0)
    assert wide.scores == pytest.approx(8 * math.sqrt(2**14 + 2**10 + 8) * 2.0**-24)


def test_batches_that_repeat_themselves_may_all_be_rounded_in_the_same_direction():
    # A sum of equal numbers in float32: after 2000 batches it is off by more than independent roundings would be.
    share, total = np.float32(0.1), np.float32(0)
    for _ in range(2000):
        total = np.float32(total + share)
    off = abs(float(total) / (2000 * float(share)) - 1)
    rounding = Rounding.probable(np.float32, 1, 1, 2000, 1.0)
    assert off > 8 * math.sqrt(2000) * 2.0**-24 / 20
    assert off <= rounding.sums
    assert rounding.sums >= 2000 * 2.0**-24


def test_the_largest_feature_may_be_another_one_in_each_batch():
    # One-hot rows, sorted: every batch has a single feature, although none has more than a fiftieth of all squares.
    trace, shares = 50.0, {"largest": 1e-3, "feature": 1.0}
    one, sorted_rows = (
        Rounding.probable(np.float32, 100, 1000, batches, trace, **shares) for batches in (1, 50)
    )
    plain = Rounding.probable(np.float32, 100, 1000, 50, trace)
    assert one.sums < 0.5 * plain.sums
    assert sorted_rows.sums == plain.sums


def test_underflow_counts_all_rows_where_sums_are_made_in_chunks():
    usual = Rounding.probable(np.float32, 100, 10**6, 1, 1e-30)
    chunks = Rounding.probable(np.float32, 100, 4352, 1, 1e-30, rows=10**6)
    assert chunks.underflow == usual.underflow
    assert chunks.sums < usual.sums
