"""Inputs of the layers of torch networks as rows (`side="inputs"`): arguments, positions, identity, errors."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from eigengame import EigenGamePCA, activations, fit_layers  # noqa: E402
from eigengame.solver.passes.checkpoint import CheckpointError  # noqa: E402
from tests.sources.tables import error_of, same_fingerprint  # noqa: E402
from tests.sources.test_torch_activations import BLOCKS, N, Net, X, copied, loader  # noqa: E402
from tests.sources.test_torch_positions import D, Encoder, Pictures, rows_of, texts  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(),
    reason="float32 on the CPU is expected; test_torch_on_gpu has the tests for a GPU",
)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    return Encoder().eval()


def inputs_by_hand(net):
    """Return what goes into the blocks, computed without hooks."""
    with torch.inference_mode():
        one = net.conv1(X)
        two = net.layer1[0](one.clone())
        pooled = net.layer1[1](two.clone()).mean((2, 3))
    found = {"conv1": X, "layer1.0": one, "layer1.1": two, "fc": pooled}
    return {name: tensor.numpy() for name, tensor in found.items()}


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(("batch", "size"), [(8, 8), (5, 16), (20, 6)])
def test_rows_are_what_goes_into_the_layers(net, batch, size):
    source = activations(net, loader(batch), BLOCKS, side="inputs")
    truth = inputs_by_hand(net)
    assert {layer.name: layer.shape for layer in source.layers} == {
        name: array.shape[1:] for name, array in truth.items()
    }
    assert source.layers.side == "inputs"
    assert source.shape == (N, sum(array[0].size for array in truth.values()))
    for start in (0, 11):
        for name, part in source.cut(copied(source, start, size)).items():
            np.testing.assert_allclose(part, truth[name][start:], atol=1e-5)


def test_outputs_are_the_default(net):
    plain, named = (activations(net, loader(), BLOCKS, **o) for o in ({}, {"side": "outputs"}))
    assert plain.layers == named.layers
    assert plain.layers.side == "outputs"
    np.testing.assert_array_equal(copied(plain), copied(named))


def test_an_input_is_recorded_before_the_layer_changes_it_in_place(net):
    source = activations(net, loader(), ["layer1.0.relu", "layer1.0"], side="inputs")
    # A block is called before its parts.
    assert source.layers.names == ["layer1.0", "layer1.0.relu", "layer1.0.relu:2"]
    parts = source.cut(copied(source))
    with torch.inference_mode():
        block = net.layer1[0]
        expected = block.conv(net.conv1(X)).numpy()
    assert (expected < 0).any()
    np.testing.assert_allclose(parts["layer1.0.relu"], expected, atol=1e-5)
    after = copied(activations(net, loader(), "layer1.0"))
    second = parts["layer1.0.relu:2"].reshape(N, -1)
    np.testing.assert_allclose(np.maximum(second, 0), after, atol=1e-5)


def test_hooks_of_the_user_that_change_an_input_come_first():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].register_forward_pre_hook(lambda module, args: (2 * args[0],))
    rows = X[:9, 0, 0, :4]
    expected = 2 * copied(activations(model, [rows], "0"))
    np.testing.assert_allclose(
        copied(activations(model, [rows], "1", side="inputs")), expected, atol=1e-6
    )
    assert len(model[1]._forward_pre_hooks) == 1


def test_inputs_in_half_precision_are_close(net):
    source = activations(net, loader(), BLOCKS, side="inputs", dtype="bfloat16", channels_last=True)
    assert [layer.channels_last for layer in source.layers] == [True, True, True, False]
    truth = inputs_by_hand(net)
    for name, part in source.cut(copied(source, size=8).astype(np.float32)).items():
        # bfloat16 has 8 significant bits, and errors grow over a few layers.
        np.testing.assert_allclose(part, truth[name], atol=0.05)


def test_the_network_is_not_changed(net):
    for _ in activations(net, loader(), BLOCKS, side="inputs").blocks(0, 8):
        assert not any(one._forward_hooks or one._forward_pre_hooks for one in net.modules())
    lstm = nn.LSTM(3, 4)
    error_of(activations, nn.Sequential(lstm), [X[:5, 0, :, :3]], "0", output="no", side="inputs")
    assert not lstm._forward_pre_hooks


def test_layers_inside_a_transformer_of_torch_are_reached():
    torch.manual_seed(0)
    net = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, 2, 12, batch_first=True), 2, enable_nested_tensor=False
    ).eval()
    x = torch.randn(6, 5, D)
    options = {"rows": "tokens", "side": "inputs"}
    source = activations(net, [x], "layers.*.linear[12]", **options)
    assert [one.shape for one in source.layers] == [(D,), (12,), (D,), (12,)]
    outputs = activations(net, [x], ["layers.0.norm1", "layers.1.linear1"], rows="tokens")
    found, given = source.cut(rows_of(source)), outputs.cut(rows_of(outputs))
    np.testing.assert_allclose(found["layers.0.linear1"], given["layers.0.norm1"], atol=1e-6)
    hidden = np.maximum(given["layers.1.linear1"], 0)
    np.testing.assert_allclose(found["layers.1.linear2"], hidden, atol=1e-6)


# ---------------------------------------------------------------- arguments


class Mixed(nn.Module):
    """A layer with two tensors and a flag as arguments."""

    def forward(self, hidden, mask=None, flag=True):
        return hidden


class Caller(nn.Module):
    """A network that passes arguments as a function says."""

    def __init__(self, call):
        super().__init__()
        self.layer, self._call = Mixed(), call

    def forward(self, x):
        return self._call(self.layer, x, 2 * x)


CALLS = {
    "by position": lambda layer, x, y: layer(x, y),
    "one by name": lambda layer, x, y: layer(x, mask=y, flag=False),
    "all by name": lambda layer, x, y: layer(flag=True, mask=y, hidden=x),
    "none first": lambda layer, x, y: layer(x, None, False),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_first_argument_of_forward_is_used_however_it_is_passed(call):
    x = X[:9, 0, 0]
    source = activations(Caller(CALLS[call]), [x[:5], x[5:]], "layer", side="inputs")
    np.testing.assert_array_equal(copied(source), x)


@pytest.mark.parametrize(
    ("call", "choice"),
    [
        ("by position", 1),
        ("by position", "mask"),
        ("by position", lambda arguments: arguments[1]),
        ("one by name", "mask"),
        ("one by name", 1),
        ("one by name", lambda arguments: arguments["mask"]),
        ("all by name", "mask"),
        ("all by name", 1),
    ],
)
def test_another_argument_is_chosen_by_position_name_or_function(call, choice):
    x = X[:9, 0, 0]
    options = {"side": "inputs", "output": choice}
    source = activations(Caller(CALLS[call]), [x], "layer", **options)
    np.testing.assert_array_equal(copied(source), 2 * x)


def test_an_argument_that_does_not_exist_is_refused_with_those_that_do():
    message = error_of(
        activations,
        Caller(CALLS["one by name"]),
        [X[:4, 0, 0]],
        "layer",
        side="inputs",
        output="weights",
    )
    assert "layer 'layer' takes" in message
    assert (
        "hidden: a tensor of shape (2, 8), mask: a tensor of shape (2, 8), flag: a bool" in message
    )
    assert "has no part output='weights'" in message


def test_a_layer_without_a_tensor_among_its_arguments_is_refused():
    def empty(layer, x, y):
        layer("text", mask={"count": 3}, flag=True)
        return x

    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Constant()

        def forward(self, x):
            return x + self.layer()

    class Constant(nn.Module):
        def forward(self):
            return 1

    for rows in ("inputs", "tokens"):
        message = error_of(
            activations, Caller(empty), [torch.zeros(2, 3, 4)], "layer", side="inputs", rows=rows
        )
        assert "layer 'layer' takes no tensor" in message
        assert "hidden: a str, mask: a dict of (count: a int), flag: a bool" in message
        assert "choose another layer" in message
    message = error_of(activations, Bare(), [torch.zeros(2, 3)], "layer", side="inputs")
    assert "layer 'layer' takes no tensor (it is called without arguments)" in message


def test_several_tensors_in_the_first_argument_are_refused_unless_one_is_chosen():
    def pair(layer, x, y):
        layer((x, y), mask=x)
        return x

    x, caller = X[:4, 0, 0], Caller(pair)
    message = error_of(activations, caller, [x], "layer", side="inputs")
    assert "argument 'hidden' with 2 tensors" in message
    assert "output=" in message
    chosen = activations(
        caller, [x], "layer", side="inputs", output=lambda arguments: arguments[0][1]
    )
    np.testing.assert_array_equal(copied(chosen), 2 * x)

    def single(layer, x, y):
        layer([None, x])
        return x

    np.testing.assert_array_equal(
        copied(activations(Caller(single), [x], "layer", side="inputs")), x
    )


def test_a_function_that_chooses_no_tensor_is_refused():
    message = error_of(
        activations,
        Caller(CALLS["one by name"]),
        [X[:4, 0, 0]],
        "layer",
        side="inputs",
        output=lambda arguments: arguments["flag"],
    )
    assert "output= chooses a bool" in message


# ---------------------------------------------------------------- positions


def inputs_of_mlp(encoder, batches, layer):
    """Return the inputs of a layer's `mlp` for each text alone, computed without hooks."""
    found = []
    with torch.inference_mode():
        for batch in batches:
            for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
                x = encoder.embedding(ids[: int(mask.sum())][None])
                for i, one in enumerate(encoder.layers):
                    mixed, _ = one.attention(x, x, x)
                    x = one.norm(x + mixed)
                    if i == layer:
                        found.append(x[0])
                    x = x + torch.tanh(one.mlp(x))
    return torch.cat(found).double().numpy()


