"""The components of each layer from what a pass has accumulated."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.estimator.exclusive import precision
from eigengame.layerwise.accumulate import stream_of
from eigengame.layerwise.covariance import eigenvectors_on_device, found_in_scatter, guarded
from eigengame.layerwise.groups import Group, on_accelerator
from eigengame.linalg.random_directions import random_orthonormal
from eigengame.solver.planning.options import Options
from eigengame.solver.results.result import Found, Result, result_of
from eigengame.solver.rows.frame import Frame
from eigengame.solver.rows.row_counts import refuse_unless_counted, refuse_unless_enough
from eigengame.solver.solve import found_in_stream
from eigengame.sources import SourceError


def results_of(
    groups: list[Group], k: int, origins: dict[str, np.ndarray], name: str
) -> dict[str, Result]:
    """Return the result of each layer. Layers are solved on several threads, since most of it is LAPACK."""
    tasks = []
    for group in groups:
        tasks += _tasks(group, k, name)
    with ThreadPoolExecutor(max_workers=None if len(tasks) > 1 else 1) as pool:
        found = dict(
            zip([one[0] for one in tasks], pool.map(lambda one: one[1](), tasks), strict=True)
        )
    return {
        layer: result_of(one, options, Frame(origins.get(layer)))
        for layer, (one, options) in found.items()
    }


def _tasks(group: Group, k: int, name: str) -> list[Any]:
    """Return for each layer of a group its name, and a function that finds its components."""
    options, game, sums = group.options, group.options.game(), group.sums
    scatter = np.asarray(sums.moments.scatter)
    for layer, values in zip(group.layers, scatter, strict=True):
        if not np.isfinite(values).all():
            column = int(np.flatnonzero(~np.isfinite(values))[0])
            raise SourceError(
                f"{name}: layer {layer.name!r} has NaN or infinite numbers in feature {column}: check the network "
                'and its input, use dtype="float32" if half precision overflows, or give nonfinite="skip".'
            )
    for i, layer in enumerate(group.layers):
        weight, label = float(sums.moments.weight[i]), f"{name}, layer {layer.name!r}"
        refuse_unless_counted(label, int(group.rows[i]), weight, 2)
        refuse_unless_enough(label, k, int(group.rows[i]), weight, 1)
    vectors = None
    d = scatter.shape[1]
    if sums.matrix is not None and on_accelerator():
        players = options.players(k, d)
        start = random_orthonormal(guarded(players, d), d, np.float32, options.seed)
        means, weights = (jnp.asarray(np.asarray(one, np.float32)) for one in sums.moments[1::-1])
        means = means if options.center else jnp.zeros_like(means)
        vectors = eigenvectors_on_device(sums.matrix, weights, means, start, players)

    def solved(i: int) -> tuple[Found, Options]:
        with precision(np.float32):
            if not group.covariance:
                return found_in_stream(
                    stream_of(game, sums, i, k, int(group.rows[i])), options
                ), options
            assert sums.matrix is not None
            moments, probes = jax.tree.map(
                lambda leaf: np.asarray(leaf)[i], (sums.moments, sums.probes)
            )
            own = None if vectors is None else vectors[i]
            found = found_in_scatter(
                game,
                np.asarray(sums.matrix[i]),
                moments,
                probes,
                int(group.rows[i]),
                k,
                options,
                own,
            )
            return found, options

    return [(layer.name, lambda i=i: solved(i)) for i, layer in enumerate(group.layers)]
