r"""Rows $Z$ of one update: the only interface between data and players.

Algorithms use data through two products and an inner product:

    scores      $Y = Z V^\top$     shape (m, k)
    directions  $D = Y^\top Z$     shape (k, d)
    gram        $Y_1^\top Y_2$     shape (k, l)

With $M = Z^\top Z$, the gram of the players' own scores is the paper's $R = \hat V^\top M \hat V$. `Rows` is the
protocol of these products. `SampleRows` adds what only rows of data have: values, weights and a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import _check
from eigengame.linalg import wide
from eigengame.linalg.library import array_namespace
from eigengame.linalg.products import full_product, row_product


@runtime_checkable
class Rows(Protocol):
    """Rows with $d$ features, used only through their products with players."""

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


@runtime_checkable
class SampleRows(Rows, Protocol):
    """Rows of data: m weighted samples, each with one score per player.

    `gram` is the plain product of the two arrays of scores, so that scores of further rows can be appended.
    """

    @property
    def mean(self) -> jax.Array | None:
        """The mean of the rows (d,) if it is already known."""
        return None

    @property
    def parts(self) -> int:
        """The number of parts of equal length that the rows are split into, one for each device."""
        return 1

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1): the square roots of the weights."""
        ...

    def centre(self, scores: jax.Array, unit: jax.Array, share: jax.Array) -> jax.Array:
        """Return scores (m, k) about their mean.

        The mean of the rows is a combination of them, by `share` (m, 1), so its scores are the same combination of
        their scores. `unit` (m, 1) are the scores of a constant feature.
        """
        return scores - unit * self.gram(share, scores)

    def with_row(self, scores: jax.Array, row: jax.Array) -> jax.Array:
        """Return scores (m, k) and those of one more row (1, k).

        A batch in several parts gets one row for each part, all but one of them zero. The parts keep the same
        length, and no row moves to another device.
        """
        parts = self.parts
        if parts == 1:
            return array_namespace(scores).concatenate([scores, row])
        m, k = scores.shape
        rows = jnp.zeros((parts, 1, k), scores.dtype).at[-1].set(row)
        joined = jnp.concatenate([scores.reshape(parts, m // parts, k), rows], axis=1)
        return joined.reshape(-1, k)

    def dense(self) -> jax.Array:
        """Return $Z$ as an array of shape (m, d)."""
        ...

    def pass_scores(self, players: jax.Array) -> jax.Array:
        """Return `scores(players)`, summed accurately over millions of features: for passes that measure."""
        return self.scores(players)

    def add_directions(self, total: jax.Array, scores: jax.Array) -> jax.Array:
        """Return `total + directions(scores)`, shape (k, d)."""
        return total + self.directions(scores)


def are_samples(rows: Any) -> TypeGuard[SampleRows]:
    """Return whether rows are rows of data.

    A check of all methods of a protocol takes longer than a small product.
    """
    return SampleRows in type(rows).__mro__ or isinstance(rows, SampleRows)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DenseRows(SampleRows):
    r"""Rows stored as one array.

    Weighted rows are stored multiplied by the square roots of their weights, $Z = \mathrm{diag}(\sqrt w)\,X$,
    together with these roots: see `DenseRows.weighted`.

    Parameters
    ----------
    values : array of shape (m, d)
        $Z$: a batch $X_t$. Under `jax.vmap` it may have a leading axis, one batch for each player.
    roots : array of shape (m,), optional
        $\sqrt w$; 0 for a row of padding. Without them all weights are 1.
    mean : array of shape (d,), optional
        The mean of the rows if it is already known.
    """

    values: jax.Array
    roots: jax.Array | None = None
    mean: jax.Array | None = None

    @classmethod
    def weighted(cls, values: jax.Array, weights: jax.Array) -> DenseRows:
        """Return rows (m, d) with weights (m,) of at least 0."""
        roots = jnp.sqrt(weights)
        return cls(roots[:, None] * values, roots)

    @property
    def width(self) -> int:
        """The number of features $d$."""
        return self.values.shape[-1]

    @property
    def one_device(self) -> bool:
        """Whether the rows are on one device, so that GPU kernels can be used."""
        return True

    def scores(self, players: jax.Array) -> jax.Array:
        r"""Return $Z V^\top$."""
        return full_product(self.values, players.T)

    def gram(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return the inner products of two arrays of scores."""
        return self._over_rows(left, right)

    def directions(self, scores: jax.Array) -> jax.Array:
        r"""Return $Y^\top Z$."""
        return self._over_rows(scores, self.values)

    def _over_rows(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """Return `left.T @ right`; in chunks of rows only on one device, since devices may share rows."""
        return row_product(left, right) if self.one_device else full_product(left.T, right)

    def pass_scores(self, players: jax.Array) -> jax.Array:
        """Return `scores(players)`, by a kernel or a sum in chunks on a GPU."""
        return wide.scores(players, self.values) if self.one_device else self.scores(players)

    def add_directions(self, total: jax.Array, scores: jax.Array) -> jax.Array:
        """Return `total + directions(scores)`, by a kernel if possible."""
        if self.one_device:
            return wide.add_directions(total, scores, self.values)
        return total + self.directions(scores)

    def small(self, products: jax.Array) -> jax.Array:
        """Place small products of these rows for further use; on one device, return them unchanged."""
        return products

    def columns(self, values: jax.Array) -> jax.Array:
        """Place an array (k, d) that is combined with these rows; on one device, return it unchanged."""
        return values

    def dense(self) -> jax.Array:
        """Return $Z$, shape (m, d)."""
        return self.values

    def constant(self) -> jax.Array:
        """Return the scores of a feature that is always 1, shape (m, 1)."""
        if self.roots is None:
            # At least float32: half precision cannot count beyond 256 rows.
            dtype = jnp.promote_types(self.values.dtype, jnp.float32)
            return jnp.ones((self.values.shape[0], 1), dtype)
        return self.roots[:, None]

    def centred(self, mean: jax.Array | None) -> DenseRows:
        """Return the rows minus a mean (d,), or unchanged if it is None."""
        if mean is None:
            return self
        return replace(self, values=self.values - self.constant() * mean[None, :], mean=None)


class OperatorRows:
    r"""Rows given only by $M$: no $Z$ with $Z^\top Z = M$ is formed.

    The scores of players $V$ are stored as $[V^\top;\, M V^\top]$, shape (2d, k). They are linear in the players,
    as scores must be, and contain both the inner products $V_1 M V_2^\top$ and the directions $V M$: a round needs
    one product with $M$.

    $M$ should be positive semi-definite, as for rows of data: a player with a reward of at most 0 imposes no
    penalty, so its children converge to the same vector. $M + \sigma I$ has the same components as $M$, and is
    positive semi-definite for any $\sigma$ of at least minus the smallest eigenvalue.
    """

    def image(self, players: jax.Array) -> jax.Array:
        """Return $V M$, shape (k, d)."""
        raise NotImplementedError(f"{type(self).__name__} must define image(players).")

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
    """Rows given by a symmetric matrix $M$.

    Parameters
    ----------
    matrix : array of shape (d, d)
        The matrix $M$ whose eigenvectors are computed, positive semi-definite (see `OperatorRows`).
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
    """Convert `data` to rows and check its values.

    Parameters
    ----------
    data : Rows, or array of shape (m, d) or (k, m, d)
        Rows are returned unchanged. Three axes mean one batch for each of k players.
    name : str
        The name of `data` in error messages.
    dtype : dtype, optional
        Precision of the rows. By default floats keep theirs and integers become JAX's default float.
    """
    if isinstance(data, Rows):
        return data
    return DenseRows(floating(name, _check.matrix(name, data, rank=(2, 3)), dtype))


def as_symmetric_rows(matrix: Any, *, name: str = "matrix", dtype: Any = None) -> SymmetricRows:
    """Convert a symmetric matrix of shape (d, d) to rows and check its values.

    The matrix should be positive semi-definite (see `OperatorRows`). Only the sign of its diagonal is checked,
    since a full check would need the eigenvalues.
    """
    array = floating(name, _check.matrix(name, matrix), dtype)
    if array.shape[0] != array.shape[1]:
        raise ValueError(
            f"{name} has shape {array.shape}: give a square matrix, or pass rows to as_rows."
        )
    asymmetry, size = jnp.abs(array - array.T).max(), jnp.abs(array).max()
    if (
        not isinstance(array, jax.core.Tracer)
        and asymmetry > 100 * jnp.finfo(array.dtype).eps * size
    ):
        raise ValueError(
            f"{name} differs from its transpose by {asymmetry:.3g}: give (A + A.T) / 2 to symmetrise it."
        )
    diagonal = jnp.diag(array)
    if not isinstance(array, jax.core.Tracer) and (diagonal < 0).any():
        least = int(diagonal.argmin())
        raise ValueError(
            f"{name}[{least}, {least}] is {diagonal[least]:.3g}, so {name} has a negative eigenvalue, and players "
            f"can converge to the same vector: give {name} + shift * I, which has the same components."
        )
    return SymmetricRows(array)


def floating(
    name: str, data: Any, dtype: Any = None, *, places: Sequence[int] | np.ndarray | None = None
) -> jax.Array:
    """Convert numbers to a JAX array of floats; raise if one of them does not fit its dtype.

    `places` are the row numbers of the array in the whole data, for error messages.
    """
    # Overflow is reported by the check below, with its position.
    with np.errstate(over="ignore"):
        array = jnp.asarray(data, dtype=dtype)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(float)
    _check.fits(name, data, array, places=places)
    return array


def play_dtype(rows: Rows) -> jnp.dtype:
    """Return the dtype of players for these rows: the dtype of the rows, but at least float32."""
    seen = jax.eval_shape(rows.scores, jnp.zeros((1, rows.width), jnp.bfloat16)).dtype
    return jnp.promote_types(seen, jnp.float32)
