"""The covariance route: M is that of the data as given within its error, and the certificate allows for it."""

from fractions import Fraction

import numpy as np
import pytest

from eigengame import as_source, testing
from eigengame.metrics import angular_error
from eigengame.solver.certificates.rounding import gamma
from eigengame.solver.exact.covariance import solve_scatter
from eigengame.solver.exact.scatter import Scatter, accumulate_scatter
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.moments import no_moments

D, N, K = 12, 90, 4


def exact_scatter(rows):
    """The scatter matrix about the mean in rational arithmetic, rounded once at the end."""
    exact = [[Fraction(float(x)) for x in row] for row in rows]
    mean = [sum(column) / len(exact) for column in zip(*exact, strict=True)]
    centred = [[x - m for x, m in zip(row, mean, strict=True)] for row in exact]
    columns = list(zip(*centred, strict=True))
    return np.array(
        [[float(sum(a * b for a, b in zip(f, g, strict=True))) for g in columns] for f in columns]
    )


@pytest.mark.parametrize("far", [0.0, 20.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_matrix_is_that_of_the_data_within_its_error(far, dtype):
    rows = (np.random.default_rng(0).standard_normal((N, D)) / np.arange(1, D + 1) + far).astype(
        dtype
    )
    reading = SourcePasses(Batches(as_source(rows), 32, np.dtype("float32")))
    found = accumulate_scatter(reading, center=True)
    off = np.linalg.norm(found.matrix - exact_scatter(rows), 2)
    assert off <= found.error
    assert found.error < 1e-9 * np.trace(found.matrix)
    if far:  # what the mean adds to the sums is rounded as well
        assert off > 1e-15
    assert found.rows == N


def given(spectrum, error):
    """A scatter matrix with this spectrum, and what it may be instead: its first two eigenvectors mixed."""
    problem = testing.matrix_with(np.asarray(spectrum, float), seed=3)
    one, other = problem.components[:2]
    truth = problem.data + error * (np.outer(one, other) + np.outer(other, one))
    return Scatter(problem.data, no_moments(len(spectrum), np.float64), N, error), truth


def test_the_error_of_the_matrix_counts_over_the_gap():
    spectrum = np.append([1.0, 1 - 1e-4], 0.3 * testing.harmonic(D - 2))
    scatter, truth = given(spectrum, 1e-6)
    found, kept, _ = solve_scatter(scatter, 8, K, scale=1.0, tol=1e-3, dtype=np.float64)
    true = angular_error(kept[:K], np.linalg.eigh(truth)[1].T[::-1])
    assert true[0] > 0.009
    assert (true <= found.angle).all()
    assert found.angle[0] < 5 * true[0]
    assert found.kind == "certified"
    assert found.confidence == 1


def test_the_largest_value_beyond_the_players_is_known_up_to_rounding():
    spectrum = testing.harmonic(D)
    scatter, _ = given(spectrum, 1e-6)
    found, _, _ = solve_scatter(scatter, 8, K, scale=1.0, tol=1e-3, dtype=np.float64)
    assert spectrum[8] + 1e-6 <= found.level < spectrum[8] + 1e-5
    exact, _ = given(spectrum, 0.0)
    found, _, _ = solve_scatter(exact, 8, K, scale=1.0, tol=1e-3, dtype=np.float64)
    assert spectrum[8] < found.level < spectrum[8] + 1e-12


def test_the_product_with_the_matrix_is_rounded_too():
    # Diagonal, so that residuals of the eigenproblem are zero: what is left is the rounding that is allowed for.
    scatter = Scatter(np.diag(np.arange(D, 0, -1.0)), no_moments(D, np.float64), N, 0.0)
    found, _, _ = solve_scatter(scatter, 8, K, scale=1.0, tol=1e-3, dtype=np.float64)
    least = gamma(D + 8) * np.linalg.norm(scatter.matrix)
    assert found.level >= (D - 8) + least


def test_with_all_eigenvectors_nothing_is_beyond_the_players():
    scatter, _ = given(testing.harmonic(D), 1e-9)
    found, kept, _ = solve_scatter(scatter, D, K, scale=2.0, tol=1e-3, dtype=np.float32)
    assert found.level == 0
    assert kept.dtype == np.float32
    assert (found.angle < 1e-6).all()
    # Float32 is what is kept: its rounding is in the bound.
    assert (found.angle > 1e-9).all()
