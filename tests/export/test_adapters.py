"""Adapters (LoRA) from the inputs of linear layers, as PEFT's EVA computes them, against float64."""

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from eigengame import EigenGamePCA, activations, fit_layers  # noqa: E402
from eigengame.metrics import angular_error, principal_angles  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="inputs are compared with float32 on the CPU"
)

RANK, D, HIDDEN, OUT = 3, 12, 10, 5


class Network(nn.Module):
    """Two linear layers. The inputs of the second are not centred."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, OUT)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Adapted(nn.Module):
    """A linear layer with an adapter, as in PEFT."""

    def __init__(self, layer, a, b, alpha):
        super().__init__()
        self.layer, self.scaling = layer, alpha / len(a)
        self.a, self.b = nn.Parameter(torch.from_numpy(a)), nn.Parameter(torch.from_numpy(b))

    def forward(self, x):
        return self.layer(x) + self.scaling * (x @ self.a.T @ self.b.T)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Network().eval()


def data(shape):
    scales = np.geomspace(4, 0.2, D)
    drawn = np.random.default_rng(0).normal(size=(*shape, D)) * scales + 1
    return torch.from_numpy(drawn.astype(np.float32))


def inputs_in_float64(network, x):
    """Return the inputs of both layers, (n, d) in float64, from the weights alone."""
    weight, bias = (one.detach().double().numpy() for one in network.first.parameters())
    rows = x.reshape(-1, D).double().numpy()
    return {"first": rows, "second": np.maximum(rows @ weight.T + bias, 0)}


def right_singular_vectors(rows, center):
    return np.linalg.svd(rows - rows.mean(0) if center else rows, full_matrices=False)[2][:RANK]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", ["first", "second"])
def test_rows_of_a_are_the_right_singular_vectors_of_the_inputs_of_the_layer(network, name, center):
    x = data((400,))
    rows = activations(network, list(x.split(50)), name, side="inputs")
    pca = EigenGamePCA(RANK, center=center, random_state=0).fit(rows)
    layer = network.get_submodule(name)
    a, b = pca.lora_init(RANK, layer.out_features)
    assert (a.shape, b.shape) == ((RANK, layer.in_features), (layer.out_features, RANK))
    expected = right_singular_vectors(inputs_in_float64(network, x)[name], center)
    assert principal_angles(a.astype(float), expected).max() < 1e-4
    assert angular_error(a.astype(float), expected).max() < 1e-3
    np.testing.assert_allclose(a @ a.T, np.eye(RANK), atol=1e-5)


@pytest.mark.parametrize("center", [True, False])
def test_adapters_of_all_linear_layers_come_from_one_pass_over_tokens(network, center):
    x = data((60, 7))
    batches = list(x.split(16))
    fits = fit_layers(network, batches, ["first", "second"], RANK, side="inputs", center=center)
    for name, rows in inputs_in_float64(network, x).items():
        a, _ = fits[name].lora_init(RANK, network.get_submodule(name).out_features)
        expected = right_singular_vectors(rows, center)
        assert principal_angles(a.astype(float), expected).max() < 1e-4
        assert fits[name].n_samples_seen_ == len(rows)


def test_an_adapter_changes_nothing_at_first_and_its_first_gradient_is_that_of_the_scores(network):
    x = data((100,))
    pca = EigenGamePCA(RANK, random_state=0).fit(activations(network, [x], "second", side="inputs"))
    a, b = pca.lora_init(RANK, OUT)
    adapted = Adapted(network.second, a, b, alpha=2 * RANK)
    rows = torch.from_numpy(inputs_in_float64(network, x)["second"].astype(np.float32))
    torch.testing.assert_close(adapted(rows), network.second(rows), rtol=0, atol=0)
    adapted(rows).sum().backward()
    expected = 2 * np.outer(np.ones(OUT), (rows.numpy() @ a.T).sum(0))
    np.testing.assert_allclose(adapted.b.grad, expected, rtol=1e-4, atol=1e-2)


def test_the_recipe_of_the_documentation_gives_the_first_singular_vectors():
    page = Path(__file__).parents[2] / "docs" / "export.md"
    recipe = re.search(r"```python\n(rows = activations.*?)```", page.read_text(), re.S)[1]
    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("start", nn.Linear(24, 24))
    model.add_module("fc1", nn.Linear(24, OUT))
    x = torch.randn(300, 24) * torch.from_numpy(np.geomspace(4, 0.2, 24, dtype=np.float32))
    names = {"model": model.eval(), "loader": list(x.split(60))}
    names |= {"activations": activations, "EigenGamePCA": EigenGamePCA}
    exec(recipe, names)
    with torch.inference_mode():
        rows = model.start.double()(x.double()).numpy()
    expected = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:16]
    assert names["a"].shape == (16, 24)
    assert names["b"].shape == (OUT, 16)
    # The tolerance of a fit without arguments.
    assert principal_angles(names["a"].astype(float), expected).max() < 0.05
