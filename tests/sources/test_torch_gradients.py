"""Gradients of examples computed by torch: rows, an unchanged network, fits, and errors."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from eigengame import EigenGamePCA, gradients, metrics  # noqa: E402
from eigengame.sources import DEVICE_BUFFERS  # noqa: E402
from eigengame.sources._likelihoods import JaxLikelihoods, uniforms  # noqa: E402
from eigengame.sources.torch.likelihoods import TorchLikelihoods  # noqa: E402
from tests.game_pca import game_pca  # noqa: E402
from tests.sources.tables import error_of  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="float32 on the CPU is expected")

N, CLASSES = 45, 4
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(N, 2, 6, 6)).astype(np.float32))
Y = torch.from_numpy(RNG.integers(0, CLASSES, N))


class Net(nn.Module):
    """Convolution, batch norm, dropout, an in-place activation, and a mean that needs four axes."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.relu, self.drop = nn.ReLU(inplace=True), nn.Dropout(0.5)
        self.fc = nn.Linear(3, CLASSES)

    def forward(self, x):
        return self.fc(self.drop(self.relu(self.bn(self.conv(x))).mean(dim=(2, 3))))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small operations on several threads take most of their time to wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def net():
    torch.manual_seed(0)
    made = Net()
    made.bn.running_mean.uniform_(-0.5, 0.5)
    made.bn.running_var.uniform_(0.5, 2)
    return made.eval()


def loader(batch=8, data=X, labels=Y):
    return DataLoader(TensorDataset(data, labels), batch_size=batch)


def copied(source, start=0, size=16):
    return np.concatenate([np.array(block.values) for block in source.blocks(start, size)])


def cross_entropy(net, x, y):
    return F.cross_entropy(net(x), y)


def by_hand(net, labels=Y):
    """Return the gradients of all examples in float64, by one backward pass each."""
    own, rows = copy.deepcopy(net).double(), []
    for i in range(N):
        own.zero_grad()
        F.cross_entropy(own(X[i : i + 1].double()), labels[i : i + 1]).backward()
        rows.append(np.concatenate([p.grad.numpy().ravel() for p in own.parameters()]))
    return np.array(rows)


def drawn_labels(net):
    """Return the labels of seed 0, by the definition: the class in whose interval the number lies."""
    with torch.no_grad():
        p = torch.softmax(net(X).double(), dim=1).numpy()
    return torch.from_numpy(
        np.array(
            [
                np.searchsorted(np.cumsum(one), u)
                for one, u in zip(p, uniforms(0, 0, N, ()), strict=True)
            ]
        )
    )


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("chunk", [1, 5, "auto"])
def test_empirical_rows_equal_those_of_backward_passes(net, chunk):
    truth = by_hand(net)
    for loss in ("categorical", cross_entropy):
        source = gradients(loss, net, loader(), "empirical", chunk=chunk)
        assert source.shape == truth.shape
        assert source.layers.names == [name for name, _ in net.named_parameters()]
        np.testing.assert_allclose(copied(source), truth, atol=1e-6)
        np.testing.assert_allclose(copied(source, 13, 7), truth[13:], atol=1e-6)


def test_sampled_rows_use_the_labels_that_the_network_draws(net):
    labels = drawn_labels(net)
    assert (labels != Y).any()
    source = gradients("categorical", net, loader())
    np.testing.assert_allclose(copied(source), by_hand(net, labels), atol=1e-6)
    unlabelled = gradients("categorical", net, [X[:20], X[20:]], chunk=3)
    np.testing.assert_allclose(copied(unlabelled, 4), by_hand(net, labels)[4:], atol=1e-6)


@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli", "gaussian"])
def test_torch_and_jax_have_the_same_likelihoods(likelihood):
    z = RNG.normal(size=(1, 5, 3)).astype(np.float32)
    u = uniforms(3, 0, 1, (5,) if likelihood == "categorical" else (5, 3))
    here, there = TorchLikelihoods(), JaxLikelihoods()
    labels = here.draw(likelihood, torch.from_numpy(z), torch.from_numpy(u))
    other = there.draw(likelihood, z, u)
    np.testing.assert_allclose(labels.numpy(), np.asarray(other), atol=1e-5)
    found = here.negative_log(likelihood, torch.from_numpy(z), labels)
    np.testing.assert_allclose(
        float(found), float(there.negative_log(likelihood, z, other)), rtol=1e-5
    )


