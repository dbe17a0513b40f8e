"""Models on disk: what is read is what was written, and nothing else is taken for a model."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

import eigengame
from eigengame import EigenGamePCA
from eigengame._system.atomic_write import StorageError
from eigengame.model_file import ModelFileError
from tests.game_pca import game_pca

X = load_digits().data.astype("float32").repeat(3, axis=0)
HALF = len(X) // 2


@pytest.fixture(scope="module")
def pca():
    return game_pca(4, batch_size=512, random_state=3, whiten=True).fit(X)


@pytest.mark.parametrize(
    "options",
    [{}, {"tol": 0.05}, {"algorithm": "auto", "extra": 20}, {"dtype": "float64"}],
    ids=["one pass", "refined", "covariance", "float64"],
)
def test_a_model_comes_back_as_it_was(tmp_path, options):
    pca = game_pca(4, batch_size=512, random_state=3, **options).fit(X)
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    assert again.get_params() == pca.get_params()
    for name, value in vars(pca).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
            assert getattr(again, name).dtype == value.dtype
    assert again.outcome_ == pca.outcome_
    assert again.certificate_.kind == pca.certificate_.kind
    np.testing.assert_array_equal(again.certificate_.angle, pca.certificate_.angle)
    np.testing.assert_array_equal(again.certificate_.residual, pca.certificate_.residual)
    np.testing.assert_array_equal(again.transform(X), pca.transform(X))
    assert str(again.certificate_) == str(pca.certificate_)


def test_a_loaded_model_continues_and_merges_like_the_saved_one(tmp_path):
    def begun():
        return game_pca(4, batch_size=512, random_state=3).partial_fit(X[:HALF])

    loaded = EigenGamePCA.load(begun().save(tmp_path / "half.safetensors"))
    on, straight = loaded.partial_fit(X[HALF:]), begun().partial_fit(X[HALF:])
    np.testing.assert_array_equal(on.components_, straight.components_)
    assert on.n_samples_seen_ == len(X)
    left = EigenGamePCA.load(tmp_path / "half.safetensors")
    right = game_pca(4, batch_size=512, random_state=3).partial_fit(X[HALF:])
    np.testing.assert_array_equal(left.merge(right).components_, begun().merge(right).components_)
    assert left.certify(X).kind == "certified"


def test_feature_names_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    pca = game_pca(4, batch_size=512, random_state=3).fit(frame)
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    assert list(again.feature_names_in_) == list(frame.columns)
    again.transform(frame)


def test_the_file_says_where_it_comes_from_in_json(pca, tmp_path):
    path = pca.save(tmp_path / "model.safetensors")
    with safe_open(path, framework="np") as file:
        facts = json.loads(file.metadata()["eigengame"])
    assert facts["version"] == eigengame.__version__
    assert facts["provenance"]["source"]["shape"] == list(X.shape)
    assert facts["certificate"]["kind"] == "certified"
    assert facts["certificate"]["penalty_ratio"] == [None] * 4
    first = EigenGamePCA.load(path)
    second = EigenGamePCA.load(first.save(tmp_path / "again.safetensors"))
    assert second._provenance == first._provenance


def test_others_may_read_the_file_as_any_other(pca, tmp_path):
    (tmp_path / "plain").write_text("")
    path = pca.save(tmp_path / "model.safetensors")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_bad_files_are_named_with_the_remedy(pca, tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        EigenGamePCA.load(tmp_path / "none.safetensors")
    path = pca.save(tmp_path / "model.safetensors")
    whole = path.read_bytes()
    for damage in (b"", b"not a model at all", whole[: len(whole) // 2]):
        path.write_bytes(damage)
        with pytest.raises(ModelFileError, match="damaged or not a safetensors file"):
            EigenGamePCA.load(path)
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="not an eigengame model"):
        EigenGamePCA.load(path)
    save_file(
        {"a": np.zeros(3)}, path, metadata={"eigengame": json.dumps({"format": 99, "version": "9"})}
    )
    with pytest.raises(ModelFileError, match="upgrade"):
        EigenGamePCA.load(path)
    save_file({"a": np.zeros(3)}, path, metadata={"eigengame": json.dumps({"format": 1})})
    with pytest.raises(ModelFileError, match="lacks part of a model"):
        EigenGamePCA.load(path)
    with pytest.raises(ModelFileError, match=r"ends in \.safetensors"):
        pca.save(tmp_path / "model.pkl")
    with pytest.raises(ModelFileError, match="make it first"):
        pca.save(tmp_path / "nowhere" / "model.safetensors")


def test_a_failed_save_leaves_the_model_that_was_there(pca, tmp_path, monkeypatch):
    path = pca.save(tmp_path / "model.safetensors")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        pca.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
