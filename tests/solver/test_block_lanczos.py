"""Block Lanczos finds the largest eigenvalues with their eigenvectors, or nothing."""

import numpy as np
import pytest

from eigengame.solver.block_lanczos import largest_by_blocks

N, K = 700, 12
AXES = np.linalg.qr(np.random.default_rng(0).standard_normal((N, N)))[0]

SPECTRA = {
    "harmonic": 1 / np.arange(1, N + 1),
    "geometric": 0.5 ** np.arange(N),
    "rank 5": np.r_[np.arange(5, 0, -1.0), np.zeros(N - 5)],
    "zero": np.zeros(N),
    "all equal": np.ones(N),
    "6 equal": np.r_[np.full(6, 3.0), 1 / np.arange(1, N - 5)],
    "more equal than a block": np.r_[np.full(20, 3.0), 1 / np.arange(1, N - 19)],
    "two values": np.r_[np.full(300, 2.0), np.full(N - 300, 1.0)],
    "tiny numbers": 1e-200 / np.arange(1, N + 1),
}


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
def test_eigenvalues_and_residuals_are_exact_up_to_rounding(spectrum):
    matrix = (AXES * spectrum) @ AXES.T
    values, vectors = largest_by_blocks(lambda block: matrix @ block, N, K, 1)
    size = max(spectrum.max(), 1e-300)
    np.testing.assert_allclose(values / size, np.sort(spectrum)[::-1][:K] / size, atol=1e-12)
    residuals = vectors @ (matrix / size) - (values / size)[:, None] * vectors
    assert np.linalg.norm(residuals, axis=1).max() < 1e-12
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(K), atol=1e-13)


def test_a_flat_spectrum_gives_nothing_instead_of_a_guess():
    matrix = (AXES * np.linspace(1, 0.99, N)) @ AXES.T
    assert largest_by_blocks(lambda block: matrix @ block, N, K, 1) is None


def test_a_basis_that_does_not_fit_gives_nothing(monkeypatch):
    monkeypatch.setattr("eigengame.solver.block_lanczos.MOST_BASIS", 10 * N)
    assert largest_by_blocks(lambda block: block, N, K) is None
    # Nor one of all directions.
    assert largest_by_blocks(lambda block: block, 20, 10) is None
