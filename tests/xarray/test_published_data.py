"""Example data of `eofs` and of Iris: equal to the solver of `eofs`, land included."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.xarray.fields import xr

import eigengame.xarray as fields  # isort: skip

K = 5


def example(package, *path):
    """Return a file of an installed package, or skip the test."""
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed: pip install {package.replace('_', '-')}")
    return Path(found.submodule_search_locations[0]).joinpath(*path)


@pytest.mark.filterwarnings("ignore:Ambiguous reference date")
@pytest.mark.parametrize(
    ("file", "name", "land"), [("sst_ndjfm_anom.nc", "sst", 90), ("hgt_djf.nc", "z", 0)]
)
@pytest.mark.parametrize("weights", [None, "coslat"])
def test_results_equal_those_of_eofs_on_its_example_data(file, name, land, weights):
    path = example("eofs", "examples", "example_data", file)
    eofs = pytest.importorskip("eofs.xarray")
    field = xr.open_dataset(path)[name].astype("float64")
    angles = np.deg2rad(field.latitude.astype("float64"))
    given = None if weights is None else np.sqrt(np.cos(angles)).values[:, None]
    solver = eofs.Eof(field, weights=given)
    model = fields.fit(path, K, weights=weights, random_state=0)
    expected = solver.eofs(neofs=K).values.reshape(K, -1)
    found = model.components().values.reshape(K, -1)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert int(np.isnan(found[0]).sum()) == land
    signs = np.sign(np.nansum(found * expected, axis=1))
    np.testing.assert_allclose(found * signs[:, None], expected, atol=1e-5)
    np.testing.assert_allclose(model.explained_variance(), solver.eigenvalues(K), rtol=1e-5)
    np.testing.assert_allclose(
        model.explained_variance_ratio(), solver.varianceFraction(K), rtol=1e-5
    )
    scores = solver.pcs(npcs=K).values
    np.testing.assert_allclose(model.scores() * signs, scores, atol=1e-5 * np.abs(scores).max())


def test_land_of_satellite_temperatures_is_left_out():
    path = example("iris_sample_data", "sample_data", "ostia_monthly.nc")
    # The file has float32. In a fit in float32 the weighted values are rounded before they are certified.
    options = {"weights": "coslat", "random_state": 0, "dtype": "float64"}
    model = fields.fit(path, K, variable="surface_temperature", **options)
    field = xr.open_dataset(path).surface_temperature.astype("float64")
    sea = field[0].notnull()
    assert 0 < int(sea.sum()) < sea.size
    assert (model.components()[0].notnull() == sea).all()
    weights = np.sqrt(np.cos(np.deg2rad(field.latitude.astype("float64"))))
    rows = (
        (field * weights)
        .transpose(*field.dims)
        .values.reshape(len(field), -1)[:, sea.values.ravel()]
    )
    rows = rows - rows.mean(axis=0)
    expected = np.linalg.svd(rows, full_matrices=False)[2][:K]
    found = model.components().values.reshape(K, -1)[:, sea.values.ravel()]
    inner = np.abs((found * expected).sum(axis=1))
    across = np.linalg.norm(
        found - np.sign((found * expected).sum(axis=1))[:, None] * inner[:, None] * expected, axis=1
    )
    assert (np.arcsin(np.minimum(across, 1)) <= model.components().angle_bound).all()
    assert (model.components().angle_bound < 0.05).all()
