"""netCDF files and xarray objects as sources of rows."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, as_source, prepare
from eigengame.sources.fields import FieldSource
from eigengame.sources.shuffle import shuffled
from tests.sources.same_rows import assert_read_on_a_thread, assert_same_rows
from tests.xarray.fields import make_field, xr

ENGINES = [("h5netcdf", "NETCDF4"), ("scipy", "NETCDF3_64BIT")]


@pytest.fixture(params=ENGINES, ids=["HDF5", "classic"])
def written(request, tmp_path):
    """Return a file with a packed field that has land, and the field as it is read."""
    engine, kind = request.param
    if engine == "h5netcdf":
        pytest.importorskip("h5netcdf", reason="netCDF 4 needs h5netcdf")
    path = tmp_path / "sst.nc"
    field = make_field(dtype="float32")
    encoding = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -32768}
    if engine == "h5netcdf":
        encoding |= {"chunksizes": (16, 9, 12), "zlib": True}
    field.to_netcdf(path, engine=engine, format=kind, encoding={"sst": encoding})
    with xr.open_dataset(path, engine=engine) as dataset:
        return path, dataset.sst.load()


def test_a_file_has_the_decoded_rows_of_its_variable(written):
    path, field = written
    source = as_source(path)
    truth = field.values.reshape(60, -1)
    assert np.isnan(truth).any()
    assert_same_rows(source, truth)
    assert_read_on_a_thread(source, truth)
    assert source.image_shape == (9, 12, 1)
    np.testing.assert_array_equal(source.coordinates["latitude"], field.lat)
    assert source.row_ids()[:2] == ["2000-01-01", "2000-02-01"]
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(3, 5), truth[3:5])


def test_a_file_is_fitted_by_its_path_with_checkpoints(written, tmp_path):
    path, field = written
    pca = EigenGamePCA(3, random_state=0).fit(path, checkpoint=tmp_path / "run")
    used = field[0].notnull().values.ravel()
    rows = field.values.reshape(60, -1)[:, used].astype(np.float64)
    expected = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:3]
    assert pca.n_features_in_ == used.sum()
    np.testing.assert_allclose(np.abs((pca.components_ * expected).sum(axis=1)), 1, rtol=1e-9)
    again = EigenGamePCA(3, random_state=0).fit(path, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.components_, pca.components_)


def test_several_files_are_concatenated_if_they_have_one_grid(tmp_path):
    field = make_field()
    for i, (begin, end) in enumerate([(0, 25), (25, 60)]):
        field[begin:end].to_netcdf(tmp_path / f"{i}.nc", engine="scipy")
    both = as_source([tmp_path / "0.nc", tmp_path / "1.nc"])
    assert_same_rows(both, field.values.reshape(60, -1))
    pca = EigenGamePCA(2, random_state=0).fit(prepare(both, feature_weights="coslat"))
    whole = EigenGamePCA(2, random_state=0).fit(prepare(field, feature_weights="coslat"))
    np.testing.assert_allclose(pca.components_, whole.components_, atol=1e-10)
    field[::-1, ::-1].to_netcdf(tmp_path / "turned.nc", engine="scipy")
    with pytest.raises(SourceError, match="other coordinates along 'lat'"):
        as_source([tmp_path / "0.nc", tmp_path / "turned.nc"])


def test_shuffled_fields_keep_their_grid():
    field = make_field()
    source = shuffled(as_source(field), 3, block=8)
    pca = EigenGamePCA(2, random_state=0).fit(prepare(source, feature_weights="coslat"))
    plain = EigenGamePCA(2, random_state=0).fit(prepare(field, feature_weights="coslat"))
    np.testing.assert_allclose(pca.components_, plain.components_, atol=1e-10)


def test_variables_and_groups_are_chosen_by_name(tmp_path):
    pytest.importorskip("h5netcdf", reason="netCDF 4 needs h5netcdf")
    path, field = tmp_path / "two.nc", make_field()
    bounds = xr.DataArray(np.zeros((9, 2)), dims=("lat", "edge"))
    data = xr.Dataset({"sst": field, "ice": 2 * field, "edges": bounds})
    data.lat.attrs["bounds"] = "edges"
    data.to_netcdf(path, engine="h5netcdf")
    data.to_netcdf(path, engine="h5netcdf", mode="a", group="deep/water")
    with pytest.raises(SourceError, match=r"2 arrays with rows.*variable='sst' \(--variable sst\)"):
        as_source(path)
    with pytest.raises(SourceError, match="has no 'wind'"):
        as_source(path, variable="wind")
    rows = field.values.reshape(60, -1)
    np.testing.assert_array_equal(as_source(path, variable="sst").read(0, 60), rows)
    np.testing.assert_array_equal(as_source(path, variable="deep/water/ice").read(0, 60), 2 * rows)
    both = as_source(path, variable=["sst", "ice"])
    np.testing.assert_array_equal(both.read(0, 60), np.hstack([rows, 2 * rows]))
    across = as_source(path, variable="sst", dim="lat")
    np.testing.assert_array_equal(
        across.read(0, 9), field.transpose("lat", "time", "lon").values.reshape(9, -1)
    )


def test_damaged_and_remote_files_are_refused(tmp_path):
    path = tmp_path / "bad.nc"
    path.write_bytes(b"CDF\x01 this is no netCDF file")
    with pytest.raises(SourceError, match="cannot be opened as netCDF"):
        as_source(path)
    with pytest.raises(SourceError, match="local files"):
        as_source("https://example.org/sst.nc")


def test_a_file_that_ends_early_raises_an_error_of_the_source(tmp_path):
    pytest.importorskip("h5netcdf", reason="netCDF 4 needs h5netcdf")
    path = tmp_path / "short.nc"
    make_field().to_netcdf(path, engine="h5netcdf")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(SourceError, match=r"short\.nc"):
        list(as_source(path).blocks(0, 60))


def test_the_error_without_xarray_names_the_extra(tmp_path):
    (tmp_path / "x.nc").write_bytes(b"CDF")
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "from eigengame import as_source\n"
        f"as_source({str(tmp_path / 'x.nc')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "eigengame[xarray]"' in done.stderr


def test_weights_of_features_are_also_for_arrays():
    rows = np.random.default_rng(0).standard_normal((30, 4))
    weights = np.array([1.0, 2, 3, 4])
    found = next(prepare(rows, feature_weights=weights).blocks(0, 30)).values
    np.testing.assert_array_equal(found, rows * weights)
    for bad, message in (
        (weights[:3], "one for each of the 4 features"),
        (-weights, "positive"),
        ("coslat", "no coordinates"),
    ):
        with pytest.raises(SourceError, match=message):
            prepare(rows, feature_weights=bad)
    with pytest.raises(SourceError, match="prepare twice"):
        prepare(rows, feature_weights=weights, columns=[0, 1])


def test_the_rows_of_a_table_are_its_first_dimension_unless_that_is_ambiguous():
    values = np.random.default_rng(0).random((7, 4))
    plain = as_source(xr.DataArray(values, dims=("a", "b")))
    np.testing.assert_array_equal(plain.read(0, 7), values)
    np.testing.assert_array_equal(
        as_source(xr.DataArray(values, dims=("time", "b"))).read(0, 7), values
    )
    with pytest.raises(SourceError, match="dim="):
        as_source(xr.DataArray(values, dims=("station", "time")))
    turned = as_source(xr.DataArray(values, dims=("station", "time")), dim="time")
    np.testing.assert_array_equal(turned.read(0, 4), values.T)


def test_several_sample_dimensions_are_read_from_any_row():
    values = np.random.default_rng(0).random((3, 4, 5, 2))
    field = xr.DataArray(values, dims=("a", "b", "y", "c"))
    source = FieldSource(field.to_dataset(name="f"), ("a", "b", "c"), "f")
    truth = values.transpose(0, 1, 3, 2).reshape(24, 5)
    for begin in range(24):
        for end in range(begin + 1, 25):
            np.testing.assert_array_equal(source.read(begin, end), truth[begin:end])
