r"""T2 and the squared prediction error of rows, and the contribution of each feature.

For a row $z$ (prepared, minus the mean), components $v_i$ with variances $\lambda_i$ and scores
$t_i = \langle v_i, z\rangle$:

* $T^2 = \sum_i t_i^2/\lambda_i$, with the contributions $c_f = \left(\sum_i t_i v_{if}/\sqrt{\lambda_i}\right)^2$;
* $\mathrm{SPE} = \|e\|^2$ for $e = z - \sum_i t_iv_i$, with the contributions $c_f = e_f^2$.

These are the complete decomposition contributions of Alcala and Qin (2009): never negative, and their sum is the
statistic because components are orthonormal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from eigengame.model import Model, refuse_nonfinite
from eigengame.sources import Block


class Statistics(NamedTuple):
    """Statistics of m rows, in float64. Rows that a preparation skips have NaN.

    Attributes
    ----------
    t2, spe : arrays of shape (m,)
    t2_contributions, spe_contributions : arrays of shape (m, d)
    """

    t2: np.ndarray
    spe: np.ndarray
    t2_contributions: np.ndarray
    spe_contributions: np.ndarray


def statistics_of(model: Model, block: Block, name: str, first: int) -> Statistics:
    """Return the statistics of a block of rows.

    Parameters
    ----------
    model : Model
        With variances above 0.
    block : Block
    name : str
        Name of the data, for errors.
    first : int
        Number of the first row of the block, for errors.
    """
    values: Any = block.values
    dense = values.toarray() if issparse(values) else np.asarray(values)
    away = dense.astype(np.float64) - model.mean
    components = model.components.astype(np.float64)
    scores = away @ components.T
    residuals = away - scores @ components
    whitened = scores / np.sqrt(model.variance)
    t2, spe = np.sum(whitened**2, axis=1), np.sum(residuals**2, axis=1)
    refuse_nonfinite(name, t2 + spe, values, first)
    found = Statistics(t2, spe, (whitened @ components) ** 2, residuals**2)
    if block.weights is not None:
        skipped = np.asarray(block.weights) == 0
        for array in found:
            array[skipped] = np.nan
    return found
