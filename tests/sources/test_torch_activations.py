"""Activations of torch networks: rows, buffers without copies, an unchanged network, and errors."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from eigengame import Checkpoint, activations  # noqa: E402
from eigengame.solver.passes import passes  # noqa: E402
from eigengame.solver.rows import batches as batches_module  # noqa: E402
from eigengame.solver.rows.batches import Batches  # noqa: E402
from eigengame.solver.rows.finite import refuse_unless_finite  # noqa: E402
from eigengame.sources import DEVICE_BUFFERS, Layers  # noqa: E402
from eigengame.sources.torch import working_copy as torch_copy  # noqa: E402
from eigengame.sources.torch.cuda_graph import GraphReplay  # noqa: E402
from eigengame.sources.torch.layer_outputs import _copy  # noqa: E402
from eigengame.sources.torch.network import blocks_of  # noqa: E402
from tests.game_pca import game_pca  # noqa: E402
from tests.sources.tables import error_of, same_fingerprint  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(),
    reason="float32 on the CPU is expected; test_torch_on_gpu has the tests for a GPU",
)


class Block(nn.Module):
    """A residual block with an in-place activation that runs twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.relu = (
            nn.Conv2d(4, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(True),
        )

    def forward(self, x):
        return self.relu(x + self.bn(self.relu(self.conv(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.layer1 = nn.Conv2d(3, 4, 3), nn.Sequential(Block(), Block())
        self.drop, self.fc, self.unused = nn.Dropout(0.5), nn.Linear(4, 2), nn.Linear(1, 1)

    def forward(self, x):
        return self.fc(self.drop(self.layer1(self.conv1(x)).mean((2, 3))))


N = 37
X = torch.from_numpy(np.random.default_rng(0).normal(size=(N, 3, 8, 8)).astype(np.float32))
SHAPES = {"conv1": (4, 6, 6), "layer1.0": (4, 6, 6), "layer1.1": (4, 6, 6), "fc": (2,)}
BLOCKS = ["conv1", "layer1.*", "fc"]


def made_net():
    """Return a network with random weights."""
    torch.manual_seed(0)
    made = Net()
    # Norms with nontrivial statistics, as after training.
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 2)
    return made


@pytest.fixture(scope="module")
def net():
    return made_net()


def loader(batch=8, data=X):
    return DataLoader(TensorDataset(data, torch.arange(len(data))), batch_size=batch)


def by_hand(net, names=tuple(SHAPES), data=X):
    """Return the outputs of the layers, by hooks on a copy."""
    own, seen = copy.deepcopy(net).eval(), {name: [] for name in names}
    for name in names:
        own.get_submodule(name).register_forward_hook(
            lambda module, given, out, name=name: seen[name].append(out.clone())
        )
    with torch.no_grad():
        own(data)
    return {name: outputs[0].numpy() for name, outputs in seen.items()}


def copied(source, start=0, size=16):
    return np.concatenate([np.array(block.values) for block in source.blocks(start, size)])


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(("batch", "size"), [(8, 8), (5, 16), (20, 6), (64, 64)])
def test_rows_equal_the_outputs_of_hooks_for_any_block_size(net, batch, size):
    source = activations(net, loader(batch), BLOCKS)
    assert source.shape == (N, 434)
    assert (source.dtype, source.block_rows) == (np.float32, min(batch, N))
    assert {layer.name: layer.shape for layer in source.layers} == SHAPES
    assert [len(b) for b in source.blocks(3, size)] == [min(size, N - i) for i in range(3, N, size)]
    truth = by_hand(net)
    for start in (0, 11):
        for name, part in source.cut(copied(source, start, size)).items():
            np.testing.assert_allclose(part, truth[name][start:], atol=1e-5)


def test_a_network_with_channels_last_gives_the_same_parts(net):
    source = activations(net, loader(), BLOCKS, channels_last=True)
    assert [layer.channels_last for layer in source.layers] == [True, True, True, False]
    for name, part in source.cut(copied(source)).items():
        np.testing.assert_allclose(part, by_hand(net)[name], atol=1e-5)


def test_layers_of_an_earlier_source_keep_their_order(net):
    last = activations(net, loader(), BLOCKS, channels_last=True)
    same = activations(net, loader(), last.layers)
    np.testing.assert_allclose(copied(same), copied(last), atol=1e-5)
    other = Layers.of([("conv1", (4, 6, 5), False)])
    assert "has shape (4, 6, 6), but (4, 6, 5) is expected" in error_of(
        activations, net, loader(), other
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", torch.bfloat16])
def test_half_precision_is_close_and_norms_stay_in_float32(net, dtype):
    source = activations(net, loader(), BLOCKS, dtype=dtype)
    assert source.dtype.itemsize == 2
    own = source._network._model
    assert own.conv1.weight.dtype == own.fc.weight.dtype != torch.float32
    assert own.layer1[0].bn.weight.dtype == torch.float32
    truth = by_hand(net)
    for name, part in source.cut(copied(source, size=8).astype(np.float32)).items():
        # bfloat16 has 8 significant bits, and errors grow over a few layers.
        np.testing.assert_allclose(part, truth[name], atol=0.05)


def test_a_module_that_runs_twice_is_two_layers(net):
    source = activations(net, loader(), ["layer1.0.relu", "layer1.0"])
    assert source.layers.names == ["layer1.0.relu", "layer1.0.relu:2", "layer1.0"]
    parts = source.cut(copied(source))
    np.testing.assert_array_equal(parts["layer1.0.relu:2"], parts["layer1.0"])
    assert not np.array_equal(parts["layer1.0.relu"], parts["layer1.0"])
    assert activations(net, loader(), source.layers).layers == source.layers


def test_layers_come_in_the_order_in_which_they_run(net):
    source = activations(net, loader(), ["fc", "layer1.1.conv", "conv1"])
    assert source.layers.names == ["conv1", "layer1.1.conv", "fc"]


def test_the_blocks_of_a_network_are_the_default_layers(net):
    assert blocks_of(net) == ["conv1", "layer1.0", "layer1.1", "fc", "unused"]
    assert activations(net, loader()).layers == activations(net, loader(), BLOCKS).layers


def test_dicts_and_tuples_become_arguments():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.sum = nn.Identity()

        def forward(self, a, b):
            return (self.sum(a + b),)

    pairs = [(X[:5, 0, 0], X[:5, 0, 1]), (X[5:9, 0, 0], X[5:9, 0, 1])]
    truth = (X[:9, 0, 0] + X[:9, 0, 1]).numpy()
    named = [{"b": b, "a": a} for a, b in pairs]
    for batches in (pairs, named):
        np.testing.assert_array_equal(copied(activations(Two(), batches, "sum", key=None)), truth)


def test_numpy_arrays_can_be_inputs(net):
    source = activations(net, [X[:20].numpy(), X[20:].numpy()], BLOCKS)
    assert source.shape[0] == N
    np.testing.assert_allclose(
        copied(source), copied(activations(net, loader(), BLOCKS)), atol=1e-5
    )


# ---------------------------------------------------------------- without copies, nothing changed


def test_jax_reads_the_buffers_themselves_in_turn(net):
    source = activations(net, loader(), BLOCKS)
    found = [block.values.unsafe_buffer_pointer() for block in source.blocks(0, 8)]
    buffers = [one.data_ptr() for one in source._network._buffers]
    assert len(buffers) == len(set(buffers)) == DEVICE_BUFFERS
    assert found == [buffers[i % DEVICE_BUFFERS] for i in range(5)]


@pytest.mark.parametrize("options", [{}, {"dtype": "bfloat16", "channels_last": True}])
def test_the_network_is_not_changed(net, options):
    net.train()
    net.layer1[0].eval()
    modes = {name: module.training for name, module in net.named_modules()}
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    for _ in activations(net, loader(), BLOCKS, **options).blocks(0, 8):
        assert {name: module.training for name, module in net.named_modules()} == modes
        assert not any(module._forward_hooks for module in net.modules())
    after = net.state_dict()
    for name, tensor in before.items():
        assert after[name].dtype == tensor.dtype
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=0)
    assert net.conv1.weight.is_contiguous()
    assert all(p.requires_grad for p in net.parameters())


def test_batches_before_the_start_are_not_run(net):
    ran = []
    handle = net.register_forward_hook(lambda module, given, out: ran.append(len(given[0])))
    source = activations(net, loader(), BLOCKS)
    ran.clear()
    list(source.blocks(20, 8))
    handle.remove()
    assert sum(ran) == N - 20


# ---------------------------------------------------------------- fits


def test_a_fit_in_half_precision_equals_that_of_the_stacked_rows(net):
    many = torch.from_numpy(np.random.default_rng(1).normal(size=(700, 3, 8, 8)).astype(np.float32))
    source = activations(net, loader(64, many), BLOCKS, dtype="bfloat16")
    rows = np.asarray(copied(source, size=64), np.float32)
    assert rows.size > 2**18  # so that the fit runs in float32
    found = game_pca(3, random_state=0).fit(source)
    same = game_pca(3, random_state=0, batch_size=64).fit(rows)
    np.testing.assert_allclose(found.components_, same.components_, atol=1e-3)
    np.testing.assert_allclose(found.explained_variance_, same.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(found.transform(source), same.transform(rows), atol=1e-2)
    assert found.layers_.cut(found.components_)["conv1"].shape == (3, 4, 6, 6)


def test_a_fit_is_the_same_if_the_next_batch_is_not_started_early(net, monkeypatch):
    many = torch.from_numpy(np.random.default_rng(2).normal(size=(520, 3, 8, 8)).astype(np.float32))
    source = activations(net, loader(32, many), BLOCKS)  # the last batch is short
    early = game_pca(3, random_state=0).fit(source)
    for module in (batches_module, passes):
        monkeypatch.setattr(module, "computed_on_device", lambda source: False)
    late = game_pca(3, random_state=0).fit(source)
    for name in ("components_", "mean_", "explained_variance_"):
        np.testing.assert_array_equal(getattr(early, name), getattr(late, name))


def test_a_fit_that_was_stopped_continues_after_the_last_batch_of_an_update(net, tmp_path):
    many = torch.from_numpy(np.random.default_rng(3).normal(size=(520, 3, 8, 8)).astype(np.float32))

    class Stop:
        def batch(self, at):
            return at.rows >= 96

    def fit(**options):
        source = activations(net, loader(32, many), BLOCKS)
        return game_pca(3, random_state=0, passes=1).fit(source, **options)

    kept = Checkpoint(tmp_path, trust_source=True)
    assert fit(checkpoint=kept, progress=[Stop()]).n_samples_seen_ == 96
    resumed, whole = fit(checkpoint=kept), fit()
    assert resumed.n_samples_seen_ == 520
    np.testing.assert_array_equal(resumed.components_, whole.components_)


# ---------------------------------------------------------------- numbers that are not finite


@pytest.fixture
def spoilt():
    data = X.clone()
    data[9, 0, 0, 0] = torch.nan
    return loader(8, data)


def test_nan_is_refused_with_its_layer_and_row(net, spoilt):
    feed = Batches(activations(net, spoilt, BLOCKS), 8, np.dtype("float32"))
    with pytest.raises(ValueError, match=r"layer 'conv1' at \(0, 0, 0\) is nan in row 9: "):
        refuse_unless_finite(feed, np.array([np.nan]))


def test_rows_with_nan_are_skipped_or_become_zero(net, spoilt):
    truth = copied(activations(net, spoilt, BLOCKS))
    skipped = activations(net, spoilt, BLOCKS, nonfinite="skip")
    blocks = [(np.array(b.values), b.weights) for b in skipped.blocks(0, 8)]
    rows = np.concatenate([values for values, _ in blocks])
    good = np.arange(N) != 9
    np.testing.assert_array_equal(np.concatenate([weights for _, weights in blocks]), good)
    np.testing.assert_allclose(rows[good], truth[good], atol=1e-5)
    assert not rows[9].any()
    zeroed = copied(activations(net, spoilt, BLOCKS, nonfinite="zero"))
    np.testing.assert_allclose(zeroed, np.nan_to_num(truth), atol=1e-5)


# ---------------------------------------------------------------- what is refused


def test_layers_that_do_not_exist_or_do_not_run_are_refused(net):
    message = error_of(activations, net, loader(), ["conv1", "layer1.7"])
    assert "'layer1.7' matches nothing in activations of Net; similar names are layer1.1" in message
    assert "named_modules()] lists all" in message
    assert "'unused' matches unused, which did not run" in error_of(
        activations, net, loader(), "unused"
    )
    assert activations(net, loader(), "*").layers.names[0] == "conv1"


def test_layers_without_rows_of_one_tensor_are_refused():
    recurrent = nn.Sequential(nn.LSTM(3, 4))
    sequences = [X[:5, 0, :, :3]]
    assert "'0' gives a tuple with 3 tensors" in error_of(activations, recurrent, sequences, "0")

    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Flatten(0, 1)

        def forward(self, x):
            return self.turn(x)

    message = error_of(activations, Turned(), sequences, "turn")
    assert "gives shape (16, 3) for 2 rows: rows must be its first axis" in message
    assert "has no children with weights" in error_of(activations, Turned(), sequences)


def test_outputs_of_changing_shape_or_number_are_refused(net):
    sizes = [X[:4], X[4:8, :, :6, :6]]
    source = activations(net, sizes, BLOCKS)
    assert "'conv1' gives shape (4, 4, 4, 4) at row 4, but (4, 4, 6, 6) is expected" in error_of(
        copied, source, size=4
    )

    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Identity(), nn.Identity()

        def forward(self, x):
            times = int(x[0, 0])
            for _ in range(times):
                x = self.one(x)
            return self.two(x) if times else x

    counts = [torch.ones(2, 3), torch.zeros(2, 3)]
    assert "'one' did not run at row 2" in error_of(
        copied, activations(Sometimes(), counts, "*"), size=2
    )
    counts = [torch.ones(2, 3), torch.full((2, 3), 2.0)]
    assert "'one' ran 2 times at row 2, but fewer" in error_of(
        copied, activations(Sometimes(), counts, "*"), size=2
    )


def test_a_loader_that_is_empty_is_refused(net):
    assert "the loader is empty" in error_of(activations, net, [])
    assert "the loader is empty" in error_of(activations, net, loader(8, X[:0]))
    assert "loader is a Tensor: give batches" in error_of(activations, net, X)


def test_a_network_on_another_device_is_refused(net, monkeypatch):
    assert "it is on device meta" in error_of(activations, copy.deepcopy(net).to("meta"), loader())
    both = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    assert "on several devices (cpu, meta)" in error_of(activations, both, loader())
    monkeypatch.setattr(torch_copy, "jax_device", lambda: "cuda:0")
    message = error_of(activations, net, loader())
    assert "runs on cpu, but JAX uses cuda:0: give device='cuda:0'" in message
    assert "JAX_PLATFORMS=cpu" in message


def test_a_network_that_cannot_be_copied_is_reported(net):
    class Stubborn(Net):
        def __deepcopy__(self, memo):
            raise TypeError("never")

    assert "cannot be copied (never)" in error_of(
        activations, Stubborn(), loader(), dtype="bfloat16"
    )
    assert activations(Stubborn(), loader(), "conv1").shape == (N, 144)


def test_unknown_options_are_refused(net):
    assert "channels_last='maybe'" in error_of(activations, net, loader(), channels_last="maybe")
    assert "dtype='int8': give" in error_of(activations, net, loader(), dtype="int8")
    assert "replay='no': give True or False" in error_of(activations, net, loader(), replay="no")


def test_an_error_of_the_network_names_its_inputs(net):
    with pytest.raises(RuntimeError) as raised:
        activations(net, [X[:4, :2]], BLOCKS)
    assert "ran on (2, 2, 8, 8) torch.float32" in raised.value.__notes__[0]


def test_a_network_too_large_for_the_device_is_refused_with_the_fix():
    class Large(nn.Module):
        def forward(self, x):
            raise torch.OutOfMemoryError("tried to allocate 20 GiB")

    with pytest.raises(MemoryError, match=r"tried to allocate 20 GiB\): give smaller batches"):
        activations(nn.Sequential(Large()), [X], "0")


def test_the_fingerprint_distinguishes_weights(net):
    one, changed = activations(net, loader(), BLOCKS), copy.deepcopy(net)
    assert same_fingerprint(one, activations(net, loader(), BLOCKS))
    changed.fc.bias.data += 1
    assert not same_fingerprint(one, activations(changed, loader(), BLOCKS))


def test_a_change_of_weight_buffer_option_or_input_changes_the_digest(net):
    def digest(model=net, rows=X, **options):
        return activations(model, DataLoader(TensorDataset(rows), 8, **options), BLOCKS).digest()

    def changed(change):
        other = copy.deepcopy(net)
        with torch.no_grad():
            change(other)
        return digest(other)

    def weight(other):
        other.layer1[1].conv.weight[3, 3, 2, 2] += (
            1e-3  # not among the first weights, which are in the fingerprint
        )

    def buffer(other):
        other.layer1[0].bn.running_mean[3] += 1

    def rate(other):
        other.layer1[0].bn.eps = 0.1

    rows = X.clone()
    rows[20, 2, 7, 7] += 1e-3
    assert digest() == digest(copy.deepcopy(net))
    found = [digest(), *map(changed, (weight, buffer, rate)), digest(rows=rows)]
    assert len(set(found)) == 5
    assert None not in found
    assert digest(shuffle=True) is None


class Recording(GraphReplay):
    """Recordings without a GPU: a replay calls the recorded function on the stored inputs."""

    def __init__(self, can: bool = True) -> None:
        super().__init__(True)
        self.can = can

    def _record(self, number, fill):
        if not self.can:
            self.refused = "it cannot"
            return False
        self._graphs[number] = SimpleNamespace(replay=lambda: fill(self._inputs))
        return True


def test_a_recording_is_replayed_only_on_inputs_of_the_same_shape():
    replay, ran = Recording(), []

    def fill(number):
        return lambda inputs: ran.append((number, float(inputs["x"].sum()), inputs["x"]))

    def ones(rows, value):
        return {"x": torch.full((rows, 2), float(value)), "flag": True}

    first = ones(4, 1)
    replay(0, first, fill(0))
    replay(1, ones(4, 2), fill(1))
    replay(1, ones(4, 3), fill("never"))
    replay(1, ones(3, 4), fill("other shape"))
    replay(1, ones(4, 5) | {"flag": False}, fill("other flag"))
    assert [one[:2] for one in ran] == [
        (0, 8),
        (1, 16),
        (1, 24),
        ("other shape", 24),
        ("other flag", 40),
    ]
    # The inputs of the user are not written to.
    assert float(first["x"].sum()) == 8


def test_a_network_that_cannot_be_recorded_runs_without_a_graph():
    replay, ran = Recording(can=False), []
    for value in range(3):
        replay(0, torch.full((2,), float(value)), lambda inputs: ran.append(float(inputs.sum())))
    assert ran == [0, 2, 4]
    assert replay.refused == "it cannot"


@pytest.mark.parametrize("begin", [4, 3], ids=["aligned", "not aligned"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_aligned_and_unaligned_copies_are_equal(begin, dtype):
    rows = torch.zeros(3, 16)
    given = torch.randn(3, 8, dtype=getattr(torch, dtype))
    given[1, 2] = torch.nan
    _copy(rows[:, begin : begin + 8], given)
    expected = torch.zeros_like(rows)
    expected[:, begin : begin + 8] = given
    np.testing.assert_array_equal(rows, expected)
