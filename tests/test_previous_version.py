"""Files that version 0.1.0 wrote before the package was rearranged: they still load."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA

FILES = Path(__file__).parent / "previous"
# Defaults of that version.
DEFAULTS = {"algorithm": "remembered", "tol": None}
OPTIONS = {"n_components": 3, "batch_size": 100, "random_state": 3} | DEFAULTS


@pytest.fixture(scope="module")
def rows():
    draws = np.random.default_rng(0).standard_normal((600, 12)) * 64 / np.arange(1, 13)
    return (np.round(draws) / 64).astype("float32")


@pytest.fixture(scope="module")
def expected():
    with np.load(FILES / "expected.npz") as arrays:
        return dict(arrays)


def test_a_model_loads_with_its_numbers_and_can_go_on(rows, expected):
    pca = EigenGamePCA.load(FILES / "model.safetensors")
    np.testing.assert_array_equal(pca.components_, expected["components"])
    np.testing.assert_array_equal(pca.explained_variance_, expected["variance"])
    np.testing.assert_array_equal(pca.certificate_.angle, expected["angle"])
    np.testing.assert_allclose(pca.transform(rows[:5]), expected["scores"], atol=1e-12)
    assert pca.partial_fit(rows[:100]).n_samples_seen_ == 700


def test_a_prepared_model_prepares_as_it_did(rows, expected):
    pca = EigenGamePCA.load(FILES / "prepared.safetensors")
    with_gaps = rows[:5].copy()
    with_gaps[0, 1] = np.nan
    np.testing.assert_allclose(pca.transform(with_gaps), expected["prepared"], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("one_pass", {}),
        ("refined", {"tol": 0.05}),
        ("covariance", {"algorithm": "auto", "extra": 20}),
        ("steps", {"algorithm": "mu", "passes": 2}),
    ],
)
def test_a_run_resumes_from_its_checkpoint(tmp_path, rows, name, options):
    folder = tmp_path / "run"
    shutil.copytree(FILES / f"checkpoint_{name}", folder)
    starts = []

    class Noting:
        def batch(self, at):
            starts.append(at.start)

    resumed = EigenGamePCA(**OPTIONS | options).fit(rows, checkpoint=folder, progress=Noting())
    whole = EigenGamePCA(**OPTIONS | options).fit(rows)
    if name != "refined":  # its second pass is made in another way now, and repeated
        assert max(starts) > 0
    # The file comes from another processor perhaps: the last digits may differ.
    np.testing.assert_allclose(resumed.components_, whole.components_, atol=1e-10)
    assert resumed.outcome_ == whole.outcome_
