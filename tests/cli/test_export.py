"""The command `export`: files of other libraries from a model file."""

import json

import joblib
import numpy as np
import pytest

from eigengame import EigenGamePCA

from .conftest import FEATURES, K


def test_export_writes_arrays_by_default(run, model, pca, x):
    done = run("export", model)
    path = model.with_suffix(".npz")
    assert (done.code, f"Written: {path}" in done.out) == (0, True)
    with np.load(path) as file:
        scores = x @ file["weight"].T + file["bias"]
    np.testing.assert_allclose(scores, pca.transform(x), atol=1e-4)
    assert "exists: give --force" in run("export", model).err
    assert run("export", model, "--force").code == 0


def test_export_writes_a_sklearn_pca(run, model, pca, x):
    facts = json.loads(run("export", model, "-o", "x.joblib", "--whiten", "--json").out)
    assert (facts["shape"], facts["whiten"]) == ([K, FEATURES], True)
    scores = pca.transform(x)
    found = joblib.load("x.joblib").transform(x)
    np.testing.assert_allclose(found, scores / np.sqrt(pca.explained_variance_), atol=1e-4)


def test_export_writes_a_state_dict(run, model, pca, x):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert run("export", model, "-o", "x.pt").code == 0
    linear = torch.nn.Linear(FEATURES, K)
    linear.load_state_dict(torch.load("x.pt", weights_only=True))
    found = linear(torch.from_numpy(np.asarray(x, np.float32))).detach().numpy()
    np.testing.assert_allclose(found, pca.transform(x), atol=1e-4)


def test_export_refuses_other_endings_and_lost_preparations(run, model, data):
    assert "ends in .npz or .pt or .joblib" in run("export", model, "-o", "x.csv").err
    run("fit", data, "-k", K, "--scale", "two-pass", "-o", "scaled.safetensors", "-q")
    done = run("export", "scaled.safetensors", "-o", "x.npz")
    assert (done.code, "--prepared" in done.err) == (1, True)
    assert run("export", "scaled.safetensors", "-o", "x.npz", "--prepared").code == 0
    assert not EigenGamePCA.load("scaled.safetensors").whiten
