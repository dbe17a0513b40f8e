"""Activations of a network as rows, computed batch by batch on the device and never stored."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from eigengame import _check
from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._digest import combine_digests
from eigengame.sources._jax_network import JaxNetwork
from eigengame.sources._layers import Layers
from eigengame.sources._network_inputs import NetworkInputs

POLICIES = ("raise", "skip", "zero")
"""Policies for non-finite activations."""


def activations(
    model: Any,
    loader: Iterable[Any],
    layers: str | Sequence[str] | Layers | None = None,
    *,
    dtype: Any = "auto",
    device: Any = None,
    key: int | str | None = 0,
    channels_last: bool | Literal["auto"] = "auto",
    nonfinite: Literal["raise", "skip", "zero"] = "raise",
    replay: bool = True,
    name: str | None = None,
) -> ActivationsSource:
    r"""Return the activations of a network as a source: one row per input, layers side by side.

    Rows are computed when they are needed and stay on the device of the network: each batch is written into
    a buffer that JAX reads without a copy. Torch networks run in evaluation and inference mode. The module
    itself is never changed.

    Parameters
    ----------
    model : torch Module, or function for JAX
        A function takes a batch and returns an array or a tree of arrays (m, ...). For flax:
        ``lambda x: model.apply(params, x, capture_intermediates=True)[1]["intermediates"]``.
    loader : DataLoader, or any iterable of batches
        Inputs (m, ...), alone or in tuples, lists or dicts. A loader that shuffles or augments gives other
        rows in each pass.
    layers : str, sequence of str, Layers or None
        Names or patterns (`conv1`, `layer[1-4].*`) of torch modules, whose outputs are the features; for JAX
        paths in the tree. `*` does not match a dot, `**` does. By default the blocks of a torch network, or
        all outputs of a function. Give the layers of an earlier source, or `pca.layers_`, to get the same
        features in the same order.
    dtype : {"auto", "float32", "bfloat16", "float16"}
        Dtype of the rows. In half precision a copy of a torch network runs in that precision too. "auto" is
        bfloat16 on an accelerator and float32 on a CPU.
    device : torch device, optional
        Device on which a copy of a torch network runs. Defaults to the device of the network. It must be the
        device that JAX uses.
    key : int, str or None
        Part of a batch that is the input: 0 for (images, labels), "image" for {"image": images}. None passes
        the whole batch: tuples as arguments, dicts as keyword arguments.
    channels_last : bool or "auto"
        Whether a copy of a torch network runs with channels last in memory, which is faster for convolutions
        in half precision on a GPU. "auto" does so in this case.
    nonfinite : {"raise", "skip", "zero"}
        Policy for NaN and infinity: an error at the end of the pass that names the layer, weight 0 for the
        row, or replacement by 0.
    replay : bool
        Whether the forward pass of a torch network on a GPU is recorded and replayed (a CUDA graph) for
        batches of one shape. This saves the launch time of networks with many layers. A network that cannot
        be recorded runs normally. Give False if the Python code of the forward pass depends on the batch.
    name : str, optional
        Name for messages.

    Returns
    -------
    ActivationsSource
        Its attribute `layers` has names, shapes and positions; `cut` splits components into layers.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.ones((3, 4), np.float32)
    >>> source = activations(lambda x: {"hidden": x @ weights}, [np.ones((8, 3), np.float32)])
    >>> source.shape, source.layers.names
    ((8, 4), ['hidden'])
    """
    _check.one_of("nonfinite", nonfinite, POLICIES)
    if not isinstance(replay, bool):
        raise SourceError(f"replay={replay!r}: give True or False.")
    name = name or f"activations of {getattr(model, '__name__', type(model).__name__)}"
    patterns = _patterns_of(layers)
    inputs = NetworkInputs(loader, key, name)
    if any(kind.__module__.split(".")[0] == "torch" for kind in type(model).__mro__):
        from eigengame.sources.torch.network import TorchNetwork

        network: Any = TorchNetwork(
            model,
            patterns,
            dtype=dtype,
            device=device,
            channels_last=channels_last,
            nonfinite=nonfinite,
            replay=replay,
            name=name,
        )
    elif not callable(model):
        raise SourceError(
            f"model is a {type(model).__name__}: give a torch Module, or a function of a batch for JAX."
        )
    elif device is not None or channels_last is True:
        raise SourceError(
            f"device={device!r}, channels_last={channels_last!r}: these options are for torch modules; set the "
            "device of a JAX function by jax.default_device."
        )
    else:
        network = JaxNetwork(model, patterns, dtype=dtype, nonfinite=nonfinite, name=name)
    source = ActivationsSource(network, inputs, name)
    if isinstance(layers, Layers):
        source.use_layers(layers)
    return source


class ActivationsSource(Source):
    """Rows that a network computes; see `activations`.

    Attributes
    ----------
    layers : Layers
        Names, shapes and positions in a row, in the order in which the layers run.
    """

    on_device = True
    slow = False
    layers: Layers

    def __init__(self, network: Any, inputs: NetworkInputs, name: str) -> None:
        self.name, self._network, self._inputs = name, network, inputs
        self.layers = network.find_layers(inputs.first)
        self.shape = (inputs.rows, self.layers.width)
        self.dtype, self.again, self.block_rows = network.dtype, inputs.again, inputs.batch_rows
        self._started = False

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Earlier rows are not computed."""
        if self._started and not self.again:
            raise SourceError(
                f"{self.name}: the loader can be read once, and was read already: give a DataLoader, or a "
                "list of batches."
            )
        self._started = True
        return self._network.blocks(self._inputs.batches(start), size, start)

    def use_layers(self, wanted: Layers) -> None:
        """Arrange the features as in an earlier source; raise if the shapes of the layers differ."""
        found = {layer.name: layer.shape for layer in self.layers}
        for layer in wanted:
            if found.get(layer.name) != layer.shape:
                raise SourceError(
                    f"{self.name}: layer {layer.name!r} has shape {found.get(layer.name)}, but {layer.shape} is "
                    "expected: give the network and the inputs of the fit."
                )
        self.layers = self._network.use_layers(wanted)

    def cut(self, components: Any) -> dict[str, Any]:
        """Split components (k, d) into layers, each of shape (k, *shape)."""
        return self.layers.cut(components)

    def describe_feature(self, column: int) -> str:
        """Return the layer of a feature, and the index within it."""
        layer, index = self.layers.at(column)
        return f"layer {layer.name!r} at {index}"

    def free_bytes(self) -> int | None:
        """Return the free memory for buffers if they are not allocated by JAX, else None."""
        found: int | None = self._network.free_bytes()
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest of the layers, and facts about the network."""
        layers = hashlib.sha256(json.dumps(self.layers.facts()).encode()).hexdigest()[:16]
        about = {"layers": layers, "block_rows": self.block_rows}
        return super().fingerprint() | about | self._network.fingerprint()

    def digest(self) -> str | None:
        """Return a digest of the network and all inputs; None if one of them is unknown."""
        network = self._network.digest()
        return None if network is None else combine_digests([network, self._inputs.digest()])


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
