"""Components of a network's activations on photographs: of all residual blocks at once, with a certificate.

The paper plays on a ResNet-200 and 1.2 million photographs. Here it is a ResNet-50 and 1000 photographs, each
in several crops. M is X'X as in the paper, which says nothing of a mean; about the mean is played as well,
since the difference decides what the first component is.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from eigengame import EigenGamePCA, metrics
from eigengame.algorithms import Remembered
from eigengame.experiments import _resnet_figure
from eigengame.experiments._base import Results, Run
from eigengame.experiments._edges import edges_of
from eigengame.experiments._photographs import PHOTOGRAPHS, UNIT, WEIGHTS, Photographs, folder_of
from eigengame.experiments._protocol import rounded
from eigengame.experiments._reduced import extremes, reduced, whole_numbers
from eigengame.experiments._resnet_claims import claims as claims
from eigengame.experiments._resnet_claims import words as words
from eigengame.experiments._steps_on_source import earned_and_lost, play_steps
from eigengame.solver.plan import plan
from eigengame.sources._base import DEVICE_BUFFERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Activations of a ResNet on photographs"
PAPER = "fig:resnet200, fig:imagenet_scree"

TOL = math.pi / 32
"""The angle that every component is to be certified to."""

STEP = 1.0
"""EigenGame's step size, in units of one over a batch's largest eigenvalue.

The best of 0.05, 0.25, 1, 10 and 40 on crops of 32 x 32: with larger steps players that share a parent's
direction leap over it and back, and never leave it.
"""

READINGS = {"uncentred": False, "centred": True}
"""M as in the paper, and about the mean."""

FEATURES = 6_322_176
"""Of conv1 and all 16 residual blocks, on crops of 224 x 224."""

SHOWN = 8
"""Components whose blocks are drawn, as in the paper."""


class Size(NamedTuple):
    """How much is played.

    Attributes
    ----------
    photographs, copies : int
        How many of them, and in how many crops each.
    side : int
        Height and width of a crop.
    layers : tuple of str or None
        Blocks that are looked at, after conv1; None for all.
    k, batch : int
    passes : int
        How often the rows may be read for one certificate.
    steps : int
        Passes of EigenGame by steps.
    """

    photographs: int
    copies: int
    side: int
    layers: tuple[str, ...] | None
    k: int
    batch: int
    passes: int
    steps: int


FULL = Size(1000, 4, 224, None, k=32, batch=128, passes=24, steps=150)
QUICK = Size(
    48, 1, 32, ("layer1.2", "layer2.3", "layer3.5", "layer4.2"), k=8, batch=24, passes=12, steps=2
)


def measure(run: Run) -> Results:
    """Fit the activations in both readings, play EigenGame on them too, and return what was seen."""
    size = QUICK if run.quick else FULL
    folder = folder_of(run.data)
    device = _device(run.quick)
    from eigengame.experiments._resnet import block_names, load

    network = load(folder / WEIGHTS, unit=UNIT).to(device)
    photographs = Photographs(
        folder / PHOTOGRAPHS, size=size.side, count=size.photographs, copies=size.copies
    )
    run.say(f"{len(photographs)} crops of {len(photographs.labels)} photographs on {device}")
    results: Results = {
        "size": size._asdict(),
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
        run.say(f"{name}: {size.k} components of {source.shape[1]} features")
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
    run.say("EigenGame by steps")
    results["EigenGame"] = _by_steps(plain, source, size)
    return results


def block_of(layer: str) -> int:
    """Return which of the paper's five blocks a layer is in: conv1 is the first."""
    return 1 if layer == "conv1" else 1 + int(layer.removeprefix("layer").split(".")[0])


def _device(quick: bool) -> str:
    """Return where the network runs; a full run needs a GPU that torch and JAX share."""
    import torch

    seen = torch.cuda.is_available(), jax.default_backend()
    if quick or seen == (True, "gpu"):
        return "cuda" if seen == (True, "gpu") else "cpu"
    players = Remembered().players_for(FULL.k, FEATURES)
    needed = plan(
        (FULL.batch, FEATURES), players, 4, DEVICE_BUFFERS, passes=FULL.passes, own=2
    ).total
    raise ValueError(
        f"a full run of resnet plays {players} players on {FEATURES:,} features, and needs a GPU with "
        f"{needed / 2**30:.0f} GiB free that both torch (cuda: {seen[0]}) and JAX (on {seen[1]}) can use: run it "
        "there, or give --quick."
    )


def _source(network: Any, photographs: Photographs, names: tuple[str, ...], size: Size) -> Any:
    """Return the activations of these layers as a source."""
    from torch.utils.data import DataLoader

    from eigengame import activations

    # Cut once: dozens of passes see the same crops.
    batches = list(DataLoader(photographs, batch_size=size.batch))
    return activations(network, batches, layers=list(names))


def _accuracy(network: Any, photographs: Photographs, device: str) -> float:
    """Return how often the network's first guess is right on the centres of the photographs."""
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
    """Return what is kept of a fit."""
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
    """Return how near the first component is to the mean activation, and what of it the mean makes."""
    first = fit.components_[0].astype(np.float64)
    along, rows = float(first @ mean), fit.n_samples_seen_
    largest = float(fit.certificate_.rayleigh[0]) * (rows - 1) / rows
    return {
        "angle": rounded([math.acos(min(1.0, abs(along) / float(np.linalg.norm(mean))))])[0],
        "share": rounded([along**2 / largest])[0],
    }


def _drawn(fit: EigenGamePCA, source: Any) -> Results:
    """Return what the figures show: mean activation maps of block 1, and the stretches of each block."""
    maps = reduced(source.cut(fit.components_)["conv1"].mean(axis=1))
    blocks: dict[int, list[np.ndarray]] = {}
    for layer in source.layers:
        part = fit.components_[:SHOWN, layer.begin : layer.end]
        blocks.setdefault(block_of(layer.name), []).append(part)
    joined = {block: np.concatenate(parts, axis=1) for block, parts in blocks.items()}
    return {
        "maps": [whole_numbers(one) for one in maps],
        "stretches": {
            str(block): [rounded(extremes(one), 3) for one in part]
            for block, part in joined.items()
        },
    }


def _by_steps(fit: EigenGamePCA, source: Any, size: Size) -> Results:
    """Return what EigenGame's players earn, lose, and how far they are from the certified components."""
    largest = float(fit.certificate_.rayleigh[0]) * size.batch
    players = play_steps(
        source, size.k, step=STEP / largest, batch=size.batch, passes=size.steps, seed=1
    )
    earned, lost = earned_and_lost(source, players, size.batch)
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


def draw(results: Results) -> Figure:
    """Draw components by block, mean activation maps of block 1, the scree plot and the certificate."""
    return _resnet_figure.whole(results)


def extras(results: Results, folder: Path) -> list[Path]:
    """Write the components by block and the maps on their own, enlarged as in the paper's appendix."""
    return _resnet_figure.enlarged(results, folder)
