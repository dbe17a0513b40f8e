"""Lengths, projections and orthonormalisation of rows, shape (k, d)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from eigengame.linalg.eigh import symmetric_eigh
from eigengame.linalg.library import array_namespace, cond
from eigengame.linalg.products import full_product, long_product

WIDE = 4096
"""Number of features from which `orthonormalise` uses products; below it, QR is as fast on one core."""

APART = 0.03
"""Least distance of a unit row from the span of the rows before it for which a Cholesky factor is accurate."""


def inner(left: jax.Array, right: jax.Array) -> jax.Array:
    """Return the inner product of each pair of rows, shape (k, 1)."""
    return jnp.sum(left * right, axis=-1, keepdims=True)


def norms(rows: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k, 1)."""
    return jnp.linalg.norm(rows, axis=-1, keepdims=True)


def safe_norms(rows: jax.Array) -> jax.Array:
    """Return the length of each row, shape (k,), without overflow or underflow of the squares.

    Gradients have the size of $M$, the square of the data's. Their squares underflow in float32 for data of 1e-10.
    """
    largest = jnp.max(jnp.abs(rows), axis=-1, keepdims=True)
    return (largest * norms(rows / jnp.where(largest > 0, largest, 1)))[..., 0]


def unit_rows(rows: jax.Array) -> jax.Array:
    r"""Return each row scaled to length 1; a zero row stays zero."""
    # Dividing by the largest entry first keeps rows as small as 1e-30 from underflowing.
    largest = jnp.max(jnp.abs(rows), axis=-1, keepdims=True)
    scaled = rows / jnp.where(largest > 0, largest, 1)
    length = norms(scaled)
    return scaled / jnp.where(length > 0, length, 1)


