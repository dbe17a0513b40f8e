"""Activations of the ResNet-50 on crops of photographs, as rows on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from eigengame.algorithms import Remembered
from eigengame.solver.planning.memory import estimate_memory
from eigengame.sources._base import DEVICE_BUFFERS
from reproduction.base import Run
from reproduction.experiments.resnet.photographs import (
    PHOTOGRAPHS,
    UNIT,
    WEIGHTS,
    Photographs,
    folder_of,
)
from reproduction.experiments.resnet.stored import StoredRows

FEATURES = 6_322_176
"""Number of features of conv1 and all 16 residual blocks, on crops of 224 x 224."""


class Opened(NamedTuple):
    """What an experiment reads.

    Attributes
    ----------
    network : torch Module
    photographs : Photographs
    device : str
        Torch device of the network.
    rows : StoredRows
        Activations of `conv1` and of the residual blocks, one row per crop.
    """

    network: Any
    photographs: Photographs
    device: str
    rows: StoredRows


def open_rows(run: Run, name: str, size: Any, full: Any) -> Opened:
    """Load weights and photographs, and compute the activations once.

    Parameters
    ----------
    run : Run
    name : str
        Name of the experiment, for messages.
    size, full : namespace
        Sizes of this run and of a full run: photographs, copies, side, layers, k, batch.
    """
    folder = folder_of(run.data)
    device = _device(name, full, quick=run.quick)
    from torch.utils.data import DataLoader

    from eigengame import activations
    from reproduction.experiments.resnet.network import block_names, load

    network = load(folder / WEIGHTS, unit=UNIT).to(device)
    photographs = Photographs(
        folder / PHOTOGRAPHS, size=size.side, count=size.photographs, copies=size.copies
    )
    run.progress(f"{len(photographs)} crops of {len(photographs.labels)} photographs on {device}")
    names = ["conv1", *(size.layers or block_names())]
    source = activations(network, DataLoader(photographs, batch_size=size.batch), layers=names)
    return Opened(network, photographs, device, StoredRows(source))


def block_of(layer: str) -> int:
    """Return the number of the paper's block that a layer belongs to; conv1 is block 1."""
    return 1 if layer == "conv1" else 1 + int(layer.removeprefix("layer").split(".")[0])


def _device(name: str, full: Any, *, quick: bool) -> str:
    """Return the torch device. A full run needs a GPU that both torch and JAX can use."""
    import torch

    seen = torch.cuda.is_available(), jax.default_backend()
    if quick or seen == (True, "gpu"):
        return "cuda" if seen == (True, "gpu") else "cpu"
    players = Remembered().players_for(full.k, FEATURES)
    needed = estimate_memory((full.batch, FEATURES), players, 4, DEVICE_BUFFERS, computed=2).total
    # Rows are stored in bfloat16.
    needed += 2 * full.photographs * full.copies * FEATURES
    raise ValueError(
        f"a full run of {name} has {players} players on {FEATURES:,} features, and needs a GPU with "
        f"{needed / 2**30:.0f} GiB free that both torch (cuda: {seen[0]}) and JAX (on {seen[1]}) can use: run it "
        "on such a machine, or give --quick."
    )
