"""Tolerances that depend on the dtype."""

import numpy as np


def tolerance(dtype, factor=1.0):
    """Relative tolerance for a few hundred roundings of this dtype, times `factor`."""
    return 300 * float(np.finfo(dtype).eps) * factor


def assert_close(actual, desired, factor=1.0):
    """Compare to within the tolerance of the less precise dtype, relative to the largest entry."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    coarse = max((actual.dtype, desired.dtype), key=lambda t: np.finfo(t).eps)
    scale = max(np.abs(desired).max(initial=0.0), np.finfo(coarse).tiny)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=scale * tolerance(coarse, factor))
