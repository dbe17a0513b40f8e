"""The best edge filter for a map, and the reduction of large arrays."""

import numpy as np

from reproduction.experiments.resnet.edges import edges_of, scrambled
from reproduction.experiments.resnet.maps import BINS, SIDE, as_integers, extremes, reduced

POINTS = 16
LINE = (np.arange(POINTS) + 0.5) / POINTS - 0.5
X, Y = np.meshgrid(LINE, LINE)
RNG = np.random.default_rng(0)


def gabor(cycles, degrees, phase, width=0.4):
    turn = np.radians(degrees)
    along = X * np.cos(turn) + Y * np.sin(turn)
    envelope = np.exp(-(X**2 + Y**2) / (2 * width**2))
    return envelope * np.cos(2 * np.pi * cycles * along + phase)


def test_a_gabor_filter_of_any_phase_is_found_with_its_waves_and_direction():
    for cycles, degrees, phase in ((1.0, 30, 0.7), (2.0, 90, 2.0), (1.5, 165, 0.0)):
        (found,) = edges_of(-3 * gabor(cycles, degrees, phase)[None] + 5)
        assert found.kind == "Gabor"
        assert (found.cycles, found.degrees) == (cycles, degrees)
        assert found.fit > 0.999
        assert found.fit > found.chance


def test_a_laplacian_of_gaussian_is_distinguished_from_a_gabor_filter():
    r2 = (X - 0.25) ** 2 + Y**2
    (found,) = edges_of(((1 - r2 / (2 * 0.12**2)) * np.exp(-r2 / (2 * 0.12**2)))[None])
    assert found.kind == "LoG"
    assert found.fit > 0.999


def test_noise_fits_no_filter_well_and_a_flat_map_has_fit_zero():
    noise, flat = edges_of(np.stack([RNG.normal(size=(POINTS, POINTS)), np.ones((POINTS, POINTS))]))
    assert noise.fit < 0.15
    assert flat.fit == flat.chance == 0


def test_a_scrambled_map_has_the_same_power_spectrum_and_other_phases():
    picture = gabor(1.0, 30, 0.7) + 0.3 * RNG.normal(size=(POINTS, POINTS))
    other = scrambled(picture, RNG)
    spectra = [np.abs(np.fft.fft2(one - one.mean())) for one in (picture, other)]
    np.testing.assert_allclose(*spectra, atol=1e-10)
    assert abs(np.corrcoef(picture.ravel(), other.ravel())[0, 1]) < 0.8


def test_maps_are_reduced_by_means_over_squares():
    maps = RNG.normal(size=(2, 112, 112))
    found = reduced(maps)
    assert found.shape == (2, SIDE, SIDE)
    np.testing.assert_allclose(found[1, 2, 3], maps[1, 8:12, 12:16].mean())
    small = maps[:, :16, :16]
    np.testing.assert_array_equal(reduced(small), small)


def test_maps_are_stored_as_integers_relative_to_the_largest():
    assert as_integers(np.array([[0.5, -1.0], [0.0, 0.25]])) == [[50, -99], [0, 25]]
    assert as_integers(np.zeros((1, 2))) == [[0, 0]]


def test_long_vectors_are_stored_by_their_extremes():
    values = RNG.normal(size=1000)
    low, high = extremes(values)
    assert len(low) == BINS
    assert low.min() == values.min()
    np.testing.assert_array_equal(high[0], values[:25].max())
