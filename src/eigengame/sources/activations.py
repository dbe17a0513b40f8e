"""Activations of a network as rows: computed batch by batch where they are played, never stored."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from eigengame import _check
from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._digest import combined
from eigengame.sources._jax_network import JaxNetwork
from eigengame.sources._layers import Layers
from eigengame.sources._network_inputs import Inputs

POLICIES = ("raise", "skip", "zero")
"""What to do about a number that is not finite."""


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
    r"""Return the activations of a network as rows to fit: one row for each input, layers side by side.

    They are computed when they are needed, on the network's device, and stay there: each batch is written
    into one buffer that JAX reads without a copy. Networks of torch run in evaluation mode and inference
    mode; the module itself is never changed.

    Parameters
    ----------
    model : torch Module, or function for JAX
        A function takes a batch and returns an array, or any tree of arrays (m, ...); for flax
        ``lambda x: model.apply(params, x, capture_intermediates=True)[1]["intermediates"]``.
    loader : DataLoader, or any iterable of batches
        Inputs (m, ...), alone or in tuples, lists or dicts. One that shuffles or augments gives other rows
        in each pass.
    layers : str, sequence of str, Layers or None
        Modules of torch by name or pattern (`conv1`, `layer[1-4].*`), whose outputs are the features; for
        JAX paths in the tree. `*` stays within a dot, `**` does not. By default a network's blocks, and all
        that a function returns. The layers of an earlier source, or `pca.layers_`, for the same features
        in the same order.
    dtype : {"auto", "float32", "bfloat16", "float16"}
        Of the rows; in half precision torch networks run so too, on a copy. "auto" is bfloat16 on an
        accelerator and float32 on the host.
    device : torch device, optional
        Where a torch network runs, on a copy; by default where it is. JAX has to play there.
    key : int, str or None
        Which part of a batch is the input: (pictures, labels) and 0, or {"image": pictures} and "image".
        None passes on all of it: tuples as arguments, dicts as keywords.
    channels_last : bool or "auto"
        Whether a torch network runs with channels last in memory, on a copy, which is faster for
        convolutions in half precision; "auto" does so there.
    nonfinite : {"raise", "skip", "zero"}
        What becomes of NaN and infinity: an error at the end of the pass that names the layer, a row
        passed over, or 0.
    replay : bool
        Whether the forward of a torch network on a GPU is recorded, for batches of one shape, and replayed (a
        CUDA graph): a network of many layers takes longer to launch than to compute. One that cannot be
        recorded is run as it is. Give False where the forward's Python itself differs between batches.
    name : str, optional

    Returns
    -------
    ActivationsSource
        With `layers` (names, shapes, places), and `cut` to bring components back into their shapes.

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
    asked = _names_of(layers)
    inputs = Inputs(loader, key, name)
    if any(kind.__module__.split(".")[0] == "torch" for kind in type(model).__mro__):
        from eigengame.sources.torch.network import TorchNetwork

        network: Any = TorchNetwork(
            model,
            asked,
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
            f"device={device!r}, channels_last={channels_last!r}: these are for torch; JAX computes a function "
            "where it plays, by jax.default_device."
        )
    else:
        network = JaxNetwork(model, asked, dtype=dtype, nonfinite=nonfinite, name=name)
    source = ActivationsSource(network, inputs, name)
    if isinstance(layers, Layers):
        source.lie_as(layers)
    return source


class ActivationsSource(Source):
    """Rows that a network computes; see `activations`.

    Attributes
    ----------
    layers : Layers
        Names, shapes and places in a row, in the order in which they run.
    """

    on_device = True
    slow = False
    layers: Layers

    def __init__(self, network: Any, inputs: Inputs, name: str) -> None:
        self.name, self._network, self._inputs = name, network, inputs
        self.layers = network.look(inputs.first)
        self.shape = (inputs.rows, self.layers.width)
        self.dtype, self.again, self.block_rows = network.dtype, inputs.again, inputs.batch_rows
        self._began = False

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Give the rows from `start` on in blocks of `size`; for those before it nothing is computed."""
        if self._began and not self.again:
            raise SourceError(
                f"{self.name}: the loader can be read once, and was: give a DataLoader, or a list of batches."
            )
        self._began = True
        return self._network.blocks(self._inputs.batches(start), size, start)

    def lie_as(self, wanted: Layers) -> None:
        """Let layers lie in rows as they did in an earlier source; they must be of the same shapes."""
        found = {layer.name: layer.shape for layer in self.layers}
        for layer in wanted:
            if found.get(layer.name) != layer.shape:
                raise SourceError(
                    f"{self.name}: layer {layer.name!r} has shape {found.get(layer.name)}, but {layer.shape} is "
                    "wanted: give the network and inputs of the fit."
                )
        self.layers = self._network.lie_as(wanted)

    def cut(self, components: Any) -> dict[str, Any]:
        """Return components (k, d) by layer, each of shape (k, *shape)."""
        return self.layers.cut(components)

    def feature(self, column: int) -> str:
        """Return the layer of a feature, and the place in it."""
        layer, place = self.layers.at(column)
        return f"layer {layer.name!r} at {place}"

    def room(self) -> int | None:
        """Return the free bytes where buffers are made, where that is not JAX's own memory."""
        found: int | None = self._network.room()
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest of the layers, and what can be seen of the network."""
        layers = hashlib.sha256(json.dumps(self.layers.facts()).encode()).hexdigest()[:16]
        about = {"layers": layers, "block_rows": self.block_rows}
        return super().fingerprint() | about | self._network.fingerprint()

    def digest(self) -> str | None:
        """Return a digest of the network and of all inputs; None where one of them cannot be known."""
        network = self._network.digest()
        return None if network is None else combined([network, self._inputs.digest()])


def _names_of(layers: Any) -> list[str] | None:
    """Return names and patterns as a list."""
    if layers is None:
        return None
    if isinstance(layers, Layers):
        # A module that runs several times is hooked once.
        return list(dict.fromkeys(re.sub(r":\d+$", "", name) for name in layers.names))
    names = [layers] if isinstance(layers, str) else list(layers)
    if not all(isinstance(one, str) for one in names):
        raise SourceError(f"layers={layers!r}: give names or patterns of layers.")
    return names
