"""Sums of chunks, as on a GPU, are the sums themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.linalg import products
from eigengame.linalg.products import longest_row_sum, row_product, row_squares


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.parametrize("rows", [100, 9000, 9001, 10_007])
def test_a_product_over_rows_is_a_sum_of_chunks_of_any_number_of_rows(as_on_a_gpu, rows):
    rng = np.random.default_rng(rows)
    left, right = rng.standard_normal((rows, 3)), rng.standard_normal((rows, 5))
    found = row_product(jnp.asarray(left, jnp.float32), jnp.asarray(right, jnp.float32))
    np.testing.assert_allclose(found, left.T @ right, atol=2e-3)


def test_chunks_divide_the_rows_if_possible(as_on_a_gpu):
    for rows in (200_000, 1_000_000, 2**20, 60_000):
        count = products._chunk_count(rows, 4)
        assert rows % count == 0
        assert rows // count <= products.LONGEST_CHUNK
    assert longest_row_sum(1000) == 1000
    assert longest_row_sum(10**6) < 6000


def test_sums_over_rows_are_not_divided_on_a_cpu():
    assert longest_row_sum(10**6) == 10**6


@pytest.mark.parametrize("d", [2**18, 2**18 + 3])
def test_squares_of_wide_rows_are_summed_in_at_least_float32(d):
    rows = np.random.default_rng(0).standard_normal((2, d)).astype("float32")
    half = jnp.asarray(rows, jnp.bfloat16)
    expected = np.sum(np.asarray(half, np.float64) ** 2, axis=1)
    found = row_squares(half)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4)
