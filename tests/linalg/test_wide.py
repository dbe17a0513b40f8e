"""Operations over width d, by kernels (interpreted without a GPU) and plain products, compared with float64."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.game import DenseRows
from eigengame.linalg import wide
from eigengame.linalg.kernels import gram_space, passes

ROWS = 16
INTERPRET = jax.default_backend() != "gpu"


def arrays(players, vector, d, seed=0):
    rng = np.random.default_rng(seed)
    parts = [jnp.asarray(rng.normal(size=(players, d)), jnp.float32)]
    if vector:
        parts.append(jnp.asarray(rng.normal(size=(1, d)), jnp.float32))
    return parts, jnp.asarray(rng.normal(size=(ROWS, d)), jnp.bfloat16)


# Whole pieces; a piece shared with the mean; fewer players than a piece, with columns beyond the last tile.
SHAPES = [(32, False, 256), (47, True, 256), (5, True, 300)]


@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernel_inner_products_equal_those_of_float64(players, vector, d):
    parts, rows = arrays(players, vector, d)
    square, across = gram_space.inner_products(parts, rows, interpret=INTERPRET)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    # Two parts of 8 bits: products have a relative error of 2^-17.
    tolerance = 2**-17 * np.sqrt(d) * 4
    np.testing.assert_allclose(square, x @ x.T, atol=tolerance)
    np.testing.assert_allclose(across, x @ w.T, atol=tolerance)


@pytest.mark.parametrize("count", [16, 10])
@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernel_inner_products_include_those_of_probes(players, vector, d, count):
    parts, rows = arrays(players, vector, d)
    (draws,), _ = arrays(count, False, d, seed=7)
    *plain, found = gram_space.inner_products(parts, rows, draws=draws, interpret=INTERPRET)
    x, tolerance = np.asarray(rows, np.float64), 2**-17 * np.sqrt(d) * 4
    np.testing.assert_allclose(found, x @ np.asarray(draws, np.float64).T, atol=tolerance)
    alone = gram_space.inner_products(parts, rows, interpret=INTERPRET)
    for one, other in zip(plain, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [1, 2.0**-60, 1e12])
@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernel_combinations_equal_those_of_float64(players, vector, d, size):
    parts, rows = arrays(players, vector, d, seed=1)
    k = sum(map(len, parts))
    rng = np.random.default_rng(2)
    coefficients = jnp.asarray(rng.normal(size=(k, k + ROWS)), jnp.float32)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    # Vectors of any size must be in the range of the kernel's scaled numbers.
    w, lengths = w * size, np.linalg.norm(w, axis=1) * size
    parts = [part * jnp.float32(size) for part in parts]
    coefficients = coefficients.at[:, :k].divide(size)
    given = coefficients, jnp.asarray(lengths, jnp.float32)
    moved, applied = gram_space.combined(*given, parts, rows, interpret=INTERPRET)
    assert [part.shape for part in moved] == [part.shape for part in parts]
    # The returned coefficients are those applied, up to float32 rounding.
    made = np.asarray(applied, np.float64) @ np.concatenate([w, x])
    np.testing.assert_allclose(np.concatenate(moved), made, atol=2**-22 * np.sqrt(k + ROWS) * 16)
    # Coefficients of players have 22 bits, those of rows 16.
    np.testing.assert_allclose(applied[:, :k], coefficients[:, :k], atol=2**-20 / size)
    np.testing.assert_allclose(applied[:, k:], coefficients[:, k:], rtol=2**-16)


@pytest.mark.parametrize("size", [1, 2.0**-40, 1e12])
@pytest.mark.parametrize(("players", "vector", "d"), SHAPES)
def test_kernel_overlaps_equal_those_of_float64(players, vector, d, size):
    parts, _ = arrays(players, vector, d, seed=5)
    parts = [part * jnp.float32(size) for part in parts]
    w = np.concatenate([np.asarray(p, np.float64) for p in parts])
    lengths = np.linalg.norm(w, axis=1)
    # Approximate lengths are sufficient.
    found = gram_space.overlaps(
        parts, jnp.asarray(lengths * 0.99, jnp.float32), interpret=INTERPRET
    )
    # The tensor cores of a GPU truncate sums, which the interpreter rounds.
    tolerance = 2e-7 if INTERPRET else 4e-7
    np.testing.assert_allclose(found, w @ w.T, atol=tolerance * lengths.max() ** 2)


@pytest.mark.parametrize(("players", "d"), [(32, 2048), (47, 2100), (5, 4200)])
def test_kernel_sums_of_a_pass_equal_those_of_float64(players, d):
    (total,), rows = arrays(players, False, d, seed=3)
    rng = np.random.default_rng(4)
    given, roots = rng.normal(size=(ROWS, players)), rng.uniform(size=ROWS)
    x, v = np.asarray(rows, np.float64), np.asarray(total, np.float64)
    scores = gram_space.scores(total, rows, interpret=INTERPRET)
    # Players in two parts of 8 bits, as above.
    np.testing.assert_allclose(scores, x @ v.T, atol=2**-17 * np.sqrt(d) * 4)
    made = passes.added(total, jnp.asarray(given, jnp.float32), rows, interpret=INTERPRET)
    np.testing.assert_allclose(made, v + given.T @ x, atol=2e-5)
    vector, factors = rng.normal(size=d), rng.normal(size=players)
    further = jnp.asarray(vector, jnp.float32), jnp.asarray(factors, jnp.float32)
    more = passes.added(total, jnp.asarray(given, jnp.float32), rows, *further, interpret=INTERPRET)
    np.testing.assert_allclose(more, v + given.T @ x + np.outer(factors, vector), atol=2e-5)
    found = passes.column_sums(jnp.asarray(roots, jnp.float32), rows, interpret=INTERPRET)
    np.testing.assert_allclose(found[0], roots @ x, atol=2e-5)
    np.testing.assert_allclose(found[1], np.sum(x**2, axis=0), rtol=1e-5)


def test_plain_products_of_a_pass_equal_those_of_float64():
    (block,), rows = arrays(5, False, 300)
    x, w = np.asarray(rows, np.float64), np.asarray(block, np.float64)
    scores = DenseRows(rows).pass_scores(block)
    np.testing.assert_allclose(scores, x @ w.T, rtol=1e-5, atol=1e-4)
    made = DenseRows(rows).add_directions(block, scores)
    np.testing.assert_allclose(made, w + (x @ w.T).T @ x, rtol=1e-5, atol=1e-3)
    vector, factors = block[0], jnp.arange(5.0, dtype=jnp.float32)
    more = wide.add_directions(block, scores, rows, vector, factors)
    np.testing.assert_allclose(more, made + np.outer(factors, vector), rtol=1e-6, atol=1e-4)


def test_dense_rows_use_kernels_if_these_fit(monkeypatch):
    (block,), values = arrays(5, False, 2048)
    plain, used = DenseRows(values), []
    scores = plain.pass_scores(block)
    expected = plain.add_directions(block, scores)
    monkeypatch.setattr(
        wide, "kernels_fit", lambda wide, rows: bool(used.append(rows.shape)) or True
    )
    monkeypatch.setattr(gram_space, "scores", partial(gram_space.scores, interpret=INTERPRET))
    monkeypatch.setattr(passes, "added", partial(passes.added, interpret=INTERPRET))
    np.testing.assert_allclose(plain.pass_scores(block), scores, atol=2**-17 * np.sqrt(2048) * 4)
    np.testing.assert_allclose(plain.add_directions(block, scores), expected, atol=1e-3)
    assert used == [values.shape] * 2


def test_plain_products_equal_those_of_float64():
    parts, rows = arrays(5, True, 300)
    x, w = np.asarray(rows, np.float64), np.concatenate([np.asarray(p, np.float64) for p in parts])
    square, across = wide.inner_products(parts, rows)
    np.testing.assert_allclose(square, x @ x.T, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(across, x @ w.T, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(wide.overlaps_of(parts), w @ w.T, rtol=1e-5, atol=1e-4)


# A number of features that the chunks divide, and one that they do not.
@pytest.mark.parametrize("d", [2**19, 2**19 + 1])
def test_lengths_are_accurate_over_hundreds_of_thousands_of_features(d):
    players = jnp.ones((1, d), jnp.float32) * 0.1
    true = np.sum(np.square(np.asarray(players, np.float64)))
    np.testing.assert_allclose(wide.overlaps_of([players]), [[true]], rtol=1e-6)


def test_kernels_are_used_on_gpus_for_supported_shapes(monkeypatch):
    players, rows = (jax.ShapeDtypeStruct((32, 2**16), dtype) for dtype in ("float32", "bfloat16"))
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert not wide.kernels_fit([players], rows)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert wide.kernels_fit([players], rows)
    assert wide.kernels_fit_probes([players], rows, players)
    assert not wide.kernels_fit_probes(
        [players], rows, jax.ShapeDtypeStruct((33, 2**16), "float32")
    )
    assert not wide.kernels_fit([players], jax.ShapeDtypeStruct((32, 2**16), "float32"))
    assert not wide.kernels_fit([players], jax.ShapeDtypeStruct((31, 2**16), "bfloat16"))
    assert not wide.kernels_fit([players] * 3, rows)
    # A later JAX, without Pallas for Triton.
    monkeypatch.setattr(wide, "_has_triton", lambda: False)
    assert not wide.kernels_fit([players], rows)
