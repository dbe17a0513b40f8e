"""`eigengame fit-activations`: networks by what people type, and a model that knows its layers."""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
PIL = pytest.importorskip("PIL", reason="pillow is not installed")

from PIL import Image  # noqa: E402

from eigengame import EigenGamePCA  # noqa: E402
from eigengame.cli.networks import load_weights, opened_network  # noqa: E402

CODE = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    blocks = nn.Sequential(nn.Conv2d(2, 3, 3, 2), nn.BatchNorm2d(3))
    return nn.Sequential(nn.Conv2d(3, 2, 3, 2), blocks, nn.Flatten(), nn.Linear(27, 4))

def number():
    return 3
"""


@pytest.fixture
def net(run, tmp_path):
    (tmp_path / "net.py").write_text(CODE)
    return opened_network("net.py:make", None, False)


@pytest.fixture
def pictures(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    folder.mkdir()
    for i in range(24):
        Image.fromarray(rng.integers(0, 255, (24, 20, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    return folder


def test_a_model_is_written_with_its_layers_and_told_by_layer(run, net, pictures):
    command = ("fit-activations", "net.py:make", "--images", "pictures", "--size", 16, "-k", 2)
    done = run(*command, "--batch-size", 8, "--layers", "0,1.*")
    assert done.code == 0
    found = EigenGamePCA.load("pictures-activations.safetensors")
    assert {layer.name: layer.shape for layer in found.layers_} == {
        "0": (2, 7, 7),
        "1.0": (3, 3, 3),
        "1.1": (3, 3, 3),
    }
    assert found.n_samples_seen_ == 24
    assert "of what is explained" in done.out
    assert "2 x 7 x 7" in done.out
    done = run(*command, "--batch-size", 8, "--layers", "0,1.*", "--json", "-q", "--force")
    told = json.loads(done.out)
    np.testing.assert_allclose(np.sum([one["shares"] for one in told["layers"]], axis=0), 1)
    np.testing.assert_allclose(sum(one["explained"] for one in told["layers"]), 1)


def test_layers_are_listed_and_nothing_is_fitted(run, net, pictures):
    done = run(
        "fit-activations", "net.py:make", "--images", "pictures", "--size", 16, "--list-layers"
    )
    assert done.out.splitlines()[:2] == ["0  2 x 7 x 7  98", "1.0  3 x 3 x 3  27"]
    assert not Path("pictures-activations.safetensors").exists()


def test_bad_layers_and_numbers_are_told_in_a_line(run, net, pictures):
    command = ("fit-activations", "net.py:make", "--images", "pictures", "--size", 16)
    done = run(*command, "--layers", "7")
    assert (done.code, "'7' matches nothing in activations of net.py:make" in done.err) == (1, True)
    assert run(*command, "--mean", "a,b").code == 2
    assert "does not exist" in run(*command[:2], "--images", "nowhere").err


def test_networks_are_found_by_what_was_typed(net, monkeypatch):
    assert isinstance(net, torch.nn.Module)
    torch.save(net, "whole.pt")
    with pytest.raises(ValueError, match="reading one may run any code: give --trust"):
        opened_network("whole.pt", None, False)
    assert isinstance(opened_network("whole.pt", None, True), torch.nn.Sequential)
    made = []
    models = types.SimpleNamespace(
        list_models=lambda: ["resnet18", "resnet50"],
        get_model=lambda name, weights: made.append((name, weights)) or net,
    )
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    monkeypatch.setitem(sys.modules, "torchvision", types.SimpleNamespace(models=models))
    assert opened_network("torchvision:resnet50", None, False) is net
    assert made == [("resnet50", None)]
    with pytest.raises(ValueError, match="no 'resnet5'; near it are resnet50"):
        opened_network("torchvision:resnet5", None, False)


def test_what_is_no_network_is_refused(net):
    for text, said in (
        ("net", "give torchvision:resnet50, timm:NAME"),
        ("gone.py:make", "gone.py does not exist"),
        ("gone.pt", "gone.pt does not exist"),
        ("net.py:mak", "no function 'mak': it has make, number"),
        ("net.py:number", "gives a int: a torch.nn.Module is needed"),
    ):
        with pytest.raises(ValueError, match=said):
            opened_network(text, None, False)
    torch.save(net.state_dict(), "weights.pth")
    with pytest.raises(ValueError, match="holds weights and no network"):
        opened_network("weights.pth", None, False)


@pytest.fixture
def wanted(net):
    """Weights of the network, in a file of every kind."""
    from safetensors.torch import save_file

    wanted = {name: torch.rand(tensor.shape) for name, tensor in net.state_dict().items()}
    del wanted["1.1.num_batches_tracked"]
    torch.save({"state_dict": wanted, "epoch": 3}, "weights.pt")
    save_file(wanted, "weights.safetensors")
    np.savez("weights.npz", **{name: tensor.numpy() for name, tensor in wanted.items()})
    return wanted


def test_weights_are_read_from_every_kind_of_file(wanted):
    for ending in ("pt", "safetensors", "npz"):
        fresh = opened_network("net.py:make", Path(f"weights.{ending}"), False)
        for name, tensor in wanted.items():
            torch.testing.assert_close(fresh.state_dict()[name], tensor)


@pytest.mark.parametrize("ending", ["pt", "safetensors", "npz"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_weights_that_are_cut_off_are_not_taken_for_another_networks(net, wanted, ending, share):
    path = Path(f"weights.{ending}")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=rf"weights\.{ending} cannot be read .*fetch it again"):
        load_weights(net, path)


def test_what_is_no_file_of_torch_is_not_taken_for_a_module(net):
    Path("noise.pt").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match=r"noise\.pt cannot be read"):
        opened_network("noise.pt", None, False)


def test_weights_of_another_network_are_refused(net):
    wanted = dict(net.state_dict())
    torch.save({name: wanted[name] for name in list(wanted)[2:]} | {"x": torch.ones(1)}, "few.pt")
    with pytest.raises(ValueError, match=r"lacks 0.weight, 0.bias and has x beside"):
        load_weights(net, Path("few.pt"))
    torch.save(wanted | {"0.bias": torch.ones(7)}, "other.pt")
    with pytest.raises(ValueError, match=r"does not fit the network: .*size mismatch for 0.bias"):
        load_weights(net, Path("other.pt"))
    torch.save(net, "whole.pt")
    with pytest.raises(ValueError, match="holds more than weights"):
        load_weights(net, Path("whole.pt"))
    with pytest.raises(ValueError, match=r"give weights as .safetensors"):
        load_weights(net, Path("net.py"))
