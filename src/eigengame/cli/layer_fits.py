"""`eigengame fit-activations --each`: one fit for each layer, printed as a table."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

from eigengame.cli.estimator_options import EstimatorOptions
from eigengame.cli.fitting import DEFAULT_COMPONENTS, RunOptions, use_compilation_cache
from eigengame.cli.output import print_json, print_table
from eigengame.cli.output_paths import check_output_path

USED = ("algorithm", "batch_size", "extra", "tol", "center", "seed")
"""Options of the estimator that apply to each layer. The batch size is that of the network."""

ALGORITHMS = ("auto", "covariance", "remembered", "exact")


def refuse_unused(estimator: EstimatorOptions, run: RunOptions, k: Any) -> None:
    """Raise ValueError for options that one pass over all layers does not have."""
    for options in (estimator, run):
        for field in fields(options):
            if field.name not in USED and getattr(options, field.name) != field.default:
                raise ValueError(
                    f"--{field.name.replace('_', '-')} does not apply to --each, which makes one pass over all "
                    "layers: leave it out, or fit one layer without --each."
                )
    if estimator.algorithm not in ALGORITHMS:
        raise ValueError(
            f"--algorithm {estimator.algorithm} with --each: give auto, exact (a scatter matrix for each layer) or "
            "remembered."
        )
    if k is not None and not isinstance(k, int):
        raise ValueError(f"-k {k} with --each: give a number of components, not a share.")


def check_target(target: Path, picture: Path | None, *, force: bool) -> None:
    """Raise ValueError if the outputs cannot or must not be written: a file, or a folder for one file per layer."""
    if target.suffix == ".safetensors":
        check_output_path(target, (".safetensors",), force=force)
    elif target.exists() and not target.is_dir():
        raise ValueError(
            f"{target} is a file: give a folder, or a name that ends in .safetensors, with -o."
        )
    elif target.is_dir() and any(target.iterdir()) and not force:
        raise ValueError(f"{target} is not empty: give --force, or another folder with -o.")
    if picture is not None:
        check_output_path(picture, (".svg",), force=force)


def fit_each(
    network: Any,
    loader: Any,
    layers: list[str] | None,
    k: int | None,
    estimator: EstimatorOptions,
    target: Path,
    picture: Path | None,
    *,
    json: bool,
    about: dict[str, Any],
    **options: Any,
) -> None:
    """Fit each layer, write the model files and the picture, and print the table.

    `options` are those of `fit_layers`; `about` is added to the JSON output.
    """
    from eigengame import UncertifiedWarning, fit_layers
    from eigengame.solver.results.half_precision import HalfPrecisionWarning

    use_compilation_cache()
    given = estimator.parameters()
    algorithm: Any = "covariance" if given["algorithm"] == "exact" else given["algorithm"]
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UncertifiedWarning)
        warnings.simplefilter("always", HalfPrecisionWarning)
        fits = fit_layers(
            network,
            loader,
            layers,
            DEFAULT_COMPONENTS if k is None else k,
            algorithm=algorithm,
            extra=given["extra"],
            tol=given["tol"],
            center=given["center"],
            random_state=given["random_state"],
            **options,
        )
    for one in caught:
        print(f"Warning: {one.message}", file=sys.stderr)
    fits.save(target)
    if picture is not None:
        fits.draw(picture)
    table = fits.table()
    if json:
        print_json(about | {"seconds": time.perf_counter() - began, "layers": table})
        return
    print_table(
        (
            "layer",
            "rows",
            "features",
            "explained",
            "certified",
            "largest angle",
            "effective dimension",
        ),
        [
            (
                one["layer"],
                f"{one['rows']:,}",
                f"{one['features']:,}",
                f"{one['explained']:.2%}",
                f"{one['certified']} of {one['components']}",
                "" if one["angle"] is None else f"≤{one['angle']:.2g}",
                "" if one["effective_dimension"] is None else f"{one['effective_dimension']:.1f}",
            )
            for one in table
        ],
        most=len(table),
    )
    print(f"Written: {target}{'' if picture is None else f', {picture}'}")
