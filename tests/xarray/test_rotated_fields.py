"""Rotated components of a field."""

import numpy as np
import pytest

from tests.xarray.fields import DIMS, make_field, xr

import eigengame.xarray as fields  # isort: skip


def test_scores_are_uncorrelated_and_the_product_with_loadings_is_kept():
    field = make_field()
    model = fields.fit(field, 5, weights="coslat", random_state=0)
    rotated = model.rotate(3)
    assert rotated.rotation.converged
    scores = rotated.scores()
    np.testing.assert_allclose(np.cov(scores.values.T), np.eye(3), atol=1e-9)
    anomaly = (scores * rotated.loadings(weighted=False)).sum("mode").where(field.notnull())
    kept = model.reconstruct(model.scores().sel(mode=[1, 2, 3])) - field.mean("time")
    xr.testing.assert_allclose(anomaly.transpose(*DIMS), kept.transpose(*DIMS), atol=1e-9)
    total = model.explained_variance().sel(mode=[1, 2, 3]).sum()
    np.testing.assert_allclose(rotated.explained_variance().sum(), total)
    xr.testing.assert_allclose(rotated.transform(field.isel(time=[4])), scores.isel(time=[4]))
    assert rotated.loadings().dims == ("mode", "lat", "lon")


def test_the_number_of_rotated_components_is_checked():
    model = fields.fit(make_field(), 3, random_state=0)
    for n in (0, 4):
        with pytest.raises(ValueError, match="from 1 to 3"):
            model.rotate(n)
