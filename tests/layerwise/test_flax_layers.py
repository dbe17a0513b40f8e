"""Fits of all layers of a flax transformer, with masks and ragged lengths, against float64."""

import jax
import numpy as np
import pytest

nn = pytest.importorskip("flax.linen", reason="flax is not installed")

from eigengame import fit_layers  # noqa: E402
from eigengame.metrics import angular_error  # noqa: E402

D, K = 16, 4


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        x = x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(D)(nn.gelu(nn.Dense(2 * D)(nn.LayerNorm()(x))))


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, ids, mask):
        x = nn.Embed(50, D)(ids)
        for i in range(2):
            x = Layer(name=f"layer{i}")(x, mask[:, None, None, :] > 0)
        return x


def only_layers(module, _):
    return isinstance(module, Layer)


def test_layers_of_a_flax_transformer_agree_with_float64():
    with jax.numpy_rank_promotion("allow"):  # flax needs it
        random, batches = np.random.default_rng(0), []
        for _ in range(20):
            lengths = random.integers(1, 12, 8)
            mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int32)
            ids = np.where(mask, random.integers(1, 50, mask.shape), 0)
            batches.append({"input_ids": ids, "attention_mask": mask})
        net = Encoder()
        weights = net.init(jax.random.key(0), *batches[0].values())

        def hidden(batch):
            found = net.apply(
                weights,
                batch["input_ids"],
                batch["attention_mask"],
                capture_intermediates=only_layers,
            )
            return found[1]["intermediates"]

        fits = fit_layers(hidden, batches, k=K, mask="attention_mask", tol=0.1)
        assert list(fits) == ["layer0.__call__.0", "layer1.__call__.0"]
        seen = {name: [] for name in fits}
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda one: np.asarray(one, np.float64), weights)
            for batch in batches:
                # Each text alone, without padding.
                for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
                    given = ids[None, : mask.sum()], mask[None, : mask.sum()]
                    found = net.apply(wide, *given, capture_intermediates=only_layers)[1]
                    for name in fits:
                        layer = found["intermediates"][name.split(".")[0]]
                        seen[name].append(np.asarray(layer["__call__"][0][0], np.float64))
    for name, pca in fits.items():
        rows = np.concatenate(seen[name])
        assert pca.n_samples_seen_ == len(rows)
        exact = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:K]
        assert angular_error(pca.components_.astype(float), exact).max() < 1e-3
