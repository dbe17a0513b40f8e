"""Fits of all layers of torch networks: a transformer with masks, a CNN, roles of layers, half precision."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from eigengame import EigenGamePCA, activations, fit_layers  # noqa: E402
from eigengame.metrics import angular_error  # noqa: E402
from eigengame.solver.results.half_precision import HalfPrecisionWarning  # noqa: E402
from tests.sources.tables import error_of  # noqa: E402
from tests.sources.test_torch_positions import Encoder, Pictures, alone, texts  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(),
    reason="float32 on the CPU is expected; test_torch_on_gpu has the tests for a GPU",
)


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    return Encoder().eval()


def components_of(rows, k):
    return np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:k]


def test_residual_stream_of_a_transformer_with_masks_and_ragged_lengths(encoder):
    random = np.random.default_rng(1)
    batches = texts([tuple(random.integers(1, 12, 8)) for _ in range(40)])
    fits = fit_layers(encoder, batches, "residual", 3, mask="attention_mask")
    assert list(fits) == ["layers.0", "layers.1"]
    for i, pca in enumerate(fits.values()):
        rows = alone(encoder, batches, i)
        assert angular_error(pca.components_.astype(float), components_of(rows, 3)).max() < 1e-3
        assert pca.n_samples_seen_ == len(rows)
    assert list(
        fit_layers(encoder, batches, ["attention", "mlp"], 2, mask="attention_mask", tol=None)
    ) == [f"layers.{i}.{part}" for i in (0, 1) for part in ("attention", "mlp")]
    assert "has no list of equal blocks" in error_of(fit_layers, Pictures(), batches, "residual", 2)


def test_feature_maps_of_a_cnn():
    torch.manual_seed(0)
    net, images = Pictures().eval(), torch.randn(60, 3, 9, 9)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=16)
    fits = fit_layers(net, loader, ["one", "two"], 2, rows="pixels", tol=None)
    with torch.inference_mode():
        one = net.one(images)
        maps = {"one": one, "two": net.two(torch.relu(one))}
    for name, pca in fits.items():
        rows = maps[name].double().movedim(1, -1).flatten(0, 2).numpy()
        assert angular_error(pca.components_.astype(float), components_of(rows, 2)).max() < 1e-3
        assert pca.n_samples_seen_ == len(rows)


class Far(nn.Module):
    """A network whose mean is much larger than the spread of its outputs."""

    def __init__(self, d=16):
        super().__init__()
        self.first, self.hidden = nn.Linear(8, d), nn.Linear(d, d)
        with torch.no_grad():
            self.first.bias += 200 * torch.rand(d)

    def forward(self, x):
        return self.hidden(self.first(x))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_outputs_are_centred_before_they_are_rounded(dtype):
    torch.manual_seed(0)
    net, inputs = Far().eval(), torch.randn(800, 8)
    with torch.inference_mode():
        rows = net.first(inputs).double().numpy()
    expected, batches = components_of(rows, 3), list(inputs.split(100))
    for fit in (
        lambda **options: EigenGamePCA(3, random_state=0).fit(
            activations(net, batches, "first", **options)
        ),
        lambda **options: fit_layers(net, batches, "first", 3, rows="inputs", **options)["first"],
    ):
        pca = fit(dtype=dtype, network_dtype="float32")
        assert pca.outcome_.rounding == f"{dtype}, centred first"
        assert angular_error(pca.components_.astype(float), expected).max() < 2e-3
        np.testing.assert_allclose(pca.mean_, rows.mean(0), rtol=1e-3)
    if dtype == "bfloat16":
        with pytest.warns(HalfPrecisionWarning, match="bfloat16 by the network, and their mean is"):
            rounded = fit(dtype=dtype)
        # The digits that the network rounds away cannot be restored.
        assert angular_error(rounded.components_.astype(float), expected).max() > 0.01
    plain = fit(dtype="float32")
    assert plain.outcome_.rounding is None


def test_rounding_is_stored_in_a_model_file(tmp_path):
    net, inputs = Far().eval(), torch.randn(100, 8)
    source = activations(net, [inputs], "first", dtype="bfloat16", network_dtype="float32")
    pca = EigenGamePCA(2, random_state=0).fit(source)
    loaded = EigenGamePCA.load(pca.save(tmp_path / "far.safetensors"))
    assert loaded.outcome_ == pca.outcome_
    assert loaded.outcome_.rounding == "bfloat16, centred first"


def test_scores_of_half_precision_are_about_the_mean_too():
    net, inputs = Far().eval(), torch.randn(100, 8)
    pca = EigenGamePCA(2, random_state=0).fit(activations(net, [inputs], "first"))
    exact = pca.transform(activations(net, [inputs], pca.layers_))
    half = activations(net, [inputs], pca.layers_, dtype="bfloat16", network_dtype="float32")
    # Numbers of about 200 have an error of up to 0.5 in bfloat16.
    np.testing.assert_allclose(pca.transform(half), exact, atol=0.02)
