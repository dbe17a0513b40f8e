"""Activations on a GPU: recorded forward passes, and buffers that JAX reads without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eigengame import activations, fit_layers
from eigengame.metrics import angular_error
from tests.game_pca import game_pca

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("no GPU that torch can use", allow_module_level=True)


class Network(torch.nn.Module):
    """Convolutions, a norm and a linear layer; `branches` makes the forward pass wait for the GPU."""

    def __init__(self, branches: bool = False) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8 * 16 * 16, 40)
        self.branches = branches

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.norm(self.conv(x)))
        if self.branches and float(x.sum()) > 0:
            x = 2 * x
        return self.head(x.flatten(1))


def made(branches: bool = False, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return Network(branches).cuda().eval()


def pictures(rows: int = 200, size: int = 32) -> list[Any]:
    drawn = torch.randn(rows, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return list(drawn.split(size))


def rows_of(source: Any, size: int = 32) -> np.ndarray:
    return np.concatenate(
        [np.asarray(block.values, np.float32) for block in source.blocks(0, size)]
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("nonfinite", ["raise", "skip", "zero"])
def test_a_replayed_forward_gives_the_same_rows(dtype: str, nonfinite: Any) -> None:
    network, given = made(), pictures()
    options: dict[str, Any] = {"dtype": dtype, "nonfinite": nonfinite, "layers": ["conv", "head"]}
    plain = rows_of(activations(network, given, replay=False, **options))
    source = activations(network, given, **options)
    for _ in range(2):
        np.testing.assert_array_equal(rows_of(source), plain)
    replay = source._network._replay
    assert replay.refused is None
    assert len(replay._graphs) == 3


def test_a_network_that_cannot_be_recorded_runs_without_a_graph() -> None:
    network, given = made(branches=True), pictures()
    source = activations(network, given, dtype="float32")
    plain = activations(network, given, dtype="float32", replay=False)
    np.testing.assert_array_equal(rows_of(source), rows_of(plain))
    assert source._network._replay.refused is not None


def test_moved_weights_are_recorded_again() -> None:
    network, given = made(), pictures()
    source = activations(network, given, dtype="float32")
    before = rows_of(source)
    network.cpu()
    with torch.no_grad():
        network.conv.weight.mul_(-1)
    network.cuda()
    after = rows_of(source)
    assert np.abs(after - before).max() > 0.1
    plain = activations(network, given, dtype="float32", replay=False)
    np.testing.assert_array_equal(after, rows_of(plain))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
@pytest.mark.filterwarnings("ignore:TensorFloat32:UserWarning")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_compiled_modules_are_recorded_and_give_the_same_rows(dtype: str) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(Network(), torch.nn.Linear(40, 8)).cuda().eval()
    given, options = pictures(), {"dtype": dtype, "layers": ["0", "1"]}
    plain = rows_of(activations(network, given, **options))
    source = activations(network, given, compile=True, **options)
    tolerance = 1e-4 if dtype == "float32" else 0.05
    for _ in range(2):
        np.testing.assert_allclose(rows_of(source), plain, rtol=tolerance, atol=tolerance)
    replay = source._network._replay
    assert replay.refused is None
    assert len(replay._graphs) == 3
    assert [
        name for name, one in source._network._model.named_modules() if "forward" in vars(one)
    ] == ["0"]


def test_batches_of_changing_sizes_are_cut_into_blocks() -> None:
    network, given = made(), [*pictures(200), *pictures(70, 7)]
    source = activations(network, given, dtype="float32")
    plain = activations(network, given, dtype="float32", replay=False)
    np.testing.assert_array_equal(rows_of(source), rows_of(plain))


def test_rows_with_nan_are_skipped_in_a_replay() -> None:
    network, given = made(), pictures()
    given[4][3] = np.nan
    source = activations(network, given, dtype="float32", nonfinite="skip")
    weights = [block.weights for block in source.blocks(0, 32)]
    assert [int(32 - one.sum()) for one in weights[:-1]] == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("center", [True, False])
def test_components_are_those_of_float64(center: bool) -> None:
    source = activations(made(), pictures(512, 64), dtype="float32")
    rows = rows_of(source, 64).astype(np.float64)
    rows = rows - rows.mean(axis=0) if center else rows
    true = np.linalg.svd(rows, full_matrices=False)[2][:4]
    pca = game_pca(4, center=center, tol=1e-3, random_state=0).fit(source)
    assert angular_error(pca.components_, true).max() < 1e-3


class Stack(torch.nn.Module):
    """Residual layers over token ids."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(200, 96)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(96, 96) for _ in range(3)])

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.embedding(ids) * torch.linspace(3, 0.5, 96, device=ids.device)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


@pytest.mark.parametrize("algorithm", ["covariance", "remembered"])
def test_all_layers_of_masked_tokens_agree_with_float64(algorithm: Any) -> None:
    torch.manual_seed(0)
    model = Stack().cuda().eval()
    random, batches, seen = np.random.default_rng(0), [], {i: [] for i in range(3)}
    for _ in range(40):
        lengths = random.integers(1, 60, 16)
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = random.integers(0, 200, mask.shape)
        batches.append({"ids": torch.from_numpy(ids), "mask": torch.from_numpy(mask)})
    fits = fit_layers(
        model, batches, "layers.*", 8, mask="mask", algorithm=algorithm, dtype="float32", tol=None
    )
    for i, layer in enumerate(model.layers):
        layer.register_forward_hook(
            lambda m, g, out, i=i: seen[i].append(out.double().cpu().numpy())
        )
    with torch.inference_mode():
        for batch in batches:
            model(**{key: one.cuda() for key, one in batch.items()})
    for i, pca in enumerate(fits.values()):
        rows = np.concatenate(
            [out[batch["mask"].numpy() > 0] for out, batch in zip(seen[i], batches, strict=True)]
        )
        exact = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:8]
        angles = angular_error(pca.components_.astype(float), exact)
        assert pca.n_samples_seen_ == len(rows)
        assert angles.max() < 0.05
        assert (pca.certificate_.angle >= angles).all()
