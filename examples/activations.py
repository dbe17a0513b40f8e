"""Principal components of a network's activations, computed batch by batch and split into layers."""

import sys

import jax
import numpy as np
from sklearn.datasets import load_digits

import eigengame as eg

K, BATCH = 6, 128
RNG = np.random.default_rng(0)
FILTERS = RNG.normal(size=(3, 3, 1, 8)).astype(np.float32) / 3
HIDDEN = RNG.normal(size=(288, 32)).astype(np.float32) / 17


def network(images: jax.Array) -> dict[str, jax.Array]:
    """Return the output of each layer of a small network for images (m, 8, 8, 1)."""
    dims = ("NHWC", "HWIO", "NHWC")
    edges = jax.nn.relu(
        jax.lax.conv_general_dilated(images, FILTERS, (1, 1), "VALID", dimension_numbers=dims)
    )
    hidden = jax.nn.relu(edges.reshape(len(edges), -1) @ HIDDEN)
    return {"edges": edges, "hidden": hidden}


def main() -> None:
    digits = (load_digits().images[..., None] / 16).astype(np.float32)
    loader = [digits[i : i + BATCH] for i in range(0, len(digits), BATCH)]

    # For torch: eg.activations(model, data_loader, layers=["conv1", "layer[1-4].*"]).
    source = eg.activations(network, loader)
    pca = eg.EigenGamePCA(K, random_state=0).fit(source)

    print(f"{pca.n_samples_seen_} images, {source.shape[1]} activations each, {K} components\n")
    print(f"{'layer':>9} {'shape':>12} {'components 1 to ' + str(K):>30}")
    for layer, shares in zip(source.layers, source.layers.shares(pca.components_).T, strict=True):
        print(f"{layer.name:>9} {layer.shape!s:>12} " + " ".join(f"{one:>6.1%}" for one in shares))
    parts = source.cut(pca.components_)
    print("\nshapes by layer: " + ", ".join(f"{n} {p.shape}" for n, p in parts.items()))

    outputs = [np.asarray(part).reshape(len(digits), -1) for part in network(digits).values()]
    rows = np.concatenate(outputs, axis=1)
    truth = eg.metrics.true_components(rows - rows.mean(axis=0), K)[1]
    angle = eg.metrics.angular_error(pca.components_, truth).max()
    print(f"largest angle to the exact components after one pass: {angle:.3f} rad")
    if angle > 0.1:
        sys.exit("the angle after one pass should be below 0.1: please report this")


if __name__ == "__main__":
    main()