def unit_rejections(rows: jax.Array, project: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Return `rows - project(rows)` scaled to length 1, or zero rows.

    The projection is subtracted twice, which removes it to rounding. A row that loses more than half of its length
    the second time consists of rounding errors, and becomes zero.
    """
    once = unit_rows(rows - project(rows))
    twice = once - project(once)
    return jnp.where(norms(twice) > 0.5, unit_rows(twice), 0)


def orthonormalise(players: jax.Array) -> jax.Array:
    r"""Orthonormalise the rows in order, each with its sign (Alg. Oja).

    The QR factorisation of $V^\top$, its columns multiplied by `sign(sign(diag(R)) + 0.5)`, which is -1 or 1 and
    never 0. Wide rows that are not nearly dependent are orthonormalised by two Cholesky factorisations of their
    overlaps instead, which are as accurate as QR. Devices that share features then only exchange (k, k) arrays.
    """
    k, d = players.shape
    return _by_qr(players) if d < max(WIDE, 8 * k) else _by_products(players)


@jax.jit
def _by_products(players: jax.Array) -> jax.Array:
    """Orthonormalise by two Cholesky factors, or by QR if the rows are nearly dependent."""
    unit = unit_rows(players)  # the same span and order, with overlaps in range
    once, apart = _by_cholesky(unit)
    error = jnp.abs(long_product(once, once) - jnp.eye(len(once), dtype=once.dtype))
    twice, _ = _by_cholesky(once)
    # The second factorisation squares the error of the first.
    good = apart & jnp.all(error < 0.1)
    return jax.lax.cond(good, lambda: twice, lambda: _by_qr(players))


def _by_cholesky(players: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return unit rows approximately orthonormalised in order, and whether they were independent."""
    factor, apart = _cholesky(long_product(players, players))
    return full_product(_inverse(factor), players), apart


def _cholesky(overlaps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the Cholesky factor of the overlaps of unit rows, and whether the rows are independent."""
    if isinstance(overlaps, np.ndarray):
        try:
            factor = np.linalg.cholesky(overlaps)
        except np.linalg.LinAlgError:
            return np.full_like(overlaps, np.nan), np.False_
        return factor, np.all(np.diag(factor) > APART)
    factor = jnp.linalg.cholesky(overlaps)
    # The diagonal holds the distance of each row from the rows before it. It is NaN, hence not above the limit, if
    # there is no factor; compared entry by entry, since XLA may lose NaN in a minimum.
    return factor, jnp.all(jnp.diag(factor) > APART)


def _inverse(factor: jax.Array) -> jax.Array:
    """Return the inverse of a Cholesky factor."""
    xp = array_namespace(factor)
    unit = xp.eye(factor.shape[0], dtype=factor.dtype)
    library = scipy if xp is np else jax.scipy
    return library.linalg.solve_triangular(factor, unit, lower=True)


def _by_qr(players: jax.Array) -> jax.Array:
    """Orthonormalise by Householder QR, which accepts any rows."""
    q, r = jnp.linalg.qr(players.T)
    signs = jnp.sign(jnp.sign(jnp.diag(r)) + 0.5)
    return (q * signs[None, :]).T


SHIFT = 4.0
"""Roundings of a unit vector, for each row, that are added to the overlaps of rows that may be dependent."""


def orthonormalise_nearly(players: jax.Array, steps: int = 2) -> jax.Array:
    r"""Return nearly orthonormal rows of the same span, in order, without a branch and without QR.

    Each step is a shifted Cholesky factor of the overlaps (Fukaya et al., 2020). A GPU takes a fraction of the time
    of QR for it, which goes through the rows one by one. The shift $\epsilon$ keeps the factor of dependent rows
    finite: what a row has outside the rows before it shrinks if it is below $\sqrt\epsilon$, and the next step
    restores it. One step is enough between products. A zero row stays zero, and a row that depends on the others up
    to rounding is not orthogonal to them afterwards.
    """
    count, eps = len(players), float(jnp.finfo(players.dtype).eps)
    shift = SHIFT * count * eps * jnp.eye(count, dtype=players.dtype)
    for _ in range(steps):
        players = unit_rows(players)
        factor = jnp.linalg.cholesky(long_product(players, players) + shift)
        players = full_product(_inverse(factor), players)
    return players


def reorthonormalise(players: jax.Array) -> jax.Array:
    r"""Correct nearly orthonormal rows by one Newton-Schulz step, $\frac12(3I - VV^\top)V$.

    The step reduces an error $e$ to $\frac34 e^2$, so that rounding errors do not accumulate.
    """
    return full_product(_newton_schulz(players), players)


def reorthonormalise_scores(players: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Apply `reorthonormalise` to players (K, d) and the same combination to their scores (m, K)."""
    correction = _newton_schulz(players)
    return full_product(correction, players), full_product(scores, correction.T)


def _newton_schulz(players: jax.Array) -> jax.Array:
    """Return the coefficients (K, K) of one Newton-Schulz step."""
    overlaps = long_product(players, players)
    return (
        1.5 * array_namespace(players).eye(players.shape[0], dtype=players.dtype) - 0.5 * overlaps
    )


def whiten(
    overlaps: jax.Array, absent: jax.Array | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return T with T O T' = I on the span of the vectors, a mask of its zero rows, and whether it is accurate.

    If the vectors are independent, T is an inverse Cholesky factor, at a tenth of the cost of eigenvectors.
    Otherwise eigenvectors of O are used, without those whose eigenvalue is within rounding of 0. Then T O T' can be
    off by a hundredth: make the vectors T V, and whiten their measured overlaps once more.

    Parameters
    ----------
    overlaps : array of shape (k, k)
        Inner products O of unit vectors, and of zero vectors.
    absent : bool array of shape (k,), optional
        Which vectors are zero.
    """
    xp = array_namespace(overlaps)
    if absent is None:
        absent = xp.zeros(overlaps.shape[0], bool)
    # A 1 on the diagonal makes a zero vector independent of the others, so the factor exists.
    factor, apart = _cholesky(overlaps + xp.diag(absent.astype(overlaps.dtype)))
    # Under vmap both branches run, and two LAPACK calls at the same time can deadlock on their threads. This
    # dependence makes the second wait for the first.
    others = xp.where(apart, xp.eye(overlaps.shape[0], dtype=overlaps.dtype), overlaps)
    turn, empty = cond(apart, lambda: (_inverse(factor), absent), lambda: _whiten_spectral(others))
    return turn, empty, apart


def whiten_nearly(overlaps: jax.Array) -> jax.Array:
    """Return T with T O T' = I for overlaps O that are off from the identity by at most a tenth; zero rows stay.

    Four Newton-Schulz steps reduce an error of 0.1 to rounding, without a factorisation.
    """
    unit = array_namespace(overlaps).eye(overlaps.shape[0], dtype=overlaps.dtype)
    turn = unit
    for _ in range(4):
        step = 1.5 * unit - 0.5 * overlaps
        overlaps = full_product(full_product(step, overlaps), step.T)
        turn = full_product(step, turn)
    return turn


def _whiten_spectral(overlaps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the inverse square root on the eigenvectors that are not rounding, and a mask of the others."""
    k, xp = overlaps.shape[0], array_namespace(overlaps)
    sizes, axes = symmetric_eigh(overlaps)
    spanned = sizes > 30 * k * xp.finfo(overlaps.dtype).eps
    roots = xp.where(spanned, 1 / xp.sqrt(xp.where(spanned, sizes, 1)), 0)
    return roots[:, None] * axes.T, ~spanned
