"""Positions of JAX functions as rows: masks, ragged lengths with few compilations, feature maps."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, activations
from eigengame.metrics import angular_error
from eigengame.sources._jax_positions import CompilationWarning
from tests.sources.tables import error_of

D, VOCABULARY = 8, 40
RANDOM = np.random.default_rng(0)
EMBEDDING, QUERY, VALUE = (
    RANDOM.normal(size=(n, D)).astype(np.float32) for n in (VOCABULARY, D, D)
)


def attend(x, mask):
    """Attention without position: each unmasked token sees all others."""
    scores = (x @ QUERY) @ x.mT / D**0.5
    scores = jnp.where(mask[:, None, :] > 0, scores, -1e9)
    return x + jax.nn.softmax(scores) @ (x @ VALUE)


def encoder(batch):
    x = jnp.asarray(EMBEDDING)[batch["input_ids"]]
    hidden = attend(x, batch["attention_mask"])
    return {"embedding": x, "layers": [hidden, attend(hidden, batch["attention_mask"])]}


def texts(lengths, seed=0):
    random, batches = np.random.default_rng(seed), []
    for batch in lengths:
        mask = (np.arange(max(batch)) < np.array(batch)[:, None]).astype(np.int32)
        ids = np.where(mask, random.integers(1, VOCABULARY, mask.shape), 0)
        batches.append({"input_ids": ids, "attention_mask": mask})
    return batches


def alone(batches, layer):
    """Return the outputs for each text alone, in float64 by NumPy: an oracle of rows."""
    found = []
    for batch in batches:
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
            x = EMBEDDING[ids[: mask.sum()]].astype(np.float64)
            for _ in range(layer):
                scores = np.exp((x @ QUERY) @ x.T / D**0.5)
                x = x + scores / scores.sum(1, keepdims=True) @ (x @ VALUE)
            found.append(x)
    return np.concatenate(found)


def rows_of(source, size=8, start=0):
    blocks = source.blocks(start, size)
    return np.concatenate([np.asarray(block.values, np.float64) for block in blocks])


def test_each_unmasked_token_is_a_row_whatever_the_lengths():
    batches = texts([(5, 9, 3), (7, 7), (4, 1, 6)])
    source = activations(encoder, batches, "layers.*", rows="tokens", mask="attention_mask")
    expected = np.concatenate([alone(batches, i) for i in (1, 2)], axis=1)
    for size, start in ((3, 0), (8, 0), (100, 0), (8, 11)):
        np.testing.assert_allclose(
            rows_of(source, size, start), expected[start:], rtol=1e-4, atol=1e-4
        )
    tokens = source.tokens()
    shown = np.concatenate([batch["input_ids"][batch["attention_mask"] > 0] for batch in batches])
    np.testing.assert_array_equal(tokens.ids, shown)


def test_ragged_lengths_are_compiled_for_few_shapes():
    lengths = [tuple(np.random.default_rng(i).integers(1, 30, 4)) for i in range(20)]
    batches = texts(lengths)
    source = activations(encoder, batches, "layers.1", rows="tokens", mask="attention_mask")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompilationWarning)
        found = rows_of(source)
    np.testing.assert_allclose(found, alone(batches, 2), rtol=1e-4, atol=1e-4)
    assert source._network._program._cache_size() <= 3

    def without_mask(ids):
        return jnp.asarray(EMBEDDING)[ids]

    many = [np.ones((2, n), np.int32) for n in range(1, 16)]
    with pytest.warns(CompilationWarning, match="more than 12 shapes"):
        assert len(rows_of(activations(without_mask, many, rows="tokens"))) == 2 * sum(range(1, 16))


def test_components_of_masked_tokens_agree_with_float64():
    random = np.random.default_rng(1)
    batches = texts([tuple(random.integers(1, 12, 8)) for _ in range(40)])
    expected = alone(batches, 2)
    pca = EigenGamePCA(3, random_state=0).fit(
        activations(encoder, batches, "layers.1", rows="tokens", mask="attention_mask")
    )
    components = np.linalg.svd(expected - expected.mean(0), full_matrices=False)[2]
    assert angular_error(pca.components_.astype(float), components[:3]).max() < 1e-3
    assert pca.n_samples_seen_ == len(expected)


def test_each_pixel_of_a_feature_map_is_a_row_with_channels_last():
    images = np.random.default_rng(2).normal(size=(7, 4, 4, 3)).astype(np.float32)
    weights = np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32)
    source = activations(lambda x: x @ weights, [images[:4], images[4:]], rows="pixels")
    np.testing.assert_allclose(rows_of(source, 30), images.reshape(-1, 3) @ weights, rtol=1e-4)
    few = activations(lambda x: x @ weights, [images[:4], images[4:]], rows="pixels", per_input=3)
    tokens, all_rows = few.tokens(), (images.reshape(-1, 3) @ weights).reshape(7, 16, 5)
    np.testing.assert_allclose(rows_of(few), all_rows[tokens.inputs, tokens.positions], rtol=1e-4)


def test_options_that_do_not_apply_are_refused():
    batches = texts([(3, 2)])
    assert "chosen by layers=" in error_of(activations, encoder, batches, rows="tokens", output=0)
    assert "which has no positions" in error_of(
        activations, lambda batch: batch["input_ids"], batches, rows="tokens"
    )
    with pytest.raises(ValueError, match="every=0"):
        activations(encoder, batches, rows="tokens", every=0)
    with pytest.raises(ValueError, match="rows='words'"):
        activations(encoder, batches, rows="words")