def test_each_unmasked_token_that_goes_into_a_layer_is_a_row(encoder):
    batches = texts()
    options = {"rows": "tokens", "mask": "attention_mask", "side": "inputs"}
    source = activations(encoder, batches, "layers.*.mlp", **options)
    assert source.shape == (None, 2 * D)
    expected = np.concatenate([inputs_of_mlp(encoder, batches, i) for i in (0, 1)], axis=1)
    # A padded and a plain attention sum in another order.
    np.testing.assert_allclose(rows_of(source), expected, atol=1e-5)
    np.testing.assert_allclose(rows_of(source, start=11), expected[11:], atol=1e-5)
    assert len(source.tokens().ids) == len(expected)
    # The hidden states are the first argument of a layer and of attention.
    hidden = rows_of(
        activations(encoder, batches, "layers.0", rows="tokens", mask="attention_mask")
    )
    for name in ("layers.1", "layers.1.attention"):
        found = rows_of(activations(encoder, batches, name, **options))
        np.testing.assert_array_equal(found, hidden)


def test_each_pixel_that_goes_into_a_layer_is_a_row():
    torch.manual_seed(0)
    net, images = Pictures().eval(), torch.randn(12, 3, 9, 9)
    source = activations(net, [images[:7], images[7:]], "two", rows="pixels", side="inputs")
    with torch.inference_mode():
        expected = torch.relu(net.one(images)).double().permute(0, 2, 3, 1).reshape(-1, 6).numpy()
    np.testing.assert_allclose(rows_of(source, 50), expected, atol=1e-6)


