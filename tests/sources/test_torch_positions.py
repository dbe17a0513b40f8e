"""Positions of torch networks as rows: tokens and pixels, masks, ragged lengths, samples, outputs, wrappers."""

import gc
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402

from eigengame import EigenGamePCA, activations  # noqa: E402
from eigengame.metrics import angular_error  # noqa: E402
from eigengame.sources._positions import PaddingWarning  # noqa: E402
from tests.sources.tables import error_of  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(),
    reason="float32 on the CPU is expected; test_torch_on_gpu has the tests for a GPU",
)

D, VOCABULARY = 8, 50


class Layer(nn.Module):
    """A transformer layer that returns a tuple, as those of Hugging Face do."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.mlp, self.norm = nn.Linear(D, D), nn.LayerNorm(D)

    def forward(self, x, padding):
        mixed, weights = self.attention(x, x, x, key_padding_mask=padding)
        x = self.norm(x + mixed)
        return x + torch.tanh(self.mlp(x)), weights


@dataclass
class Output:
    """An output by name, as that of a Hugging Face model."""

    last_hidden_state: object
    weights: object


class Head(nn.Module):
    def forward(self, x, weights):
        return Output(last_hidden_state=x, weights=weights)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, D)
        self.layers, self.head = nn.ModuleList([Layer(), Layer()]), Head()

    def forward(self, input_ids, attention_mask=None):
        padding = None if attention_mask is None else attention_mask == 0
        x = self.embedding(input_ids)
        for layer in self.layers:
            x, weights = layer(x, padding)
        return self.head(x, weights)


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    return Encoder().eval()


def texts(lengths=((5, 9, 3), (7, 7), (4, 1, 6)), seed=0):
    """Return batches of token ids and masks, each padded to its longest text."""
    random, batches = np.random.default_rng(seed), []
    for batch in lengths:
        ids = np.zeros((len(batch), max(batch)), np.int64)
        mask = np.zeros_like(ids)
        for i, length in enumerate(batch):
            ids[i, :length] = random.integers(1, VOCABULARY, length)
            mask[i, :length] = 1
        batches.append(
            {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        )
    return batches


def alone(encoder, batches, layer):
    """Return the outputs of a layer for each text alone, without padding: an oracle of rows."""
    seen = []
    handle = encoder.layers[layer].register_forward_hook(
        lambda m, g, output: seen.append(output[0][0])
    )
    with torch.inference_mode():
        for batch in batches:
            for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
                encoder(ids[: int(mask.sum())][None])
    handle.remove()
    return torch.cat(seen).double().numpy()


def rows_of(source, size=8, start=0):
    """Return all rows. Blocks are copied at once, because their memory is used again."""
    blocks = source.blocks(start, size)
    return np.concatenate([np.asarray(block.values, np.float64) for block in blocks])


def test_each_unmasked_token_is_a_row_whatever_the_lengths(encoder):
    batches = texts()
    source = activations(encoder, batches, "layers.*", rows="tokens", mask="attention_mask")
    assert source.shape == (None, 2 * D)
    assert [layer.shape for layer in source.layers] == [(D,), (D,)]
    expected = np.concatenate([alone(encoder, batches, i) for i in (0, 1)], axis=1)
    # A padded and a plain attention sum in another order.
    for size in (3, 8, 100):
        np.testing.assert_allclose(rows_of(source, size), expected, atol=1e-5)
    np.testing.assert_allclose(rows_of(source, start=11), expected[11:], atol=1e-5)


def test_components_of_masked_tokens_agree_with_float64(encoder):
    random = np.random.default_rng(1)
    batches = texts([tuple(random.integers(1, 12, 8)) for _ in range(40)])
    expected = alone(encoder, batches, 1)
    pca = EigenGamePCA(3, random_state=0).fit(
        activations(encoder, batches, "layers.1", rows="tokens", mask="attention_mask")
    )
    _, _, components = np.linalg.svd(expected - expected.mean(0), full_matrices=False)
    assert angular_error(pca.components_.astype(float), components[:3]).max() < 1e-3
    assert pca.n_samples_seen_ == len(expected)
    new = activations(encoder, batches[:2], pca.layers_, rows="tokens", mask="attention_mask")
    scores = (expected[: len(rows_of(new))] - pca.mean_) @ pca.components_.T
    np.testing.assert_allclose(pca.transform(new), scores, atol=1e-4)


def test_a_mask_may_be_a_function(encoder):
    batches = texts()

    def first_half(batch):
        mask = batch["attention_mask"].clone()
        mask[:, 2:] = 0
        return mask

    source = activations(encoder, batches, "layers.0", rows="tokens", mask=first_half)
    assert len(rows_of(source)) == sum(min(2, n) for n in (5, 9, 3, 7, 7, 4, 1, 6))


@pytest.mark.parametrize("sampled", [{"every": 3}, {"per_input": 2, "seed": 5}])
def test_samples_are_those_that_tokens_names_and_do_not_depend_on_batches(encoder, sampled):
    options = {"rows": "tokens", "mask": "attention_mask"} | sampled
    batches = texts(((4, 6, 5, 8), (8, 3)))
    # The same texts, in other batches.
    joined = texts(((4, 6, 5, 8),))[0]
    split = [{key: part[i : i + 1] for key, part in joined.items()} for i in range(4)] + batches[1:]
    source = activations(encoder, batches, "layers.1", **options)
    tokens = source.tokens()
    texts_alone = alone(encoder, batches, 1)
    lengths = np.array([4, 6, 5, 8, 8, 3])
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    np.testing.assert_allclose(
        rows_of(source), texts_alone[begins[tokens.inputs] + tokens.positions], atol=1e-5
    )
    ids = [batch["input_ids"].numpy() for batch in batches]
    flat = [row for batch in ids for row in batch]
    np.testing.assert_array_equal(
        tokens.ids, [flat[i][p] for i, p in zip(tokens.inputs, tokens.positions, strict=True)]
    )
    other = activations(encoder, split, "layers.1", **options).tokens()
    np.testing.assert_array_equal(other.positions, tokens.positions)
    if "every" in sampled:
        assert (tokens.positions % 3 == 0).all()
        assert len(tokens.ids) == sum(-(-n // 3) for n in lengths)
    else:
        assert (np.bincount(tokens.inputs) == np.minimum(lengths, 2)).all()


def test_token_ids_of_a_plain_input_are_known_without_a_run(encoder):
    ids = [torch.randint(1, VOCABULARY, (3, 5)), torch.randint(1, VOCABULARY, (2, 4))]
    tokens = activations(encoder, ids, "layers.0", rows="tokens").tokens()
    np.testing.assert_array_equal(tokens.ids, np.concatenate([one.numpy().ravel() for one in ids]))
    assert tokens.inputs.tolist() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 4 + [4] * 4


def test_outputs_are_chosen_by_convention_position_name_or_function(encoder):
    batches = texts()
    options = {"rows": "tokens", "mask": "attention_mask"}
    hidden = rows_of(activations(encoder, batches, "layers.1", **options))
    by_name = activations(encoder, batches, "head", output="last_hidden_state", **options)
    for layer, output in (
        ("layers.1", 0),
        ("layers.1", lambda one: one[0]),
        ("head", None),
        ("head", 0),
    ):
        found = activations(encoder, batches, layer, output=output, **options)
        np.testing.assert_array_equal(rows_of(found), hidden)
    np.testing.assert_array_equal(rows_of(by_name), hidden)
    message = error_of(activations, encoder, batches, "head", output="logits", **options)
    assert "no part output='logits'" in message
    assert "last_hidden_state: a tensor of shape (2, 9, 8)" in message


def test_an_output_without_a_tensor_says_what_it_contains():
    class Texts(nn.Module):
        def forward(self, x):
            return {"text": "abc", "count": 3}

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.texts = Texts()

        def forward(self, x):
            self.texts(x)
            return x

    message = error_of(activations, Net(), [torch.zeros(2, 3, 4)], "texts", rows="tokens")
    assert "a dict with 0 tensors (a dict of (text: a str, count: a int))" in message


def test_masks_of_another_shape_and_masks_without_tokens_are_refused(encoder):
    batches = texts()
    source = activations(
        encoder, batches, "layers.0", rows="tokens", mask=lambda b: b["attention_mask"][:, :2]
    )
    assert (
        "the mask has shape (3, 2), but layer 'layers.0' gives 3 inputs of 9 positions"
        in error_of(rows_of, source)
    )
    assert "shape (inputs, positions)" in error_of(
        activations,
        encoder,
        batches,
        "layers.0",
        rows="tokens",
        mask=lambda b: b["attention_mask"][:2],
    )
    none = activations(
        encoder, batches, "layers.0", rows="tokens", mask=lambda b: 0 * b["attention_mask"]
    )
    assert "no positions are left" in error_of(EigenGamePCA(2).fit, none)
    assert "mask='attention'" in error_of(
        activations, encoder, batches, "layers.0", rows="tokens", mask="attention"
    )
    assert "give rows='tokens'" in error_of(
        activations, encoder, batches, "layers.0", mask="attention_mask"
    )


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3, stride=2)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.two(torch.relu(self.one(x))).mean((2, 3)))


def test_each_pixel_of_a_feature_map_is_a_row():
    torch.manual_seed(0)
    net, images = Pictures().eval(), torch.randn(12, 3, 9, 9)
    with torch.inference_mode():
        map_ = net.one(images).double()
    expected = map_.permute(0, 2, 3, 1).reshape(-1, 6).numpy()
    batches = [(images[:7], 0), (images[7:], 0)]
    source = activations(net, batches, "one", rows="pixels")
    np.testing.assert_allclose(rows_of(source, 50), expected, atol=1e-6)
    tokens = source.tokens()
    assert tokens.positions.max() == 48
    assert tokens.ids is None
    pca = EigenGamePCA(2, random_state=0).fit(source)
    components = np.linalg.svd(expected - expected.mean(0), full_matrices=False)[2]
    assert angular_error(pca.components_.astype(float), components[:2]).max() < 1e-3
    few = activations(net, batches, "one", rows="pixels", per_input=5)
    assert len(rows_of(few)) == 60


def test_layers_with_other_positions_cannot_be_side_by_side():
    net, images = Pictures(), [torch.randn(3, 3, 9, 9)]
    source = activations(net, images, ["one", "two"], rows="pixels")
    message = error_of(rows_of, source)
    assert "different numbers of positions ('one' 49, 'two' 9)" in message
    assert "fit_layers" in message
    assert "'fc' gives shape (2, 2), which has no positions" in error_of(
        activations, net, images, "fc", rows="tokens"
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_compiled_networks_run_with_hooks(encoder):
    batches = texts()
    options = {"rows": "tokens", "mask": "attention_mask"}
    expected = rows_of(activations(encoder, batches, "layers.1", **options))
    compiled = torch.compile(encoder)
    np.testing.assert_array_equal(
        rows_of(activations(compiled, batches, "layers.1", **options)), expected
    )
    inner = Encoder().eval()
    inner.load_state_dict(encoder.state_dict())
    inner.layers[1].compile()
    np.testing.assert_array_equal(
        rows_of(activations(inner, batches, "layers.1", **options)), expected
    )
    np.testing.assert_array_equal(
        rows_of(activations(nn.DataParallel(encoder), batches, "layers.1", **options)), expected
    )


def test_sharded_and_device_mapped_networks_are_refused(encoder):
    class FullyShardedDataParallel(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

    assert "sharded over processes" in error_of(
        activations, FullyShardedDataParallel(encoder), texts(), rows="tokens"
    )
    mapped = Encoder()
    mapped.hf_device_map = {"embedding": 0, "layers": "cpu"}
    assert "device map (0, cpu)" in error_of(activations, mapped, texts(), rows="tokens")


def test_networks_in_half_precision_run_without_a_copy(encoder):
    half = Encoder().eval().to(torch.bfloat16)
    source = activations(
        half, texts(), "layers.0", rows="tokens", mask="attention_mask", dtype="bfloat16"
    )
    assert source._network.network._model is half
    assert str(source.dtype) == "bfloat16"
    assert np.isfinite(rows_of(source)).all()


def test_rows_that_are_not_finite_are_skipped_or_set_to_zero(encoder):
    batches = texts()
    broken = Encoder().eval()
    broken.load_state_dict(encoder.state_dict())
    with torch.no_grad():
        broken.embedding.weight[int(batches[0]["input_ids"][0, 0])] = torch.nan
    plain = {"rows": "tokens", "mask": "attention_mask"}
    with pytest.raises(ValueError, match=r"layer 'embedding' at \(0,\) is nan in row 0"):
        EigenGamePCA(2).fit(activations(broken, batches, "embedding", **plain))
    zero = rows_of(activations(broken, batches, "embedding", nonfinite="zero", **plain))
    assert np.isfinite(zero).all()
    skip = activations(broken, batches, "embedding", nonfinite="skip", **plain)
    weights = np.concatenate([block.weights for block in skip.blocks(0, 8)])
    np.testing.assert_array_equal(weights == 0, (zero == 0).all(1))
    assert weights[0] == 0
    assert EigenGamePCA(2).fit(skip).n_samples_seen_ == weights.sum()


def test_masks_that_are_added_to_scores_are_refused(encoder):
    def added(batch):
        return torch.where(batch["attention_mask"] > 0, 0.0, -1e9)

    message = error_of(activations, encoder, texts(), "layers.0", rows="tokens", mask=added)
    assert "the mask has negative numbers" in message


def test_padding_without_a_mask_is_named_by_a_warning(encoder):
    with pytest.warns(PaddingWarning, match="give mask='attention_mask'"):
        padded = activations(encoder, texts(), "layers.0", rows="tokens")
    assert len(rows_of(padded)) == 3 * 9 + 2 * 7 + 3 * 6
    # Without padding in the batch nothing is said, nor if all positions are wanted.
    activations(encoder, texts(((4, 4),)), "layers.0", rows="tokens")
    activations(encoder, texts(), "layers.0", rows="tokens", mask=lambda b: 0 * b["input_ids"] + 1)


class Pooled(nn.Module):
    """An encoder with embeddings of positions, which have no inputs, and a pooled output without positions."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, D), nn.Embedding(20, D)
        self.layers, self.pooler = nn.ModuleList([Layer(), Layer()]), nn.Linear(D, D)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1])[None])
        for layer in self.layers:
            x = layer(x, attention_mask == 0)[0]
        return self.pooler(x[:, 0])


