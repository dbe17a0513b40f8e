"""Lengths and orthonormal sets of rows, shape (k, d): by QR, by products alone, and by one step from nearby."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from eigengame.linalg.products import full_product, long_product

WIDE = 4096
"""Features from which on products orthonormalise players; below that, QR is as fast on one core."""


APART = 0.03
"""The least distance of a unit player from the span of those before it, for products to be exact."""


def inner(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the inner product of each pair of rows, shape (k, 1)."""
    return jnp.sum(left * right, axis=-1, keepdims=True)


def norms(players: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k, 1)."""
    return jnp.linalg.norm(players, axis=-1, keepdims=True)


def safe_norms(directions: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k,), of which the squares may be out of the dtype's range.

    Gradients are of the size of $M$: the square of the data's, and its square in turn underflows in
    float32 for data of 1e-10.
    """
    largest = jnp.max(jnp.abs(directions), axis=-1, keepdims=True)
    return (largest * norms(directions / jnp.where(largest > 0, largest, 1)))[..., 0]


def unit_rows(players: jax.Array) -> jax.Array:
    r"""Return each row scaled to the unit sphere; a zero row stays zero."""
    # Dividing by the largest entry first keeps rows as small as 1e-30 from underflowing.
    largest = jnp.max(jnp.abs(players), axis=-1, keepdims=True)
    scaled = players / jnp.where(largest > 0, largest, 1)
    length = norms(scaled)
    return scaled / jnp.where(length > 0, length, 1)


def unit_rejections(directions: jax.Array, reject: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Return unit rows of `directions` less what `reject` takes away, or zero rows.

    Applied twice, which is enough. A row of which the second time takes more than half was rounding
    noise left by a cancellation: it is no direction, and becomes zero.
    """
    once = unit_rows(directions - reject(directions))
    twice = once - reject(once)
    return jnp.where(norms(twice) > 0.5, unit_rows(twice), 0)


def orthonormalise(players: jax.Array) -> jax.Array:
    r"""Return the rows orthonormalised in order, each keeping its sign (Alg. Oja).

    The QR factorisation of $V^\top$, its columns multiplied by
    `sign(sign(diag(R)) + 0.5)`, which is -1 or 1 and never 0. Wide players that are well apart get the same by
    products alone: a Cholesky factor of their overlaps, twice, which is as accurate as QR; devices that share
    features then tell each other overlaps, (k, k), and no players.
    """
    k, d = players.shape
    return _by_qr(players) if d < max(WIDE, 8 * k) else _by_products(players)


@jax.jit
def _by_products(players: jax.Array) -> jax.Array:
    """Return the rows orthonormalised by two Cholesky factors, or by QR where they are not well apart."""
    unit = unit_rows(players)  # the same span and order, and overlaps within range
    once, apart = _by_cholesky(unit)
    error = jnp.abs(_overlaps(once) - jnp.eye(len(once), dtype=once.dtype))
    twice, _ = _by_cholesky(once)
    # The second time squares what the first has left of an error.
    good = apart & jnp.all(error < 0.1)
    return jax.lax.cond(good, lambda: twice, lambda: _by_qr(players))


def _by_cholesky(players: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows nearly orthonormalised in order, and whether they were well apart."""
    factor = jnp.linalg.cholesky(_overlaps(players))
    unit = jnp.eye(players.shape[0], dtype=players.dtype)
    inverse = jax.scipy.linalg.solve_triangular(factor, unit, lower=True)
    # How far each row is from those before it. A factor that does not exist is NaN, and nothing above.
    return full_product(inverse, players), jnp.all(jnp.diag(factor) > APART)


def _overlaps(players: jax.Array) -> jax.Array:
    """Return the inner products of all pairs of rows (k, k)."""
    return long_product(players, players)


def _by_qr(players: jax.Array) -> jax.Array:
    """Return the rows orthonormalised by Householder's QR, which takes any rows."""
    q, r = jnp.linalg.qr(players.T)
    signs = jnp.sign(jnp.sign(jnp.diag(r)) + 0.5)
    return (q * signs[None, :]).T


def nearly_orthonormal(players: jax.Array) -> jax.Array:
    r"""Return players that drifted a little, made orthonormal: $\frac12(3I - VV^\top)V$.

    One Newton-Schulz step turns an error $e$ into $\frac34 e^2$: rounding never adds up.
    """
    return full_product(_correction(players), players)


def tidied(players: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the same of players (K, d) and of their scores (m, K)."""
    correction = _correction(players)
    return full_product(correction, players), full_product(scores, correction.T)


def _correction(players: jax.Array) -> jax.Array:
    """Return one Newton-Schulz step towards orthonormal rows, as coefficients (K, K)."""
    overlaps = long_product(players, players)
    return 1.5 * jnp.eye(players.shape[0], dtype=players.dtype) - 0.5 * overlaps


def whiten(overlaps: jax.Array, absent: jax.Array | None = None) -> tuple[jax.Array, jax.Array]:
    """Return T with T O T' = I on what O spans, and which rows of T are zero because it does not.

    `overlaps` are those of unit rows, and of rows of zeros where `absent` (k,) says so. Where the others are
    well apart a Cholesky factor will do, which costs a tenth; else directions within rounding of the others are
    found by their eigenvalues, and left out.
    """
    if absent is None:
        absent = jnp.zeros(overlaps.shape[0], bool)
    # A row that is absent stands alone: it disturbs no factor, and nothing lies along it.
    factor = jnp.linalg.cholesky(overlaps + jnp.diag(absent.astype(overlaps.dtype)))
    # False where the factor does not exist and is NaN: compared one by one, since XLA may lose NaN in a min.
    apart = jnp.all(jnp.diag(factor) > 0.03)
    # Under vmap both ways are gone, and two LAPACK calls at once may wait for each other's threads for ever:
    # so the second asks for what the first has found.
    others = jnp.where(apart, jnp.eye(overlaps.shape[0], dtype=overlaps.dtype), overlaps)
    return jax.lax.cond(
        apart,
        lambda: (_inverse(factor), absent),
        lambda: _whiten_spectral(others),
    )


def _inverse(factor: jax.Array) -> jax.Array:
    """Return the inverse of a Cholesky factor."""
    unit = jnp.eye(factor.shape[0], dtype=factor.dtype)
    return jax.scipy.linalg.solve_triangular(factor, unit, lower=True)


def _whiten_spectral(overlaps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the inverse root of what is not rounding."""
    k = overlaps.shape[0]
    sizes, axes = jnp.linalg.eigh(overlaps)
    spanned = sizes > 30 * k * jnp.finfo(overlaps.dtype).eps
    roots = jnp.where(spanned, 1 / jnp.sqrt(jnp.where(spanned, sizes, 1)), 0)
    return roots[:, None] * axes.T, ~spanned
