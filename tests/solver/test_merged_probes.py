"""Probes of merged models: kept across precisions, with bounds on their errors that hold."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, metrics
from eigengame.solver.one_pass import probe_images

N, D, K = 800, 24, 4
RNG = np.random.default_rng(0)
ROWS = (RNG.normal(size=(N, D)) * 0.7 ** np.arange(D) + RNG.normal(size=D)).astype("float32")


def part(begin, end, dtype="float32", **options):
    settings = {"random_state": 0, "batch_size": 100, "dtype": dtype} | options
    return EigenGamePCA(K, **settings).partial_fit(ROWS[begin:end])


def scatter(rows):
    about = rows - rows.mean(axis=0, dtype=np.float64)
    return about.T @ about


def error_and_bound(pca, rows=ROWS):
    """The Frobenius norm of the errors of the products of the probes, and its bound."""
    found = probe_images(pca._result.stream)
    return np.linalg.norm(found.images - found.draws @ scatter(rows)), found.error


@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32")])
def test_models_in_two_precisions_keep_their_probes(types, tmp_path):
    merged = part(0, 400, types[0]).merge(part(400, N, types[1]))
    assert merged.certificate_.kind == "certified"
    assert merged._result.stream.probes.images.dtype == np.float64
    truth = np.linalg.eigh(scatter(ROWS))[1].T[::-1][:K]
    assert (metrics.angular_error(merged.components_, truth) <= merged.certificate_.angle).all()
    # The products of one part were computed in float32, and the bound on their error says so.
    error, bound = error_and_bound(merged)
    fine = error_and_bound(part(0, 400, "float64").merge(part(400, N, "float64")))
    assert fine[0] <= fine[1] < error <= bound
    # Also after a file, and after further rows in float64.
    again = EigenGamePCA.load(merged.save(tmp_path / "merged.safetensors"))
    assert error_and_bound(again) == (error, bound)
    again.partial_fit(ROWS[:100].astype("float64"))
    more, bound = error_and_bound(again, np.concatenate([ROWS, ROWS[:100]]))
    assert fine[1] < more <= bound


def test_probes_do_not_depend_on_the_precision():
    one, other = (
        np.asarray(part(0, 100, dtype)._result.stream.probes.draws, np.float64)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_array_equal(one, other)
