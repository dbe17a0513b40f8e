"""Components of a network's activations on photographs: all residual blocks at once, with a certificate.

The paper uses a ResNet-200 and 1.2 million photographs, here it is a ResNet-50 and several crops of each of 1000
photographs. M is X'X as in the paper, which does not mention a mean. The centred fit is computed as well, since
centring changes the first component.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from eigengame import EigenGamePCA, metrics
from eigengame.algorithms import Remembered
from eigengame.solver.memory import estimate_memory
from eigengame.sources._base import DEVICE_BUFFERS
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.resnet.edges import edges_of
from reproduction.experiments.resnet.figure import draw, extras
from reproduction.experiments.resnet.maps import as_integers, extremes, reduced
from reproduction.experiments.resnet.photographs import (
    PHOTOGRAPHS,
    UNIT,
    WEIGHTS,
    Photographs,
    folder_of,
)
from reproduction.experiments.resnet.steps import play_steps, rewards_and_penalties
from reproduction.experiments.resnet.text import claims, reading, summary
from reproduction.protocol import Protocol

__all__ = ["PAPER", "TITLE", "claims", "draw", "extras", "measure", "reading", "summary"]

TITLE = "Activations of a ResNet on photographs"
PAPER = "fig:resnet200, fig:imagenet_scree"

TOL = math.pi / 32
"""Angle to which every component is certified."""

STEP = 1.0
"""Step size of EigenGame, in units of one over the largest eigenvalue of a batch.

The best of 0.05, 0.25, 1, 10 and 40 on crops of 32 x 32. With larger steps, players that share the direction of a
parent alternate between its two sides and do not leave it.
"""

READINGS = {"uncentred": False, "centred": True}
"""Whether M is about the mean; the paper's is not."""

FEATURES = 6_322_176
"""Number of features of conv1 and all 16 residual blocks, on crops of 224 x 224."""

SHOWN = 8
"""Number of components whose blocks are drawn, as in the paper."""


PROTOCOL = Protocol(
    # `copies` crops of each of the `photographs`, of `side` x `side` pixels. `layers` after conv1, None for all.
    # At most `passes` over the rows for one certificate; `steps` passes of EigenGame by steps.
    full={
        "photographs": 1000,
        "copies": 4,
        "side": 224,
        "layers": None,
        "k": 32,
        "batch": 128,
        "passes": 24,
        "steps": 150,
    },
    quick={
        "photographs": 48,
        "copies": 1,
        "side": 32,
        "layers": ("layer1.2", "layer2.3", "layer3.5", "layer4.2"),
        "k": 8,
        "batch": 24,
        "passes": 12,
        "steps": 2,
    },
)


def measure(run: Run) -> Results:
    """Fit the activations with and without centring, and run EigenGame by steps."""
    size = PROTOCOL.size(run.quick)
    folder = folder_of(run.data)
    device = _device(run.quick)
    from reproduction.experiments.resnet.network import block_names, load

    network = load(folder / WEIGHTS, unit=UNIT).to(device)
    photographs = Photographs(
        folder / PHOTOGRAPHS, size=size.side, count=size.photographs, copies=size.copies
    )
    run.progress(f"{len(photographs)} crops of {len(photographs.labels)} photographs on {device}")
    results: Results = {
        "size": vars(size),
        "unit": UNIT,
        "accuracy": _accuracy(network, photographs, device),
    }
    source = _source(network, photographs, ("conv1", *(size.layers or block_names())), size)
    results |= {"rows": len(photographs), "features": int(source.shape[1])}
    results["layers"] = [
        {"name": one.name, "block": block_of(one.name), "features": int(one.end - one.begin)}
        for one in source.layers
    ]
    fits: dict[str, EigenGamePCA] = {}
    results["readings"] = {}
    for name, center in READINGS.items():
        run.progress(f"{name}: {size.k} components of {source.shape[1]} features")
        fits[name] = EigenGamePCA(
            size.k,
            center=center,
            tol=TOL,
            passes=size.passes,
            batch_size=size.batch,
            random_state=0,
        ).fit(source)
        results["readings"][name] = _reading(fits[name], source)
    plain, centred = fits["uncentred"], fits["centred"]
    spread = [float(centred.var_[one.begin : one.end].sum()) for one in source.layers]
    results["variance"] = rounded(spread)
    results["mean"] = _first_and_mean(plain, centred.mean_)
    results["drawn"] = _drawn(plain, source)
    run.progress("EigenGame by steps")
    results["EigenGame"] = _by_steps(plain, source, size)
    return results


def block_of(layer: str) -> int:
    """Return the number of the paper's block that a layer belongs to; conv1 is block 1."""
    return 1 if layer == "conv1" else 1 + int(layer.removeprefix("layer").split(".")[0])


