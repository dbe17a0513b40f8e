"""Components for other libraries: scikit-learn, adapters and files. Torch modules have a file of their own."""

import sys

import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from eigengame import EigenGamePCA, prepare

K, D = 4, 9
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, D)) * np.geomspace(3, 0.3, D) + 5


def fitted(x=X, **options):
    return EigenGamePCA(K, random_state=0, **options).fit(x)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_a_sklearn_pca_transforms_like_the_estimator(whiten, center):
    pca = fitted(whiten=whiten, center=center)
    other = pca.to_sklearn()
    for x in (X, X.astype(np.float32)):
        tolerance = 1e-10 if x.dtype == np.float64 else 1e-4
        np.testing.assert_allclose(other.transform(x), pca.transform(x), atol=tolerance)
    scores = pca.transform(X)
    np.testing.assert_allclose(
        other.inverse_transform(scores), pca.inverse_transform(scores), atol=1e-10
    )
    if not whiten:  # scikit-learn scales the components twice otherwise
        np.testing.assert_allclose(other.get_covariance(), pca.get_covariance(), atol=1e-8)
    assert list(other.get_feature_names_out()) == [f"pca{i}" for i in range(K)]
    # Its arrays are its own.
    other.components_[:] = 0
    assert pca.components_.any()


def test_feature_names_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(D)])
    pca = fitted(frame)
    other = pca.to_sklearn()
    np.testing.assert_allclose(other.transform(frame), pca.transform(frame), atol=1e-10)
    with pytest.raises(ValueError, match="feature names should match"):
        other.transform(frame[frame.columns[::-1]])


def test_whitening_that_sklearn_would_change_is_refused():
    flat = np.where(np.arange(D) < 2, X, 0)  # the other components have no variance
    for x in (flat, 1e-18 * X):
        with pytest.raises(ValueError, match=r"scikit-learn does not divide.*whiten=False"):
            fitted(x, whiten=True).to_sklearn()
    pca = fitted(flat)
    np.testing.assert_allclose(pca.to_sklearn().transform(flat), pca.transform(flat), atol=1e-9)


# ---------------------------------------------------------------- adapters


def test_an_adapter_begins_with_the_first_components():
    pca = fitted()
    a, b = pca.lora_init(3, 7)
    assert (a.dtype, b.dtype, b.shape) == (np.float32, np.float32, (7, 3))
    assert not b.any()
    np.testing.assert_allclose(a, pca.components_[:3], atol=1e-6)
    assert pca.lora_init(2).b.shape == (D, 2)


def test_the_scales_of_an_adapter_are_those_that_are_documented():
    pca = fitted()
    white = pca.lora_init(3, scale="whiten").a
    np.testing.assert_allclose((X @ white.T).std(axis=0, ddof=1), 1, rtol=1e-4)
    d = 4000
    uniform = RNG.uniform(-1 / np.sqrt(d), 1 / np.sqrt(d), size=(200, d))
    usual = np.sqrt((uniform**2).sum(axis=1).mean())
    lengths = np.linalg.norm(pca.lora_init(3, scale="uniform").a, axis=1)
    np.testing.assert_allclose(lengths, usual, rtol=1e-2)
    np.testing.assert_allclose(
        np.linalg.norm(pca.lora_init(3, scale=0.5).a, axis=1), 0.5, rtol=1e-5
    )


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5,), {}, "rank=5 is more than the 4 components"),
        ((0,), {}, "rank=0"),
        ((2, 0), {}, "d_out=0"),
        ((2,), {"scale": "large"}, "scale='large'"),
        ((2,), {"scale": -1.0}, "scale=-1.0"),
        ((2,), {"scale": float("nan")}, "scale=nan"),
    ],
)
def test_bad_adapters_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        fitted().lora_init(*arguments, **options)


def test_directions_without_variance_are_no_adapter():
    flat = X[:, :2] @ RNG.normal(size=(2, D))
    for dtype in (np.float32, np.float64):
        pca = fitted(flat.astype(dtype))
        assert pca.lora_init(2).a.shape == (2, D)
        with pytest.raises(ValueError, match="2 of the first 4 components have no variance"):
            pca.lora_init(4)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("whiten", [False, True])
def test_arrays_in_a_file_give_the_scores(tmp_path, whiten):
    pca = fitted(whiten=whiten)
    path = pca.export(tmp_path / "x.npz")
    with np.load(path) as file:
        scores = X @ file["weight"].T + file["bias"]
        np.testing.assert_allclose(scores, pca.transform(X), atol=1e-10)
        np.testing.assert_array_equal(file["components"], pca.components_)
        np.testing.assert_array_equal(file["mean"], pca.mean_)
        assert bool(file["whiten"]) == whiten
        assert "feature_names" not in file


def test_names_in_a_file_are_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"f{i}" for i in range(D)]
    path = fitted(pandas.DataFrame(X, columns=names)).export(tmp_path / "x.npz")
    with np.load(path, allow_pickle=False) as file:
        assert file["feature_names"].tolist() == names


def test_a_sklearn_pca_in_a_file_transforms_like_the_estimator(tmp_path):
    pca = fitted()
    other = joblib.load(pca.export(tmp_path / "x.joblib"))
    np.testing.assert_allclose(other.transform(X), pca.transform(X), atol=1e-10)


def test_bad_paths_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.npz, \.pt, \.joblib"):
        fitted().export(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="is not a folder: create it first"):
        fitted().export(tmp_path / "none" / "x.npz")


def test_a_failed_export_leaves_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    path.write_text("before")
    monkeypatch.setattr(np, "savez", lambda file, **arrays: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted().export(path)
    assert [one.name for one in tmp_path.iterdir()] == ["x.npz"]
    assert path.read_text() == "before"


def test_exports_without_the_preparation_of_the_model_are_refused(tmp_path):
    source = prepare(X, scale="two-pass")
    pca = EigenGamePCA(K, random_state=0).fit(source)
    calls = (
        lambda **given: pca.to_sklearn(**given),
        lambda **given: pca.lora_init(2, **given),
        lambda **given: pca.export(tmp_path / "x.npz", **given),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"prepares its rows .*prepared=True"):
            call()
    scaled = np.concatenate([block.values for block in source.blocks(0, 100)])
    other = pca.to_sklearn(prepared=True)
    np.testing.assert_allclose(other.transform(scaled), pca.transform(X), atol=1e-10)


def test_exports_of_an_estimator_that_is_not_fitted_are_refused():
    for call in (EigenGamePCA(2).to_sklearn, lambda: EigenGamePCA(2).lora_init(1)):
        with pytest.raises(NotFittedError):
            call()


def test_torch_that_is_not_installed_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    pca = fitted()
    for call in (pca.projector, pca.whitener, lambda: pca.export(tmp_path / "x.pt")):
        with pytest.raises(ModuleNotFoundError, match=r"pip install torch, or export to \.npz"):
            call()
    assert list(tmp_path.iterdir()) == []
