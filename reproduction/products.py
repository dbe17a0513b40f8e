"""Inner products of players with the components and with each other, from which angles and distances follow.

The compiled run stores these k x k products. Matching, settling and pseudo-inverses are computed from them on
the host afterwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from eigengame import metrics
from eigengame.game.rayleigh_ritz import settle_coefficients
from eigengame.game.sphere import retract
from eigengame.linalg.products import full_product


class Truth(NamedTuple):
    """True components (c, d), in the order of their eigenvalues, and the matrix M (d, d)."""

    components: jax.Array
    matrix: jax.Array


class Products(NamedTuple):
    """Inner products of unit players, (..., k, k) each.

    Attributes
    ----------
    cosines : array
        Entry [i, j] is the cosine between player i and component j; (..., k, c) for a truth of c components.
    overlaps : array
        Between the players.
    gram : array
        Between the players in M, with the rewards on the diagonal.
    """

    cosines: Any
    overlaps: Any
    gram: Any


def truth_of(images: np.ndarray, k: int) -> tuple[np.ndarray, Truth]:
    """Return the k largest eigenvalues of M, the sum over all rows, and the truth in float32."""
    data = images.astype(np.float64)
    matrix = data.T @ data
    values, components = metrics.true_components(matrix=matrix, k=k)
    return values, Truth(jnp.asarray(components, jnp.float32), jnp.asarray(matrix, jnp.float32))


def products(components: jax.Array, truth: Truth) -> Products:
    """Compute the products of players; a `Measure` of `play_trials`."""
    unit = retract(components)
    return Products(
        full_product(unit, truth.components.T),
        full_product(unit, unit.T),
        full_product(full_product(unit, truth.matrix), unit.T),
    )


def angles(seen: Products) -> np.ndarray:
    """Return the angle of each player to its component, shape (..., k); a right angle if it diverged."""
    return _angles(np.diagonal(_finite(seen.cosines), axis1=-2, axis2=-1))


def nearest_angles(seen: Products) -> np.ndarray:
    """Return the angle of each player to the nearest component, shape (..., k)."""
    return _angles(np.abs(_finite(seen.cosines)).max(axis=-1))


def residuals(seen: Products, eigenvalues: np.ndarray) -> np.ndarray:
    r"""Return $\|Mv - \rho v\|/\rho$ for each player $v$ with Rayleigh quotient $\rho$, shape (..., k).

    It is small also for a mixture of eigenvectors with nearly equal eigenvalues, which is far from each of them. It
    is 1 for a diverged player.

    Parameters
    ----------
    seen : Products
        With cosines to all d components.
    eigenvalues : array of shape (d,)
    """
    shares = np.square(_finite(seen.cosines))
    total = shares.sum(axis=-1)
    shares /= np.where(total > 0, total, 1)[..., None]
    quotients = shares @ eigenvalues
    squares = np.sum(shares * np.square(eigenvalues - quotients[..., None]), axis=-1)
    known = quotients > 0
    return np.where(known, np.sqrt(squares) / np.where(known, quotients, 1), 1.0)


def matched_angles(seen: Products) -> np.ndarray:
    """Return the angles after the best matching of players to components, shape (..., k)."""
    cosines = np.abs(_finite(seen.cosines))
    flat = cosines.reshape(-1, *cosines.shape[-2:])
    matched = [one.T[linear_sum_assignment(one.T, maximize=True)] for one in flat]
    return _angles(np.stack(matched).reshape(cosines.shape[:-1]))


def settled_angles(seen: Products) -> np.ndarray:
    """Return the angles after players are rotated to the eigenvectors of M in their span, shape (..., k)."""
    cosines = _finite(seen.cosines)
    flat = [x.reshape(-1, *x.shape[-2:]).astype(np.float32) for x in map(_finite, seen)]
    rotated = np.asarray(_settled(*flat)).reshape(cosines.shape)
    return _angles(np.diagonal(rotated, axis1=-2, axis2=-1))


def distances(seen: Products) -> np.ndarray:
    r"""Return the normalised subspace distance $1 - \mathrm{Tr}(U^*P)/k$, shape (...); 1 for a diverged run.

    $P$ is computed by the pseudo-inverse of the overlaps. These are float32, so that directions with singular
    values below a thousandth are ignored.
    """
    cosines, overlaps = _finite(seen.cosines), _finite(seen.overlaps)
    spanned = np.linalg.pinv(overlaps, rcond=1e-6, hermitian=True)
    shared = np.einsum("...ij,...ik,...kj->...", cosines, spanned, cosines)
    return np.clip(1 - shared / cosines.shape[-1], 0, 1)


def _finite(values: np.ndarray) -> np.ndarray:
    """Return products in float64, set to zero if a player diverged."""
    values = np.asarray(values, np.float64)
    return np.where(np.isfinite(values).all(axis=(-2, -1), keepdims=True), values, 0)


def _angles(cosines: np.ndarray) -> np.ndarray:
    """Return the angles of cosines, ignoring signs."""
    return np.arccos(np.clip(np.abs(cosines), 0, 1))


@jax.jit
@jax.vmap
def _settled(cosines: jax.Array, overlaps: jax.Array, gram: jax.Array) -> jax.Array:
    """Return the cosines between settled players and components."""
    return full_product(settle_coefficients(gram, overlaps)[1], cosines)
