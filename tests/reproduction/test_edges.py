"""The best edge filter for a map, and maps and vectors as figures draw them."""

import numpy as np
import pytest

from eigengame.sources._layers import Layers
from reproduction.experiments.resnet.edges import Shape, edges_of, scrambled
from reproduction.experiments.resnet.maps import BINS, as_bytes, extremes, mean_maps

POINTS = 16
LINE = (np.arange(POINTS) + 0.5) / POINTS - 0.5
X, Y = np.meshgrid(LINE, LINE)
RNG = np.random.default_rng(0)


def gabor(cycles, degrees, phase, width=0.4):
    turn = np.radians(degrees)
    along = X * np.cos(turn) + Y * np.sin(turn)
    envelope = np.exp(-(X**2 + Y**2) / (2 * width**2))
    return envelope * np.cos(2 * np.pi * cycles * along + phase)


def found_in(maps):
    return [found["any"] for found in edges_of(maps)]


def test_a_gabor_filter_of_any_phase_is_found_with_its_waves_and_direction():
    for cycles, degrees, phase in ((1.0, 30, 0.7), (2.0, 90, 2.0), (1.5, 165, 0.0)):
        (found,) = found_in(-3 * gabor(cycles, degrees, phase)[None] + 5)
        assert found.kind == "Gabor"
        assert (found.cycles, found.degrees, found.width) == (cycles, degrees, 0.4)
        assert found.fit > 0.999
        assert found.fit > found.chance


def test_a_laplacian_of_gaussian_is_distinguished_from_a_gabor_filter():
    r2 = (X - 0.25) ** 2 + Y**2
    (found,) = found_in(((1 - r2 / (2 * 0.12**2)) * np.exp(-r2 / (2 * 0.12**2)))[None])
    assert found.kind == "LoG"
    assert found.fit > 0.999


def test_noise_fits_no_filter_well_and_a_flat_map_has_fit_zero():
    noise, flat = found_in(np.stack([RNG.normal(size=(POINTS, POINTS)), np.ones((POINTS, POINTS))]))
    assert noise.fit < 0.15
    assert flat.fit == flat.chance == 0


def test_a_map_made_by_chance_exceeds_the_quantile_of_chance_one_time_in_twenty():
    # Smooth noise, as maps of low frequency are: its best fit is high, and not above chance.
    waves = np.hypot(*np.meshgrid(*[np.fft.fftfreq(POINTS)] * 2))
    smooth = np.fft.ifft2(np.exp(-((waves / 0.08) ** 2)) * np.exp(2j * np.pi * waves)).real
    found = found_in(np.stack([scrambled(smooth, RNG) for _ in range(20)]))
    assert np.median([one.fit for one in found]) > 0.5
    assert sum(one.fit > one.chance for one in found) <= 4


def test_a_local_filter_covers_a_part_of_the_map_and_has_a_wave_within_it():
    assert Shape("Gabor", 2.0, 0.0, 0.2).local
    assert not Shape("Gabor", 2.0, 0.0, 0.4).local, "covers the whole map"
    assert not Shape("Gabor", 0.5, 0.0, 0.2).local, "is a gradient or a blob"
    assert Shape("LoG", 0.0, 0.0, 0.25).local
    assert not Shape("LoG", 0.0, 0.0, 0.35).local


@pytest.mark.parametrize(("width", "similar"), [(0.2, True), (1.0, False)])
def test_waves_over_the_whole_map_are_not_a_local_filter(width, similar):
    (found,) = edges_of(gabor(2.0, 30, 0.5, width)[None])
    assert found["any"].fit > 0.999
    assert (found["local"].fit > 0.9) == similar


def test_a_scrambled_map_has_the_same_power_spectrum_and_other_phases():
    picture = gabor(1.0, 30, 0.7) + 0.3 * RNG.normal(size=(POINTS, POINTS))
    other = scrambled(picture, RNG)
    spectra = [np.abs(np.fft.fft2(one - one.mean())) for one in (picture, other)]
    np.testing.assert_allclose(*spectra, atol=1e-10)
    assert abs(np.corrcoef(picture.ravel(), other.ravel())[0, 1]) < 0.8


def test_a_map_is_the_mean_over_the_channels_of_the_first_layer():
    layers = Layers.of([("conv1", (4, 2, 2), False), ("layer1.0", (3,), False)])
    components = RNG.normal(size=(2, 19))
    expected = components[:, :16].reshape(2, 4, 2, 2).mean(axis=1)
    np.testing.assert_allclose(mean_maps(layers, components), expected)


def test_each_map_is_stored_with_its_own_contrast():
    maps = np.stack([np.arange(100.0).reshape(10, 10), 1e-3 * np.arange(100.0).reshape(10, 10) - 7])
    small, large = as_bytes(maps)
    assert small.dtype == np.uint8
    np.testing.assert_array_equal(small, large)
    assert (small.min(), small.max()) == (0, 255)
    assert (as_bytes(np.ones((2, 2))) == 0).all()


def test_long_vectors_are_stored_by_their_extremes():
    values = RNG.normal(size=1000)
    low, high = extremes(values)
    assert len(low) == BINS
    assert low.min() == values.min()
    np.testing.assert_array_equal(high[0], values[:25].max())