def test_the_network_is_not_changed(net):
    net.drop.train()  # dropout is switched off during a pass, and on again
    before = copy.deepcopy(net.state_dict())
    first, second = (copied(gradients("categorical", net, loader(), "empirical")) for _ in "ab")
    np.testing.assert_array_equal(first, second)
    assert net.drop.training
    assert not net.bn.training
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_blocks_are_views_of_few_buffers(net):
    source = gradients("categorical", net, loader(4), chunk=3)
    places = [block.values.unsafe_buffer_pointer() for block in source.blocks(0, 4)]
    assert len(set(places[:-1])) == DEVICE_BUFFERS


def test_frozen_parameters_are_left_out_and_names_choose_others(net):
    truth = by_hand(net)
    net.conv.requires_grad_(False)
    some = gradients("categorical", net, loader(), "empirical")
    width = sum(p.numel() for p in net.conv.parameters())
    np.testing.assert_allclose(copied(some), truth[:, width:], atol=1e-6)
    conv = gradients("categorical", net, loader(), "empirical", names="conv.*")
    np.testing.assert_allclose(copied(conv), truth[:, :width], atol=1e-6)
    parts = conv.unflatten(np.arange(float(width)))
    assert {name: part.shape for name, part in parts.items()} == {
        "conv.weight": (3, 2, 3, 3),
        "conv.bias": (3,),
    }
    assert "conv.weight" in error_of(gradients, "categorical", net, loader(), names="cnv.weight")


def test_tied_parameters_are_one_parameter():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(torch.tanh(self.one(x)))

    torch.manual_seed(0)
    net, x, y = Tied(), torch.from_numpy(RNG.normal(size=(9, 4)).astype(np.float32)), Y[:9]
    rows = []
    for i in range(9):
        net.zero_grad()
        F.cross_entropy(net(x[i : i + 1]), y[i : i + 1]).backward()
        rows.append(net.one.weight.grad.numpy().ravel().copy())
    for chunk in (1, 4):
        source = gradients("categorical", net, [(x, y)], "empirical", chunk=chunk)
        np.testing.assert_allclose(copied(source), rows, atol=1e-6)


def test_batches_can_be_dicts(net):
    batches = [{"image": X[:20], "label": Y[:20]}, {"image": X[20:], "label": Y[20:]}]
    source = gradients(
        "categorical",
        net,
        batches,
        "empirical",
        outputs=lambda net, batch: net(batch["image"]),
        target="label",
    )
    np.testing.assert_allclose(copied(source), by_hand(net), atol=1e-6)
    assert "give outputs=" in error_of(gradients, "categorical", net, batches)


def test_a_network_in_half_precision_draws_labels_in_full_precision(net):
    half = copy.deepcopy(net).to(torch.bfloat16)
    z = half(X.to(torch.bfloat16)).float().detach()
    p = torch.softmax(z, dim=1).numpy()
    rows = copied(gradients("categorical", half, loader()))
    labels = rows[:, -CLASSES:].argmin(axis=1)
    expected = [
        np.searchsorted(np.cumsum(one), u) for one, u in zip(p, uniforms(0, 0, N, ()), strict=True)
    ]
    assert (labels == expected).mean() > 0.97  # a batch of one may be rounded in another way


# ---------------------------------------------------------------- fits


def test_a_fit_gives_the_eigenvectors_of_the_fisher_matrix(net):
    rows = by_hand(net, drawn_labels(net))
    values, truth = metrics.true_components(matrix=rows.T @ rows / N, k=3)
    source = gradients("categorical", net, loader())
    for pca in (
        EigenGamePCA(3, center=False, random_state=0).fit(source),
        game_pca(3, center=False, random_state=0, passes=6).fit(source),
    ):
        assert metrics.angular_error(pca.components_, truth).max() < 1e-3
        np.testing.assert_allclose(pca.singular_values_**2 / N, values, rtol=1e-4)
    assert pca.layers_ == source.layers


