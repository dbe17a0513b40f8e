"""The network that computes rows: a torch module or a JAX function, with whole inputs or positions as rows."""

from __future__ import annotations

import re
from typing import Any

from eigengame import _check
from eigengame.sources._base import SourceError
from eigengame.sources._jax_network import JaxNetwork
from eigengame.sources._layers import Layers
from eigengame.sources._network_inputs import NetworkInputs
from eigengame.sources._positions import PositionOptions

POLICIES = ("raise", "skip", "zero")
"""Policies for non-finite activations."""


def open_network(
    model: Any,
    loader: Any,
    layers: Any,
    options: PositionOptions,
    *,
    output: Any = None,
    dtype: Any = "auto",
    network_dtype: Any = "auto",
    device: Any = None,
    key: Any = "auto",
    channels_last: Any = "auto",
    nonfinite: str = "raise",
    replay: bool = True,
    name: str | None = None,
    by_layer: bool = False,
) -> tuple[Any, NetworkInputs, str]:
    """Return the network that computes rows, the inputs of the loader, and the name of the source.

    Parameters are those of `activations`; with `by_layer` whole inputs are gathered layer by layer too.
    """
    _check.one_of("nonfinite", nonfinite, POLICIES)
    if not isinstance(replay, bool):
        raise SourceError(f"replay={replay!r}: give True or False.")
    name = name or f"activations of {getattr(model, '__name__', type(model).__name__)}"
    patterns, gathered = _patterns_of(layers), by_layer or options.rows != "inputs"
    inputs = NetworkInputs(loader, key, name, whole_dicts=options.rows != "inputs")
    if any(kind.__module__.split(".")[0] == "torch" for kind in type(model).__mro__):
        from eigengame.sources.torch.network import TorchNetwork
        from eigengame.sources.torch.positions import TorchPositions

        network = TorchNetwork(
            model,
            patterns,
            dtype=dtype,
            network_dtype=network_dtype,
            device=device,
            channels_last=channels_last,
            nonfinite=nonfinite,
            replay=replay,
            name=name,
            output=output,
        )
        if not gathered:
            return network, inputs, name
        return TorchPositions(network, options, output, nonfinite), inputs, name
    if not callable(model):
        raise SourceError(
            f"model is a {type(model).__name__}: give a torch Module, or a function of a batch for JAX."
        )
    if device is not None or channels_last is True:
        raise SourceError(
            f"device={device!r}, channels_last={channels_last!r}: these options are for torch modules; set the "
            "device of a JAX function by jax.default_device."
        )
    if output is not None:
        raise SourceError(
            f"output={output!r} is for torch modules: outputs of a JAX function are chosen by layers=."
        )
    if network_dtype != "auto":
        raise SourceError(
            f"network_dtype={network_dtype!r} is for torch modules: a JAX function computes in the precision of "
            "its weights."
        )
    function = JaxNetwork(model, patterns, dtype=dtype, nonfinite=nonfinite, name=name)
    if not gathered:
        return function, inputs, name
    from eigengame.sources._jax_positions import JaxPositions

    # Only a function that sees the mask can tell padding from tokens.
    sees_mask = inputs.key is None and isinstance(options.mask, (str, int))
    padded = options.rows == "tokens" and sees_mask
    return JaxPositions(function, options, nonfinite, padded=padded), inputs, name


def _patterns_of(layers: Any) -> list[str] | None:
    """Return names and patterns as a list; None for all layers."""
    if layers is None:
        return None
    if isinstance(layers, Layers):
        # The suffix of the second and later runs of a module is not part of its name.
        return list(dict.fromkeys(re.sub(r":\d+$", "", name) for name in layers.names))
    names = [layers] if isinstance(layers, str) else list(layers)
    if not all(isinstance(one, str) for one in names):
        raise SourceError(f"layers={layers!r}: give names or patterns of layers.")
    return names
