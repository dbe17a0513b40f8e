"""Gradients of networks: one pass against an explicit Fisher matrix in float64, and the scripts of benchmarks."""

import math
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks import gpu_gradients, gradients_mnist  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from eigengame import gradients, metrics  # noqa: E402
from tests.game_pca import game_pca  # noqa: E402
from tests.sources.same_rows import real  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="float32 on the CPU is expected")


def one_pass_angles(model, x, y, k, kind):
    """Return the angles after one pass of the game, and those that its certificate bounds."""
    source = gradients("categorical", model, DataLoader(TensorDataset(x, y), batch_size=64), kind)
    pca = game_pca(k, center=False, random_state=0).fit(source)
    assert pca.n_passes_ == 1
    matrix, _ = gradients_mnist.explicit_fisher(model, x, y, kind)
    values, truth = metrics.true_components(matrix=matrix, k=k)
    np.testing.assert_allclose(pca.singular_values_[0] ** 2 / len(x), values[0], rtol=1e-2)
    return metrics.angular_error(np.asarray(pca.components_, np.float64), truth), pca.certificate_


@pytest.mark.parametrize("kind", ["sampled", "empirical"])
def test_one_pass_over_a_tiny_network_finds_the_fisher_matrix(kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 10))
    # The spectrum of an untrained network is flat: only the first three eigenvalues are apart.
    x, y = torch.randn(700, 8) * torch.logspace(1, -1, 8), torch.randint(10, (700,))
    angles, certificate = one_pass_angles(model, x, y, 3, kind)
    assert angles.max() < math.pi / 32
    assert (angles <= certificate.angle + 1e-5).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sampled", "empirical"])
def test_one_pass_over_a_cnn_on_mnist_finds_ten_components(kind):
    real("mnist/train-labels-idx1-ubyte.gz")
    x, y = gradients_mnist.load(str(real("mnist/train-images-idx3-ubyte.gz")), 4000)
    torch.manual_seed(0)
    model = gradients_mnist.network()
    assert gradients_mnist.train(model, x, y, 3) > 0.85
    angles, certificate = one_pass_angles(model.eval(), x, y, 10, kind)
    assert angles.max() < math.pi / 32
    assert (angles <= certificate.angle + 1e-5).all()


@pytest.mark.slow
def test_the_script_for_a_gpu_runs_on_a_tiny_network(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu_gradients", "--tiny", "--batch", "16", "--k", "4"])
    gpu_gradients.main()
    said = capsys.readouterr().out
    assert float(said.split("relative error at most ")[1].split()[0]) < 1e-5
    assert float(said.split("exact: angles at most ")[1].split()[0]) < 1e-5
