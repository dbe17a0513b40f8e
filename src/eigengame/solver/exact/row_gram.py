r"""The exact route for few rows: the inner products of all rows, and their eigenproblem.

Let $Z$ be the $n$ rows (about their mean, multiplied by the roots of their weights). $K = ZZ^\top$ is small where
rows are few, and $M = Z^\top Z$ has the same eigenvalues: from $Ku_i = \lambda_iu_i$ follows
$Mv_i = \lambda_iv_i$ with $v_i = Z^\top u_i/\sigma_i$ and $\sigma_i^2 = \lambda_i$. Everything is in float64, so
what is left are rounding errors. They are bounded, and part of the certificate:

* Of the rows: $\|\hat Z - Z\| \le \varepsilon$, by their subtraction and by what is left of the mean.
* Of the inner products: $\|\hat K - K\| \le \delta = \gamma T + 2\sqrt{\lambda_1}\varepsilon + \varepsilon^2$,
  with $T$ the sum of all squares and $\gamma$ for the longest sum. On a CPU float32 takes half the time, and is
  used first if the tolerance is large. The products of a few Gaussian vectors $G$ with the rows in float64 then
  measure $E = \hat K - K$: $\|E\| \le \|EG\|/\sqrt{\chi^2_r(\delta)}$ with probability $1 - \delta$.
* Of the components: $\sigma_i\hat v_i = Z^\top u_i + f_i$ with $\|f_i\| \le \gamma_n\sqrt T + \varepsilon$.

With $r_i = \hat Ku_i - \hat\lambda_iu_i$ as measured,
$Z\hat v_i = (\hat\lambda_iu_i + e_i)/\sigma_i$ with $\|e_i\| \le \|r_i\| + \delta + \sqrt{\lambda_1}\|f_i\|$, so
$M\hat v_i = \hat\lambda_i\hat v_i - \hat\lambda_if_i/\sigma_i + Z^\top e_i/\sigma_i$: errors of sums and of scores
in the words of `rounding`.

**What is outside.** For any matrix $B$ whose rows are in the span of the players, the largest eigenvalue of $M$
outside of them is at most $\|Z - B\|^2$. With $B = \sum_iu_i\sigma_i\hat v_i$ that is
$(\sqrt\mu + \|f\|_F)^2$, where $\mu$ bounds the largest eigenvalue of $K - U\Lambda U^\top$: a Cholesky factor of
$\tau - (K - U\Lambda U^\top)$ exists only if $\tau$ is such a bound, up to a backward error that is known.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.linalg import eigvalsh

from eigengame._system.blas_threads import threads_for
from eigengame.solver.certificates.certificate import Certificate, certificate, stored
from eigengame.solver.certificates.risk import RISK
from eigengame.solver.certificates.rounding import OPERATIONS, UNIT, Summed, gamma
from eigengame.solver.exact.inner_products import COUNT, RowGram, product, row_gram
from eigengame.solver.exact.largest_eigenvectors import bound_outside, largest_eigenvectors
from eigengame.solver.lanczos.centred_rows import largest_by_lanczos
from eigengame.solver.passes.held_rows import HeldRows
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.plan import Plan, tries_float32
from eigengame.solver.planning.routes import ROW_GRAM
from eigengame.solver.results.outcome import Outcome, Status, converged_status
from eigengame.solver.results.result import (
    Found,
    count_for,
    rank_bound,
    rest_is_known,
    scale_of,
    total_scatter,
)
from eigengame.solver.rows.row_counts import refuse_unless_counted
from eigengame.solver.streams.exact_stream import exact_probes, exact_stream

TOL = 1e-3
"""Angle that counts as converged on this route if no `tol` is given."""

FEW = 8
"""Ratio of the number of sparse rows to that of eigenvectors from which Lanczos' method finds these faster."""

SEPARATE = 64.0
"""Multiple of the error of an eigenvalue from which its component is computed by itself."""


class Players(NamedTuple):
    r"""Players by the eigenvectors of the inner products, with what bounds their errors.

    Attributes
    ----------
    directions : array of shape (K, d)
        $\hat v$, nearly orthonormal.
    values : array of shape (K,)
        $\hat\lambda$, largest first.
    sums, scores : arrays of shape (K,)
        Both parts of the errors of $\hat\lambda_i\hat v_i$ as a product with $M$.
    level : float
        Bound on the largest eigenvalue outside the players.
    images : array of shape (r, d)
        Products of the probes with M.
    """

    directions: np.ndarray
    values: np.ndarray
    sums: np.ndarray
    scores: np.ndarray
    level: float
    images: np.ndarray


def solve_row_gram(plan: Plan, passes: Passes, share: float | None = None) -> Found:
    """Read all rows once, and solve the eigenproblem of their inner products.

    With `share`, as many components are returned as explain this share of the variance, whatever the plan says.
    """
    held = HeldRows.read(passes)
    refuse_unless_counted(passes.source.name, held.rows, held.weight, 2)
    with jax.enable_x64(True), threads_for(math.isqrt(len(held.roots) * held.width)):
        if share is None and not (held.scattered or held.on_device) and tries_float32(plan):
            found = _solve(plan, passes, held, measured=True)
            if found is not None:
                return found
        found = _solve(plan, passes, held, share)
    assert found is not None
    return found


