"""Small fields with a known decomposition."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="fields need xarray: pip install eigengame[xarray]")

N, LATITUDES, LONGITUDES = 60, np.linspace(80.0, -80, 9), np.arange(0.0, 360, 30)
DIMS = ("time", "lat", "lon")


def make_field(seed=0, *, land=0.3, mean=10.0, dtype="float64"):
    """Return a field of six patterns and noise; a share of its cells is land, which is NaN in all samples."""
    rng = np.random.default_rng(seed)
    shape = (len(LATITUDES), len(LONGITUDES))
    patterns = rng.standard_normal((6, *shape))
    strengths = rng.standard_normal((N, 6)) * np.array([9, 7, 5, 4, 3, 2])
    values = np.einsum("nk,kyx->nyx", strengths, patterns) + mean
    values += 0.1 * rng.standard_normal(values.shape)
    values[:, rng.random(shape) < land] = np.nan
    return xr.DataArray(
        values.astype(dtype),
        dims=DIMS,
        coords={
            "time": np.arange("2000-01", "2005-01", dtype="datetime64[M]").astype("datetime64[ns]"),
            "lat": LATITUDES,
            "lon": LONGITUDES,
        },
        name="sst",
    )


def coslat():
    """Return the weights by latitude of each cell, shape (9, 12)."""
    return np.sqrt(np.cos(np.deg2rad(LATITUDES)))[:, None] * np.ones(len(LONGITUDES))


def truth(values, weights, k):
    """Return the used cells, components, variances and shares of samples (n, y, x), by an SVD."""
    flat = (np.asarray(values) * weights).reshape(len(values), -1)
    used = ~np.isnan(flat[0])
    centred = flat[:, used] - flat[:, used].mean(axis=0)
    _, sizes, components = np.linalg.svd(centred, full_matrices=False)
    variances = sizes**2 / (len(flat) - 1)
    return used, components[:k], variances[:k], variances[:k] / variances.sum()


def complex_angles(found, expected):
    """Return the angle between complex vectors, rows of (k, d), whatever their phases; exact for small ones."""
    inner = (expected.conj() * found).sum(axis=1, keepdims=True)
    return np.arcsin(np.minimum(np.linalg.norm(found - inner * expected, axis=1), 1))
