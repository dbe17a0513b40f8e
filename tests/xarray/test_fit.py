"""Fits of labelled fields: results equal an SVD of the weighted cells, and keep their labels."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError
from tests.xarray.fields import DIMS, LATITUDES, coslat, make_field, truth, xr

import eigengame.xarray as fields  # isort: skip

K = 4


def check_components(model, field, weights):
    used, components, variances, shares = truth(field.transpose(*DIMS).values, weights, K)
    found = model.components().transpose("mode", "lat", "lon").values.reshape(K, -1)
    assert np.isnan(found[:, ~used]).all()
    signs = np.sign((found[:, used] * components).sum(axis=1))[:, None]
    np.testing.assert_allclose(found[:, used] * signs, components, atol=1e-10)
    np.testing.assert_allclose(model.explained_variance(), variances, rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio(), shares, rtol=1e-10)


@pytest.mark.parametrize("weights", [None, "coslat"])
@pytest.mark.parametrize("order", [DIMS, ("lon", "time", "lat")])
def test_components_equal_an_svd_of_the_weighted_cells_that_have_values(weights, order):
    field = make_field()
    model = fields.fit(field.transpose(*order), K, weights=weights, random_state=0)
    check_components(model, field, coslat() if weights else np.ones((9, 12)))


def test_results_have_the_labels_of_the_field_and_the_certificate():
    field = make_field().assign_coords(area=("lat", np.cos(np.deg2rad(LATITUDES))))
    model = fields.fit(field, K, random_state=0)
    components, scores = model.components(), model.scores()
    assert components.dims == ("mode", "lat", "lon")
    assert scores.dims == ("time", "mode")
    xr.testing.assert_equal(
        components.lat, field.lat.drop_vars("area").assign_coords(area=field.area)
    )
    xr.testing.assert_equal(scores.time, field.time)
    np.testing.assert_array_equal(components["mode"], [1, 2, 3, 4])
    np.testing.assert_array_equal(components.angle_bound, model.pca.certificate_.angle)
    assert components.attrs["certificate"] == "certified"
    np.testing.assert_array_equal(components.attrs["certificate_angles"], components.angle_bound)


def test_weighted_and_unweighted_patterns_and_reconstructions_follow_their_formulas():
    field = make_field()
    model = fields.fit(field, None, weights="coslat", random_state=0, tol=None)
    weights = xr.DataArray(coslat(), dims=("lat", "lon"))
    weighted, plain = model.components(), model.components(weighted=False)
    np.testing.assert_allclose(plain * weights, weighted, atol=1e-12)
    anomaly = (model.scores() * plain).sum("mode").where(field.notnull())
    # All components: the whole field.
    np.testing.assert_allclose(anomaly + field.mean("time"), field, atol=1e-9)
    xr.testing.assert_allclose(
        model.reconstruct(model.scores()).transpose(*DIMS).rename("sst"), field, atol=1e-9
    )
    np.testing.assert_allclose(model.mean(), field.mean("time"), atol=1e-10)
    deviations = model.scores(normalised=True).sel(mode=slice(1, 6)).std("time", ddof=1)
    np.testing.assert_allclose(deviations, 1, rtol=1e-6)


def test_reconstruction_of_some_modes_and_samples_uses_only_these():
    field = make_field()
    model = fields.fit(field, K, random_state=0)
    some = model.scores().isel(time=slice(5, 8)).sel(mode=[1, 3])
    found = model.reconstruct(some)
    expected = (some * model.components()).sum("mode") + field.mean("time")
    np.testing.assert_allclose(found, expected.where(field[0].notnull()), atol=1e-9)
    with pytest.raises(SourceError, match="normalised"):
        model.reconstruct(model.scores(normalised=True))


def test_new_samples_are_projected_and_another_grid_is_refused():
    field = make_field()
    model = fields.fit(field, K, weights="coslat", random_state=0)
    part = field.isel(time=slice(10, 20))
    xr.testing.assert_allclose(model.transform(part), model.scores().isel(time=slice(10, 20)))
    turned = part.transpose("lon", "lat", "time")
    xr.testing.assert_allclose(model.transform(turned), model.transform(part))
    with pytest.raises(SourceError, match="other coordinates along 'lat'"):
        model.transform(part.isel(lat=slice(None, None, -1)))
    with pytest.raises(SourceError, match=r"\(lat: 9, lon: 4\) instead of \(lat: 9, lon: 12\)"):
        model.transform(part.isel(lon=slice(0, 4)))


def test_several_sample_dimensions_are_stacked_in_the_scores():
    field = make_field()
    members = xr.DataArray(
        field.values.reshape(5, 12, 9, 12),
        dims=("year", "month", "lat", "lon"),
        coords={"lat": field.lat, "lon": field.lon, "year": np.arange(2000, 2005)},
    )
    model = fields.fit(members, K, dim=("year", "month"), random_state=0)
    assert dict(model.scores().sizes) == {"year": 5, "month": 12, "mode": K}
    flat = fields.fit(field, K, random_state=0)
    np.testing.assert_allclose(
        model.scores().values.reshape(60, K), flat.scores().values, atol=1e-9
    )
    # Features may come first: rows are read in the order of the sample dimensions.
    mixed = members.transpose("lat", "month", "lon", "year")
    other = fields.fit(mixed, K, dim=("year", "month"), random_state=0)
    np.testing.assert_allclose(other.scores(), model.scores(), atol=1e-9)


def test_variables_of_a_dataset_are_fitted_together():
    first, second = make_field(0), make_field(1, mean=-3).isel(lat=slice(0, 4))
    data = xr.Dataset({"a": first, "b": 100 * second.rename(lat="y")})
    model = fields.fit(data, K, standardise=True, random_state=0)
    flat = np.hstack([data.a.values.reshape(60, -1), data.b.values.reshape(60, -1)])
    used = ~np.isnan(flat[0])
    rows = (flat - flat.mean(axis=0)) / flat.std(axis=0)
    expected = np.linalg.svd(rows[:, used], full_matrices=False)[2][:K]
    found = model.components()
    joined = np.hstack([found.a.values.reshape(K, -1), found.b.values.reshape(K, -1)])[:, used]
    np.testing.assert_allclose(np.abs((joined * expected).sum(axis=1)), 1, rtol=1e-10)
    xr.testing.assert_allclose(model.transform(data[["b", "a"]]), model.scores())
    back = fields.fit(data, None, standardise=True, random_state=0, tol=None)
    xr.testing.assert_allclose(back.reconstruct(back.scores()), data, atol=1e-8)


def test_weights_may_be_any_array_of_the_cells_and_zero_leaves_a_cell_out():
    field = make_field(land=0)
    weights = xr.DataArray(
        np.random.default_rng(3).random((12, 9)) + 0.5,
        dims=("lon", "lat"),
        coords={"lat": field.lat, "lon": field.lon},
    )
    weights[2, 3] = 0
    model = fields.fit(field, K, weights=weights, random_state=0)
    expected = weights.transpose("lat", "lon").values
    check_components(model, field, np.where(expected > 0, expected, np.nan))
    assert np.isnan(model.components().values[:, 3, 2]).all()
    with pytest.raises(SourceError, match="other coordinates"):
        fields.fit(field, K, weights=weights.isel(lat=slice(None, None, -1)))
    with pytest.raises(SourceError, match="not negative"):
        fields.fit(field, K, weights=-weights)
    with pytest.raises(SourceError, match="no latitudes"):
        fields.fit(field.rename(lat="y"), K, weights="coslat")


def test_values_missing_in_some_samples_are_refused_or_filled():
    field = make_field()
    y, x = np.argwhere(field[0].notnull().values)[3]
    later, earlier = field.copy(deep=True), field.copy(deep=True)
    later[7, y, x] = np.nan
    earlier[0, y, x] = np.nan
    place = rf"sst at lat={LATITUDES[y]}, lon={30.0 * x}"
    with pytest.raises(SourceError, match=rf"row 7, column \d+ \({place}\) is nan.*missing='mean'"):
        fields.fit(later, K)
    with pytest.raises(SourceError, match=rf"row 1, column \d+ \({place}\).*missing='mean'"):
        fields.fit(earlier, K)
    filled = fields.fit(earlier, K, missing="mean", random_state=0)
    check_components(filled, earlier.fillna(earlier.mean("time")), np.ones((9, 12)))
    skipped = fields.fit(earlier, K, missing="skip", random_state=0)
    check_components(skipped, earlier.isel(time=slice(1, None)), np.ones((9, 12)))
    assert skipped.scores().isel(time=0).isnull().all()
    assert skipped.scores().isel(time=slice(1, None)).notnull().all()


def test_fill_values_and_packing_in_attributes_are_decoded():
    field = make_field().fillna(-999)
    field.attrs["missing_value"] = -999.0
    check_components(fields.fit(field, K, random_state=0), make_field(), np.ones((9, 12)))
    packed = make_field(land=0).round(1)
    stored = (packed * 10).astype("int32").assign_attrs(scale_factor=0.1)
    check_components(fields.fit(stored, K, random_state=0), packed, np.ones((9, 12)))


def test_samples_may_have_weights():
    field = make_field()
    weights = xr.DataArray(np.arange(60) % 3, dims="time", coords={"time": field.time})
    model = fields.fit(field, K, sample_weight=weights, random_state=0)
    check_components(model, field.isel(time=np.repeat(np.arange(60), weights)), np.ones((9, 12)))
    with pytest.raises(SourceError, match="other coordinates along 'time'"):
        fields.fit(field, K, sample_weight=weights.isel(time=slice(None, None, -1)))


def test_a_model_file_keeps_the_labels(tmp_path):
    field = make_field()
    model = fields.fit(field, K, weights="coslat", random_state=0)
    again = fields.load(model.save(tmp_path / "m.safetensors"))
    xr.testing.assert_allclose(again.components(), model.components())
    xr.testing.assert_allclose(again.transform(field), model.scores())
    with pytest.raises(SourceError, match="has no data"):
        again.scores()
    plain = EigenGamePCA(2).fit(np.random.default_rng(0).random((20, 4)))
    with pytest.raises(SourceError, match="not a model of a field"):
        fields.load(plain.save(tmp_path / "p.safetensors"))


def test_the_estimator_takes_a_field_and_leaves_out_land():
    field = make_field()
    pca = EigenGamePCA(K, random_state=0).fit(field)
    model = fields.fit(field, K, random_state=0)
    np.testing.assert_allclose(pca.components_, model.pca.components_, atol=1e-12)
    np.testing.assert_allclose(pca.transform(field), model.scores(), atol=1e-9)
    with pytest.raises(SourceError, match="other coordinates along 'lat'"):
        pca.transform(field.isel(lat=slice(None, None, -1)))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda field: field, {"dim": "level"}, "give one or several of the dimensions"),
        (lambda field: field, {"dim": DIMS}, "at least one must be left"),
        (lambda field: field.rename(time="t").drop_vars("t"), {"dim": None}, "by dim="),
        (lambda field: field.values, {}, "has no dimensions"),
        (lambda field: field[:, 0].T, {"dim": None}, "Give the dimension of the samples"),
        (lambda field: field.rename(lat="mode"), {}, "rename it"),
        (lambda field: field.astype(str), {}, "numbers are needed"),
        (lambda field: field.where(False), {}, "no value in the first row"),
        (lambda field: field.where(False), {"missing": "mean"}, "no value in any row"),
    ],
)  # fmt: skip
def test_bad_fields_are_refused_with_a_remedy(change, options, message):
    with pytest.raises(SourceError, match=message):
        fields.fit(change(make_field()), K, **options)


def test_whitening_is_an_option_of_the_scores():
    with pytest.raises(ValueError, match=r"scores\(normalised=True\)"):
        fields.fit(make_field(), K, whiten=True)
