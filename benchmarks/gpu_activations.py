"""The main experiment of the paper on one GPU: 32 components of ResNet-200 activations, 20 million features.

Weights and pictures are random, which does not affect the speed. Measures the network alone with its activations
collected, then the fit: pictures per second, memory at the beginning and after many batches, and the time that the
1.28 million pictures of ImageNet would take.

python -m benchmarks.gpu_activations [--batches 1000] [--probes 16] [--compile]
"""

import argparse
import datetime
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import torch

import eigengame as eg
from reproduction.experiments.resnet.network import RESNET200, ResNet, block_names

ROWS, SIDE, IMAGENET = 128, 224, 1_281_167
WARM = 20
"""Batches that are not timed, because of compilation and the choice of convolutions."""


class Pictures:
    """Batches of random pictures that are on the device already, so that loading is not measured."""

    batch_size = ROWS

    def __init__(self, batches: int) -> None:
        draw = torch.Generator("cuda").manual_seed(0)
        shape = (ROWS, 3, SIDE, SIDE)
        self._kept = [torch.randn(shape, generator=draw, device="cuda") for _ in range(8)]
        self._batches = batches

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[torch.Tensor]:
        for number in range(self._batches):
            yield self._kept[number % len(self._kept)]


class Clock:
    """Progress callback that records the time and the memory in use after each batch."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.memory: list[float] = []

    def batch(self, at: Any) -> None:
        """Record the time and the memory."""
        self.times.append(time.perf_counter())
        self.memory.append(memory())


def memory() -> float:
    """Return the device memory in use by JAX and torch, in GB."""
    used = jax.devices()[0].memory_stats()["bytes_in_use"]
    return (used + torch.cuda.memory_allocated()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--probes", default="auto", help="number of probes, or auto")
    parser.add_argument("--compile", action="store_true", help="compile the blocks of the network")
    options = parser.parse_args()
    versions = f"JAX {jax.__version__}, torch {torch.__version__}"
    print(f"{datetime.date.today()}, {torch.cuda.get_device_name()}, {versions}")
    torch.manual_seed(0)
    network = ResNet(RESNET200).cuda()
    layers = ["conv1", *block_names(RESNET200)]
    source = eg.activations(network, Pictures(options.batches), layers, compile=options.compile)
    print(
        f"ResNet-200 at {SIDE} x {SIDE}{', compiled' if options.compile else ''}: {source.shape[1]:,} features "
        f"in {source.dtype}"
    )
    alone = network_alone(source, 60)
    print(
        f"network with its activations collected: {1e3 * alone:.1f} ms a batch, {ROWS / alone:.0f} pictures/s"
    )
    clock = Clock()
    began = time.perf_counter()
    probes = "auto" if options.probes == "auto" else int(options.probes)
    pca = eg.EigenGamePCA(32, algorithm="remembered", passes=1, probes=probes, random_state=0)
    pca.fit(source, progress=[clock])
    total = time.perf_counter() - began
    times = np.diff(clock.times[WARM:])
    each = (clock.times[-1] - clock.times[WARM]) / (len(clock.times) - 1 - WARM)
    print(
        f"fit with {pca.n_players_} players, the mean and {options.probes} probes: {1e3 * each:.1f} ms a batch "
        f"({1e3 * np.median(times):.1f} in the median), {ROWS / each:.0f} pictures/s"
    )
    print(f"share of the time outside the network: {1 - alone / each:.0%}")
    print(f"{options.batches} batches, including setup and results: {total:.1f} s")
    print(
        f"memory in use, JAX and torch: {clock.memory[WARM]:.1f} GB after {WARM} batches, "
        f"{clock.memory[-1]:.1f} GB after {len(clock.memory)}; at most {peak():.1f} GB"
    )
    print(
        f"ImageNet's {IMAGENET:,} pictures would take {IMAGENET / ROWS * each / 60:.1f} minutes "
        "(the paper: 9 hours on 32 TPUv3)"
    )
    v = pca.components_
    sums = sum(
        (lambda part: part @ part.T)(v[:, begin : begin + 2**20].astype(np.float64))
        for begin in range(0, v.shape[1], 2**20)
    )
    print(f"orthonormal to {np.abs(sums - np.eye(len(v))).max():.1e}; {pca.outcome_}")


def network_alone(source: Any, batches: int) -> float:
    """Return the seconds per batch without updates."""
    blocks = source.blocks(0, ROWS)
    for _ in range(WARM):
        last = next(blocks)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(batches):
        last = next(blocks)
    jax.block_until_ready(last.values)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / batches


def peak() -> float:
    """Return the peak of the device memory in use by JAX and torch, in GB."""
    used = jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    return (used + torch.cuda.max_memory_allocated()) / 1e9


if __name__ == "__main__":
    main()
