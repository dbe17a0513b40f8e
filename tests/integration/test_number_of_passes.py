"""How many passes a certificate takes: few, and never more for a larger tolerance."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA, testing

DIGITS = load_digits().data
HARMONIC = testing.rows_with(testing.harmonic(60), 900, seed=2).data.astype("float32")


def passes(data, k, tol, seed, batch_size, **options):
    pca = EigenGamePCA(
        k, tol=tol, random_state=seed, batch_size=batch_size, algorithm="remembered", **options
    ).fit(data)
    assert pca.outcome_.converged
    assert pca.certificate_.within(tol)
    return pca.n_passes_


@pytest.mark.parametrize("batch_size", [256, 1024])
def test_digits_take_at_most_four_passes(batch_size):
    assert all(passes(DIGITS, 8, 1e-3, seed, batch_size) <= 4 for seed in range(4))


@pytest.mark.parametrize("data", [DIGITS, HARMONIC], ids=["digits", "harmonic"])
@pytest.mark.parametrize("batch_size", [100, 300])
def test_a_larger_tolerance_never_takes_more_passes(data, batch_size):
    for seed in range(3):
        taken = [
            passes(data, 5, tol, seed, batch_size, dtype="float32")
            for tol in (0.5, 0.1, 0.03, 0.01, 1e-3, 1e-5)
        ]
        assert (np.diff(taken) >= 0).all(), taken