def _solve(
    plan: Plan,
    passes: Passes,
    held: HeldRows,
    share: float | None = None,
    *,
    measured: bool = False,
) -> Found | None:
    """Solve the eigenproblem of the inner products; None if these are in float32, and that is not enough."""
    options = plan.options
    sums, draws = exact_probes(plan, held.width)
    seed = options.seed + 2 if measured else None
    # Numbers out of range in float32 may be in range in float64.
    with np.errstate(all="ignore") if measured else nullcontext():
        gram = row_gram(held, center=options.center, probes=draws, measured=seed)
    if measured and not np.isfinite(gram.error):
        return None
    passes.refuse_unless_finite(gram.moments.scatter)
    if share is not None:
        values = eigvalsh(gram.matrix, check_finite=False)[::-1]
        plan = plan.with_components(count_for(values, share), held.width)
    # With weights there may be more components than rows that count. The others are null.
    count = min(plan.players, max(held.rows, plan.components))
    players = solve_players(gram, held, count, center=options.center)
    scale, tol = scale_of(gram.moments, held.rows, options), options.tol or TOL
    found, kept = certified(
        players, plan.components, scale=scale, tol=tol, dtype=options.dtype, measured=measured
    )
    determined = rank_bound(held.rows, held.width, options)
    status, values = converged_status(found, tol, determined), found.rayleigh * scale
    if measured:
        total = total_scatter(gram.moments, center=options.center)
        errors = np.full(len(values), gram.error)
        known = rest_is_known(values, errors, total, determined - len(values))
        if status is not Status.CONVERGED or not known:
            return None
    images, summed = players.images, Summed(len(held.roots))
    stream = exact_stream(plan, kept, players.values, gram.moments, held.rows, sums, images, summed)
    return Found(
        players=kept,
        values=values,
        certificate=found,
        outcome=Outcome(status or Status.FLOOR_REACHED, ROW_GRAM, passes.record.made),
        moments=gram.moments,
        rows=held.rows,
        stream=stream,
    )


def solve_players(gram: RowGram, held: HeldRows, players: int, *, center: bool) -> Players:
    """Return the first players, by the eigenvectors of the inner products and one more look at the rows."""
    matrix, n = gram.matrix, len(gram.matrix)
    values, vectors = _largest(gram, players + 1)
    following = float(values[players]) if len(values) > players else 0.0
    # Null directions, if weights count as more rows than there are.
    missing = max(players - len(values), 0)
    values = np.pad(np.maximum(values[:players], 0), (0, missing))
    vectors = np.pad(vectors[:players], ((0, missing), (0, 0)))
    images = vectors @ matrix
    residuals = np.linalg.norm(images - values[:, None] * vectors, axis=1)
    residuals += gamma(n + OPERATIONS) * float(np.linalg.norm(matrix))
    largest = float(values[0] + residuals[0] + gram.error)
    off = gamma(n + OPERATIONS) * math.sqrt(gram.squares) + gram.rows_error
    off += 4 * UNIT * math.sqrt(largest)
    scores = residuals + gram.error + math.sqrt(largest) * off
    # Where a value is not much larger than its error, nothing is left of the direction but that it is outside the
    # others.
    good = int(np.cumprod(values > SEPARATE * players * (scores + math.sqrt(largest) * off)).sum())
    following = float(values[good]) if good < players else following
    level = bound_outside(
        matrix, values[:good], vectors[:good], residuals[:good], following, gram.error
    )
    level = (math.sqrt(level) + math.sqrt(good) * off) ** 2
    together = np.concatenate([vectors, gram.scores])
    if gram.sparse is None:
        both = _directions(held, together, center=center)
    else:
        both = gram.sparse.directions(np.ascontiguousarray(together.T))
    directions, images = both[:players], both[players:]
    roots = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    directions[:good] /= roots[:good, None]
    sums, scores = values * off / roots, scores / roots
    if good < players:
        directions[good:] = _apart(directions[good:], directions[:good])
        uneven = math.sqrt(players) * gamma(8.0 * players * held.width)
        sums[good:], scores[good:] = values[good:], math.sqrt(level) + uneven * math.sqrt(largest)
    return Players(directions, values, sums, scores, level, images)


def certified(
    players: Players, k: int, *, scale: float, tol: float, dtype: Any, measured: bool = False
) -> tuple[Certificate, np.ndarray]:
    """Return the certificate of the first k players, and all players as they are kept.

    `measured` tells whether the error of the inner products was measured by random vectors.
    """
    own = players.directions
    found = certificate(
        own,
        players.values[:, None] * own,
        k,
        floor=players.sums,
        scores=players.scores,
        scale=scale,
        level=players.level if len(own) < own.shape[1] else -math.inf,
        confidence=1 - RISK if measured else 1.0,
        probes=COUNT if measured else 0,
        powers=int(measured),
        tol=tol,
    )
    kept = own.astype(dtype)
    return stored(found, own, kept), kept


def _largest(gram: RowGram, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues and their eigenvectors, as rows."""
    n, rows = len(gram.matrix), gram.sparse
    if rows is not None and FEW * count < n:

        def product(vectors: np.ndarray) -> np.ndarray:
            return rows.scores(rows.directions(vectors))

        found = largest_by_lanczos(product, n, count)
        if found is not None:
            return found
    return largest_eigenvectors(gram.matrix, count)


def _directions(held: HeldRows, vectors: np.ndarray, *, center: bool) -> np.ndarray:
    r"""Return $Z^\top u_i$ for each eigenvector, shape (K, d)."""
    found = np.empty((len(vectors), held.width))
    there = held.there(vectors)
    for panel in held.panels(center=center):
        found[:, panel.columns] = np.asarray(product(there, panel.values))
    return found


def _apart(directions: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return orthonormal directions outside the span of the others, close to the given ones where possible."""
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    directions = directions / np.where(lengths > 0, lengths, 1)
    return np.linalg.qr(np.concatenate([others, directions]).T)[0].T[len(others) :]