def _device(quick: bool) -> str:
    """Return the torch device. A full run needs a GPU that both torch and JAX can use."""
    import torch

    seen = torch.cuda.is_available(), jax.default_backend()
    if quick or seen == (True, "gpu"):
        return "cuda" if seen == (True, "gpu") else "cpu"
    full = PROTOCOL.size()
    players = Remembered().players_for(full.k, FEATURES)
    shape, passes = (full.batch, FEATURES), full.passes
    needed = estimate_memory(shape, players, 4, DEVICE_BUFFERS, passes=passes, computed=2).total
    raise ValueError(
        f"a full run of resnet has {players} players on {FEATURES:,} features, and needs a GPU with "
        f"{needed / 2**30:.0f} GiB free that both torch (cuda: {seen[0]}) and JAX (on {seen[1]}) can use: run it "
        "on such a machine, or give --quick."
    )


def _source(network: Any, photographs: Photographs, names: tuple[str, ...], size: Any) -> Any:
    """Return the activations of the layers as a source."""
    from torch.utils.data import DataLoader

    from eigengame import activations

    # Crop once: dozens of passes read the same crops.
    batches = list(DataLoader(photographs, batch_size=size.batch))
    return activations(network, batches, layers=list(names))


def _accuracy(network: Any, photographs: Photographs, device: str) -> float:
    """Return the top-1 accuracy on the centre crops."""
    import torch

    right, count = 0, len(photographs.labels)
    with torch.inference_mode():
        for begin in range(0, count, 64):
            chosen = range(begin, min(begin + 64, count))
            pixels = np.stack([photographs.crop(one) for one in chosen])
            guessed = network(torch.from_numpy(pixels).to(device)).argmax(dim=1).cpu().numpy()
            right += int((guessed == photographs.labels[list(chosen)]).sum())
    return round(right / count, 4)


def _reading(fit: EigenGamePCA, source: Any) -> Results:
    """Return the record of a fit."""
    found = fit.certificate_
    maps = source.cut(fit.components_)["conv1"].mean(axis=1)
    return {
        "rayleigh": rounded(found.rayleigh),
        "utility": rounded(found.rayleigh * (1 - found.penalty_ratio)),
        "ratio": rounded(found.penalty_ratio),
        "explained": rounded(fit.explained_variance_ratio_),
        "certificate": {
            "kind": found.kind,
            "confidence": found.confidence,
            "angle": rounded(found.angle),
            "streak": found.streak(TOL),
            "passes": int(fit.n_passes_),
            "outcome": str(fit.outcome_),
        },
        "shares": rounded(source.layers.shares(fit.components_)),
        "edges": [
            {"kind": one.kind, "degrees": one.degrees, "cycles": one.cycles}
            | {"fit": round(one.fit, 3), "chance": round(one.chance, 3)}
            for one in edges_of(reduced(maps))
        ],
    }


def _first_and_mean(fit: EigenGamePCA, mean: np.ndarray) -> Results:
    """Return the angle of the first component to the mean activation, and the mean's share of its quotient."""
    first = fit.components_[0].astype(np.float64)
    along, rows = float(first @ mean), fit.n_samples_seen_
    largest = float(fit.certificate_.rayleigh[0]) * (rows - 1) / rows
    return {
        "angle": rounded(math.acos(min(1.0, abs(along) / float(np.linalg.norm(mean))))),
        "share": rounded(along**2 / largest),
    }


def _drawn(fit: EigenGamePCA, source: Any) -> Results:
    """Return the data of the figure: mean maps of block 1, and the extremes of each block."""
    maps = reduced(source.cut(fit.components_)["conv1"].mean(axis=1))
    blocks: dict[int, list[np.ndarray]] = {}
    for layer in source.layers:
        part = fit.components_[:SHOWN, layer.begin : layer.end]
        blocks.setdefault(block_of(layer.name), []).append(part)
    joined = {block: np.concatenate(parts, axis=1) for block, parts in blocks.items()}
    return {
        "maps": [as_integers(one) for one in maps],
        "stretches": {
            str(block): [rounded(extremes(one), 3) for one in part]
            for block, part in joined.items()
        },
    }


def _by_steps(fit: EigenGamePCA, source: Any, size: Any) -> Results:
    """Return quotients and utilities of EigenGame's players, and their angles to the certified components."""
    largest = float(fit.certificate_.rayleigh[0]) * size.batch
    players = play_steps(
        source, size.k, step=STEP / largest, batch=size.batch, passes=size.steps, seed=1
    )
    earned, lost = rewards_and_penalties(source, players, size.batch)
    off = metrics.angular_error(players, fit.components_)
    return {
        "step": STEP,
        "updates": size.steps * -(-source.shape[0] // size.batch),
        "rayleigh": rounded(earned),
        "utility": rounded(earned - lost),
        "ratio": rounded(lost / earned),
        "angle": rounded(off),
        "streak": int(metrics.streak_of(off)),
    }
