r"""Dense rows that are read several times, as a problem of Lanczos' method with products in float32.

Each product with a block of vectors is a pass. Its errors are measured: in the first pass a few Gaussian vectors
$G$ are multiplied in float64. For a Ritz vector $v$ with $Mv = \theta v + R + e$,

$$eG^\top = v(MG^\top) - \theta vG^\top - RG^\top$$

is then known, whatever rounding in the passes and in the basis has led to $e$, and
$\|e\| \le \|eG^\top\|/\sqrt{\chi^2_r(\delta)}$ with probability $1 - \delta$. The vectors $G$ are the first probes
of the stream as well. The space does not depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from eigengame._system.reused_memory import ReusedMemory
from eigengame.linalg.long_columns import factorise_in_place
from eigengame.solver.certificates.probes import draw_probes, least_norm
from eigengame.solver.certificates.risk import ROUNDING_RISK
from eigengame.solver.certificates.rounding import (
    OPERATIONS,
    Summed,
    gamma,
    growth_about_mean,
    unit_roundoff,
)
from eigengame.solver.lanczos.block_lanczos import Product
from eigengame.solver.lanczos.ritz import PROBES, Measured, Ritz, add_multiples, first_block
from eigengame.solver.passes.host_sums import MOST_ROWS, HostSums, add_rows
from eigengame.solver.passes.passes import Passes
from eigengame.solver.planning.flat_spectra import is_flat
from eigengame.solver.planning.lanczos_basis import LANCZOS_PASSES, lanczos_block
from eigengame.solver.planning.plan import Plan
from eigengame.solver.results.result import rest_is_known, total_scatter
from eigengame.solver.rows.frame import large_mean
from eigengame.solver.rows.moments import Moments
from eigengame.solver.rows.row_counts import refuse_unless_counted
from eigengame.solver.streams.exact_stream import exact_probes

COUNT = 8
"""Number of vectors that are multiplied in float64."""

LEAST_BATCH = 2**12
"""Least number of rows of a batch. Batches are views of the data, and sums over few large ones take less time."""

CHUNK = 2**12
"""Features whose products are added at a time, for a small bound on their rounding."""

LOOKS = 32
"""Largest number of spaces whose errors are measured: they share the risk."""


@dataclass(frozen=True)
class DenseProblem:
    r"""All dense rows of a fit, after a first pass.

    Attributes
    ----------
    passes : Passes
        Over rows in float64, about an origin near their mean if that is large.
    mean : array of shape (d,) or None
        Mean of these rows; None if they are not centred.
    moments : Moments
        Of each feature.
    seen : int
        Rows with a weight above 0.
    block : int
        Vectors that are multiplied at a time.
    first : array of shape (d, b)
        Products of the first block.
    draws : array of shape (r, d)
        $G$, the first `COUNT` of them measured in float64, and further probes.
    drawn : array of shape (r, d)
        $GM$.
    drawn_error : float
        Bound on the norm of the errors of those in float64.
    """

    passes: Passes
    mean: np.ndarray | None
    moments: Moments
    seen: int
    block: int
    first: np.ndarray
    draws: np.ndarray
    drawn: np.ndarray
    drawn_error: float

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.first)

    @property
    def most_products(self) -> int:
        """Largest number of products with a block."""
        return LANCZOS_PASSES

    @property
    def accuracy(self) -> float:
        """Angle to which components are converged. Where a certificate is possible, true angles are far smaller."""
        return 0.01

    @property
    def longest_growth(self) -> float:
        """Largest ratio of the sizes of a basis at two checks: a check after each pass."""
        return 1.0

    @property
    def summed(self) -> Summed:
        """How the products of the probes are summed, except for the first of them."""
        return Summed(MOST_ROWS, self.mean, unit_roundoff(np.float32))

    def converges_slowly(self, ritz: Ritz, k: int) -> bool:
        """Return whether the spectrum is flat: that takes more passes than there are."""
        return is_flat(ritz.values[: 2 * k], k)

    def knows_rest(self, values: np.ndarray, errors: np.ndarray, others: int) -> bool:
        """Return whether the variance that components leave is larger than rounding."""
        total = total_scatter(self.moments, center=self.mean is not None)
        return rest_is_known(values, errors, total, others)

    def product(self) -> Product:
        """Return the product of vectors (d, b) with M: one pass each, but for the first block."""
        waiting = [self.first]
        none, memory, narrow_memory = np.zeros((0, self.size)), ReusedMemory(), ReusedMemory()

        def multiply(vectors: np.ndarray) -> np.ndarray:
            if waiting:
                return waiting.pop().copy()
            narrow = narrow_memory.empty(vectors.T.shape, np.float32)
            np.copyto(narrow, vectors.T, casting="same_kind")
            step = partial(add_rows, narrow, none, memory=memory)
            start = HostSums.empty(len(narrow), 0, self.size)
            with jax.enable_x64(True):
                sums = self.passes.fold(step, start, task="products")
            return _about(self.mean, sums.images, sums.along).T

        return multiply

    def errors(self, ritz: Ritz) -> np.ndarray:
        """Return bounds on the errors of the Ritz pairs, shape (m,)."""
        basis, m = ritz.basis, len(ritz.values)
        draws, drawn = self.draws[:COUNT], self.drawn[:COUNT]
        images, inner = (ritz.turn.T @ _products(basis.vectors, one) for one in (drawn, draws))
        apart = ritz.residuals @ _products(basis.following.T, draws)
        known = images - ritz.values[:, None] * inner - apart
        # All of these are sums over features, chunk by chunk, and over the basis.
        longest = CHUNK + self.size // CHUNK + m + OPERATIONS
        # The coefficients of a Ritz vector add up to at most the root of their number.
        rounding = math.sqrt(m) * gamma(4 * longest) * ritz.largest * float(np.linalg.norm(draws))
        lengths = np.linalg.norm(known, axis=1) + self.drawn_error + rounding
        return np.asarray(lengths / least_norm(ROUNDING_RISK / (LOOKS * m), COUNT))

    def measured(self, ritz: Ritz, errors: np.ndarray, count: int) -> Measured:
        """Return the first Ritz vectors, which are the players, with their products."""
        players = ritz.vectors(0, count)
        images = ritz.residuals[:count] @ ritz.basis.following.T
        add_multiples(images, ritz.values[:count], players)
        m = len(ritz.values)
        rounding = math.sqrt(m) * gamma(m + OPERATIONS) * ritz.largest
        return Measured(players, images, errors[:count] + rounding)

    def players(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors, which are players already."""
        return vectors

    def images(self, draws: np.ndarray) -> np.ndarray:
        """Return the products of the first probes with M."""
        return self.drawn[: len(draws)]


