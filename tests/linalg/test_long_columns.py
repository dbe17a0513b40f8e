"""Long columns by parts in threads: products and QR factorisations, compared with those of NumPy."""

import numpy as np
import pytest

from eigengame.linalg.long_columns import (
    CHUNK,
    LONG,
    combine,
    factorise_in_place,
    inner_products,
    subtract_shares,
)


# The last chunk may have fewer rows than columns. Columns that depend on each other are factorised as well.
@pytest.mark.parametrize("length", [500, LONG, 9 * CHUNK, 10 * CHUNK + 6])
@pytest.mark.parametrize(("spread", "order"), [(1.0, "C"), (1e-14, "F"), (0.0, "C")])
def test_long_columns_are_factorised_as_by_numpy(length, spread, order):
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(length, 6)) * [1, 1, 1, 10, 100, 1]
    columns[:, 5] = columns[:, 0] + spread * columns[:, 5]
    basis = columns.copy(order=order)
    factor = factorise_in_place(basis)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(basis @ factor, columns, atol=1e-11)
    np.testing.assert_allclose(factor, np.triu(factor))
    np.testing.assert_allclose(np.abs(factor), np.abs(np.linalg.qr(columns)[1]), atol=1e-9)


@pytest.mark.parametrize("length", [300, 70_001])
def test_products_by_parts_are_those_of_the_whole(length):
    rng = np.random.default_rng(1)
    rows, shares = rng.normal(size=(20, length)), rng.normal(size=(20, 3))
    columns = rng.normal(size=(length, 3))
    np.testing.assert_allclose(inner_products(rows, columns), rows @ columns, atol=1e-11)
    found, apart = columns.copy(), columns - rows.T @ shares
    subtract_shares(found, rows, shares)
    np.testing.assert_allclose(found, apart, atol=1e-12)
    combine(found, shares[:3])
    np.testing.assert_allclose(found, apart @ shares[:3], atol=1e-11)
