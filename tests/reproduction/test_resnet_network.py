"""A ResNet in plain torch: torchvision's names, any number of blocks, weights from a file."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from reproduction.experiments.resnet import network as resnets  # noqa: E402

TINY = (1, 1, 1, 1)


def saved(path, network):
    arrays = {name: value.numpy() for name, value in network.state_dict().items()}
    np.savez(path, **{name: one for name, one in arrays.items() if "num_batches" not in name})
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A file of random weights, with batch norms that have something to undo."""
    torch.manual_seed(0)
    network = resnets.ResNet(TINY, classes=5, stride_first=True)
    for name, value in network.state_dict().items():
        if "running_var" in name:
            value.uniform_(0.5, 2.0)
        elif "running_mean" in name:
            value.normal_(0.0, 0.5)
    return saved(tmp_path_factory.mktemp("weights") / "tiny.npz", network)


def outputs(network, x):
    """Return what conv1, each stage and the network give."""
    kept = {}
    for name in ("conv1", "layer1.0", "layer4.0"):
        network.get_submodule(name).register_forward_hook(
            lambda _, __, out, name=name: kept.__setitem__(name, out.numpy())
        )
    with torch.inference_mode():
        return kept | {"all": network(x).numpy()}


@pytest.mark.parametrize(
    ("counts", "features"), [(resnets.RESNET50, 6_322_176), (resnets.RESNET200, 20_371_456)]
)
def test_conv1_and_all_blocks_have_the_features_of_the_paper(counts, features):
    seen = []
    with torch.device("meta"):
        network = resnets.ResNet(counts).eval()
        for name in ("conv1", *resnets.block_names(counts)):
            network.get_submodule(name).register_forward_hook(
                lambda _, __, out: seen.append(out[0].numel())
            )
        network(torch.empty(1, 3, 224, 224))
    assert sum(seen) == features


def test_names_are_those_of_torchvision():
    with torch.device("meta"):
        names = resnets.ResNet().state_dict()
    assert len([name for name in names if "num_batches" not in name]) == 267
    for name in ("conv1.weight", "layer1.0.downsample.1.running_var", "layer3.5.bn3.bias"):
        assert name in names


def test_the_stride_is_in_the_first_convolution_or_in_the_second():
    with torch.device("meta"):
        blocks = [resnets.ResNet(TINY, stride_first=v1).layer2[0] for v1 in (True, False)]
    strides = [(one.conv1.stride[0], one.conv2.stride[0]) for one in blocks]
    assert strides == [(2, 1), (1, 2)]


def test_a_unit_of_pixels_changes_conv1_alone(tiny):
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 50, (2, 3, 32, 32)).astype(np.float32))
    plain = outputs(resnets.load(tiny, TINY), x)
    other = outputs(resnets.load(tiny, TINY, unit=57.6), x / 57.6)
    np.testing.assert_allclose(other["conv1"], plain["conv1"] / 57.6, rtol=1e-3, atol=1e-4)
    for name in ("layer1.0", "layer4.0", "all"):
        scale = np.abs(plain[name]).max()
        np.testing.assert_allclose(other[name] / scale, plain[name] / scale, atol=1e-4)


def test_weights_of_another_network_are_refused_by_name(tiny):
    with pytest.raises(ValueError, match=r"ResNet with \(1, 2, 1, 1\) blocks \(see layer2\.1"):
        resnets.load(tiny, (1, 2, 1, 1))
