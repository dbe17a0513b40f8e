"""A source whose rows are positions of a network's outputs: tokens or pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from eigengame.sources._base import Block, SourceError
from eigengame.sources._layers import Layer, Layers
from eigengame.sources._network_inputs import NetworkInputs, row_count
from eigengame.sources._positions import (
    PositionOptions,
    Tokens,
    part_of,
    refuse_other_mask,
    to_host,
    tokens_of,
)
from eigengame.sources._row_buffer import LayerRows
from eigengame.sources.activations import ActivationsSource


class PositionSource(ActivationsSource):
    """Rows that are positions of a network's outputs; see `activations`.

    Attributes
    ----------
    layers : Layers
        Names, shapes of one row and columns of the layers, in the order in which they run.
    position_counts : dict of int
        Number of positions of each layer for the first inputs.
    """

    def __init__(
        self, network: Any, inputs: NetworkInputs, name: str, options: PositionOptions, ids: Any
    ) -> None:
        self._options, self._ids = options, ids
        super().__init__(network, inputs, name)
        # The number of positions is known after a pass only.
        self.shape, self.block_rows = (None, self.layers.width), None

    def _find_layers(self) -> Layers:
        layers, self.position_counts = self._network.find_layers(self._inputs.first)
        mask = self._options.mask_of(self._inputs.first_item, self.name)
        self._options.warn_if_padded(self._inputs.first_item, self.name)
        if mask is not None and len(mask) != self._inputs.batch_rows:
            raise SourceError(
                f"{self.name}: the mask has shape {mask.shape} for {self._inputs.batch_rows} inputs: give one of "
                "shape (inputs, positions)."
            )
        return layers

    def buffer(self, layers: list[Layer], size: int) -> Any:
        """Return a buffer for the rows of layers with equal numbers of features, in blocks (layers, size, d)."""
        return self._network.buffer(layers, size, stacked=True)

    def batches(
        self, origins: dict[str, np.ndarray] | None = None
    ) -> Iterator[dict[str, LayerRows]]:
        """Yield the rows of each layer, batch by batch of the loader. The network runs once for each batch.

        Parameters
        ----------
        origins : dict of arrays (d,), optional
            Subtracted from the rows of a layer before they are rounded.
        """
        rows, inputs = 0, 0
        for number, item, given in self._inputs.items():
            mask = self._options.mask_of(item, self.name)
            found = self._network.gather(given, mask, number, origins or {})
            rows += max(one.chosen.rows for one in found.values())
            inputs = number + row_count(given, self.name)
            yield found
        if not rows:
            raise SourceError(
                f"{self.name}: no positions are left: the mask is zero for all of {inputs} inputs; check that "
                "mask= is 1 where there is a token."
            )

    def _blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on. Earlier rows are computed and dropped."""
        self._refuse_other_positions()
        origin, layers = self._origin, self.layers
        origins = {}
        if origin is not None:
            origins = {one.name: origin[one.begin : one.end] for one in layers}
        buffer = self._network.buffer(list(layers), size, stacked=False)
        skip = start
        for found in self.batches(origins):
            rows = [found[layer.name] for layer in layers]
            counts = {one.chosen.rows for one in rows}
            if len(counts) > 1:
                raise SourceError(
                    f"{self.name}: layers have {sorted(counts)} rows in one batch, and cannot be side by side: "
                    "choose layers with the same positions, or fit each of them by fit_layers(..., stack=False)."
                )
            count = counts.pop()
            if skip >= count:
                skip -= count
                continue
            if skip:
                rows = [_without_first(one, skip) for one in rows]
                skip = 0
            for full in buffer.append(rows):
                yield Block(full.values, full.weights)
        for full in buffer.rest():
            weights = None if full.weights is None else full.weights[: full.rows]
            yield Block(full.values[: full.rows], weights)

    def _refuse_other_positions(self) -> None:
        """Raise SourceError if layers have different numbers of positions."""
        if len(set(self.position_counts.values())) > 1:
            listed = ", ".join(f"{name!r} {count}" for name, count in self.position_counts.items())
            raise SourceError(
                f"{self.name}: layers have different numbers of positions ({listed}), and cannot be side by side: "
                "choose layers with the same positions, or fit each of them by fit_layers."
            )

    def tokens(self) -> Tokens:
        """Return the input, the position and the token id of each row, in the order of the rows.

        The loader is read once. The network runs only if neither a mask nor token ids give the number of positions.
        Rows that `nonfinite="skip"` leaves out are included.
        """
        self._refuse_other_positions()
        if not self.again:
            raise SourceError(
                f"{self.name}: the loader can be read once only: give a DataLoader, or a list of batches."
            )
        found = []
        for number, item, given in self._inputs.items():
            mask, ids = self._options.mask_of(item, self.name), self._ids_of(item, given)
            if mask is None and ids is None:
                chosen = next(iter(self._network.gather(given, None, number, {}).values())).chosen
            else:
                known = mask if ids is None else ids
                assert known is not None
                shape = (len(known), known.size // max(len(known), 1))
                refuse_other_mask(self.name, "token ids", mask, shape)
                chosen = self._options.choose(mask, shape, number)
            found.append(tokens_of(chosen, number, ids))
        inputs, positions, ids = zip(*found, strict=True)
        known_ids = None if any(one is None for one in ids) else np.concatenate(ids)
        return Tokens(np.concatenate(inputs), np.concatenate(positions), known_ids)

    def _ids_of(self, item: Any, given: Any) -> np.ndarray | None:
        """Return the token ids of a batch (inputs, positions), if they are known."""
        if self._ids is not None:
            found = (
                self._ids(item)
                if callable(self._ids)
                else part_of(item, self._ids, self.name, "ids")
            )
            return to_host(found)
        if isinstance(item, dict) and "input_ids" in item:
            return to_host(item["input_ids"])
        # Whole numbers (inputs, positions) as the only input of the network are token ids.
        if self._options.rows == "tokens" and getattr(given, "ndim", 0) == 2:
            array = to_host(given)
            return array if array.dtype.kind in "iu" else None
        return None


def _without_first(rows: LayerRows, count: int) -> LayerRows:
    """Return rows without the first `count`."""
    left = rows.chosen._replace(flat=rows.chosen.indices()[count:])
    return LayerRows(rows.values[count:], left, rows.dtype)
