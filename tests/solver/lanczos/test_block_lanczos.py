"""Block Lanczos finds the largest eigenvalues with their eigenvectors, or nothing."""

import os
import signal

import numpy as np
import pytest
from scipy.linalg import eigh

from eigengame._system import interrupts
from eigengame.solver.lanczos.block_lanczos import (
    _make_directions,
    growing_basis,
    largest_by_blocks,
)
from eigengame.solver.planning.lanczos_basis import BLOCK

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
    monkeypatch.setattr("eigengame.solver.planning.lanczos_basis.MOST_BASIS", 10 * N)
    assert largest_by_blocks(lambda block: block, N, K) is None
    # Nor one of all directions.
    assert largest_by_blocks(lambda block: block, 20, 10) is None


def test_directions_and_coefficients_make_up_a_block_with_dependent_rows():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, N))
    block = np.stack([first, 2 * first, second, np.zeros(N), first - second, 1e-3 * second])
    factor = block.T.copy()
    coefficients = _make_directions(factor, float(np.abs(block).max()), rng)
    np.testing.assert_allclose(np.linalg.norm(factor, axis=0), 1)
    np.testing.assert_allclose(factor @ coefficients, block.T, atol=1e-12)
    assert np.linalg.matrix_rank(factor) == len(block)


@pytest.mark.parametrize("repeated", [1, 9, 20, 60])
def test_residuals_follow_from_the_couplings_where_directions_are_replaced(repeated):
    spectrum = np.repeat(1 / np.arange(1.0, 8), repeated)
    spectrum = np.r_[spectrum, np.zeros(N - len(spectrum))]
    matrix, start = (AXES * spectrum) @ AXES.T, np.random.default_rng(2).standard_normal((N, BLOCK))
    for basis in growing_basis(lambda block: matrix @ block, start, 96):
        values, turn = eigh(basis.projected, lower=False)
        vectors = turn.T @ basis.vectors
        residuals = np.linalg.norm(vectors @ matrix - values[:, None] * vectors, axis=1)
        stated = np.linalg.norm(basis.coupling @ turn[-BLOCK:], axis=0)
        np.testing.assert_allclose(residuals, stated, atol=1e-12)


def test_control_c_ends_the_growth_of_a_basis():
    products = []

    def product(block):
        products.append(block.shape)
        if len(products) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return np.linspace(1, 0.99, N)[:, None] * block

    with pytest.raises(KeyboardInterrupt), interrupts.deferred():
        largest_by_blocks(product, N, K)
    assert len(products) == 2