def test_default_layers_are_those_with_positions():
    torch.manual_seed(0)
    net, options = Pooled().eval(), {"rows": "tokens", "mask": "attention_mask"}
    source = activations(net, texts(), **options)
    assert list(source.layers.names) == ["words", "layers.0", "layers.1"]
    named = activations(net, texts(), ["words", "layers.*"], **options)
    np.testing.assert_array_equal(rows_of(source), rows_of(named))
    # Layers that were given are not left out.
    assert "which has no positions" in error_of(
        activations, net, texts(), ["layers.0", "pooler"], **options
    )
    assert "'places' gives shape (1, 9, 8) for 2 inputs" in error_of(
        activations, net, texts(), "places", **options
    )
    only = nn.Sequential(nn.Flatten(), nn.Linear(6, 2))
    assert "which has no positions" in error_of(
        activations, only, [torch.zeros(3, 6)], rows="tokens"
    )


def test_the_tensors_of_earlier_batches_are_not_kept(encoder):
    def loader():
        yield from texts([tuple(np.random.default_rng(i).integers(1, 12, 8)) for i in range(40)])

    source = activations(encoder, loader(), "layers.1", rows="tokens", mask="attention_mask")
    counts = []
    for _ in source.blocks(0, 64):
        gc.collect()
        counts.append(sum(type(one) is torch.Tensor for one in gc.get_objects()))
    assert len(counts) > 20
    # The loader makes all of its batches at the start: those that were read are freed, one by one.
    assert counts[-1] <= counts[2]
