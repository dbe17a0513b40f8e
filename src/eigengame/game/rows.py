r"""Where data meets players: the rows $Z$ of one round, seen through two products.

Everything an algorithm may ask of data is here, and nothing else is:

    scores      $Y = Z V^\top$     each player's view of the rows
    directions  $D = Y^\top Z$     what the rows tell each player back

together with the inner product of two sets of scores, `gram`. With $M = Z^\top Z$, the gram of the
players' own scores is the paper's $R = \hat V^\top M \hat V$. Sparse, remembered or sharded rows are
further implementations of the same protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.linalg.products import full_product


@runtime_checkable
class Rows(Protocol):
    """Rows of width $d$, known only by their products with players."""

    @property
    def width(self) -> int:
        """The number of features $d$."""
        ...

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Y = Z V^\top$, shape (m, k), for players of shape (k, d)."""
        ...

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of scores (m, k) and (m, l), shape (k, l)."""
        ...

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $D = Y^\top Z$, shape (k, d), for scores of shape (m, k)."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DenseRows:
    r"""Rows held as one array.

    Rows that count differently come already multiplied by the roots of their weights,
    $Z = \mathrm{diag}(\sqrt w)\,X$, with the roots beside them: see `DenseRows.weighted`.

    Parameters
    ----------
    values : array of shape (m, d)
        $Z$: a batch $X_t$. Under `jax.vmap` it may carry a leading axis, one batch for each player.
    roots : array of shape (m,), optional
        $\sqrt w$, what a constant feature of 1 has become; 0 for a row of padding.
    mean : array of shape (d,), optional
        The rows' own mean, where it is already known.
    """

    values: jax.Array
    roots: jax.Array | None = None
    mean: jax.Array | None = None

    @classmethod
    def weighted(cls, values: jax.Array, weights: jax.Array) -> DenseRows:
        """Return rows of which each counts as often as its weight, at least 0, says."""
        roots = jnp.sqrt(weights)
        return cls(roots[:, None] * values, roots)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.values.shape[-1]

    @property
    def parts(self) -> int:
        """In how many pieces of equal length the rows lie: on one device, in one."""
        return 1

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$."""
        return full_product(self.values, players.T)

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two sets of scores."""
        return full_product(left.T, right)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$."""
        return full_product(scores.T, self.values)

    def small(self, products: jax.Array) -> jax.Array:
        """Return small products of these rows where they are needed next: on one device, as they are."""
        return products

    def columns(self, values: jax.Array) -> jax.Array:
        """Return an array (k, d) of combinations of rows where these are combined: on one device, as it is."""
        return values

    def dense(self) -> jax.Array:
        """Return $Z$ itself, shape (m, d): for the few who cannot do with its products."""
        return self.values

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        if self.roots is None:
            # A count in half precision would be off from 257 rows on.
            dtype = jnp.promote_types(self.values.dtype, jnp.float32)
            return jnp.ones((self.values.shape[0], 1), dtype)
        return self.roots[:, None]

    def centred(self, mean: jax.Array | None) -> DenseRows:
        """Return the rows less a mean (d,), or as they are where there is none."""
        if mean is None:
            return self
        return replace(self, values=self.values - self.constant() * mean[None, :], mean=None)


