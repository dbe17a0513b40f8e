"""Components as torch modules: the scores of `transform`, state dicts, dtypes and devices."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from eigengame import EigenGamePCA, prepare  # noqa: E402

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}

K, D = 4, 9
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, D)) * np.geomspace(3, 0.3, D) + 5


@pytest.fixture(scope="module")
def pca():
    return EigenGamePCA(K, random_state=0).fit(X)


@pytest.fixture(scope="module")
def white():
    return EigenGamePCA(K, random_state=0, whiten=True).fit(X)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 2e-5)])
def test_modules_compute_the_scores_of_transform(pca, white, dtype, tolerance):
    x = torch.from_numpy(X).to(getattr(torch, dtype))
    for module, truth in (
        (pca.projector(dtype=dtype), pca.transform(X)),
        (white.projector(dtype=dtype), pca.transform(X)),
        (pca.whitener(dtype=dtype), white.transform(X)),
        (white.whitener(dtype=dtype), white.transform(X)),
    ):
        assert module(x).dtype == x.dtype
        np.testing.assert_allclose(module(x).numpy(), truth, atol=tolerance)


def test_any_axes_may_precede_the_features(pca):
    x = torch.from_numpy(X).float().reshape(10, 30, D)
    found = pca.projector()(x)
    assert found.shape == (10, 30, K)
    torch.testing.assert_close(found.reshape(300, K), pca.projector()(x.reshape(300, D)))


def test_scores_without_variance_are_not_scaled():
    flat = X[:, :2] @ RNG.normal(size=(2, D))
    pca = EigenGamePCA(K, random_state=0, whiten=True).fit(flat)
    found = pca.whitener(dtype="float64")(torch.from_numpy(flat)).numpy()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, pca.transform(flat), atol=1e-6)


def test_buffers_are_not_trained_and_gradients_pass_through(pca):
    module = pca.projector()
    assert list(module.parameters()) == []
    x = torch.zeros(2, D, requires_grad=True)
    module(x).sum().backward()
    np.testing.assert_allclose(x.grad[0].numpy(), pca.components_.sum(axis=0), atol=1e-6)


def test_a_state_dict_fits_a_linear_layer(pca, white, tmp_path):
    x = torch.from_numpy(X).float()
    for model, module in ((pca, pca.projector()), (white, white.whitener())):
        state = torch.load(model.export(tmp_path / "x.pt"), weights_only=True)
        assert {name: tuple(one.shape) for name, one in state.items()} == {
            "weight": (K, D),
            "bias": (K,),
        }
        linear = torch.nn.Linear(D, K)
        linear.load_state_dict(state)
        torch.testing.assert_close(linear(x), module(x))
        fresh = pca.projector()
        fresh.load_state_dict(state)
        torch.testing.assert_close(fresh(x), module(x))


def test_modules_can_be_converted_copied_and_pickled(pca):
    module = pca.projector(device="cpu")
    assert module.double().weight.dtype == torch.float64
    assert module.to(torch.bfloat16).bias.dtype == torch.bfloat16
    assert pca.projector(device="meta").weight.device.type == "meta"
    x = torch.from_numpy(X).float()
    for other in (copy.deepcopy(pca.projector()), pickle.loads(pickle.dumps(pca.projector()))):
        torch.testing.assert_close(other(x), pca.projector()(x))
    assert repr(module) == f"AffineScores(features={D}, components={K})"


def test_a_pickled_module_is_loaded_in_another_process(pca, tmp_path):
    path = tmp_path / "module.pkl"
    path.write_bytes(pickle.dumps(pca.projector()))
    code = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert done.stdout.strip() == f"AffineScores(features={D}, components={K})"


def test_bad_modules_are_refused(pca):
    with pytest.raises(ValueError, match="give a real floating-point dtype"):
        pca.projector(dtype=torch.int64)
    prepared = EigenGamePCA(K, random_state=0).fit(prepare(X, scale="two-pass"))
    for call in (prepared.projector, prepared.whitener):
        with pytest.raises(ValueError, match="prepared=True"):
            call()
    assert prepared.projector(prepared=True).weight.shape == (K, D)
