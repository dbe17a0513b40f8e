"""Activations of a network as rows, computed batch by batch on the device and never stored."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._digest import combine_digests
from eigengame.sources._half_precision import computed_as, describe_rounding
from eigengame.sources._layers import Layers
from eigengame.sources._network_inputs import NetworkInputs
from eigengame.sources._open_network import open_network
from eigengame.sources._positions import PositionOptions


def activations(
    model: Any,
    loader: Iterable[Any],
    layers: str | Sequence[str] | Layers | None = None,
    *,
    rows: Literal["inputs", "tokens", "pixels"] = "inputs",
    mask: Any = None,
    output: Any = None,
    side: Literal["outputs", "inputs"] = "outputs",
    every: int = 1,
    per_input: int | None = None,
    seed: int = 0,
    ids: Any = None,
    dtype: Any = "auto",
    network_dtype: Any = "auto",
    device: Any = None,
    key: Any = "auto",
    channels_last: bool | Literal["auto"] = "auto",
    nonfinite: Literal["raise", "skip", "zero"] = "raise",
    replay: bool = True,
    compile: bool = False,
    name: str | None = None,
) -> ActivationsSource:
    r"""Return the activations of a network as a source: one row per input or position, layers side by side.

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
        Names or patterns (`conv1`, `layer[1-4].*`) of torch modules, whose outputs (or inputs, see `side`) are the
        features; for JAX paths in the tree. `*` does not match a dot, `**` does. "residual", "attention" and "mlp"
        stand for the blocks of a torch transformer, and for these parts of each. By default the blocks of a torch
        network, or all outputs of a function. Give the layers of an earlier source, or `pca.layers_`, to get the
        same features in the same order.
    rows : {"inputs", "tokens", "pixels"}
        What a row is: a whole input; a position of an output of shape (inputs, positions, ...); or a position of a
        feature map, (inputs, channels, height, width) of a torch network or (inputs, height, width, channels) of a
        JAX function. Layers side by side must have the same positions. Numbers of positions may differ between
        batches.
    mask : str, int or callable, optional
        Key of the mask in a batch, such as "attention_mask", or a function of the batch that returns it: shape
        (inputs, positions), nonzero where a position is a row. Padding is left out by it.
    output : int, str or callable, optional
        Tensor of a torch layer's output that is used, if that is a tuple, a list, a dict or a dataclass: its
        position, its name, or a function of the output. By default the only tensor; for tokens and pixels, the
        hidden states of a Hugging Face model or the first element of a tuple. With ``side="inputs"`` it chooses
        among the arguments of the layer.
    side : {"outputs", "inputs"}
        Whether features are what comes out of the torch modules of `layers`, or what goes into them (not to be
        confused with ``rows="inputs"``: one row for each input of the network). The input of a module is the first
        argument of its `forward` that contains a tensor, passed by position or by name; `output` chooses another
        one by its position, its name, or a function of all arguments, ``lambda arguments: arguments["mask"]``.
    every : int
        Use each `every`-th of the unmasked positions of an input.
    per_input : int, optional
        Largest number of positions of an input, drawn at random.
    seed : int
        Seed of these draws. Each input has draws of its own: other batch sizes give the same rows.
    ids : str, int or callable, optional
        Key of the token ids in a batch, or a function of the batch, for `tokens()` of the source. By default
        "input_ids", or the input of the network if that is whole numbers (inputs, positions).
    dtype : {"auto", "float32", "bfloat16", "float16"}
        Dtype of the rows. In half precision a copy of a torch network runs in that precision too, unless its
        weights have it already. "auto" is bfloat16 on an accelerator and float32 on a CPU.
    network_dtype : {"auto", "float32", "bfloat16", "float16"}
        Precision of a torch network. "auto" is `dtype`. With "float32", outputs are rounded to half precision once,
        after the mean is subtracted: for networks whose means are much larger than the spread of their outputs.
    device : torch device, optional
        Device on which a copy of a torch network runs. Defaults to the device of the network. It must be the
        device that JAX uses.
    key : int, str, None or "auto"
        Part of a batch that is the input: 0 for (images, labels), "image" for {"image": images}. None passes
        the whole batch: tuples as arguments, dicts as keyword arguments. "auto" is 0, and None for a dict if
        rows are tokens or pixels.
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
    compile : bool
        Whether modules of a copy of a torch network are compiled (`torch.compile`), for ``rows="inputs"``. This
        fuses norms, activations and additions, and takes seconds to minutes once. The largest modules that do not
        contain a module of `layers` are compiled: choose blocks, not their parts. Outputs differ by rounding.
    name : str, optional
        Name for messages.

    Returns
    -------
    ActivationsSource
        Its attribute `layers` has names, shapes and positions; `cut` splits components into layers. With tokens or
        pixels, ``tokens()`` returns the input, the position and the token id of each row.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.ones((3, 4), np.float32)
    >>> source = activations(lambda x: {"hidden": x @ weights}, [np.ones((8, 3), np.float32)])
    >>> source.shape, source.layers.names
    ((8, 4), ['hidden'])
    """
    options = PositionOptions(rows, mask, every, per_input, seed)
    network, inputs, name = open_network(
        model,
        loader,
        layers,
        options,
        output=output,
        side=side,
        dtype=dtype,
        network_dtype=network_dtype,
        device=device,
        key=key,
        channels_last=channels_last,
        nonfinite=nonfinite,
        replay=replay,
        compile=compile,
        name=name,
    )
    if rows == "inputs":
        if ids is not None:
            raise SourceError(
                "ids= is for rows='tokens': give it with rows='tokens', or leave it out."
            )
        source = ActivationsSource(network, inputs, name)
    else:
        from eigengame.sources.position_source import PositionSource

        source = PositionSource(network, inputs, name, options, ids)
    if isinstance(layers, Layers):
        source.use_layers(layers)
    return source


class ActivationsSource(Source):
    """Rows that a network computes; see `activations`.

    Attributes
    ----------
    layers : Layers
        Names, shapes and positions in a row, in the order in which the layers run (for inputs: are called).
    """

    on_device = True
    slow = False
    layers: Layers

    def __init__(self, network: Any, inputs: NetworkInputs, name: str) -> None:
        self.name, self._network, self._inputs = name, network, inputs
        self.layers = self._find_layers()
        self.shape = (inputs.rows, self.layers.width)
        self.dtype, self.again, self.block_rows = network.dtype, inputs.again, inputs.batch_rows
        # Float32 rows are exact enough about any origin.
        self.shifts = self.dtype.itemsize == 2
        # Numbers that the network computed in this precision are not rounded again.
        self.rounds = self.shifts and not computed_as(self._network.computed, self.dtype)
        self._origin: np.ndarray | None = None
        self._started = False

    def _find_layers(self) -> Layers:
        found: Layers = self._network.find_layers(self._inputs.first)
        return found

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Earlier rows are not computed."""
        self._begin()
        return self._blocks(start, size)

    def _begin(self) -> None:
        """Raise if the loader cannot be read again."""
        if self._started and not self.again:
            raise SourceError(
                f"{self.name}: the loader can be read once, and was read already: give a DataLoader, or a "
                "list of batches."
            )
        self._started = True

    def _blocks(self, start: int, size: int) -> Iterator[Block]:
        return self._network.blocks(self._inputs.batches(start), size, start, self._origin)

    def about(self, origin: np.ndarray) -> ActivationsSource:
        """Return a source of the same rows minus an origin (d,), subtracted before outputs are rounded."""
        shifted = copy.copy(self)
        shifted._origin = origin
        return shifted

    def rounding(self, *, centred: bool) -> str | None:
        """Return how outputs are rounded to half precision, by the network or for the rows; else None."""
        return describe_rounding(self._network.computed, self.dtype, centred=centred)

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
        return f"{'input of ' if layer.side == 'inputs' else ''}layer {layer.name!r} at {index}"

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
