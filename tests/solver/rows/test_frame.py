"""The frame of a fit: origins are subtracted before anything is rounded, units keep squares in range."""

import math

import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import Frame, frame_of, in_range
from eigengame.sources.device_array import DeviceArray
from tests.game_pca import game_pca

SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")


def rows(n=300, d=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * np.arange(d, 0, -1)


def test_data_near_zero_of_ordinary_size_stays_as_it_is():
    for dtype in (SINGLE, DOUBLE):
        assert frame_of(as_source(rows()), dtype, center=True).plain
        assert frame_of(as_source(rows() * 100), dtype, center=False).plain


def test_a_far_mean_is_the_origin_and_is_subtracted_before_rounding():
    data = rows() + 1e9
    frame = frame_of(as_source(data), SINGLE, center=True)
    assert np.abs(frame.origin - 1e9).max() < 3
    found = frame.applied(data, SINGLE)
    assert found.dtype == SINGLE
    # Rounded after the difference: to seven digits of it, not of the data.
    np.testing.assert_allclose(found, data - frame.origin, rtol=1e-7, atol=1e-6)
    assert frame_of(as_source(data), SINGLE, center=False).origin is None


def test_one_feature_that_is_far_from_zero_is_shifted_and_the_others_are_not():
    data = rows(n=6000, d=50).astype("float32")
    data[:, 7] = 3000 + 0.5 * data[:, 7] / data[:, 7].std()
    frame = frame_of(as_source(data), SINGLE, center=True)
    assert np.flatnonzero(frame.origin).tolist() == [7]
    # The same in float32 as in float64: the origin is a number of float32.
    np.testing.assert_array_equal(
        frame.applied(data, SINGLE), (data.astype(float) - frame.origin).astype("float32")
    )
    found = game_pca(3, random_state=0).fit(data)
    # Squares less the square of the mean, in float32, were off by a factor.
    np.testing.assert_allclose(found.var_, data.astype(float).var(axis=0), rtol=1e-3)


def test_a_constant_feature_is_shifted_to_zero():
    data = rows()
    data[:, 3] = 7.0
    assert np.flatnonzero(frame_of(as_source(data), SINGLE, center=True).origin).tolist() == [3]


@pytest.mark.parametrize("scale", [1e-21, 1e17])
def test_very_small_and_very_large_numbers_are_divided_by_a_power_of_two(scale):
    frame = frame_of(as_source(rows() * scale), SINGLE, center=True)
    assert math.frexp(frame.unit)[0] == 0.5
    largest = np.abs(frame.applied(rows() * scale, SINGLE)).max()
    assert 0.25 < largest <= 1


def test_sparse_rows_have_a_unit_but_no_origin():
    data = csr_array(rows() * 1e-21)
    frame = frame_of(as_source(data), SINGLE, center=True)
    assert frame.origin is None
    assert frame.unit < 1e-18
    with jax.enable_x64(False):
        batch = next(Batches(as_source(data), 8, SINGLE, frame=frame)())
    assert np.abs(batch.rows.values.data).max() > 1e-3


def test_zeros_and_empty_blocks_have_a_plain_frame():
    assert frame_of(as_source(np.zeros((20, 4))), SINGLE, center=True).plain


def test_a_mean_goes_into_a_frame_and_out_of_it():
    frame, mean = Frame(np.array([5.0, -3.0]), 4.0), np.array([6.0, 1.0])
    np.testing.assert_array_equal(frame.outer(frame.inner(mean)), mean)
    np.testing.assert_array_equal(frame.about(frame.inner(mean)).origin, mean)


def test_variances_beyond_the_range_of_float64_are_refused():
    assert in_range(np.array([1.0]), 2.0**-300) == 2.0**-600
    for unit in (2.0**-600, 2.0**600):
        with pytest.raises(ValueError, match="beyond the range of float64"):
            in_range(np.array([1.0]), unit)


# More than 262,144 numbers, so that the fit is played in float32.
TALL = np.random.default_rng(1).standard_normal((6000, 50)) * np.arange(50, 0, -1)


@pytest.mark.parametrize("scale", [2.0**-70, 1.0, 2.0**57])
def test_components_do_not_depend_on_the_scale_of_float32_data(scale):
    data = (TALL * scale).astype("float32")
    found = game_pca(3, tol=1e-3, random_state=0).fit(data)
    plain = game_pca(3, tol=1e-3, random_state=0).fit(TALL.astype("float32"))
    np.testing.assert_allclose(np.abs(found.components_), np.abs(plain.components_), atol=1e-4)
    np.testing.assert_allclose(
        found.explained_variance_ / scale / scale, plain.explained_variance_, rtol=1e-5
    )
    np.testing.assert_allclose(found.var_ / scale / scale, plain.var_, rtol=1e-4)
    np.testing.assert_allclose(found.mean_ / scale, plain.mean_, atol=1e-3)
    np.testing.assert_allclose(found.certificate_.rayleigh, found.explained_variance_, rtol=1e-4)
    assert found.certificate_.kind == "certified"


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_angles_of_float64_data_of_any_scale_are_numbers(scale):
    found = game_pca(2, tol=1e-6, random_state=0).fit(rows() * scale)
    plain = game_pca(2, tol=1e-6, random_state=0).fit(rows())
    assert np.isfinite(found.certificate_.angle).all()
    assert (found.certificate_.angle <= 1e-6).all()
    np.testing.assert_allclose(
        found.explained_variance_ / scale / scale, plain.explained_variance_, rtol=1e-9
    )


def test_streams_in_different_frames_merge():
    parts = [rows(400, seed=1) + 1e6, rows(400, seed=2) + 3e6]
    one, other = (game_pca(2, random_state=0).partial_fit(part) for part in parts)
    merged, both = one.merge(other), np.vstack(parts)
    np.testing.assert_allclose(merged.mean_, both.mean(axis=0), rtol=1e-6)
    assert merged.explained_variance_ratio_[0] == pytest.approx(1, abs=1e-6)
    tiny = game_pca(2, random_state=0).partial_fit(rows(400) * 1e-21)
    again = tiny.merge(game_pca(2, random_state=0).partial_fit(rows(400) * 1e-19))
    assert again.explained_variance_[0] == pytest.approx(64e-38 / 2, rel=0.3)
    with pytest.raises(ValueError, match="too different to be merged"):
        tiny.merge(one)


def test_a_saved_model_in_a_frame_continues_a_stream(tmp_path):
    data = rows(400) * 1e-21 + 1e-15
    one = game_pca(2, random_state=0).partial_fit(data[:200])
    loaded = EigenGamePCA.load(one.save(tmp_path / "m.safetensors"))
    for pca in (one, loaded):
        pca.partial_fit(data[200:])
    np.testing.assert_array_equal(one.components_, loaded.components_)
    np.testing.assert_array_equal(one.explained_variance_, loaded.explained_variance_)


@pytest.mark.parametrize("code", [-9999.0, 1e8, 1e20])
@pytest.mark.parametrize("algorithm", ["exact", "remembered"])
def test_first_rows_of_weight_zero_do_not_choose_the_frame(code, algorithm):
    values = np.random.default_rng(3).standard_normal((4000, 6)) / np.arange(1, 7)
    weights = np.ones(len(values))
    values[:1500], weights[:1500] = code, 0
    found = EigenGamePCA(2, algorithm=algorithm, random_state=0).fit(values, sample_weight=weights)
    exact = np.linalg.eigh(np.cov(values[1500:].T))
    np.testing.assert_allclose(found.explained_variance_, exact[0][::-1][:2], rtol=1e-3)
    assert (angular_error(found.components_, exact[1].T[::-1][:2]) < 0.05).all()
    assert (found.certificate_.angle < 0.05).all()


class HalfPrecision(DeviceArray):
    """Rows as a network gives them in half precision; `rounds` is whether they were rounded for it."""

    shifts = True

    def __init__(self, data, rounds):
        super().__init__(data)
        self.rounds = rounds


def test_numbers_that_a_network_computed_in_half_precision_are_shifted_only_if_their_means_dominate():
    data = rows(d=50).astype("float32")
    data[:, 3] = 7.0
    some = jax.numpy.asarray(data, "bfloat16")
    assert frame_of(HalfPrecision(some, rounds=False), SINGLE, center=True).plain
    assert frame_of(HalfPrecision(some, rounds=True), SINGLE, center=True).origin[3] == 7
    all_far = jax.numpy.asarray(data + 1e5, "bfloat16")
    assert frame_of(HalfPrecision(all_far, rounds=False), SINGLE, center=True).origin.all()
