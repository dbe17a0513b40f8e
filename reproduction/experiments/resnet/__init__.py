"""Components of a network's activations on photographs: all residual blocks at once, with a certificate.

The paper uses a ResNet-200 and 1.2 million photographs, here it is a ResNet-50 and several crops of each of 1000
photographs. M is X'X as in the paper, which does not mention a mean. The centred fit is computed as well, since
centring changes the first component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eigengame import EigenGamePCA, metrics
from reproduction.base import Results, Run
from reproduction.curves import rounded
from reproduction.experiments.resnet.edges import edges_of
from reproduction.experiments.resnet.figure import draw, extras
from reproduction.experiments.resnet.maps import as_bytes, extremes, mean_maps
from reproduction.experiments.resnet.photographs import UNIT, Photographs
from reproduction.experiments.resnet.rows import block_of, open_rows
from reproduction.experiments.resnet.steps import play_steps, rewards_and_penalties
from reproduction.experiments.resnet.stored import StoredRows
from reproduction.experiments.resnet.text import reading, summary
from reproduction.experiments.resnet.verdicts import claims
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

SHOWN = 8
"""Number of components whose blocks are drawn, as in the paper."""

KEPT = ("updates", "ratio", "angle", "streak")
"""Measurements that are stored for half of the updates."""


PROTOCOL = Protocol(
    # `copies` crops of each of the `photographs`, of `side` x `side` pixels. `layers` after conv1, None for all.
    # `steps` passes of EigenGame by steps: 28,128 updates, as many as three passes over 1.2 million rows have.
    full={
        "photographs": 1000,
        "copies": 4,
        "side": 224,
        "layers": None,
        "k": 32,
        "batch": 128,
        "steps": 879,
    },
    quick={
        "photographs": 48,
        "copies": 1,
        "side": 32,
        "layers": ("layer1.2", "layer2.3", "layer3.5", "layer4.2"),
        "k": 8,
        "batch": 24,
        "steps": 4,
    },
)


def measure(run: Run) -> Results:
    """Fit the activations with and without centring, and run EigenGame by steps."""
    size = PROTOCOL.size(run.quick)
    network, photographs, device, rows = open_rows(run, "resnet", size, PROTOCOL.size())
    assert rows.layers is not None
    results: Results = {
        "size": vars(size),
        "unit": UNIT,
        "accuracy": _accuracy(network, photographs, device),
        "rows": len(photographs),
        "features": int(rows.shape[1]),
    }
    results["layers"] = [
        {"name": one.name, "block": block_of(one.name), "features": int(one.end - one.begin)}
        for one in rows.layers
    ]
    fits: dict[str, EigenGamePCA] = {}
    results["readings"] = {}
    for name, center in READINGS.items():
        run.progress(f"{name}: {size.k} components of {rows.shape[1]} features")
        # The rows are few, so their inner products give the components up to rounding.
        fits[name] = EigenGamePCA(
            size.k, algorithm="exact", center=center, tol=TOL, batch_size=size.batch, random_state=0
        ).fit(rows)
        run.progress(f"{name}: filters for the maps")
        results["readings"][name] = _reading(fits[name], rows.layers)
    plain, centred = fits["uncentred"], fits["centred"]
    spread = [float(centred.var_[one.begin : one.end].sum()) for one in rows.layers]
    results["variance"] = rounded(spread)
    results["mean"] = _first_and_mean(plain, centred.mean_)
    results["stretches"] = _stretches(plain, rows.layers)
    results["arrays"] = {"maps": as_bytes(mean_maps(rows.layers, plain.components_))}
    run.progress("EigenGame by steps")
    results["EigenGame"] = _by_steps(plain, rows, size)
    return results


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


def _reading(fit: EigenGamePCA, layers: Any) -> Results:
    """Return the record of a fit."""
    found = fit.certificate_
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
        "shares": rounded(layers.shares(fit.components_)),
        "edges": [
            {
                reach: edge._asdict() | {"fit": round(edge.fit, 3), "chance": round(edge.chance, 3)}
                for reach, edge in found.items()
            }
            for found in edges_of(mean_maps(layers, fit.components_))
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


def _stretches(fit: EigenGamePCA, layers: Any) -> Results:
    """Return the extremes of each block of the first components, which the figure draws."""
    blocks: dict[int, list[np.ndarray]] = {}
    for layer in layers:
        part = fit.components_[:SHOWN, layer.begin : layer.end]
        blocks.setdefault(block_of(layer.name), []).append(part)
    joined = {block: np.concatenate(parts, axis=1) for block, parts in blocks.items()}
    return {
        str(block): [rounded(extremes(one), 3) for one in part] for block, part in joined.items()
    }


def _by_steps(fit: EigenGamePCA, rows: StoredRows, size: Any) -> Results:
    """Return quotients and utilities of EigenGame's players, and their angles to the certified components.

    "halfway" has the same measurements after half of the updates: they show whether the run is long enough.
    """
    largest = float(fit.certificate_.rayleigh[0]) * size.batch
    marks = (size.steps // 2, size.steps)
    played = play_steps(rows, size.k, step=STEP / largest, batch=size.batch, marks=marks, seed=1)
    per_pass = math.ceil(size.photographs * size.copies / size.batch)
    halfway, end = (
        {"updates": passes * per_pass} | _players(fit, rows, np.asarray(players), size.batch)
        for passes, players in played.items()
    )
    return {"step": STEP, **end, "halfway": {key: halfway[key] for key in KEPT}}


def _players(fit: EigenGamePCA, rows: StoredRows, players: np.ndarray, batch: int) -> Results:
    """Return quotients, utilities and angles of players (k, d)."""
    earned, lost = rewards_and_penalties(rows, players, batch)
    off = metrics.angular_error(players, fit.components_)
    return {
        "rayleigh": rounded(earned),
        "utility": rounded(earned - lost),
        "ratio": rounded(lost / earned),
        "angle": rounded(off),
        "streak": int(metrics.streak_of(off)),
    }
