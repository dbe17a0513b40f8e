"""Options and code shared by the commands that fit or certify a model."""

from __future__ import annotations

import contextlib
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eigengame.cli.errors import print_message
from eigengame.cli.estimator_options import EstimatorOptions
from eigengame.cli.progress_display import make_watchers

DEFAULT_COMPONENTS = 16

Components = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--components",
        metavar="K",
        help="Number of components, or the share of the variance to explain (0.9). "
        f"Default: {DEFAULT_COMPONENTS}.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="The .safetensors file to write. Default: named after the input."
    ),
]


@dataclass(frozen=True)
class RunOptions:
    """Options for long runs: checkpoints and logs."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Save the run here; the same command resumes it after a stop."
        ),
    ] = None
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Seconds between two checkpoints.")
    ] = 60.0
    trust_source: Annotated[
        bool,
        typer.Option(
            "--trust-source",
            help="Skip the extra read of DATA that compares its content with the checkpoint.",
        ),
    ] = False
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write progress as JSON lines.")
    ] = None
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write progress for TensorBoard.")
    ] = None

    def watchers(self, quiet: bool) -> list[Any]:
        """Return the watchers for these options."""
        return make_watchers(quiet, self.log, self.tensorboard)


def use_compilation_cache() -> None:
    """Keep compiled programs for the next command, if the cache folder can be written."""
    from eigengame._system.compilation_cache import default_folder, keep_compilations

    with contextlib.suppress(OSError, RuntimeError):
        if default_folder() is not None:
            keep_compilations()


def fit_source(
    source: Any, k: int | float | None, estimator: EstimatorOptions, run: RunOptions, progress: Any
) -> Any:
    """Fit an `EigenGamePCA` to a source, with a checkpoint if the options name a folder."""
    from eigengame import Checkpoint, EigenGamePCA
    from eigengame.estimator.genotypes import without_standardisation
    from eigengame.estimator.uncertified import UncertifiedWarning, uncertified_message
    from eigengame.sources import GenotypeWarning

    use_compilation_cache()
    if k is None:
        n, d = source.shape
        k = int(min(DEFAULT_COMPONENTS, d, d if n is None else n))
    pca = EigenGamePCA(k, **estimator.parameters())
    checkpoint = None
    if run.checkpoint is not None:
        checkpoint = Checkpoint(run.checkpoint, run.checkpoint_every, run.trust_source)
    text = without_standardisation(source)
    if text is not None:
        print_message(text)
    with warnings.catch_warnings():
        # Printed here, without a line of code.
        warnings.simplefilter("ignore", GenotypeWarning)
        warnings.simplefilter("ignore", UncertifiedWarning)
        pca.fit(source, checkpoint=checkpoint, progress=progress)
    message = uncertified_message(pca)
    if message is not None:
        print(f"Warning: {message}", file=sys.stderr)
    return pca
