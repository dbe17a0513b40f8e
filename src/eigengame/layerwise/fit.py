"""One fit for each layer of a network, in one forward pass over the inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from eigengame import _check
from eigengame._system import interrupts
from eigengame.estimator.exclusive import precision
from eigengame.estimator.from_result import estimator_of
from eigengame.estimator.uncertified import UncertifiedWarning, uncertified
from eigengame.layerwise.fits import LayerFits
from eigengame.layerwise.groups import Stack, begin_group, groups_of
from eigengame.layerwise.one_pass import one_pass, origins_of
from eigengame.layerwise.solve import results_of
from eigengame.solver.passes.limits import AUTO_TOL
from eigengame.solver.planning.options import PROBES, Options
from eigengame.solver.results.half_precision import warn_if_mean_dominates
from eigengame.sources import Layers
from eigengame.sources._half_precision import describe_rounding
from eigengame.sources._open_network import open_network
from eigengame.sources._positions import PositionOptions
from eigengame.sources.position_source import PositionSource

ALGORITHMS = ("auto", "covariance", "remembered")


def fit_layers(
    model: Any,
    loader: Iterable[Any],
    layers: str | Sequence[str] | Layers | None = None,
    k: int = 8,
    *,
    rows: Literal["inputs", "tokens", "pixels"] = "tokens",
    mask: Any = None,
    output: Any = None,
    side: Literal["outputs", "inputs"] = "outputs",
    every: int = 1,
    per_input: int | None = None,
    seed: int = 0,
    algorithm: Literal["auto", "covariance", "remembered"] = "auto",
    stack: Stack = "auto",
    extra: int | Literal["auto"] = "auto",
    batch_size: int | Literal["auto"] = "auto",
    center: bool = True,
    tol: float | Literal["auto"] | None = "auto",
    random_state: Any = 0,
    dtype: Any = "auto",
    network_dtype: Any = "auto",
    device: Any = None,
    key: Any = "auto",
    channels_last: bool | Literal["auto"] = "auto",
    nonfinite: Literal["raise", "skip", "zero"] = "raise",
    name: str | None = None,
) -> LayerFits:
    """Fit the components of each layer of a network, all layers in one pass over the inputs.

    The network runs once for each batch. Layers with equal shapes are updated together by one compiled program.

    Parameters
    ----------
    model, loader, layers, rows, mask, output, side, every, per_input, seed
        As in `activations`; with ``side="inputs"`` each fit is about what goes into its layer. Layers need not have
        the same positions, and default to the blocks of a torch network.
    k : int
        Number of components of each layer.
    algorithm : {"auto", "covariance", "remembered"}
        "covariance" sums the scatter matrix of each layer in float32, and solves its eigenproblem; "remembered"
        plays the remembered game, which needs memory for the players only. "auto" takes the first where matrices
        are small: up to 8192 features on an accelerator; on a CPU up to 1024, or three times the number of players.
    stack : bool or "auto"
        Whether layers are computed together: True requires layers of one shape, "auto" groups them by shape, False
        computes each alone.
    extra : int or "auto"
        Number of players beyond k. "auto" is k/2 for "covariance" and 1.5 k for "remembered", at least 8.
    batch_size : int or "auto"
        Rows of a block.
    center : bool
        Whether to subtract the mean.
    tol : float, "auto" or None
        Angle in radians by which components are judged; "auto" is 0.05. A warning names layers with components
        that are not certified within it. There is one pass in any case.
    random_state : int, RandomState or None
        Seed of the initial players and the probes.
    dtype, network_dtype, device, key, channels_last, nonfinite, name
        As in `activations`.

    Returns
    -------
    LayerFits
        Fitted estimators by the names of the layers, with a table, a picture and files.

    Examples
    --------
    >>> weights = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    >>> tokens = np.random.default_rng(1).normal(size=(8, 5, 3)).astype(np.float32)
    >>> fits = fit_layers(lambda x: {"one": x, "two": x @ weights}, [tokens], k=2)
    >>> fits["two"].components_.shape, fits["two"].n_samples_seen_
    ((2, 6), 40)
    """
    _check.whole("k", k)
    _check.one_of("algorithm", algorithm, ALGORITHMS)
    if batch_size != "auto":
        _check.whole("batch_size", batch_size)
    options = Options(
        extra="auto" if isinstance(extra, str) else _check.whole("extra", extra, low=0),
        tol=AUTO_TOL if isinstance(tol, str) else tol,
        center=bool(center),
        dtype=np.dtype(np.float32),
        seed=int(check_random_state(random_state).randint(2**31 - 8)),
        probes=PROBES,
    )
    places = PositionOptions(rows, mask, every, per_input, seed)
    network, inputs, name = open_network(
        model,
        loader,
        layers,
        places,
        output=output,
        side=side,
        dtype=dtype,
        network_dtype=network_dtype,
        device=device,
        key=key,
        channels_last=channels_last,
        nonfinite=nonfinite,
        name=name,
        by_layer=True,
    )
    source = PositionSource(network, inputs, name, places, None)
    if isinstance(layers, Layers):
        source.use_layers(layers)
    with precision(np.float32):
        groups = [
            begin_group(group, source, k, algorithm, options, batch_size)
            for group in groups_of(source.layers, source.position_counts, stack)
        ]
        origins = origins_of(source) if center else {}
        given = {"center": bool(center), "random_state": random_state, "tol": tol}
        kinds = one_pass(source, groups, origins)
        with interrupts.immediate():
            results = results_of(groups, k, origins, source.name)
        fits = {}
        for layer in source.layers:
            result = results[layer.name]
            rounding = describe_rounding(
                [kinds[layer.name]], source.dtype, centred=layer.name in origins
            )
            result = replace(result, outcome=replace(result.outcome, rounding=rounding))
            own = Layers.of([(layer.name, layer.shape, layer.channels_last)], layer.side)
            about = source.fingerprint() | {"shape": [result.rows, own.width]}
            parameters = given | {"n_components": k, "extra": result.options.extra}
            fits[layer.name] = estimator_of(result, parameters, source=about, layers=own)
            warn_if_mean_dominates(
                f"{name}, layer {layer.name!r}",
                rounding,
                fits[layer.name].mean_,
                fits[layer.name].var_,
            )
    found = LayerFits(fits)
    _warn_uncertified(found)
    return found


def _warn_uncertified(fits: LayerFits) -> None:
    """Warn about layers with components that are not certified within the tolerance: one warning for all."""
    counts = {name: len(uncertified(pca)) for name, pca in fits.items()}
    texts = [
        f"{name} ({count} of {fits[name].n_components_})" for name, count in counts.items() if count
    ]
    if texts:
        tol = next(iter(fits.values())).tol_
        more = f" and {len(texts) - 6} more" if len(texts) > 6 else ""
        warnings.warn(
            f"components of {', '.join(texts[:6])}{more} are not certified within {tol:g} rad: give more inputs or "
            "extra players, or fit such a layer by EigenGamePCA, which reads the inputs again. tol=None turns this "
            "warning off.",
            UncertifiedWarning,
            stacklevel=3,
        )