def test_default_layers_are_those_whose_inputs_have_positions(encoder):
    # Token ids have no features.
    options = {"rows": "tokens", "mask": "attention_mask", "side": "inputs"}
    source = activations(encoder, texts(), **options)
    assert source.layers.names == ["layers.0", "layers.1"]
    message = error_of(activations, encoder, texts(), "embedding", **options)
    assert "'embedding' takes shape (2, 9), which has no positions" in message


def test_inputs_of_changing_shape_or_without_rows_are_refused(net):
    sizes = [X[:4], X[4:8, :, :6, :6]]
    message = error_of(copied, activations(net, sizes, BLOCKS, side="inputs"), size=4)
    assert "'conv1' takes shape (4, 3, 6, 6) at row 4, but (4, 3, 8, 8) is expected" in message

    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Identity()

        def forward(self, x):
            return self.layer(x.flatten(0, 1))

    message = error_of(activations, Turned(), [X[:5, 0]], "layer", side="inputs")
    assert "'layer' takes shape (16, 8) for 2 rows: rows must be its first axis" in message


# ---------------------------------------------------------------- identity of the rows


def square(seed=0):
    """Return a network whose layers have inputs and outputs of one shape."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


Y = torch.from_numpy(np.random.default_rng(3).normal(size=(60, 4)).astype(np.float32))


def test_inputs_and_outputs_are_different_data(tmp_path):
    model, batches = square(), [Y]
    given = activations(model, batches, "2", side="inputs")
    taken = activations(model, batches, "2")
    assert given.fingerprint()["side"] == "inputs"
    # Fingerprints of outputs are those of earlier versions, whose checkpoints can be resumed.
    assert "side" not in taken.fingerprint()
    assert given.fingerprint()["layers"] != taken.fingerprint()["layers"]
    assert same_fingerprint(given, activations(model, batches, "2", side="inputs"))
    assert "input of layer '2' at (1,)" in given.describe_feature(1)
    EigenGamePCA(2, random_state=0).fit(given, checkpoint=tmp_path)
    with pytest.raises(
        CheckpointError, match=r"belongs to another run: .*source\.side was 'inputs'"
    ):
        EigenGamePCA(2, random_state=0).fit(taken, checkpoint=tmp_path)
    tokens = {"rows": "tokens"}
    ones = [Y.reshape(6, 10, 4)]
    assert activations(model, ones, "2", side="inputs", **tokens).fingerprint()["side"] == "inputs"


def test_a_model_of_inputs_refuses_outputs_and_the_reverse(tmp_path):
    model, batches = square(), [Y]
    given = activations(model, batches, "2", side="inputs")
    taken = activations(model, batches, "2")
    pca = EigenGamePCA(2, random_state=0).fit(given)
    for kept in (pca, EigenGamePCA.load(pca.save(tmp_path / "inputs.safetensors"))):
        assert kept.layers_ == given.layers
        assert kept.layers_.side == "inputs"
        message = error_of(kept.transform, taken)
        assert "rows are outputs of layers, but those of the fit are inputs" in message
        assert "side='inputs'" in message
        kept.transform(activations(model, batches, kept.layers_, side="inputs"))
        assert "the given layers are inputs: give side='inputs'" in error_of(
            activations, model, batches, kept.layers_
        )
    other = EigenGamePCA(2, random_state=0).fit(taken)
    assert "side='outputs'" in error_of(other.transform, given)
    with pytest.raises(ValueError, match="on the inputs and one on the outputs of layers"):
        pca.merge(other)


def test_fits_of_all_layers_can_be_those_of_their_inputs(encoder, tmp_path):
    random = np.random.default_rng(1)
    batches = texts([tuple(random.integers(1, 12, 8)) for _ in range(40)])
    options = {"mask": "attention_mask", "side": "inputs", "tol": None}
    fits = fit_layers(encoder, batches, ["mlp", "attention"], 3, **options)
    assert list(fits) == [f"layers.{i}.{part}" for i in (0, 1) for part in ("attention", "mlp")]
    for i in (0, 1):
        rows, pca = inputs_of_mlp(encoder, batches, i), fits[f"layers.{i}.mlp"]
        expected = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:3]
        cosines = np.abs(np.sum(pca.components_ * expected, axis=1))
        np.testing.assert_allclose(cosines, 1, atol=1e-6)
        assert pca.n_samples_seen_ == len(rows)
        assert pca.layers_.side == "inputs"
    kept = type(fits).load(fits.save(tmp_path / "all.safetensors"))
    assert kept["layers.1.mlp"].layers_.side == "inputs"
    assert "side='out'" in refused_side(fit_layers, encoder, batches, "mlp", 2, side="out")


def refused_side(call, *arguments, **options):
    """Return the message of the ValueError that a call must raise."""
    with pytest.raises(ValueError, match="side") as raised:
        call(*arguments, **options)
    return str(raised.value)


# ---------------------------------------------------------------- what is refused


def test_other_values_of_the_option_are_refused(net):
    message = refused_side(activations, net, loader(), BLOCKS, side="input")
    assert "side='input'" in message
    assert "outputs" in message
    assert "inputs" in message
    assert "side=None" in refused_side(activations, net, loader(), BLOCKS, side=None)


def test_a_jax_function_is_refused_with_what_to_return():
    for call in (activations, fit_layers):
        message = error_of(call, lambda x: {"one": x}, [Y.numpy()], side="inputs", rows="inputs")
        assert "side='inputs' is for torch modules" in message
        assert "return the arrays that go into the layer" in message


def test_modules_that_run_at_other_times_are_refused():
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Identity()

        def forward(self, x):
            for _ in range(int(x[0, 0])):
                x = self.one(x)
            return x

    two = [torch.ones(2, 3), torch.full((2, 3), 2.0)]
    assert "'one' ran 2 times at row 2, but fewer" in error_of(
        copied, activations(Sometimes(), two, "one", side="inputs"), size=2
    )
    assert "which did not run" in error_of(
        activations, Sometimes(), [torch.zeros(2, 3)], "one", side="inputs"
    )


class Pair(nn.Module):
    """A layer with two outputs of one shape."""

    def forward(self, x):
        return x + 1, 2 * x


def first_of(outputs):
    return outputs[0]


@pytest.mark.parametrize("rows", ["inputs", "tokens"])
def test_a_run_is_not_resumed_with_another_part_of_the_outputs(tmp_path, rows):
    batches = [Y if rows == "inputs" else Y.reshape(6, 10, 4)]
    one, other, function = (
        activations(nn.Sequential(Pair()), batches, "0", rows=rows, output=output)
        for output in (0, 1, first_of)
    )
    assert one.fingerprint()["output"] == 0
    assert same_fingerprint(
        one, activations(nn.Sequential(Pair()), batches, "0", rows=rows, output=0)
    )
    # A function has its name: what it does is not known.
    assert function.fingerprint()["output"] == "first_of"
    EigenGamePCA(2, random_state=0).fit(one, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=r"belongs to another run: .*source\.output was 0"):
        EigenGamePCA(2, random_state=0).fit(other, checkpoint=tmp_path)
