"""A transformer, layer by layer: what training does to the activations.

`fit_layers` computes principal components of every layer of a network in one forward pass over the inputs.
Here the network is a small vision transformer: it reads the eight rows of an image of a digit as eight
tokens, and is trained for some seconds to tell the digits apart. The fits of its blocks are compared with
those of the same network before the training. The program needs PyTorch. The images are those that come
with scikit-learn.
"""

# %%
# A block adds the result of attention, and then that of a small network, to each token.
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestCentroid
from torch import nn

from eigengame import activations, fit_layers

WIDTH, BLOCKS, K = 32, 4, 8


class Block(nn.Module):
    """One block of a transformer."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, tokens):
        """Return tokens of the same shape (images, 8, width)."""
        x = self.norms[0](tokens)
        tokens = tokens + self.attention(x, x, x, need_weights=False)[0]
        return tokens + self.mlp(self.norms[1](tokens))


class Transformer(nn.Module):
    """Scores of ten classes for images (n, 8, 8)."""

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Linear(8, WIDTH), nn.Parameter(torch.randn(8, WIDTH) / 3)
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images):
        """Return scores (n, 10)."""
        tokens = self.embed(images) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens.mean(dim=1))


# %%
# The images of the second half are not used for the training, and all fits below are of these.
digits = load_digits()
images, labels = torch.tensor(digits.images / 16, dtype=torch.float32), torch.tensor(digits.target)
half = len(images) // 2
held, truth = images[half:], digits.target[half:]
torch.manual_seed(0)
torch.set_num_threads(1)  # for products as small as these, more threads only wait for each other
network = Transformer()


def layer_scores():
    """Fit each block, and return the fits, and the mean scores of the tokens of each image by block."""
    fits = fit_layers(network, held.split(128), "blocks.*", k=K, rows="tokens")
    scores = {}
    for name, pca in fits.items():
        rows = activations(network, held.split(128), pca.layers_, rows="tokens")
        scores[name] = pca.transform(rows).reshape(len(held), 8, K).mean(axis=1)
    return fits, scores


results = {"before training": layer_scores()}
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(150):
    batch = torch.randint(half, (128,))
    loss = nn.functional.cross_entropy(network(images[batch]), labels[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
results["after training"] = layer_scores()
with torch.no_grad():
    accuracy = float((network(held).argmax(dim=1).numpy() == truth).mean())
print(f"data: the digits of scikit-learn; {accuracy:.0%} of {len(held)} new images are correct")

# %%
# The table has a line for each block. Each fit is an `EigenGamePCA` with its own certificate.
separated = {}
for name, (fits, scores) in results.items():
    print(f"\n{name}\n{fits}")
    nearest = {key: NearestCentroid().fit(one, truth) for key, one in scores.items()}
    separated[name] = [nearest[key].score(one, truth) for key, one in scores.items()]
    shown = ", ".join(f"{one:.0%}" for one in separated[name])
    print(f"images closest to the centre of their own digit, by block: {shown}")

# %%
# Each image is drawn as its digit, at its scores of the last block.
figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.7), layout="constrained")
for name, colour, marker in (("before training", "0.5", "s"), ("after training", "#0072B2", "o")):
    panels[0].plot(range(1, BLOCKS + 1), separated[name], color=colour, marker=marker, label=name)
panels[0].set(xlabel="block", ylabel="share closest to their own digit", ylim=(0, 1.02))
panels[0].set_xticks(range(1, BLOCKS + 1))
panels[0].legend(frameon=False, loc="lower right")
for axes, (name, (_, scores)) in zip(panels[1:], results.items(), strict=True):
    x, y = scores[f"blocks.{BLOCKS - 1}"][:, :2].T
    for digit in range(10):
        colour = plt.cm.viridis(digit / 10)
        shown = np.flatnonzero(truth == digit)[:30]
        axes.scatter(x[shown], y[shown], s=30, marker=f"${digit}$", color=colour, lw=0.2)
    axes.set(xlabel="component 1", ylabel="component 2", title=f"last block, {name}")
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("transformer_layers.png", dpi=100)
