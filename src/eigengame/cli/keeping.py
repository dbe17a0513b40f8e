"""What the commands that fit have in common: how many, where to, how runs are kept and watched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eigengame.cli.game import Game
from eigengame.cli.running import keep_compiled
from eigengame.cli.watching import watchers

FEW = 16
"""Components where nobody says how many."""

Components = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--components",
        metavar="K",
        help=f"How many components, or the share of the variance to reach (0.9). {FEW} if not given.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="The .safetensors file to write; named after what is fitted."
    ),
]


@dataclass(frozen=True)
class Keeping:
    """Options for long runs: kept, and written down as they go."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the run here; the same command goes on from it."),
    ] = None
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Seconds between two checkpoints.")
    ] = 60.0
    trust_source: Annotated[
        bool,
        typer.Option(
            "--trust-source",
            help="Do not read DATA once more to compare its content with that of the checkpoint.",
        ),
    ] = False
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write progress as JSON lines.")
    ] = None
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write progress for TensorBoard.")
    ] = None

    def watchers(self, quiet: bool) -> list[Any]:
        """Return who watches the run."""
        return watchers(quiet, self.log, self.tensorboard)


def fitted(source: Any, k: int | float | None, game: Game, keeping: Keeping, seen: Any) -> Any:
    """Return an estimator fitted on a source, the run kept where asked."""
    from eigengame import Checkpoint, EigenGamePCA

    keep_compiled()
    pca = EigenGamePCA(_few(source) if k is None else k, **game.parameters())
    folder, every, trust = keeping.checkpoint, keeping.checkpoint_every, keeping.trust_source
    kept = None if folder is None else Checkpoint(folder, every, trust)
    return pca.fit(source, checkpoint=kept, progress=seen)


def _few(source: Any) -> int:
    """Return how many components to find where nobody says."""
    n, d = source.shape
    return int(min(FEW, d, d if n is None else n))
