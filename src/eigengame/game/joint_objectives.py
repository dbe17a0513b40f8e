r"""Objectives of all players together, from which the paper derives the utilities (Sec. PCA as an Eigen-Game).

Functions of $R = \hat V^\top M \hat V$, shape (k, k), for orthonormal players. They do not depend on the order of
the players.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def trace(gram: jax.Array) -> jax.Array:
    r"""Return $\sum_i R_{ii} = \mathrm{Tr}(R)$, a scalar (eq. max_trace, to be maximised).

    For $k = d$ it equals $\mathrm{Tr}(M)$ for all orthonormal players. For $k < d$ its maximisers are all
    orthonormal bases of the top-$k$ subspace.
    """
    return jnp.trace(gram)


def off_diagonal(gram: jax.Array) -> jax.Array:
    r"""Return $\sum_{i \ne j} R_{ij}^2$, a scalar (eq. min_offdiag, to be minimised).

    For $k = d$ it is 0 only at eigenvectors, in any order. For $k < d$ it is 0 at the Ritz vectors of any
    $k$-dimensional subspace, which in general are not eigenvectors.
    """
    return jnp.sum(jnp.where(jnp.eye(gram.shape[0], dtype=bool), 0, jnp.square(gram)))


def trace_minus_off_diagonal(gram: jax.Array) -> jax.Array:
    r"""Return $\sum_i R_{ii} - \sum_{i \ne j} R_{ij}^2$, a scalar (eq. valid_approach, to be maximised).

    Its maximisers are the top-$k$ eigenvectors, in any order, if $\Lambda_{kk} > \Lambda_{k+1,k+1}$: they maximise
    the first term and minimise the second.
    """
    return trace(gram) - off_diagonal(gram)