class OperatorRows:
    r"""Rows known by $M$ alone: no $Z$ with $Z^\top Z = M$ is ever formed.

    The scores of players $V$ are carried as $[V^\top;\, M V^\top]$, shape (2d, k): linear in the
    players as scores must be, with inner products $V_1 M V_2^\top$ and with directions $V M$
    read off, so a round costs one product with $M$.

    $M$ should be positive semi-definite, as it is for rows: a player with a reward of 0 or less
    penalises nobody, so children come to where it is. $M + \sigma I$ has the same components as $M$,
    and a $\sigma$ of at least minus its smallest eigenvalue makes a game of any symmetric $M$.
    """

    def image(self, players: jax.Array) -> jax.Array:
        """Return $V M$, shape (k, d)."""
        raise TypeError(f"{type(self).__name__} must say how M meets players.")

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $[V^\top;\, M V^\top]$."""
        return jnp.concatenate([players, self.image(players)], axis=1).T

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        r"""Return $V_1 M V_2^\top$."""
        d = left.shape[0] // 2
        return full_product(left[:d].T, right[d:])

    def directions(self, scores: jax.Array) -> jax.Array:
        """Return $V M$."""
        return scores[scores.shape[0] // 2 :].T


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SymmetricRows(OperatorRows):
    """Rows given by their symmetric matrix $M$.

    Parameters
    ----------
    matrix : array of shape (d, d)
        The matrix whose eigenvectors are sought, positive semi-definite (see `OperatorRows`).
    """

    matrix: jax.Array

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.matrix.shape[-1]

    def image(self, players: jax.Array) -> jax.Array:
        """Return $V M$."""
        return full_product(players, self.matrix)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AffineRows(OperatorRows):
    r"""Rows of $\sigma I + \tau M$, for rows of $M$.

    With $\tau = -1$ and $\sigma \ge \Lambda_{11}$ the largest components are the smallest of $M$
    (appendix Smallest Eigenvectors).

    Parameters
    ----------
    rows : Rows
        The rows of $M$.
    shift, scale : scalar arrays
        $\sigma$ and $\tau$.
    """

    rows: Any
    shift: jax.Array
    scale: jax.Array

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return int(self.rows.width)

    def image(self, players: jax.Array) -> jax.Array:
        r"""Return $\sigma V + \tau V M$."""
        return self.shift * players + self.scale * self.rows.directions(self.rows.scores(players))


def as_rows(data: Any, *, name: str = "rows", dtype: Any = None) -> Rows:
    """Return `data` as rows, checked.

    Parameters
    ----------
    data : Rows, or array of shape (m, d) or (k, m, d)
        Rows pass through. Three axes are one batch for each of k players.
    name : str
        What to call `data` in an error.
    dtype : dtype, optional
        Precision to play in; the default keeps floats and turns integers into JAX's float.
    """
    if isinstance(data, Rows):
        return data
    return DenseRows(floating(name, _check.matrix(name, data, rank=(2, 3)), dtype))


def as_symmetric_rows(matrix: Any, *, name: str = "matrix", dtype: Any = None) -> SymmetricRows:
    """Return the rows of a given symmetric matrix of shape (d, d), checked.

    The matrix should be positive semi-definite (see `OperatorRows`). Only its diagonal is checked for
    that: it is what can be seen without solving for the eigenvalues.
    """
    array = floating(name, _check.matrix(name, matrix), dtype)
    if array.shape[0] != array.shape[1]:
        raise ValueError(
            f"{name} has shape {array.shape}: give a square matrix, or rows to as_rows."
        )
    asymmetry, size = jnp.abs(array - array.T).max(), jnp.abs(array).max()
    if (
        not isinstance(array, jax.core.Tracer)
        and asymmetry > 100 * jnp.finfo(array.dtype).eps * size
    ):
        raise ValueError(
            f"{name} differs from its transpose by {asymmetry:.3g}: give (A + A.T) / 2 if that is meant."
        )
    diagonal = jnp.diag(array)
    if not isinstance(array, jax.core.Tracer) and (diagonal < 0).any():
        least = int(diagonal.argmin())
        raise ValueError(
            f"{name}[{least}, {least}] is {diagonal[least]:.3g}, so an eigenvalue is below 0, where "
            f"players do not keep apart: give {name} + shift * I, which has the same components."
        )
    return SymmetricRows(array)


def floating(
    name: str, data: Any, dtype: Any = None, *, places: Sequence[int] | np.ndarray | None = None
) -> jax.Array:
    """Return an array of numbers as a JAX array of floats that holds all of them.

    `places` are the rows of the array in something larger, for errors.
    """
    # What overflows is said below, with its place.
    with np.errstate(over="ignore"):
        array = jnp.asarray(data, dtype=dtype)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(float)
    _check.fits(name, data, array, places=places)
    return array


def play_dtype(rows: Rows) -> jnp.dtype:
    """Return the precision in which players meet these rows: their own, and at least float32."""
    seen = jax.eval_shape(rows.scores, jnp.zeros((1, rows.width), jnp.bfloat16)).dtype
    return jnp.promote_types(seen, jnp.float32)
