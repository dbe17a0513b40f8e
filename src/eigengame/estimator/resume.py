"""Checkpoints of an estimator: the record of its parameters and data by which a run is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from eigengame._system import interrupts
from eigengame.sharding.layout import parse_layout
from eigengame.solver.passes.checkpoint import Checkpoint, CheckpointError, CheckpointStore
from eigengame.solver.planning.options import Options
from eigengame.sources import Source
from eigengame.sources._digest import digest_of_array


def open_checkpoint(
    checkpoint: Any,
    parameters: Mapping[str, Any],
    options: Options,
    source: Source,
    weights: np.ndarray | None,
) -> CheckpointStore | None:
    """Return the store of a run, or None without a checkpoint.

    Parameters
    ----------
    checkpoint : path, Checkpoint or None
    parameters : mapping
        Parameters of the estimator.
    options : Options
    source : Source
    weights : array of shape (n,) or None
    """
    if checkpoint is None:
        return None
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    configuration = {name: _recorded(name, value) for name, value in parameters.items()}
    # "auto" stands for several numbers, which the other parameters decide.
    configuration["passes"] = options.passes
    configuration["played"] = str(options.dtype)
    configuration["sample_weight"] = None if weights is None else digest_of_array(weights)
    with interrupts.immediate():  # the digest may take as long as a pass
        content = None if given.trust_source else source.digest()
    if content is None and not given.trust_source:
        raise CheckpointError(
            f"checkpoint={str(given.folder)!r}: {source.name} has no digest, so the checkpoint of other data "
            "could not be recognised: give an array, a list of arrays or a path; or use "
            "Checkpoint(folder, trust_source=True) (--trust-source) if the same rows come again."
        )
    return CheckpointStore(
        given.folder,
        configuration,
        source.fingerprint() | {"content": content},
        given.every,
        seed=options.seed,
        trust_source=given.trust_source,
    )


def _recorded(name: str, value: Any) -> Any:
    """Return a parameter as JSON; values with the same meaning are equal."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if name == "mesh":
        # The layout of "auto" depends on the number of devices.
        return (
            f"auto, {jax.device_count()} devices" if value == "auto" else str(parse_layout(value))
        )
    if name == "random_state":
        return None  # a generator: the record has the seed that was drawn from it
    return value if isinstance(value, str) else repr(value)
