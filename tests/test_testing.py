import numpy as np
import pytest

from eigengame import testing
from eigengame.metrics import angular_error


def test_spectra_of_the_paper():
    np.testing.assert_allclose(np.diff(testing.linear(50)), -999 / 49)
    exponential = testing.exponential(50)
    np.testing.assert_allclose(exponential[[0, -1]], [1e3, 1e0])
    np.testing.assert_allclose(exponential[1:] / exponential[:-1], 10 ** (-3 / 49))
    np.testing.assert_allclose(testing.harmonic(3, 6.0), [6, 3, 2])
    bubble = testing.bubble(testing.linear(50))
    assert np.unique(bubble[9:19]).tolist() == [testing.linear(50)[9]]
    assert np.unique(bubble).size == 41


def test_matrices_and_rows_have_the_prescribed_spectrum_and_components():
    spectrum = testing.exponential(8, 1e2, 1e-2)
    matrix = testing.matrix_with(spectrum, seed=3)
    rows = testing.rows_with(spectrum, 40, seed=3)
    for m in (matrix.data, rows.data.T @ rows.data):
        values, vectors = np.linalg.eigh(m)
        np.testing.assert_allclose(values[::-1], spectrum, rtol=1e-10)
        assert angular_error(vectors.T[::-1], matrix.components).max() < 1e-10


def test_rows_may_be_fewer_than_features():
    problem = testing.rows_with([3.0, 1.0, 0.0, 0.0, 0.0], 2, seed=0)
    assert problem.data.shape == (2, 5)
    np.testing.assert_allclose(np.linalg.svd(problem.data)[1] ** 2, [3, 1])
    with pytest.raises(ValueError, match="at least 2 rows"):
        testing.rows_with([3.0, 1.0, 0.0], 1)


def test_a_stream_has_the_prescribed_covariance():
    stream, basis = testing.stream_with([4.0, 2.0, 1.0], 1000, 20, seed=1)
    rows = np.concatenate(list(stream))
    values = np.diag(basis @ (rows.T @ rows) @ basis.T) / len(rows)
    np.testing.assert_allclose(values, [4, 2, 1], rtol=0.05)


def test_a_matrix_instead_of_a_spectrum_is_rejected():
    with pytest.raises(
        ValueError, match=r"spectrum has shape \(2, 2\): give a list of eigenvalues"
    ):
        testing.matrix_with(np.eye(2))


@pytest.mark.parametrize("bad", [[1.0, 2.0], [1.0, -1.0], [np.nan], []])
def test_invalid_spectra_are_rejected(bad):
    with pytest.raises(ValueError, match="spectrum"):
        testing.matrix_with(bad)
