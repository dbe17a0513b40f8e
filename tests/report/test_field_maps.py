"""Maps of fields: land is blank, and north is up whatever the order of the file."""

import base64

import numpy as np
import pytest

import eigengame.xarray as fields
from eigengame.report import write_report
from tests.report.browser import find, hover, needs_browser, open_page
from tests.report.models import read_page
from tests.xarray.fields import make_field


def drawn(page):
    found = page["pictures"]
    codes = np.frombuffer(base64.b64decode(found["images"]["codes"]), np.int8)
    return codes.reshape(-1, found["height"], found["width"]), found


@pytest.mark.parametrize("south_first", [False, True])
@pytest.mark.parametrize("longitude_first", [False, True])
def test_land_is_blank_and_north_is_up(tmp_path, south_first, longitude_first):
    field = make_field()
    given = field.isel(lat=slice(None, None, -1)) if south_first else field
    given = given.transpose("time", "lon", "lat") if longitude_first else given
    model = fields.fit(given, 2, random_state=0)
    # Coordinates are those of the model: no data is needed.
    codes, found = drawn(read_page(write_report(model.pca, tmp_path / "r.html")))
    expected = model.components().transpose("mode", "lat", "lon").sel(lat=field.lat)
    land = field[0].isnull().values
    assert land.any()
    assert (codes[:, land] == -128).all()
    values = codes / 127 * np.array(found["images"]["sizes"])[:, None, None]
    np.testing.assert_allclose(values[:, ~land], expected.values[:, ~land], atol=0.01)
    assert found["map"]["latitudes"] == field.lat.values.tolist()


def test_samples_have_their_times_and_loadings_their_places(tmp_path):
    field = make_field()
    model = fields.fit(field, 2, random_state=0)
    page = read_page(write_report(model.pca, tmp_path / "r.html", data=field))
    found, rows = page["scores"]["time"], page["scores"]["rows"]
    days = np.array(found["values"], "datetime64[ms]").astype("datetime64[ns]")
    np.testing.assert_array_equal(days, field.time.values[rows])
    assert (found["name"], found["dates"]) == ("time", True)
    y, x = np.argwhere(field[0].notnull().values)[1]
    assert (
        page["table"]["names"][1] == f"sst at lat={field.lat.values[y]}, lon={field.lon.values[x]}"
    )


def test_a_large_masked_map_is_averaged_over_its_cells_with_data(tmp_path):
    from tests.xarray.fields import xr

    rng = np.random.default_rng(0)
    values = rng.standard_normal((30, 60, 260))
    values[:, :, ::2] = np.nan  # half of each square of pixels
    values[:, :, 250:] = np.nan
    field = xr.DataArray(
        values,
        dims=("time", "lat", "lon"),
        coords={"lat": np.linspace(59, 0, 60), "lon": np.arange(260.0)},
    )
    model = fields.fit(field, 1, random_state=0, tol=None)
    codes, found = drawn(read_page(write_report(model.pca, tmp_path / "r.html")))
    factor = found["factor"]
    assert factor > 1
    full = model.components().values[0]
    first = np.nanmean(full[:factor, :factor])
    np.testing.assert_allclose(codes[0, 0, 0] / 127 * found["images"]["sizes"][0], first, atol=0.01)
    assert (codes[0, :, -2:] == -128).all()


@needs_browser
def test_land_is_transparent_in_the_browser_and_has_no_data_in_the_tooltip(browser, tmp_path):
    field = make_field()
    model = fields.fit(field, 2, random_state=0)
    page = open_page(browser, write_report(model.pca, tmp_path / "r.html", data=field))
    land = field[0].isnull().values
    for canvas in ("canvas.picture", ".walk canvas.picture", ".thumb canvas"):
        alpha = page.execute_script(
            f"const c = document.querySelector('{canvas}');"
            "const image = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
            "return Array.from(image.data).filter((_, i) => i % 4 === 3);"
        )
        np.testing.assert_array_equal(np.reshape(alpha, land.shape) == 0, land)
    canvas = find(page, "canvas.picture")
    height, width = land.shape
    for wanted in (True, False):
        row, column = np.argwhere(land == wanted)[0]
        across = ((column + 0.5) / width - 0.5) * canvas.size["width"]
        down = ((row + 0.5) / height - 0.5) * canvas.size["height"]
        hover(page, canvas, int(across), int(down))
        assert ("no data" in find(page, "#tip").text) == wanted