def test_checkpoints_recognise_weights_but_not_losses(net):
    source = gradients("categorical", net, loader())
    assert source.digest() == gradients("categorical", net, loader()).digest()
    assert source.digest() != gradients("categorical", net, loader(), "empirical").digest()
    assert gradients(cross_entropy, net, loader(), "empirical").digest() is None
    before = source.digest()
    with torch.no_grad():
        net.fc.bias += 1
    assert source.digest() != before


# ---------------------------------------------------------------- errors


def test_batch_norms_that_use_the_batch_are_refused(net):
    net.train()
    assert "'bn' is in training mode" in (
        message := error_of(gradients, "categorical", net, loader())
    )
    assert "call model.eval()" in message
    net.eval()
    net.bn = nn.BatchNorm2d(3, track_running_stats=False)
    assert "'bn' has no running statistics" in error_of(gradients, "categorical", net, loader())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda net, x, y: x.sum(), "does not depend on 'conv.weight'"),
        (lambda net, x, y: net(x).detach().sum(), "does not depend on"),
        (lambda net, x, y: net(x), "has shape (1, 4) and dtype torch.float32"),
        (lambda net, x, y: net(x).sum().item(), "is a float"),
    ],
)
def test_losses_that_have_no_gradient_are_refused(net, loss, message):
    assert message in error_of(gradients, loss, net, loader(), "empirical")


def test_outputs_that_are_not_one_tensor_are_refused(net):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return {"logits": self.net(x)}

    own = Wrapped().eval()
    assert "are a dict: give outputs=" in error_of(gradients, "categorical", own, loader())
    source = gradients(
        "categorical", own, loader(), "empirical", outputs=lambda net, x, y: net(x)["logits"]
    )
    np.testing.assert_allclose(copied(source), by_hand(net), atol=1e-6)
    flat = error_of(gradients, "categorical", net, loader(), outputs=lambda net, x, y: net(x)[0])
    assert "of shape (4,)" in flat


def test_networks_without_parameters_to_differentiate_are_refused(net):
    assert "has no parameters" in error_of(gradients, "categorical", nn.ReLU(), loader())
    frozen = copy.deepcopy(net).requires_grad_(False)
    assert 'names="**"' in error_of(gradients, "categorical", frozen, loader())
    net.table = nn.Parameter(torch.arange(3), requires_grad=False)
    message = error_of(gradients, "categorical", net, loader(), names="**")
    assert "'table' have dtype torch.int64" in message
    assert "give the module" in error_of(gradients, "categorical", net.fc.weight, loader())
    several = {"weight": net.fc.weight}
    message = error_of(gradients, cross_entropy, several, loader(), "empirical")
    assert "'weight' is a Parameter: give a tree of arrays, or a torch module" in message


def test_gradients_that_are_not_finite_name_the_example(net):
    bad = X.clone()
    bad[30] = np.nan
    source = gradients("categorical", net, loader(data=bad), "empirical")
    with pytest.raises(ValueError, match=r"'conv.weight' at \(0, 0, 0, 0\) is nan in row 30"):
        game_pca(2, center=False).fit(source)
    left = gradients("categorical", net, loader(data=bad), "empirical", nonfinite="skip")
    pca = game_pca(2, center=False, random_state=0).fit(left)
    assert pca.n_samples_seen_ == N - 1


def test_a_network_that_vmap_does_not_run_gets_a_remedy(net):
    def loss(net, x, y):
        scores = net(x)
        return scores.sum() if scores.max().item() > 0 else scores.mean()

    source = gradients(loss, net, loader(), "empirical")
    with pytest.raises(RuntimeError, match="vmap") as raised:
        copied(source)
    assert any("chunk=1" in note for note in raised.value.__notes__)
    assert copied(gradients(loss, net, loader(), "empirical", chunk=1)).shape == source.shape


@pytest.mark.parametrize("label", [-100, 3])
def test_a_label_that_the_likelihood_does_not_have_is_refused_in_the_first_example_too(label):
    batches = [(torch.zeros(4, 6), torch.full((4,), label))]
    with pytest.raises(ValueError, match=f"label of example 0 is {label}: give integers from 0"):
        gradients("categorical", nn.Linear(6, 3), batches, kind="empirical")
