"""Complex fields: complex components by a real fit, with bounds that hold."""

import math

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, UncertifiedWarning
from eigengame.xarray.complex_modes import span_bound
from tests.xarray.fields import complex_angles, coslat, make_field, xr

import eigengame.xarray as fields  # isort: skip

K = 4


def make_complex(seed=0, **options):
    """Return a complex field with land, and its weighted, centred rows."""
    other = make_field(seed + 100, land=0, mean=-2)
    field = (make_field(seed, **options) + 1j * other).rename("z")
    flat = (field.values * coslat()).reshape(60, -1)
    used = ~np.isnan(flat[0])
    return field, flat[:, used] - flat[:, used].mean(axis=0), used


@pytest.mark.parametrize("chunks", [None, {"time": 7, "lat": 4}])
def test_complex_components_equal_those_of_a_complex_svd(chunks):
    field, rows, used = make_complex()
    _, sizes, expected = np.linalg.svd(rows, full_matrices=False)
    model = fields.fit(
        field if chunks is None else field.chunk(chunks), K, weights="coslat", random_state=0
    )
    found = model.components().values.reshape(K, -1)
    assert np.isnan(found[:, ~used]).all()
    angles = complex_angles(found[:, used], expected[:K])
    assert (angles <= model.components().angle_bound.values + 1e-13).all()
    assert (model.components().angle_bound < 1e-6).all()
    np.testing.assert_allclose(model.explained_variance(), sizes[:K] ** 2 / 59, rtol=1e-10)
    np.testing.assert_allclose(
        model.explained_variance_ratio(), sizes[:K] ** 2 / (sizes**2).sum(), rtol=1e-10
    )
    scores = rows @ found[:, used].conj().T
    np.testing.assert_allclose(model.scores(), scores, atol=1e-9)
    np.testing.assert_allclose(found[:, used] @ found[:, used].conj().T, np.eye(K), atol=1e-10)


def test_all_components_reconstruct_the_field_and_others_are_projected():
    field, _, _ = make_complex()
    model = fields.fit(field, None, weights="coslat", random_state=0, tol=None)
    assert model.n_components == 59
    np.testing.assert_allclose(model.reconstruct(model.scores()), field, atol=1e-8)
    np.testing.assert_allclose(model.mean(), field.mean("time"), atol=1e-10)
    part = field.isel(time=slice(3, 9))
    np.testing.assert_allclose(model.transform(part), model.scores()[3:9], atol=1e-9)


def test_a_share_of_the_variance_counts_complex_components():
    field, rows, _ = make_complex()
    sizes = np.linalg.svd(rows, compute_uv=False)
    shares = np.cumsum(sizes**2) / (sizes**2).sum()
    for share in (0.3, 0.6, 0.9):
        model = fields.fit(field, share, weights="coslat", random_state=0)
        assert model.n_components == int(np.searchsorted(shares, share)) + 1


def test_equal_variances_are_certified_as_a_span_of_complex_components():
    rng = np.random.default_rng(1)
    left = np.linalg.qr(rng.standard_normal((60, 5)) + 1j * rng.standard_normal((60, 5)))[0]
    left -= left.mean(axis=0)
    left = np.linalg.qr(left)[0]
    right = np.linalg.qr(rng.standard_normal((24, 5)) + 1j * rng.standard_normal((24, 5)))[0]
    sizes = np.array([9.0, 5, 5, 2, 1])
    field = xr.DataArray((left * sizes) @ right.conj().T, dims=("time", "cell"))
    model = fields.fit(field, K, random_state=0)
    found, expected = model.components().values, right.conj().T
    assert model.components().attrs["certificate_of_spans"] == "2-3"
    bounds = model.components().angle_bound.values
    assert (bounds < 1e-6).all()
    singles = complex_angles(found, expected[:K])
    assert (singles[[0, 3]] <= bounds[[0, 3]] + 1e-13).all()
    outside = found[1:3] - (found[1:3] @ expected[1:3].conj().T) @ expected[1:3]
    assert np.linalg.norm(outside, 2) <= np.sin(bounds[1]) + 1e-13
    np.testing.assert_allclose(found @ found.conj().T, np.eye(K), atol=1e-10)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_bound_of_a_complex_span_holds_for_random_real_spaces(m):
    rng = np.random.default_rng(m)
    for size in 10.0 ** rng.uniform(-6, -0.4, 200):
        # The true space is spanned by the first m unit vectors; a real space near it, of twice the dimension.
        d = m + 4
        real = np.zeros((2 * m, 2 * d))
        real[:m, :m] = real[m:, d : d + m] = np.eye(m)
        real = np.linalg.qr(real.T + size * rng.standard_normal((2 * d, 2 * m)) / 3)[0].T
        inside = np.zeros(2 * d, bool)
        inside[:m] = inside[d : d + m] = True
        angle = math.asin(min(np.linalg.norm(real[:, ~inside], 2), 1))
        found = np.linalg.svd(real[:, :d] + 1j * real[:, d:], full_matrices=False)[2][:m]
        assert math.asin(min(np.linalg.norm(found[:, m:], 2), 1)) <= span_bound(angle, m) + 1e-12
    assert span_bound(math.pi / 2, m) == math.pi / 2