def dense_problem(plan: Plan, passes: Passes) -> DenseProblem | None:
    """Read all rows once: their moments, and the products of the first block and of the probes.

    None if numbers are out of the range of float32.
    """
    options, d, block = plan.options, passes.source.shape[1], lanczos_block(plan.components)
    near = (
        large_mean(passes.source, passes.frame, passes.batches.weights) if options.center else None
    )
    exact = passes.in_float64(near).unpadded(LEAST_BATCH)
    _, probes = exact_probes(plan, d, PROBES)
    draws = draw_probes(options.seed, max(COUNT, len(probes)), d)
    draws = draws.astype(np.float32).astype(np.float64)  # as a stream has them
    vectors = first_block(options.seed, block, d)
    factorise_in_place(vectors)
    narrow = np.concatenate([vectors.T, draws[COUNT:]]).astype(np.float32)
    start = HostSums.empty(len(narrow), COUNT, d)
    with jax.enable_x64(True):
        step = partial(add_rows, narrow, draws[:COUNT])
        sums = exact.fold(step, start, task="products")
    weight, squares = float(sums.weight), float(sums.squares.sum())
    passes.refuse_unless_finite(sums.squares)
    refuse_unless_counted(passes.source.name, sums.rows, weight, 2)
    mean = sums.columns / weight
    error = gamma(sums.longest()) * squares * float(np.linalg.norm(draws[:COUNT]))
    if options.center:
        error *= growth_about_mean(weight, mean, squares)
    about = mean if options.center else None
    images = _about(about, sums.images, sums.along)
    seen = _about(about, sums.seen, sums.scores)
    scatter = np.maximum(sums.squares - weight * mean**2, 0)
    if not (np.isfinite(images).all() and scatter.max() < float(np.finfo(np.float32).max)):
        return None
    # In float32, which tells how accurate the variances of components are beside it.
    moments = Moments(
        np.asarray(weight),  # type: ignore[arg-type]
        mean if near is None else mean + near,
        scatter.astype(np.float32),
    )
    return DenseProblem(
        exact,
        about,
        moments,
        sums.rows,
        block,
        images[:block].T,
        draws,
        np.concatenate([seen, images[block:]]),
        error,
    )


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the inner products (m, r) of rows, as sums over chunks of features."""
    chunks = range(0, left.shape[1], CHUNK)
    found: np.ndarray = sum(left[:, at : at + CHUNK] @ right[:, at : at + CHUNK].T for at in chunks)
    return found


def _about(mean: np.ndarray | None, images: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return products (b, d) with the rows about their mean, from sums about an origin and sums of scores (b,).

    The sums are changed.
    """
    if mean is not None:
        for image, score in zip(images, along, strict=True):  # large temporary arrays take longer
            image -= score * mean
    return images
