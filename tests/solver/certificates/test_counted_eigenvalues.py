"""Numbers of eigenvalues above some values, by the random start of a Krylov space."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame.solver.certificates.counted_eigenvalues import (
    SPARE,
    RitzPairs,
    counted_eigenvalues,
    least_singular_value,
)
from eigengame.solver.lanczos.block_lanczos import growing_basis
from eigengame.solver.planning.lanczos_basis import BLOCK

N, K, M = 240, 6, 88

SPECTRA = {
    "harmonic": 1 / np.arange(1, N + 1),
    "geometric": 0.9 ** np.arange(N),
    "pairs": np.repeat(1 / np.arange(1, N // 2 + 1), 2),
    "three equal": np.r_[np.full(3, 1.0), 0.5 / np.arange(1, N - 2)],
    "near ties": np.repeat(1 / np.arange(1, N // 2 + 1), 2) * (1 + 1e-9 * np.arange(N)[::-1]),
    "flat": np.linspace(1, 0.9, N),
}


def ritz_pairs(spectrum, start, m=M):
    """Return the Ritz pairs of a diagonal matrix, computed from scratch."""
    *_, basis = growing_basis(lambda block: spectrum[:, None] * block, start, m)
    projected = (basis.vectors * spectrum) @ basis.vectors.T
    values, turn = np.linalg.eigh(projected)
    vectors = turn.T[::-1] @ basis.vectors
    residuals = vectors * spectrum - values[::-1, None] * vectors
    axes = np.linalg.svd(residuals, full_matrices=False)[2]
    starts = start.T @ vectors.T
    return RitzPairs(values[::-1], starts, residuals @ axes.T, np.full(len(values), 1e-13), 1e-12)


@pytest.mark.parametrize(("p", "r"), [(1, 8), (2, 8), (5, 8), (3, 20)])
@pytest.mark.parametrize("risk", [1e-2, 1e-1])
def test_gaussian_matrices_have_smaller_singular_values_as_rarely_as_stated(p, r, risk):
    draws = np.random.default_rng(0).standard_normal((20000, p, r))
    least = np.linalg.svd(draws, compute_uv=False)[:, -1]
    share = np.mean(least < least_singular_value(p, r, risk))
    # Four standard deviations of the share of 20000 draws; for p = 1 the quantile is exact.
    noise = 4 * np.sqrt(risk / 20000)
    assert share <= risk + noise
    if p == 1:
        assert share >= risk - noise


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_more_eigenvalues_exceed_a_bound_than_are_counted(spectrum, seed):
    start = np.random.default_rng(seed).standard_normal((N, BLOCK))
    for number, bound in counted_eigenvalues(ritz_pairs(spectrum, start), K, 1e-3):
        assert np.sum(spectrum > bound) <= number


@pytest.mark.parametrize("name", ["harmonic", "geometric", "pairs", "three equal"])
def test_counts_are_found_near_the_eigenvalues(name):
    spectrum = np.sort(SPECTRA[name])[::-1]
    start = np.random.default_rng(1).standard_normal((N, BLOCK))
    counts = counted_eigenvalues(ritz_pairs(spectrum, start), K, 1e-3)
    assert counts
    assert min(bound / spectrum[number] for number, bound in counts) < 1.2


def test_a_flat_spectrum_has_no_counts():
    start = np.random.default_rng(1).standard_normal((N, BLOCK))
    assert counted_eigenvalues(ritz_pairs(SPECTRA["flat"], start), K, 1e-3) == []


@pytest.mark.parametrize("hidden", [0, 3, 7])
@pytest.mark.parametrize("name", ["harmonic", "geometric"])
def test_counts_hold_for_the_worst_start_that_the_quantile_admits(name, hidden):
    # The part of the start in one eigenvector is as short as it is with the share of the risk that is left to it.
    spectrum, found = SPECTRA[name], 0
    start = np.random.default_rng(2).standard_normal((N, BLOCK))
    shortest = least_singular_value(1, BLOCK, 1e-3 / (2 * (K + SPARE + 1)))
    start[hidden] *= shortest / np.linalg.norm(start[hidden])
    for m in range(4 * BLOCK, M + 1, BLOCK):
        counts = counted_eigenvalues(ritz_pairs(spectrum, start, m), K, 1e-3)
        assert all(np.sum(spectrum > bound) <= number for number, bound in counts)
        found += len(counts)
    assert found
