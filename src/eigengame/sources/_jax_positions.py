"""Positions of a JAX function's outputs as rows: tokens, pixels, or whole inputs, layer by layer."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._jax_network import JaxNetwork, pad_rows
from eigengame.sources._layers import Layer, Layers
from eigengame.sources._network_inputs import arrays_of, map_arrays, row_count
from eigengame.sources._positions import Chosen, PositionOptions, refuse_other_mask
from eigengame.sources._row_buffer import JaxRowBuffer, LayerRows

LEAST_LENGTH = 8
"""Smallest length of inputs that are padded."""

MOST_SHAPES = 12
"""Number of different shapes of inputs, each of which is compiled, from which a warning is given."""


class CompilationWarning(UserWarning):
    """Inputs of so many shapes that compilation takes most of the time."""


class JaxPositions:
    """Rows of the positions of a JAX function's outputs.

    Parameters
    ----------
    network : JaxNetwork
    options : PositionOptions
    nonfinite : {"raise", "skip", "zero"}
    padded : bool
        Whether inputs of different lengths are padded to powers of two, with zeros. The function must see the mask,
        in which padding is zero as well.
    """

    def __init__(
        self, network: JaxNetwork, options: PositionOptions, nonfinite: str, *, padded: bool
    ) -> None:
        self.network, self.name, self.dtype = network, network.name, network.dtype
        self._options, self._nonfinite, self._padded = options, nonfinite, padded
        self.layers = Layers()
        self.computed: set[Any] = set()
        self._program = jax.jit(self._rows)
        self._most = 0
        self._dtypes: list[Any] = []
        self._lengths: dict[Any, tuple[int, ...]] = {}

    def find_layers(self, first: Any) -> tuple[Layers, dict[str, int]]:
        """Return the outputs in the order of the tree, with the shape of one row, and their positions."""
        found = self.network.find_layers(first)
        self.computed = self.network.computed
        inputs = min(2, row_count(first, self.name))
        lengths, rows = dict[str, int](), []
        for layer in found:
            length, features = self._shape_of(layer.name, (inputs, *layer.shape))
            lengths[layer.name] = length
            rows.append((layer.name, features, False))
        self.layers = Layers.of(rows)
        return self.layers, lengths

    def use_layers(self, wanted: Layers) -> Layers:
        """Return the layers; raise if they differ from the wanted ones, because a tree has one order."""
        if wanted != self.layers:
            raise SourceError(
                f"{self.name}: the outputs are {self.layers.names} in this order, but {wanted.names} are wanted: "
                "give the function of the fit."
            )
        return self.layers

    def gather(
        self, inputs: Any, mask: np.ndarray | None, first: int, origins: dict[str, Any]
    ) -> dict[str, LayerRows]:
        """Run the function once, and return the rows of each layer; see `TorchPositions.gather`.

        Arrays have as many rows as there are positions; those after the chosen ones have no meaning.
        """
        inputs = self.network.to_arrays(inputs)
        count = row_count(inputs, self.name)
        inputs, mask = self._with_padding(inputs, mask, count)
        total = row_count(inputs, self.name)
        lengths = self._lengths_of(inputs)
        chosen: dict[int, Chosen] = {}
        for layer, length in zip(self.layers, lengths, strict=True):
            if length not in chosen:
                refuse_other_mask(self.name, layer.name, mask, (total, length))
                used = mask
                if mask is None and total > count:
                    used = np.repeat(np.arange(total)[:, None] < count, length, axis=1)
                chosen[length] = self._options.choose(used, (total, length), first)
        # Padded to the number of positions, so that one program serves all masks.
        flats = {
            length: np.pad(one.indices(), (0, total * length - one.rows)).astype(np.int32)
            for length, one in chosen.items()
        }
        subtracted = [
            np.zeros(layer.end - layer.begin, np.float32)
            if layer.name not in origins
            else origins[layer.name]
            for layer in self.layers
        ]
        rows = self._program(inputs, flats, subtracted)
        kinds = self._dtypes
        return {
            layer.name: LayerRows(values, chosen[length], kind)
            for layer, length, values, kind in zip(self.layers, lengths, rows, kinds, strict=True)
        }

    def buffer(self, layers: list[Layer], size: int, *, stacked: bool) -> JaxRowBuffer:
        """Return a buffer for the rows of some layers, in blocks of `size` rows."""
        return JaxRowBuffer(layers, size, self.dtype, stacked, self._nonfinite == "skip")

    def _rows(self, inputs: Any, flats: dict[int, Any], origins: list[Any]) -> list[jax.Array]:
        """Return the chosen rows of each layer, about its origin and rounded once."""
        found = []
        for layer, leaf, origin in zip(
            self.layers, self.network.outputs(inputs), origins, strict=True
        ):
            length, _ = self._shape_of(layer.name, leaf.shape)
            flat = leaf.reshape(leaf.shape[0] * length, -1)[flats[length]]
            wide = flat.astype(jnp.promote_types(flat.dtype, jnp.float32)) - origin[None, :]
            rows = wide.astype(self.dtype)
            found.append(
                jnp.nan_to_num(rows, nan=0, posinf=0, neginf=0)
                if self._nonfinite == "zero"
                else rows
            )
        return found

    def _shape_of(self, name: str, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """Return the number of positions of an output, and the shape of one row."""
        kind = self._options.rows
        if kind == "inputs":
            return 1, shape[1:]
        if len(shape) < 3:
            raise SourceError(
                f"{self.name}: output {name!r} has shape {shape}, which has no positions: rows={kind!r} needs "
                f"{'(inputs, positions, features)' if kind == 'tokens' else '(inputs, height, width, channels)'}; "
                "use rows='inputs', or leave it out by layers=."
            )
        if kind == "tokens":
            return shape[1], shape[2:]
        return int(np.prod(shape[1:-1])), shape[-1:]

    def _with_padding(
        self, inputs: Any, mask: np.ndarray | None, count: int
    ) -> tuple[Any, np.ndarray | None]:
        """Return inputs and mask with more inputs, and more positions where that is allowed."""
        self._most = max(self._most, count)
        inputs = map_arrays(inputs, partial(pad_rows, missing=self._most - count))
        if mask is not None:
            missing = [(0, self._most - count), *[(0, 0)] * (mask.ndim - 1)]
            mask = np.pad(mask, missing)
        if not self._padded or mask is None:
            return inputs, mask
        length = mask.shape[1]
        more = max(LEAST_LENGTH, 1 << (length - 1).bit_length()) - length

        def lengthen(array: Any) -> Any:
            if array.ndim < 2 or array.shape[1] != length:
                return array
            return np.pad(np.asarray(array), [(0, 0), (0, more), *[(0, 0)] * (array.ndim - 2)])

        return map_arrays(inputs, lengthen), np.pad(mask, [(0, 0), (0, more)])

    def _lengths_of(self, inputs: Any) -> tuple[int, ...]:
        """Return the number of positions of each layer for inputs of this shape; each shape is traced once."""
        key = tuple((array.shape, str(array.dtype)) for array in arrays_of(inputs))
        if key not in self._lengths:
            outputs = jax.eval_shape(self.network.outputs, inputs)
            found = []
            for layer, leaf in zip(self.layers, outputs, strict=True):
                length, features = self._shape_of(layer.name, leaf.shape)
                if features != layer.shape or leaf.shape[0] != row_count(inputs, self.name):
                    raise SourceError(
                        f"{self.name}: output {layer.name!r} has shape {leaf.shape} for inputs of {key[0][0]}, but "
                        f"rows of shape {layer.shape} are expected: give inputs with the same number of features."
                    )
                found.append(length)
            self._lengths[key] = tuple(found)
            self._dtypes = [leaf.dtype for leaf in outputs]
            if len(self._lengths) == MOST_SHAPES + 1:
                warnings.warn(
                    f"{self.name}: inputs have more than {MOST_SHAPES} shapes, and each is compiled: pad them to "
                    'few lengths, or give key=None and mask="attention_mask", so that both are padded to powers '
                    "of two.",
                    CompilationWarning,
                    stacklevel=2,
                )
        return self._lengths[key]

    def free_bytes(self) -> int | None:
        """Return None: the outputs are allocated by JAX."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Return facts about the function and the positions."""
        return self.network.fingerprint() | self._options.facts()

    def digest(self) -> str | None:
        """Return a digest of the program."""
        return self.network.digest()
