r"""Products of random probes with $M$, made together with an update in Gram space by kernels.

The kernel that multiplies the rows of a batch with the players reads probes as well. With the scores
$s_i = \langle z_i, g\rangle$ of the rows $z_i$, the mean $\bar z$ of the batch and the mean $\mu$ of all rows
before it, the product of a probe $g$ with $M$ increases by

$$\sum_i c_i z_i + \beta(\bar z - \mu),\qquad \beta = \tfrac{nm}{n+m}\langle\bar z - \mu, g\rangle,$$

with centred scores $c_i$. $\bar z$ is a combination of the rows. So one more kernel reads the rows and adds all of
it, and neither the probes nor their products are read again.

**Rounding.** $\langle\bar z, g\rangle$ is the mean of the scores of a batch, and $\langle\mu, g\rangle$, which is
carried along, that of all scores before it. With the final means $\tau$ of the scores and $\mu$ of the rows, the
products are then $\sum_i(s_i - \tau)(z_i - \mu)$. So the error of a score enters once, times a row about the mean,
as `probe_errors` assumes. The difference of two means adds no error of a score.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from eigengame.game.rows import DenseRows
from eigengame.linalg.products import full_product
from eigengame.linalg.wide import ON_DEVICE, add_directions, inner_products, kernels_fit_probes
from eigengame.solver.certificates.rounding import unit_roundoff
from eigengame.solver.rows.moments import Moments
from eigengame.solver.streams.probe_sums import ProbeSums

SLACK = 2e-5
"""Allowance for the rounding of squared differences of two means, relative to the squares of both."""


class ProbesInSpan:
    """Adds a batch to the sums of probes, from inner products that its update computes.

    Parameters
    ----------
    sums : ProbeSums
        Before the batch.
    rows : DenseRows
        The batch.
    before : Moments
        Of the rows before the batch. Their mean is the last vector of the update if M is about the mean.
    overlaps : array of shape (K, K + r)
        Inner products of the vectors of the update with each other; in the last row those of the mean with the
        probes.
    center : bool
        Whether M is about the mean.

    Attributes
    ----------
    operations : WideOperations
        For the update.
    """

    def __init__(
        self,
        sums: ProbeSums,
        rows: DenseRows,
        before: Moments,
        overlaps: jax.Array,
        *,
        center: bool,
    ) -> None:
        self._sums, self._rows, self._before, self._center = sums, rows, before, center
        self._roots, k = rows.constant()[:, 0], len(overlaps)
        own = jnp.sum(jnp.square(self._roots))
        total = own + before.weight
        self._weight = jnp.where(own > 0, own, 1)
        self._share = own / jnp.where(total > 0, total, 1)
        self._square_of_mean, self._along = overlaps[-1, k - 1], overlaps[-1, k:]
        self.operations = ON_DEVICE._replace(inner_products=self._inner_products)

    def _inner_products(self, wide: list[jax.Array], rows: jax.Array) -> tuple[jax.Array, ...]:
        """Return the inner products of the update, and keep those of the probes."""
        square, across, scores = inner_products(wide, rows, self._sums.draws)
        self._square, self._with_mean, self._scores = square, across[:, -1], scores
        return square, across

    def after(self, overlaps: jax.Array) -> tuple[ProbeSums, jax.Array]:
        """Return the sums after the update, and its overlaps (K, K) with those of mean and probes."""
        sums, along = self._sums, self._along
        largest = jnp.max(jnp.diag(self._square))
        if self._center:
            along = along + self._share * (self._mean_of(self._scores) - along)
            bridge = self._before.weight * self._share * self._square_of_step()
            largest = jnp.maximum(largest, bridge)
        count = jnp.count_nonzero(self._roots).astype(sums.longest.dtype)
        unit = jnp.asarray(unit_roundoff(sums.draws.dtype), sums.unit.dtype)
        sums = ProbeSums(
            sums.draws,
            self._images(),
            jnp.maximum(sums.largest, largest),
            jnp.maximum(sums.unit, unit),
            jnp.maximum(sums.longest, count),
            sums.chain + 1,
        )
        return sums, with_probes(overlaps, along)

    def _images(self) -> jax.Array:
        """Return the products of the probes with M (r, d) after the batch."""
        images, scores, roots = self._sums.images, self._scores, self._roots
        if not self._center:
            return add_directions(images, scores, self._rows.values)
        mean = self._mean_of(scores)
        centred = scores - roots[:, None] * mean[None, :]
        bridge = self._before.weight * self._share * (mean - self._along)
        # Centred scores sum to zero up to rounding, which is taken out times the mean of the batch.
        of_mean = (bridge - full_product(roots, centred)) / self._weight
        centred = centred + roots[:, None] * of_mean[None, :]
        return add_directions(images, centred, self._rows.values, self._before.mean, -bridge)

    def _mean_of(self, products: jax.Array) -> jax.Array:
        """Return the products of the mean of the batch from those of its rows, (m, ...)."""
        return full_product(self._roots, products) / self._weight

    def _square_of_step(self) -> jax.Array:
        """Return the squared difference of the means of the batch and of the rows before it, rounded upwards."""
        own = self._mean_of(self._mean_of(self._square))
        both = own + self._square_of_mean
        return jnp.maximum(both - 2 * self._mean_of(self._with_mean), 0) + SLACK * both


def fits(wide: list[jax.Array], rows: DenseRows, probes: ProbeSums, overlaps: jax.Array) -> bool:
    """Return whether the kernels of an update can multiply its probes; static.

    Overlaps in a checkpoint of an earlier version have no columns for probes.
    """
    if overlaps.shape[1] != len(overlaps) + len(probes.draws):
        return False
    return kernels_fit_probes(wide, rows.values, probes.draws)


def with_probes(overlaps: jax.Array, along: jax.Array) -> jax.Array:
    """Return overlaps (K, K) with columns for the products of the mean, the last vector, with probes (r,)."""
    further = jnp.zeros((len(overlaps), len(along)), overlaps.dtype).at[-1].set(along)
    return jnp.concatenate([overlaps, further], axis=1)
