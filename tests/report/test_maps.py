"""Maps are drawn with north up and east on the right."""

import base64

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.report import ReportError, write_report
from tests.report.models import make_model, read_page

NORTH_UP, WEST_FIRST = np.linspace(75, -75, 4), np.array([-150.0, -90, -30, 30, 90, 150])


@pytest.fixture
def target(tmp_path):
    return tmp_path / "report.html"


def drawn_map(target, **options):
    """Return the first component as it is drawn, and the coordinates of its pixels."""
    found = read_page(write_report(options.pop("model"), target, **options))["pictures"]
    codes = np.frombuffer(base64.b64decode(found["images"]["codes"]), np.int8)
    image = (
        codes.reshape(-1, found["height"], found["width"])[0] / 127 * found["images"]["sizes"][0]
    )
    return image, found["map"]


@pytest.mark.parametrize("south_first", [False, True])
@pytest.mark.parametrize("east_first", [False, True])
@pytest.mark.parametrize("longitude_first", [False, True])
def test_every_order_of_the_axes_gives_the_same_map(
    target, south_first, east_first, longitude_first
):
    model = make_model(k=1, d=24)
    expected = model.components_[0].reshape(4, 6).copy()
    stored, latitudes, longitudes = expected, NORTH_UP, WEST_FIRST
    if south_first:
        stored, latitudes = stored[::-1], latitudes[::-1]
    if east_first:
        stored, longitudes = stored[:, ::-1], longitudes[::-1]
    coordinates = {"latitude": latitudes, "longitude": longitudes}
    if longitude_first:
        stored = stored.T
        coordinates = {"longitude": longitudes, "latitude": latitudes}
    model.components_ = stored.reshape(1, -1)
    image, shown = drawn_map(target, model=model, coordinates=coordinates)
    np.testing.assert_allclose(image, expected, atol=0.01)
    assert shown == {"latitudes": NORTH_UP.tolist(), "longitudes": WEST_FIRST.tolist()}


def test_longitudes_may_cross_the_end_of_their_range(target):
    model = make_model(k=1, d=24)
    crossing = np.array([60.0, 120, 180, -120, -60, 0])
    image, shown = drawn_map(target, model=model, coordinates=(NORTH_UP, crossing))
    np.testing.assert_allclose(image, model.components_[0].reshape(4, 6), atol=0.01)
    assert shown["longitudes"] == [60, 120, 180, 240, 300, 360]


def test_large_maps_have_the_mean_coordinates_of_their_pixels(target):
    latitudes, longitudes = np.linspace(-89.5, 89.5, 180), np.arange(0.5, 360)
    model = make_model(k=1, d=180 * 360)
    image, shown = drawn_map(target, model=model, coordinates=(latitudes, longitudes))
    assert image.shape == (60, 120)
    assert shown["latitudes"][:2] == [88.5, 85.5]
    assert shown["longitudes"][-1] == 358.5


def test_the_coordinates_of_a_netcdf_file_are_used(tmp_path, target):
    h5py = pytest.importorskip("h5py")
    values = np.random.default_rng(0).normal(size=(30, 4, 6))
    with h5py.File(tmp_path / "sst.h5", "w") as file:
        file["sst"] = values
        for axis, (name, degrees) in enumerate(
            [("y", NORTH_UP[::-1]), ("lon", WEST_FIRST)], start=1
        ):
            file[name] = degrees
            file[name].make_scale(name)
            file["sst"].dims[axis].attach_scale(file[name])
        file["y"].attrs["units"] = "degrees_north"
    model = make_model(k=1, d=24)
    image, shown = drawn_map(target, model=model, data=str(tmp_path / "sst.h5"))
    np.testing.assert_allclose(image, model.components_[0].reshape(4, 6)[::-1], atol=0.01)
    assert shown["latitudes"] == NORTH_UP.tolist()


def test_images_without_coordinates_are_drawn_as_they_are(target):
    model = make_model(k=1, d=24)
    image, shown = drawn_map(target, model=model, image_shape=(4, 6))
    assert shown is None
    np.testing.assert_allclose(image, model.components_[0].reshape(4, 6), atol=0.01)


@pytest.mark.parametrize(
    ("coordinates", "words"),
    [
        ((NORTH_UP, [1, 2, 3, 4, 5]), "4 x 5 points, but the model has 24 features"),
        (([0, 2, 1, 3], WEST_FIRST), "the latitudes neither ascend nor descend"),
        ((NORTH_UP, np.zeros((4, 6))), r"the longitudes have shape \(4, 6\)"),
        ({"lat": NORTH_UP, "lon": WEST_FIRST}, "'latitude' and 'longitude'"),
        ((NORTH_UP,), r"give \(latitudes, longitudes\)"),
    ],
)
def test_invalid_coordinates_are_named(target, coordinates, words):
    with pytest.raises(ReportError, match=words):
        write_report(make_model(d=24), target, coordinates=coordinates)


def test_an_image_shape_of_another_grid_is_rejected(target):
    options = {"image_shape": (6, 4), "coordinates": (NORTH_UP, WEST_FIRST)}
    with pytest.raises(ReportError, match="leave out image_shape"):
        write_report(make_model(d=24), target, **options)


def test_the_estimator_is_not_changed_by_a_report(target):
    model = make_model(k=1, d=24)
    before = model.components_.copy()
    write_report(model, target, coordinates=(NORTH_UP[::-1], WEST_FIRST))
    np.testing.assert_array_equal(model.components_, before)
    assert isinstance(model, EigenGamePCA)
