"""netCDF files on the command line: fit, transform and report by path."""

from pathlib import Path

import numpy as np
import pytest

import eigengame.xarray as fields
from tests.report.models import read_page
from tests.xarray.fields import make_field, xr


@pytest.fixture
def files(tmp_path):
    """Write a file with two variables, and one with other samples; return their paths and fields."""
    field, other = make_field(), make_field().isel(time=slice(0, 7))
    data = xr.Dataset({"sst": field, "ice": 2 * field})
    data.to_netcdf(tmp_path / "sst.nc", engine="scipy")
    xr.Dataset({"sst": other, "ice": 2 * other}).to_netcdf(tmp_path / "new.nc", engine="scipy")
    return tmp_path / "sst.nc", tmp_path / "new.nc", field


def test_a_variable_is_fitted_projected_and_drawn(run, files):
    path, new, field = files
    done = run(
        *(
            "fit",
            path,
            "--variable",
            "sst",
            "--dim",
            "time",
            "-k",
            3,
            "--feature-weights",
            "coslat",
        ),
        *("--seed", 0, "--quiet", "-o", "m.safetensors"),
    )
    assert done.code == 0, done.err
    model = fields.fit(field, 3, weights="coslat", random_state=0)
    loaded = fields.load("m.safetensors")
    xr.testing.assert_allclose(loaded.components(), model.components())
    # The model knows its variable.
    assert run("transform", "m.safetensors", new, "-o", "s.csv", "--quiet").code == 0
    lines = Path("s.csv").read_text().splitlines()
    assert lines[0].startswith("time,")
    assert lines[1].startswith("2000-01-01,")
    scores = np.array([line.split(",")[1:] for line in lines[1:]], float)
    np.testing.assert_allclose(scores, model.scores()[:7], rtol=1e-5)
    assert run("report", "m.safetensors", path, "-o", "r.html").code == 0
    page = read_page(Path("r.html"))
    assert page["pictures"]["map"]["latitudes"][0] == 80
    assert page["scores"]["time"]["dates"]


def test_a_file_with_several_variables_asks_for_one(run, files):
    done = run("fit", files[0], "-k", 2)
    assert done.code != 0
    assert "--variable" in done.err


def test_missing_values_are_filled_if_requested(run, files, tmp_path):
    field = files[2].copy(deep=True)
    y, x = np.argwhere(field[0].notnull().values)[0]
    field[3, y, x] = np.nan
    field.to_netcdf(tmp_path / "gaps.nc", engine="scipy")
    done = run("fit", tmp_path / "gaps.nc", "-k", 2, "--quiet")
    assert done.code != 0
    assert "--missing" in done.err
    assert run("fit", tmp_path / "gaps.nc", "-k", 2, "--missing", "mean", "--quiet").code == 0
