"""`eigengame fit-activations`: network specifications, weights, and models with layers."""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
PIL = pytest.importorskip("PIL", reason="pillow is not installed")

from PIL import Image  # noqa: E402

from eigengame import EigenGamePCA, LayerFits  # noqa: E402
from eigengame.cli.networks import load_weights, open_network  # noqa: E402
from eigengame.metrics import angular_error  # noqa: E402

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
    return open_network("net.py:make", None, False)


@pytest.fixture
def pictures(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    folder.mkdir()
    for i in range(24):
        Image.fromarray(rng.integers(0, 255, (24, 20, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    return folder


def test_a_model_is_written_with_its_layers_and_printed_by_layer(run, net, pictures):
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
    assert "share of explained" in done.out
    assert "2 x 7 x 7" in done.out
    done = run(*command, "--batch-size", 8, "--layers", "0,1.*", "--json", "-q", "--force")
    facts = json.loads(done.out)
    np.testing.assert_allclose(np.sum([one["shares"] for one in facts["layers"]], axis=0), 1)
    np.testing.assert_allclose(sum(one["explained"] for one in facts["layers"]), 1)


def test_layers_are_listed_and_nothing_is_fitted(run, net, pictures):
    done = run(
        "fit-activations", "net.py:make", "--images", "pictures", "--size", 16, "--list-layers"
    )
    assert done.out.splitlines()[:2] == ["0  2 x 7 x 7  98", "1.0  3 x 3 x 3  27"]
    assert not Path("pictures-activations.safetensors").exists()


GPT = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Linear(6, 6)

    def forward(self, x):
        return x + torch.tanh(self.mlp(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(20, 6), nn.ModuleList([Block(), Block()])

    def forward(self, input_ids, attention_mask=None):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x)
        return x

def make():
    torch.manual_seed(0)
    return Net()
"""


@pytest.fixture
def ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gpt.py").write_text(GPT)
    random = np.random.default_rng(0)
    lengths = random.integers(1, 10, 40)
    found = np.where(np.arange(12) < lengths[:, None], random.integers(1, 20, (40, 12)), 0)
    np.save("ids.npy", found.astype(np.int32))
    return found


def test_each_layer_is_fitted_with_tokens_as_rows(run, ids):
    command = (
        "fit-activations",
        "gpt.py:make",
        "--tokens",
        "ids.npy",
        "--padding",
        0,
        "--layers",
        "residual",
    )
    command += ("--each", "-k", 2, "--tol", "none", "--batch-size", 16)
    done = run(*command, "-o", "all.safetensors", "--picture", "all.svg", "-q", "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert [one["layer"] for one in facts["layers"]] == ["layers.0", "layers.1"]
    assert {one["rows"] for one in facts["layers"]} == {int((ids > 0).sum())}
    fits = LayerFits.load("all.safetensors")
    net = open_network("gpt.py:make", None, False)
    with torch.inference_mode():
        rows = net(torch.from_numpy(ids)).numpy()[ids > 0].astype(float)
    components = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:2]
    assert angular_error(fits["layers.1"].components_.astype(float), components).max() < 1e-3
    assert "layers.1" in Path("all.svg").read_text()
    done = run(*command, "-o", "folder", "-q")
    assert (done.code, "effective dimension" in done.out) == (0, True), done.err
    assert len(list(Path("folder").iterdir())) == 2


def test_tokens_are_rows_of_one_fit_too(run, ids):
    done = run(
        *(
            "fit-activations",
            "gpt.py:make",
            "--tokens",
            "ids.npy",
            "--padding",
            0,
            "--layers",
            "layers.1",
        ),
        *("-k", 2, "-o", "one.safetensors", "-q", "--per-input", 3),
    )
    assert done.code == 0, done.err
    assert (
        EigenGamePCA.load("one.safetensors").n_samples_seen_
        == np.minimum((ids > 0).sum(1), 3).sum()
    )


def test_inputs_of_layers_are_fitted_with_side_inputs(run, ids):
    command = ("fit-activations", "gpt.py:make", "--tokens", "ids.npy", "--padding", 0)
    command += ("--layers", "layers.*.mlp", "--side", "inputs", "-k", 2, "-q")
    done = run(*command, "--each", "--tol", "none", "-o", "all.safetensors", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["side"] == "inputs"
    fits = LayerFits.load("all.safetensors")
    assert list(fits) == ["layers.0.mlp", "layers.1.mlp"]
    net = open_network("gpt.py:make", None, False)
    with torch.inference_mode():
        rows = net.layers[0](net.embedding(torch.from_numpy(ids))).numpy()[ids > 0].astype(float)
    components = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:2]
    pca = fits["layers.1.mlp"]
    assert angular_error(pca.components_.astype(float), components).max() < 1e-3
    assert pca.layers_.side == "inputs"
    done = run(*command, "-o", "one.safetensors", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["side"] == "inputs"
    one = EigenGamePCA.load("one.safetensors")
    assert (one.layers_.names, one.layers_.side) == (["layers.0.mlp", "layers.1.mlp"], "inputs")
    assert one.n_samples_seen_ == (ids > 0).sum()
    assert run(*command[:-5], "--side", "both").code == 2


def test_shapes_of_inputs_are_listed_with_side_inputs(run, net, pictures):
    command = ("fit-activations", "net.py:make", "--images", "pictures", "--size", 16)
    done = run(*command, "--list-layers", "--side", "inputs")
    assert done.code == 0, done.err
    # A block is called before its parts.
    assert done.out.splitlines()[:3] == [
        "0  3 x 16 x 16  768",
        "1  2 x 7 x 7  98",
        "1.0  2 x 7 x 7  98",
    ]


def test_a_network_without_the_arguments_of_padded_tokens_is_refused(run, ids):
    Path("gpt.py").write_text(GPT.replace(", attention_mask=None", ""))
    command = ("fit-activations", "gpt.py:make", "--tokens", "ids.npy", "-k", 2, "-q")
    done = run(*command, "--padding", 0)
    assert done.code == 1
    assert "forward(input_ids) has no argument attention_mask" in done.err
    assert "leave out --padding" in done.err
    done = run(*command, "-o", "padded.safetensors")
    assert done.code == 0, done.err


def test_options_that_do_not_apply_to_each_are_refused(run, ids):
    command = ("fit-activations", "gpt.py:make", "--tokens", "ids.npy")
    for options, message in (
        (("--each", "--passes", 3), "--passes does not apply to --each"),
        (("--each", "--checkpoint", "folder"), "--checkpoint does not apply to --each"),
        (("--each", "-k", "0.9"), "give a number of components, not a share"),
        (("--each", "--algorithm", "oja"), "give auto, exact"),
        (("--picture", "a.svg"), "--picture is for --each"),
        (("--images", "ids.npy"), "either --images or --tokens"),
    ):
        done = run(*command, *options)
        assert done.code != 0
        assert message in " ".join(done.err.replace("│", " ").split())


def test_bad_layers_and_numbers_give_an_error(run, net, pictures):
    command = ("fit-activations", "net.py:make", "--images", "pictures", "--size", 16)
    done = run(*command, "--layers", "7")
    assert (done.code, "'7' matches nothing in activations of net.py:make" in done.err) == (1, True)
    assert run(*command, "--mean", "a,b").code == 2
    assert "does not exist" in run(*command[:2], "--images", "nowhere").err


def test_networks_are_opened_from_files_and_libraries(net, monkeypatch):
    assert isinstance(net, torch.nn.Module)
    torch.save(net, "whole.pt")
    with pytest.raises(ValueError, match="loading it can run arbitrary code: give --trust"):
        open_network("whole.pt", None, False)
    assert isinstance(open_network("whole.pt", None, True), torch.nn.Sequential)
    made = []
    models = types.SimpleNamespace(
        list_models=lambda: ["resnet18", "resnet50"],
        get_model=lambda name, weights: made.append((name, weights)) or net,
    )
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    monkeypatch.setitem(sys.modules, "torchvision", types.SimpleNamespace(models=models))
    assert open_network("torchvision:resnet50", None, False) is net
    assert made == [("resnet50", None)]
    with pytest.raises(ValueError, match="no model 'resnet5': did you mean resnet50"):
        open_network("torchvision:resnet5", None, False)


def test_invalid_networks_are_rejected(net):
    for text, message in (
        ("net", "give torchvision:resnet50, timm:NAME"),
        ("gone.py:make", "gone.py does not exist"),
        ("gone.pt", "gone.pt does not exist"),
        ("net.py:mak", "no function 'mak': it has make, number"),
        ("net.py:number", "is a int: give a function that returns a torch.nn.Module"),
    ):
        with pytest.raises(ValueError, match=message):
            open_network(text, None, False)
    torch.save(net.state_dict(), "weights.pth")
    with pytest.raises(ValueError, match="contains weights but no network"):
        open_network("weights.pth", None, False)


@pytest.fixture
def wanted(net):
    """Weights of the network, in a file of each format."""
    from safetensors.torch import save_file

    wanted = {name: torch.rand(tensor.shape) for name, tensor in net.state_dict().items()}
    del wanted["1.1.num_batches_tracked"]
    torch.save({"state_dict": wanted, "epoch": 3}, "weights.pt")
    save_file(wanted, "weights.safetensors")
    np.savez("weights.npz", **{name: tensor.numpy() for name, tensor in wanted.items()})
    return wanted


def test_weights_are_read_from_every_format(wanted):
    for ending in ("pt", "safetensors", "npz"):
        fresh = open_network("net.py:make", Path(f"weights.{ending}"), False)
        for name, tensor in wanted.items():
            torch.testing.assert_close(fresh.state_dict()[name], tensor)


@pytest.mark.parametrize("ending", ["pt", "safetensors", "npz"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_truncated_weights_are_reported_as_unreadable(net, wanted, ending, share):
    path = Path(f"weights.{ending}")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=rf"weights\.{ending} cannot be read .*download it again"):
        load_weights(net, path)


def test_a_file_not_written_by_torch_is_rejected(net):
    Path("noise.pt").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match=r"noise\.pt cannot be read"):
        open_network("noise.pt", None, False)


def test_weights_of_another_network_are_rejected(net):
    wanted = dict(net.state_dict())
    torch.save({name: wanted[name] for name in list(wanted)[2:]} | {"x": torch.ones(1)}, "few.pt")
    with pytest.raises(ValueError, match=r"lacks 0.weight, 0.bias and has unexpected x"):
        load_weights(net, Path("few.pt"))
    torch.save(wanted | {"0.bias": torch.ones(7)}, "other.pt")
    with pytest.raises(ValueError, match=r"does not match the network: .*size mismatch for 0.bias"):
        load_weights(net, Path("other.pt"))
    torch.save(net, "whole.pt")
    with pytest.raises(ValueError, match="contains more than weights"):
        load_weights(net, Path("whole.pt"))
    with pytest.raises(ValueError, match=r"give weights as .safetensors"):
        load_weights(net, Path("net.py"))