def test_a_part_that_is_missing_makes_the_value_missing():
    field, _, used = make_complex()
    y, x = np.argwhere(field[0].notnull().values)[0]
    broken = field.copy(deep=True)
    broken[:, y, x] = 1 + 1j * np.nan
    model = fields.fit(broken, 2, random_state=0)
    assert int(model.components()[0].notnull().sum()) == used.sum() - 1


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_bounds_hold_for_a_fit_in_float32(kind):
    rng = np.random.default_rng(2)
    n, d, k = 1200, 120, 5
    basis = np.linalg.qr(rng.standard_normal((d, d)) + 1j * rng.standard_normal((d, d)))[0]
    noise = rng.standard_normal((n, d)) + 1j * rng.standard_normal((n, d))
    values = (noise * 0.8 ** np.arange(d) @ basis + 3).astype(kind)
    model = fields.fit(xr.DataArray(values, dims=("time", "cell")), k, random_state=0)
    exact = values.astype(complex)
    expected = np.linalg.svd(exact - exact.mean(axis=0), full_matrices=False)[2][:k]
    bounds = model.components().angle_bound.values
    assert (complex_angles(model.components().values, expected) <= bounds).all()
    assert (bounds < 1e-6).all()


def test_values_missing_in_some_samples_are_filled_with_the_mean_of_the_others():
    field, _, used = make_complex()
    y, x = np.argwhere(field[0].notnull().values)[2]
    gaps = field.copy(deep=True)
    gaps[5:9, y, x] = np.nan
    with pytest.raises(SourceError, match="missing='mean'"):
        fields.fit(gaps, 2)
    model = fields.fit(gaps, 2, missing="mean", random_state=0)
    rows = gaps.fillna(gaps.mean("time")).values.reshape(60, -1)[:, used]
    expected = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:2]
    found = model.components().values.reshape(2, -1)[:, used]
    assert complex_angles(found, expected).max() < 1e-9


def test_a_warning_counts_complex_components():
    field, _, _ = make_complex()
    with pytest.warns(UncertifiedWarning, match="are not certified within 0.05 rad") as caught:
        model = fields.fit(field, None, random_state=0)
    above = np.flatnonzero(model.components().angle_bound > 0.05) + 1
    assert 0 < len(above) < 59
    assert str(caught[0].message).startswith(f"complex components {above[0]}, {above[1]}, ")
    assert len(caught) == 1


def test_what_complex_fields_do_not_support_is_refused():
    field, _, _ = make_complex()
    with pytest.raises(ValueError, match="standardise"):
        fields.fit(field, 2, standardise=True)
    with pytest.raises(ValueError, match="dropna"):
        fields.fit(field, 2, missing="skip")
    with pytest.raises(ValueError, match="from 1 to 59"):
        fields.fit(field, 60)
    model = fields.fit(field, 2, random_state=0)
    with pytest.raises(ValueError, match="varimax"):
        model.rotate()
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save("m.safetensors")
    with pytest.raises(ValueError, match=r"eigengame\.xarray\.fit"):
        EigenGamePCA(2).fit(field)
