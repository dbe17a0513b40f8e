"""Which positions of a network's outputs are rows: masks, and samples of the positions of each input."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eigengame import _check
from eigengame.sources._base import SourceError, list_items
from eigengame.sources.iterators import tensor_to_numpy

ROWS = ("inputs", "tokens", "pixels")
"""What a row is: a whole input, or one position of it."""


USUAL_MASK = "attention_mask"
"""Key of the mask in batches for Hugging Face models."""


class PaddingWarning(UserWarning):
    """Padding is used as rows, although batches have a mask."""


@dataclass(frozen=True)
class PositionOptions:
    """Options that choose positions.

    Attributes
    ----------
    rows : {"inputs", "tokens", "pixels"}
    mask : str, int, callable or None
        Key of the mask in a batch, or a function of the batch that returns it: shape (inputs, positions), nonzero
        where a position is a row.
    every : int
        Each `every`-th of the unmasked positions of an input is used, from the first one on.
    per_input : int or None
        Largest number of positions of an input. They are drawn at random without replacement.
    seed : int
        Seed of the draws. Each input has draws of its own, so the size of a batch does not matter.
    """

    rows: str = "inputs"
    mask: str | int | Callable[[Any], Any] | None = None
    every: int = 1
    per_input: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check.one_of("rows", self.rows, ROWS)
        _check.whole("every", self.every)
        _check.whole("seed", self.seed, low=0)
        if self.per_input is not None:
            _check.whole("per_input", self.per_input)
        sampled = self.every != 1 or self.per_input is not None
        if self.rows == "inputs" and (sampled or self.mask is not None):
            raise SourceError(
                "mask=, every= and per_input= choose among the positions of an input: give rows='tokens' or "
                "rows='pixels'."
            )

    def mask_of(self, item: Any, name: str) -> np.ndarray | None:
        """Return the mask of a batch of the loader as booleans (inputs, positions, ...); None without a mask."""
        if self.mask is None:
            return None
        found = self.mask(item) if callable(self.mask) else part_of(item, self.mask, name, "mask")
        array = to_host(found)
        if array.ndim < 2:
            raise SourceError(
                f"{name}: the mask has shape {array.shape}: give one of shape (inputs, positions)."
            )
        if array.dtype.kind == "f" and not (array >= 0).all():
            raise SourceError(
                f"{name}: the mask has negative numbers or NaN, as masks that are added to scores of attention: "
                "give one that is 1 where there is a token and 0 for padding."
            )
        return array != 0

    def warn_if_padded(self, item: Any, name: str) -> None:
        """Warn if there is no mask, but a batch of the loader has one that is zero somewhere."""
        found = item.get(USUAL_MASK) if isinstance(item, Mapping) else None
        if self.rows != "tokens" or self.mask is not None or found is None:
            return
        if not np.all(to_host(found)):
            warnings.warn(
                f"{name}: padding is a row too, because there is no mask=, but {USUAL_MASK!r} of a batch has "
                f"zeros: give mask={USUAL_MASK!r}, or a function that returns ones if this is meant.",
                PaddingWarning,
                stacklevel=2,
            )

    def choose(self, mask: np.ndarray | None, shape: tuple[int, int], first: int) -> Chosen:
        """Return the positions of a batch that are rows.

        Parameters
        ----------
        mask : bool array of shape (inputs, positions, ...) or None
        shape : tuple of int
            Inputs of the batch, and positions of each.
        first : int
            Number of the first input in the loader.
        """
        count, length = shape
        if mask is None and self.every == 1 and self.per_input is None:
            return Chosen(shape, None)
        used = np.ones(shape, bool) if mask is None else mask.reshape(shape)
        if self.every != 1:
            used = used & ((np.cumsum(used, axis=1) - 1) % self.every == 0)
        flat = np.flatnonzero(used)
        if self.per_input is None:
            return Chosen(shape, flat)
        parts = np.split(flat, np.searchsorted(flat, length * np.arange(1, count)))
        kept = [self._drawn(part, first + i) for i, part in enumerate(parts)]
        return Chosen(shape, np.concatenate(kept))

    def _drawn(self, places: np.ndarray, number: int) -> np.ndarray:
        """Return at most `per_input` of the places of one input, in order."""
        assert self.per_input is not None
        if len(places) <= self.per_input:
            return places
        random = np.random.default_rng([self.seed, number])
        return np.sort(random.choice(places, self.per_input, replace=False))

    def facts(self) -> dict[str, Any]:
        """Return the options as plain JSON, for a fingerprint."""
        mask = getattr(self.mask, "__qualname__", self.mask) if callable(self.mask) else self.mask
        return {
            "rows": self.rows,
            "mask": mask,
            "every": self.every,
            "per_input": self.per_input,
            "seed": self.seed,
        }


class Chosen(NamedTuple):
    """Positions of one batch that are rows.

    Attributes
    ----------
    shape : tuple of int
        Inputs and positions of each.
    flat : int array of shape (rows,) or None
        Indices into all positions of the batch, in order; None for all.
    """

    shape: tuple[int, int]
    flat: np.ndarray | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[0] * self.shape[1] if self.flat is None else len(self.flat)

    def indices(self) -> np.ndarray:
        """Return the indices into all positions, shape (rows,)."""
        return np.arange(self.rows) if self.flat is None else self.flat


class Tokens(NamedTuple):
    """Where the rows of a source come from, one entry for each row.

    Attributes
    ----------
    inputs : int array of shape (n,)
        Number of the input in the loader.
    positions : int array of shape (n,)
        Position within the input. Pixels are numbered row by row.
    ids : array of shape (n,) or None
        Token ids.
    """

    inputs: np.ndarray
    positions: np.ndarray
    ids: np.ndarray | None


def tokens_of(chosen: Chosen, first: int, ids: np.ndarray | None) -> Tokens:
    """Return the origin of the rows of one batch, whose first input has the number `first`."""
    flat, length = chosen.indices(), max(chosen.shape[1], 1)
    own = None if ids is None else ids.reshape(-1)[flat]
    return Tokens(first + flat // length, flat % length, own)


def part_of(item: Any, key: Any, name: str, option: str) -> Any:
    """Return a part of a batch by its key; raise SourceError with the keys that exist."""
    try:
        return item[key]
    except (KeyError, IndexError, TypeError):
        parts = list_items(item) if isinstance(item, Mapping) else f"a {type(item).__name__}"
        raise SourceError(
            f"{name}: {option}={key!r}, but a batch has {parts}: give one of its keys, or a function of the batch."
        ) from None


def to_host(array: Any) -> np.ndarray:
    """Return an array, or a torch tensor on any device, as a NumPy array."""
    return tensor_to_numpy(array) if hasattr(array, "detach") else np.asarray(array)


def refuse_other_mask(
    name: str, layer: str, mask: np.ndarray | None, shape: tuple[int, int], verb: str = "gives"
) -> None:
    """Raise SourceError if a mask does not have as many inputs and positions as the rows of a layer."""
    if mask is None or (len(mask) == shape[0] and mask.size == shape[0] * shape[1]):
        return
    raise SourceError(
        f"{name}: the mask has shape {mask.shape}, but layer {layer!r} {verb} {shape[0]} inputs of "
        f"{shape[1]} positions: give a mask of that shape, or layers with the positions of the mask."
    )
