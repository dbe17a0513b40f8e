r"""Shrinkage of the scores of new rows, from the spiked covariance model.

With many features and few rows, components fit the noise of the training rows. Scores of other rows on them are
therefore smaller than those of training rows from the same population. In the spiked model the covariance has $k$
eigenvalues $\ell_i \sigma^2$ above a noise variance $\sigma^2$ in all other directions. For $d$ features and $m$
degrees of freedom, with $d, m \to \infty$ and $\gamma = d / m$:

* a sample eigenvalue converges to $\lambda_i = \sigma^2 \ell_i (1 + \gamma / (\ell_i - 1))$ if
  $\ell_i > 1 + \sqrt\gamma$, and to the edge $\sigma^2 (1 + \sqrt\gamma)^2$ otherwise (Baik and Silverstein, 2006);
* the ratio of the standard deviations of scores of new and of training rows converges to
  $\rho_i = (\ell_i - 1) / (\ell_i - 1 + \gamma)$ (Lee, Zou and Wright, 2010).
"""

from __future__ import annotations

import numpy as np

ROUNDS = 100
"""Largest number of rounds of the fixed point for the noise variance, which takes about ten."""


def shrinkage_factors(
    variances: np.ndarray, total: float, features: int, freedom: int
) -> tuple[np.ndarray, float]:
    r"""Return the factor $\rho_i$ of each component, and the noise variance $\sigma^2$.

    The noise variance and the population eigenvalues determine each other: $\sigma^2 (d - k)$ is the total variance
    minus $\sum_i \ell_i \sigma^2$, and $\ell_i$ is the larger root of
    $\ell^2 - (\lambda_i / \sigma^2 + 1 - \gamma) \ell + \lambda_i / \sigma^2 = 0$.

    Parameters
    ----------
    variances : array of shape (k,)
        Sample eigenvalues $\lambda_i$.
    total : float
        Sum of all sample eigenvalues.
    features : int
        Number $d$ of features with a variance above 0.
    freedom : int
        Degrees of freedom $m$: the number of rows, minus 1 if the mean was subtracted.

    Returns
    -------
    factors : array of shape (k,)
        NaN for components at or below the edge, which the noise alone could explain; and for all components if
        they are more than half of all directions with variance, which leave too few to estimate the noise.
    noise : float
    """
    values, ratio = np.asarray(variances, np.float64), features / freedom
    unknown = np.full(len(values), np.nan), np.nan
    if 2 * len(values) > min(features, freedom):
        return unknown
    noise = (total - values.sum()) / (features - len(values))
    if not noise > 0:
        return unknown
    for _ in range(ROUNDS):
        spikes = _population(values, noise, ratio)
        above = np.isfinite(spikes)
        rest = total - np.sum(spikes[above]) * noise
        before, noise = noise, rest / (features - int(above.sum()))
        if abs(noise - before) <= 1e-12 * noise:
            break
    spikes = _population(values, noise, ratio)
    return (spikes - 1) / (spikes - 1 + ratio), float(noise)


def _population(values: np.ndarray, noise: float, ratio: float) -> np.ndarray:
    """Return the population eigenvalues in units of the noise; NaN at or below the edge."""
    scaled = values / noise
    middle = scaled + 1 - ratio
    with np.errstate(invalid="ignore"):
        spikes = (middle + np.sqrt(middle**2 - 4 * scaled)) / 2
    return np.where(scaled > (1 + np.sqrt(ratio)) ** 2, spikes, np.nan)
