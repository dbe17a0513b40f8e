"""The BERT encoder of the benchmarks: a random checkpoint against a forward pass in NumPy, and its tokenizer."""

import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from benchmarks import transformer_text  # noqa: E402
from benchmarks.bert import load_bert  # noqa: E402
from benchmarks.token_groups import Truth, shares_of, typical_tokens  # noqa: E402
from benchmarks.wordpiece import WordPiece  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

from eigengame import fit_layers  # noqa: E402
from eigengame.metrics import angular_error  # noqa: E402

D, HEADS, WIDTH, LAYERS = 12, 3, 20, 2
TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    ".",
    ",",
    "a",
    "dog",
    "dogs",
    "##s",
    "un",
    "##do",
    "##g",
]
CONFIG = {
    "hidden_size": D,
    "num_attention_heads": HEADS,
    "intermediate_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "vocab_size": len(TOKENS),
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Return the folder and the arrays of a random checkpoint."""
    folder, random = tmp_path_factory.mktemp("bert"), np.random.default_rng(0)
    shapes = {
        "embeddings.word_embeddings.weight": (len(TOKENS), D),
        "embeddings.position_embeddings.weight": (16, D),
        "embeddings.token_type_embeddings.weight": (2, D),
        "embeddings.LayerNorm.weight": (D,),
        "embeddings.LayerNorm.bias": (D,),
        "pooler.dense.weight": (D, D),
    }
    for i in range(LAYERS):
        linear = {f"attention.self.{part}": (D, D) for part in ("query", "key", "value")} | {
            "attention.output.dense": (D, D),
            "intermediate.dense": (WIDTH, D),
            "output.dense": (D, WIDTH),
        }
        for name, shape in linear.items():
            shapes[f"encoder.layer.{i}.{name}.weight"] = shape
            shapes[f"encoder.layer.{i}.{name}.bias"] = shape[:1]
        for part in ("attention.output", "output"):
            shapes[f"encoder.layer.{i}.{part}.LayerNorm.weight"] = (D,)
            shapes[f"encoder.layer.{i}.{part}.LayerNorm.bias"] = (D,)
    arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    # A number that is not a weight, as checkpoints have it.
    arrays["embeddings.position_ids"] = np.arange(16)[None]
    save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return folder, {name: array.astype(np.float64) for name, array in arrays.items()}


def normalised(x, arrays, name):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + CONFIG["layer_norm_eps"])
    return x * arrays[f"{name}.LayerNorm.weight"] + arrays[f"{name}.LayerNorm.bias"]


def linear(x, arrays, name):
    return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]


def forward(arrays, ids):
    """Return the hidden states (positions, D) of each layer for one text without padding, in float64."""
    x = np.stack([arrays["embeddings.word_embeddings.weight"][one] for one in ids])
    x = x + arrays["embeddings.position_embeddings.weight"][: len(ids)]
    x = normalised(x + arrays["embeddings.token_type_embeddings.weight"][0], arrays, "embeddings")
    found = [x]
    for i in range(LAYERS):
        own = f"encoder.layer.{i}"
        query, key, value = (
            linear(x, arrays, f"{own}.attention.self.{part}") for part in ("query", "key", "value")
        )
        mixed, size = np.zeros_like(x), D // HEADS
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for row in range(len(x)):
                weights = np.exp(key[:, part] @ query[row, part] / math.sqrt(size))
                mixed[row, part] = weights / weights.sum() @ value[:, part]
        x = normalised(
            x + linear(mixed, arrays, f"{own}.attention.output.dense"),
            arrays,
            f"{own}.attention.output",
        )
        inner = linear(x, arrays, f"{own}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normalised(x + linear(inner, arrays, f"{own}.output.dense"), arrays, f"{own}.output")
        found.append(x)
    return found


def texts(count=12):
    random = np.random.default_rng(1)
    return [random.integers(2, len(TOKENS), random.integers(3, 16)).tolist() for _ in range(count)]


def test_the_encoder_agrees_with_a_forward_pass_in_numpy(checkpoint):
    folder, arrays = checkpoint
    model = load_bert(folder)
    (batch,) = transformer_text.batches_of(texts())
    with torch.inference_mode():
        found = model(**batch).numpy()
    for i, ids in enumerate(texts()):
        np.testing.assert_allclose(found[i, : len(ids)], forward(arrays, ids)[-1], atol=2e-4)


def test_components_and_truth_agree_with_the_forward_pass_in_numpy(checkpoint):
    folder, arrays = checkpoint
    model = load_bert(folder)
    given = texts(100)
    batches = transformer_text.batches_of(given)
    fits = fit_layers(model, batches, transformer_text.LAYERS, 3, **transformer_text.OPTIONS)
    truth = transformer_text.truth_of(model, batches, fits)
    assert list(fits) == ["embeddings", "encoder.layer.0", "encoder.layer.1"]
    by_text = [forward(arrays, ids) for ids in given]
    for i, (name, pca) in enumerate(fits.items()):
        rows = np.concatenate([one[i] for one in by_text])
        exact = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:3]
        assert angular_error(pca.components_.astype(float), exact).max() < 1e-3
        assert angular_error(truth[name].components(3), exact).max() < 1e-3
        np.testing.assert_allclose(truth[name].mean(), rows.mean(0), atol=1e-4)
        scores = (rows - pca.mean_) @ pca.components_.T.astype(float)
        np.testing.assert_allclose(truth[name].scores(), scores, atol=1e-3)
        lengths = np.repeat(np.arange(len(given)), [len(ids) for ids in given])
        for share, keys in (("texts", lengths), ("tokens", np.concatenate(given))):
            groups = [rows[keys == key] for key in np.unique(keys)]
            inside = sum(((one - one.mean(0)) ** 2).sum() for one in groups)
            inside /= len(rows) - len(groups)
            expected = 1 - inside / (((rows - rows.mean(0)) ** 2).sum() / (len(rows) - 1))
            assert truth[name].share(share) == pytest.approx(expected, abs=1e-4)


def test_another_kind_of_encoder_is_refused(checkpoint, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"hidden_act": "relu"}))
    with pytest.raises(ValueError, match="'relu'"):
        load_bert(tmp_path)


def test_words_are_cut_into_the_longest_pieces(checkpoint):
    tokenizer = WordPiece(checkpoint[0] / "vocab.txt")

    def pieces(text, most=20):
        return [TOKENS[one] for one in tokenizer(text, most)][1:-1]

    assert pieces("A dog, DOGS.") == ["a", "dog", ",", "dogs", "."]
    assert pieces("undog\tá cat") == ["un", "##do", "##g", "a", "[UNK]"]
    assert tokenizer("dog dog dog", 4) == [2, 7, 7, 3]


def test_shares_of_random_groups_are_zero_and_of_equal_scores_one():
    random = np.random.default_rng(0)
    keys = random.integers(0, 500, 5000)
    assert abs(shares_of(random.normal(size=5000), keys)) < 0.05
    assert shares_of(np.arange(500.0)[keys], keys) == pytest.approx(1)
    low, high = typical_tokens(np.arange(200.0), np.repeat(["one", "two"], 100))
    assert (low, high) == ("`one` 100%", "`two` 100%")


def test_sums_over_batches_are_those_of_all_rows():
    random = np.random.default_rng(0)
    rows, keys = random.normal(size=(60, 4)) + 3, random.integers(0, 5, 60)
    truth = Truth(4, np.full(4, 2.0), np.eye(4))
    truth.add(rows[:25], keys[:25], keys[:25])
    truth.add(rows[25:], keys[25:], keys[25:])
    np.testing.assert_allclose(truth.covariance(), np.cov(rows.T), atol=1e-12)
    np.testing.assert_allclose(truth.values(), np.linalg.eigvalsh(np.cov(rows.T))[::-1])
