"""Components of per-example gradients of a small CNN on MNIST, compared with an explicit Fisher matrix in float64.

The matrix is the truth of an independent computation: one backward pass for each example with a copy of the network
in float64, without `vmap`, and labels that are drawn by the definition in NumPy. One pass of the remembered game
over the same examples, in float32, is compared with its top eigenvectors.

python -m benchmarks.gradients_mnist [--rows 60000] [--k 10] [--kind sampled,empirical] [--data FOLDER]
"""

import argparse
import copy
import gzip
import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from eigengame import EigenGamePCA, gradients, metrics
from eigengame.sources._likelihoods import uniforms
from reproduction import mnist_images

BATCH = 256
GOAL = math.pi / 32


def network() -> nn.Sequential:
    """Return a CNN with 3826 parameters for images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, 2),
        nn.ReLU(),
        nn.Conv2d(6, 12, 3, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(300, 10),
    )


def load(where: str | None, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first training images, float32 of shape (rows, 1, 28, 28), and their labels."""
    images = mnist_images.load(where)[:rows].reshape(-1, 1, 28, 28)
    path = mnist_images.find_file(where)
    assert path is not None
    name = path.name.replace("images", "labels").replace("idx3", "idx1")
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path.with_name(name), "rb") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:rows]
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> float:
    """Train a network and return its accuracy on the same images."""
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for part in order.split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
    with torch.no_grad():
        return float((model(x).argmax(1) == y).double().mean())


def explicit_fisher(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, kind: str
) -> tuple[np.ndarray, float]:
    """Return the Fisher matrix (d, d) in float64, and the share of labels drawn that are not the observed ones."""
    own = copy.deepcopy(model).double()
    d = sum(one.numel() for one in own.parameters())
    matrix, rows, other = np.zeros((d, d)), [], 0
    numbers = uniforms(0, 0, len(x), ())
    for i in range(len(x)):
        scores = own(x[i : i + 1].double())
        label = y[i : i + 1]
        if kind == "sampled":
            sums = np.cumsum(torch.softmax(scores.detach(), 1).numpy()[0])
            label = torch.tensor([min(int(np.searchsorted(sums, numbers[i], side="right")), 9)])
        other += int(label != y[i])
        found = torch.autograd.grad(F.cross_entropy(scores, label), list(own.parameters()))
        rows.append(np.concatenate([one.numpy().ravel() for one in found]))
        if len(rows) == 1024 or i == len(x) - 1:
            stacked = np.array(rows)
            matrix += stacked.T @ stacked / len(x)
            rows = []
    return matrix, other / len(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--kind", default="sampled,empirical")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data", help="the folder of MNIST; by default $EIGENGAME_DATA")
    options = parser.parse_args()
    x, y = load(options.data, options.rows)
    torch.manual_seed(0)
    model = network()
    accuracy = train(model, x, y, options.epochs)
    model.eval()
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH)
    for kind in options.kind.split(","):
        source = gradients("categorical", model, loader, kind)
        print(
            f"{kind}: {source.shape[0]:,} gradients of {source.shape[1]:,} parameters, accuracy {accuracy:.3f}"
        )
        began = time.perf_counter()
        for _ in source.blocks(0, BATCH):
            pass
        alone = time.perf_counter() - began
        pca = EigenGamePCA(
            options.k, algorithm="remembered", tol=None, center=False, random_state=0
        )
        began = time.perf_counter()
        pca.fit(source)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        matrix, other = explicit_fisher(model, x, y, kind)
        values, truth = metrics.true_components(matrix=matrix, k=options.k + 1)
        angles = metrics.angular_error(np.asarray(pca.components_, np.float64), truth)
        print(f"  gradients alone {alone:.1f} s, one pass of the fit {seconds:.1f} s")
        print(f"  explicit matrix and its eigenvectors {time.perf_counter() - began:.1f} s")
        print(f"  labels other than the observed ones: {other:.1%}")
        found = pca.singular_values_**2 / pca.n_samples_seen_
        bounds = pca.certificate_.angle
        print("  component  eigenvalue  relative error   gap to next   angle (rad)   certified")
        for i in range(options.k):
            gap = 1 - values[i + 1] / values[i]
            error = found[i] / values[i] - 1
            print(
                f"  {i + 1:9}  {values[i]:10.4g}  {error:14.1e}  {gap:12.2f}  {angles[i]:12.2e}  {bounds[i]:10.2e}"
            )
        within = int((angles <= GOAL).sum())
        print(f"  within pi/32 = {GOAL:.3f} rad after one pass: {within} of {options.k}")


if __name__ == "__main__":
    main()
