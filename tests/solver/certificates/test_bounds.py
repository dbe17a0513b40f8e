"""Bounds on eigenvectors: they hold for every matrix that the given intervals allow.

Each term of the bound has a matrix for which it is needed: without it the bound falls below the true angle.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame.solver.certificates import bounds
from eigengame.solver.certificates.bounds import angle_bounds, span_bound


def Block(values, mixing, outside, level):
    """A block whose eigenvalues are shifted by at most the sums of the rows."""
    return bounds.Block(values, mixing, mixing.sum(axis=1), outside, level)


def true_span(matrix, first, last):
    """Largest angle between the span of unit vectors first to last and the eigenspace of the same ranks."""
    vectors = np.linalg.eigh(matrix)[1][:, ::-1][:, first : last + 1]
    outside = np.delete(vectors, range(first, last + 1), axis=0)
    return math.asin(min(np.linalg.norm(outside, 2), 1))


def drawn(rng, k, extra, outside):
    """A block of bounds, and a matrix that is as bad as they allow."""
    count = k + extra
    values = np.sort(10 ** rng.uniform(-2, 0, count))[::-1]
    if rng.random() < 0.5:  # a close pair
        i = rng.integers(count - 1)
        values[i + 1] = values[i] * (1 - 10 ** rng.uniform(-6, -1))
        values = np.sort(values)[::-1]
    level = values[-1] * rng.uniform(0.1, 1.2)
    mixing = np.full((count, count), 10 ** rng.uniform(-9, -2)) * values[-1]
    couplings = 10 ** rng.uniform(-6, -1, count) * values[-1]
    signs = np.sign(rng.normal(size=(count, count)))
    off = mixing * np.triu(signs, 1)
    inner = np.diag(values + np.diag(mixing) * np.sign(rng.normal(size=count))) + off + off.T
    rest = np.linalg.qr(rng.normal(size=(outside, outside)))[0]
    beyond = (rest * np.append(level, level * rng.random(outside - 1))) @ rest.T
    # All residuals along one direction, that of the largest value outside.
    coupling = np.outer(rest[:, 0], couplings * np.sign(rng.normal(size=count)))
    matrix = np.block([[inner, coupling.T], [coupling, beyond]])
    return Block(values, mixing, couplings, level), matrix


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=300, deadline=None)
def test_no_matrix_within_the_intervals_breaks_the_bounds(seed):
    rng = np.random.default_rng(seed)
    block, matrix = drawn(rng, k=3, extra=3, outside=4)
    vectors = np.linalg.eigh(matrix)[1][:, ::-1]
    angles = angle_bounds(block, 6)
    for i in range(6):
        true = math.atan2(np.linalg.norm(np.delete(vectors[:, i], i)), abs(vectors[i, i]))
        assert true <= angles[i] + 1e-12
    for first, last in [(0, 1), (1, 2), (2, 4), (0, 5)]:
        assert true_span(matrix, first, last) <= span_bound(block, first, last) + 1e-12


def test_bounds_say_something_about_most_separated_players():
    rng = np.random.default_rng(0)
    shown = [angle_bounds(drawn(rng, 3, 3, 4)[0], 3) < math.pi / 2 for _ in range(200)]
    assert np.mean(shown) > 0.4


def angle_of(matrix, i):
    vector = np.linalg.eigh(matrix)[1][:, ::-1][:, i]
    return math.atan2(np.linalg.norm(np.delete(vector, i)), abs(vector[i]))


def tight(block, matrix, i, factor=1.2):
    """The bound holds, and by so little that no term of it can be left out."""
    bound, true = angle_bounds(block, i + 1)[i], angle_of(np.asarray(matrix), i)
    assert true <= bound <= factor * true


def test_mixing_enters_at_first_order():
    gap, o = 1e-3, 1e-5
    block = Block(np.array([1, 1 - gap]), np.array([[0, o], [o, 0]]), np.zeros(2), -math.inf)
    matrix = [[1, o], [o, 1 - gap]]
    tight(block, matrix, 0)
    tight(block, matrix, 1)


def test_an_error_of_the_diagonal_makes_the_gap_smaller():
    gap, o, error = 1e-2, 1e-5, 2e-3
    mixing = np.array([[error, o], [o, error]])
    block = Block(np.array([1, 1 - gap]), mixing, np.zeros(2), -math.inf)
    # The enclosure and the neighbour's own error both count: twice each.
    tight(block, [[1 - error, o], [o, 1 - gap + error]], 0, factor=1.8)


def test_players_mix_through_a_third_one():
    one, other = 1e-3, 0.02
    mixing = np.array([[0, 0, one], [0, 0, other], [one, other, 0]])
    values = np.array([1, 0.95, 0.5])
    block = Block(values, mixing, np.zeros(3), -math.inf)
    tight(block, np.diag(values) + mixing, 0, factor=1.1)


def test_residuals_outside_the_span_count_by_the_distance_to_the_level():
    e, level = 1e-3, 0.9
    block = Block(np.array([1.0]), np.zeros((1, 1)), np.array([e]), level)
    tight(block, [[1, e], [e, level]], 0)


def test_an_error_of_the_diagonal_brings_a_player_closer_to_the_level():
    e, level, error = 1e-4, 0.99, 3e-3
    block = Block(np.array([1.0]), np.array([[error]]), np.array([e]), level)
    tight(block, [[1 - error, e], [e, level]], 0)


def test_players_mix_through_directions_outside_their_span():
    # Each is coupled to the outside only; together they mix at second order.
    gap, e, level = 1e-3, 0.01, 0.0
    block = Block(np.array([1, 1 - gap]), np.zeros((2, 2)), np.array([e, e]), level)
    matrix = [[1, 0, e], [0, 1 - gap, e], [e, e, level]]
    tight(block, matrix, 0, factor=1.5)


def test_mixing_brings_in_what_the_other_player_has_outside():
    gap, o, e, level = 0.1, 0.03, 0.2, 0.5
    block = Block(np.array([1, 1 - gap]), np.array([[0, o], [o, 0]]), np.array([0, e]), level)
    matrix = np.array([[1, o, 0], [o, 1 - gap, e], [0, e, level]])
    bound, true = angle_bounds(block, 1)[0], angle_of(matrix, 0)
    assert true <= bound
    # Without that part the bound would be that of the mixing alone, which is smaller than the truth.
    assert true > angle_of(matrix[:2, :2], 0) * 1.05


def test_coupling_raises_an_eigenvalue_towards_the_player_above_it():
    # The second value is 0.9 as seen by the players, and about 0.965 in truth: the gap is a third of what it seems.
    values, e, o = np.array([1, 0.9]), 0.25, 1e-5
    matrix = np.array([[1, o, 0], [o, 0.9, e], [0, e, 0.0]])
    block = Block(values, np.array([[0, o], [o, 0]]), np.array([0, e]), 0.0)
    assert np.linalg.eigvalsh(matrix)[1] > 0.96
    assert block.upper[1] >= np.linalg.eigvalsh(matrix)[1]
    assert angle_of(matrix, 1) <= angle_bounds(block, 2)[1]
    assert block.upper[1] < 1


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=200, deadline=None)
def test_eigenvalues_lie_within_their_enclosures(seed):
    block, matrix = drawn(np.random.default_rng(seed), 3, 3, 4)
    values = np.linalg.eigvalsh(matrix)[::-1][:6]
    known = block.lower > block.level
    assert (block.lower <= values + 1e-14).all()
    assert (values[known] <= block.upper[known] + 1e-14).all()


@pytest.mark.parametrize("size", [2, 3])
def test_a_tie_has_no_components_but_a_span(size):
    count = size + 1
    values = np.append(np.ones(size), 0.5)
    block = Block(values, np.full((count, count), 1e-12), np.full(count, 1e-6), 0.1)
    angles = angle_bounds(block, count)
    assert (angles[:size] == math.pi / 2).all()
    assert angles[size] < 1e-5
    assert span_bound(block, 0, size - 1) < 1e-5


def test_a_span_is_bounded_by_the_norm_of_all_its_residuals():
    # Both players of a tie are off in the same direction: the span is off by both together.
    e = 1e-3
    block = Block(np.ones(2), np.zeros((2, 2)), np.array([e, e]), 0.5)
    matrix = np.array([[1, 0, e], [0, 1, e], [e, e, 0.5]])
    true = true_span(matrix, 0, 1)
    assert true <= span_bound(block, 0, 1) <= 1.1 * true


def test_there_is_no_bound_if_a_larger_direction_may_have_been_missed():
    block = Block(np.array([1.0, 0.5]), np.zeros((2, 2)), np.full(2, 1e-3), level=0.7)
    angles = angle_bounds(block, 2)
    assert angles[0] < 0.01
    assert angles[1] == math.pi / 2


def test_close_neighbours_cost_only_to_second_order_where_they_do_not_mix():
    # Two players 0.001 apart, with residuals of 0.01 outside: |r| / gap = 10 would say nothing.
    residuals, level = np.full(3, 0.01), 0.1
    close = Block(np.array([1.0, 0.999, 0.5]), np.zeros((3, 3)), residuals, level)
    assert angle_bounds(close, 1)[0] < 0.2
    apart = Block(np.array([1.0, 0.8, 0.5]), np.zeros((3, 3)), residuals, level)
    assert angle_bounds(apart, 1)[0] == pytest.approx(math.atan(0.01 / 0.9), rel=0.02)


def test_players_of_the_whole_space_leave_nothing_outside():
    block = Block(np.array([2.0, 1.0]), np.full((2, 2), 1e-12), np.ones(2), -math.inf)
    assert angle_bounds(block, 2).max() < 1e-11


def test_the_norm_of_an_error_is_enough_to_shift_eigenvalues():
    # Errors of which all entries are as large as they can be, but whose norm is that of a rank-one matrix.
    rng = np.random.default_rng(0)
    for _ in range(100):
        size, count = 1e-3, 6
        error = size * np.linalg.qr(rng.normal(size=(count, count)))[0]
        error = (error + error.T) / 2
        values = np.sort(rng.random(count))[::-1]
        shift = np.full(count, np.linalg.norm(error, 2))
        block = bounds.Block(values, np.abs(error), shift, np.zeros(count), -math.inf)
        exact = np.linalg.eigvalsh(np.diag(values) + error)[::-1]
        assert (block.lower <= exact + 1e-15).all()
        assert (exact <= block.upper + 1e-15).all()
        angles = angle_bounds(block, count)
        assert all(angle_of(np.diag(values) + error, i) <= angles[i] for i in range(count))
