"""All layers of a decoder with a billion parameters, one million tokens: `fit_layers` against incremental PCA.

    python -m benchmarks.gpu_tokens [--tiny] [--tokens 1048576] [--peer-seconds 60] [--out FILE]

The decoder has 16 layers of 2048 features, random weights in bfloat16, and embeddings with eigenvalues 1/i. Rows
are the residual stream after each layer. First `fit_layers` is compared with float64 on a small decoder; if that
fails, nothing is timed. Then the time of

* the forward pass alone, and with the rows of all layers gathered,
* `fit_layers` by each algorithm, the first time (with compilation) and again,
* incremental PCA in torch (Ross et al., 2008), for each layer, as PEFT's EVA does it: a randomised SVD of
  components and batch together. PEFT's own class is used if PEFT is installed. It stops after `--peer-seconds`; its
  time for all tokens is then extrapolated, and its angles are those after the tokens that it has seen.

Angles are to the components in float64 of the same tokens, in some of the layers. `--tiny` runs all of it on a CPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

# Torch and JAX share the GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.45")

import jax
import numpy as np
import torch
from torch import nn

from eigengame import LayerFits, fit_layers
from eigengame.metrics import angular_error

WITHIN = 0.05
"""Angle that the check allows, in radians: the default tolerance of a fit."""


class Size(NamedTuple):
    """Layers, features, heads, features of the feed-forward part, vocabulary, texts in a batch, length, k."""

    layers: int
    d: int
    heads: int
    hidden: int
    vocabulary: int
    batch: int
    length: int
    k: int


LARGE = Size(16, 2048, 16, 5632, 50_000, 16, 1024, 64)
TINY = Size(3, 64, 4, 128, 2000, 8, 64, 8)
SMALL = Size(3, 128, 4, 256, 5000, 16, 128, 8)


class Block(nn.Module):
    """A layer of the decoder: causal attention and a gated feed-forward part, each after a norm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm1, self.norm2 = nn.RMSNorm(size.d), nn.RMSNorm(size.d)
        self.qkv, self.out = (
            nn.Linear(size.d, 3 * size.d, bias=False),
            nn.Linear(size.d, size.d, bias=False),
        )
        self.gate, self.up = (nn.Linear(size.d, size.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(size.hidden, size.d, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the residual stream after this layer."""
        n, length, d = x.shape
        query, key, value = (
            one.view(n, length, self.heads, -1).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, length, d))
        given = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(given)) * self.up(given))


class Decoder(nn.Module):
    """A decoder without the head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.d)
        self.positions = nn.Embedding(size.length, size.d)
        self.layers = nn.ModuleList(Block(size) for _ in range(size.layers))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the residual stream after the last layer, for ids (texts, length)."""
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return x


def made(size: Size, device: str, dtype: torch.dtype) -> Decoder:
    """Return a decoder with random weights, whose embeddings have eigenvalues 1/i in random directions."""
    torch.manual_seed(0)
    with torch.device(device):
        model = Decoder(size)
        scale = torch.arange(1, size.d + 1).rsqrt()
        turn = torch.linalg.qr(torch.randn(size.d, size.d))[0]
        with torch.no_grad():
            model.embedding.weight.copy_((torch.randn(size.vocabulary, size.d) * scale) @ turn)
            model.positions.weight.mul_(0.02)
    return model.to(dtype).eval()


def texts(size: Size, tokens: int) -> list[torch.Tensor]:
    """Return batches of random token ids on the host."""
    draw = torch.Generator().manual_seed(1)
    count = max(1, tokens // (size.batch * size.length))
    shape = (size.batch, size.length)
    batches = [torch.randint(0, size.vocabulary, shape, generator=draw) for _ in range(count)]
    return [one.pin_memory() for one in batches] if torch.cuda.is_available() else batches


def wait() -> None:
    """Wait for the work of torch and JAX on the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    jax.block_until_ready(jax.device_put(np.zeros(1)))


def rows_by_layer(model: Decoder, batches: list[torch.Tensor], handle: Any, layers: Any) -> None:
    """Run the decoder, and call `handle(layer, rows)` for some layers."""

    def hook(i: int) -> Any:
        def call(module: Any, given: Any, output: torch.Tensor) -> None:
            handle(i, output.flatten(0, 1))

        return call

    handles = [model.layers[i].register_forward_hook(hook(i)) for i in layers]
    device = next(model.parameters()).device
    try:
        with torch.inference_mode():
            for ids in batches:
                model(ids.to(device, non_blocking=True))
    finally:
        for one in handles:
            one.remove()


def true_components(
    model: Decoder, batches: list[torch.Tensor], layers: list[int], k: int
) -> dict[int, np.ndarray]:
    """Return the components (k, d) of some layers, by `eigh` of covariance matrices summed in float64."""
    sums: dict[int, list[Any]] = {}

    def add(i: int, rows: torch.Tensor) -> None:
        wide = rows.double()
        total = sums.setdefault(i, [0, 0.0, 0.0])
        total[0], total[1], total[2] = (
            total[0] + len(wide),
            total[1] + wide.sum(0),
            total[2] + wide.T @ wide,
        )

    rows_by_layer(model, batches, add, layers)
    found = {}
    for i, (count, total, products) in sums.items():
        matrix = products - torch.outer(total, total) / count
        found[i] = torch.linalg.eigh(matrix)[1][:, -k:].flip(1).T.cpu().numpy()
    return found


class IncrementalPCA:
    """Incremental PCA as PEFT computes it: a randomised SVD of components, batch and mean together, in float32.

    Parameters
    ----------
    k : int
        Number of components that are kept.
    """

    def __init__(self, k: int) -> None:
        self.k, self.count = k, 0
        self.mean: Any = None
        self.kept: Any = None

    def partial_fit(self, rows: torch.Tensor) -> None:
        """Add a batch (m, d)."""
        rows, m = rows.float(), len(rows)
        own = rows.mean(0)
        centred = rows - own
        total = self.count + m
        if self.kept is not None:
            bridge = (self.count * m / total) ** 0.5 * (self.mean - own)
            centred = torch.vstack([self.kept, centred, bridge])
            own = (self.count * self.mean + m * own) / total
        _, values, vectors = torch.svd_lowrank(centred, q=min(2 * self.k, *centred.shape), niter=4)
        self.mean, self.count = own, total
        self.kept = values[: self.k, None] * vectors.T[: self.k]

    @property
    def components_(self) -> torch.Tensor:
        """Components (k, d)."""
        return nn.functional.normalize(self.kept, dim=1)


def peer_of(k: int) -> tuple[str, Any]:
    """Return the name of the incremental PCA, and a function that makes one."""
    try:
        from peft.utils.incremental_pca import IncrementalPCA as OfPeft
    except ImportError:
        return "incremental PCA, as in PEFT", lambda: IncrementalPCA(k)
    return "PEFT's IncrementalPCA", lambda: OfPeft(n_components=k, lowrank=True, lowrank_seed=42)


def largest_angles(found: Any, truth: dict[int, np.ndarray]) -> tuple[float, float]:
    """Return the largest and the median angle of the components of some layers, in radians."""
    angles = [angular_error(np.asarray(found(i), np.float64), exact) for i, exact in truth.items()]
    return float(np.max(angles)), float(np.median(angles))


def names(size: Size) -> list[str]:
    """Return the names of the layers."""
    return [f"layers.{i}" for i in range(size.layers)]


def fitted(model: Decoder, batches: Any, size: Size, algorithm: str) -> LayerFits:
    """Fit all layers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_layers(model, batches, names(size), size.k, algorithm=algorithm)  # type: ignore[arg-type]
    wait()
    return found


def check(device: str, dtype: torch.dtype, size: Size, tokens: int) -> bool:
    """Return whether the fits of a small decoder agree with float64, for both algorithms; print their angles."""
    model = made(size, device, dtype)
    # Texts of two lengths, so that blocks do not end with batches.
    batches = [
        one if i % 2 else one[:, : size.length // 2 + 3]
        for i, one in enumerate(texts(size, tokens))
    ]
    truth = true_components(model, batches, list(range(size.layers)), size.k)
    good = True
    for algorithm in ("covariance", "remembered"):
        fits = fitted(model, batches, size, algorithm)
        largest, _ = largest_angles(lambda i, fits=fits: fits[f"layers.{i}"].components_, truth)
        bound = all(
            (
                fits[f"layers.{i}"].certificate_.angle
                >= angular_error(fits[f"layers.{i}"].components_.astype(float), exact)
            ).all()
            for i, exact in truth.items()
        )
        counted = {pca.n_samples_seen_ for pca in fits.values()} == {
            sum(one.numel() for one in batches)
        }
        print(
            f"check, {algorithm}: largest angle {largest:.4f} rad, bounds hold: {bound}, rows counted: {counted}"
        )
        good = good and largest < WITHIN and bound and counted
    return good


REPEATS = 3
"""Runs of which the shortest time counts: other work on the machine only adds to it."""


def timed(call: Any, repeats: int = 1) -> tuple[float, Any]:
    """Return the shortest time of some calls, with all work on the device, and the result of the last."""
    times = []
    for _ in range(repeats):
        wait()
        began = time.perf_counter()
        found = call()
        wait()
        times.append(time.perf_counter() - began)
    return min(times), found


def compare(model: Decoder, batches: list[torch.Tensor], size: Size, seconds: float) -> list[str]:
    """Return the lines of the comparison."""
    tokens = sum(one.numel() for one in batches)
    parameters = sum(one.numel() for one in model.parameters())
    lines = [
        f"{parameters / 1e9:.2f} billion parameters, {size.layers} layers x {size.d}, k = {size.k}, "
        f"{tokens:,} tokens"
    ]
    shown = sorted({0, size.layers // 2, size.layers - 1})
    truth = true_components(model, batches, shown, size.k)
    rows_by_layer(model, batches[:2], lambda i, rows: None, [])
    alone, _ = timed(lambda: rows_by_layer(model, batches, lambda i, rows: None, []), REPEATS)
    lines.append(f"forward pass alone: {alone:.3f} s, {tokens / alone:,.0f} tokens per second")
    gathered, _ = timed(
        lambda: rows_by_layer(model, batches, lambda i, rows: rows.clone(), range(size.layers)),
        REPEATS,
    )
    lines.append(
        f"forward pass with the rows of all layers copied: {gathered:.3f} s ({gathered / alone - 1:+.1%})"
    )
    ours: dict[str, tuple[float, float]] = {}
    for algorithm in ("covariance", "remembered"):
        first, _ = timed(lambda algorithm=algorithm: fitted(model, batches, size, algorithm))
        again, fits = timed(
            lambda algorithm=algorithm: fitted(model, batches, size, algorithm), REPEATS
        )
        # The fit alone, for the first batches: the rest of its time does not depend on the number of tokens.
        few, _ = timed(lambda algorithm=algorithm: fitted(model, batches[:2], size, algorithm))
        largest, median = largest_angles(
            lambda i, fits=fits: fits[f"layers.{i}"].components_, truth
        )
        certified = sum(one["certified"] for one in fits.table())
        extra = again - alone
        lines.append(
            f"fit_layers, {algorithm}: {again:.3f} s ({extra / alone:+.1%}; first time {first:.1f} s; of two "
            f"batches only {few:.3f} s); largest angle {largest:.4f}, median {median:.4f} rad; certified "
            f"{certified} of {size.layers * size.k}"
        )
        ours[algorithm] = extra, largest
    name, make = peer_of(size.k)
    lines += _peer_lines(name, make, model, batches, size, truth, ours, seconds)
    return lines


def _peer_lines(
    name: str,
    make: Any,
    model: Decoder,
    batches: list[torch.Tensor],
    size: Size,
    truth: dict[int, np.ndarray],
    ours: dict[str, tuple[float, float]],
    seconds: float,
) -> list[str]:
    """Return the lines of the incremental PCA, which sees as many batches as the time allows."""
    peers = [make() for _ in range(size.layers)]
    began, seen, spent = time.perf_counter(), 0, 0.0

    def add(i: int, rows: torch.Tensor) -> None:
        nonlocal spent
        wait_before = time.perf_counter()
        peers[i].partial_fit(rows.float())
        wait()
        spent += time.perf_counter() - wait_before

    rows_by_layer(model, batches[:1], add, range(size.layers))  # libraries choose their algorithms
    peers[:] = [make() for _ in range(size.layers)]
    spent = 0.0
    for ids in batches:
        rows_by_layer(model, [ids], add, range(size.layers))
        seen += 1
        if time.perf_counter() - began > seconds:
            break
    total = spent / seen * len(batches)
    largest, median = largest_angles(lambda i: peers[i].components_.float().cpu().numpy(), truth)
    note = "" if seen == len(batches) else f" (extrapolated from {seen} of {len(batches)} batches)"
    lines = [
        f"{name}: {total:.3f} s beside the forward pass{note}; largest angle {largest:.4f}, median "
        f"{median:.4f} rad"
    ]
    for algorithm, (extra, angle) in ours.items():
        # A ratio at equal angles: that of the fit must be at most that of its peer.
        which = "at most that of the peer" if angle <= largest else "LARGER than that of the peer"
        ratio = f"{total / extra:.1f}" if extra > 0 else "not measurable"
        lines.append(
            f"{algorithm}: ratio of the times beside the forward pass {ratio}; the largest angle is {which}"
        )
    return lines


def main() -> int:
    """Run the check and the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="a small decoder, also on a CPU")
    parser.add_argument("--tokens", type=int, default=2**20)
    parser.add_argument("--peer-seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not arguments.tiny:
        parser.error("there is no GPU: give --tiny.")
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    size = TINY if arguments.tiny else LARGE
    tokens = min(arguments.tokens, 40_000) if arguments.tiny else arguments.tokens
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    lines = [f"{where}, torch {torch.__version__}, JAX {jax.__version__}"]
    if not check(device, dtype, *((TINY, 40_000) if arguments.tiny else (SMALL, 400_000))):
        print("The fits do not agree with float64: nothing is timed.", file=sys.stderr)
        return 1
    model, batches = made(size, device, dtype), texts(size, tokens)
    lines += compare(model, batches, size, arguments.peer_seconds)
    print("\n".join(lines))
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
