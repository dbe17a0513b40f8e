"""Activations of a function that JAX computes, flattened to rows in one compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import Block, SourceError
from eigengame.sources._layer_patterns import match_all
from eigengame.sources._layers import Layers
from eigengame.sources._network_digest import digest_of_function
from eigengame.sources._network_inputs import arrays_of, map_arrays, row_count, slice_rows
from eigengame.sources.iterators import tensor_to_numpy

LIST_NAMES = "activations(fn, loader).layers.names"
"""Expression that lists the outputs of a function, for messages."""


class JaxNetwork:
    """A function of a batch whose outputs are the features of its rows.

    Parameters
    ----------
    function : callable
        From a batch to an array, or a tree of arrays, each of shape (m, ...). It is traced by JAX. Rows must
        not depend on each other, because the last batch is padded.
    patterns : sequence of str, or None
        Names or patterns of outputs, which are their paths in the tree; None for all.
    dtype, nonfinite, name
        As in `activations`.
    """

    def __init__(
        self, function: Any, patterns: Any, *, dtype: Any, nonfinite: str, name: str
    ) -> None:
        self.name, self._function, self._patterns = name, function, patterns
        self._nonfinite = nonfinite
        self.dtype = _dtype_of(dtype)
        self.layers = Layers()
        self.computed: set[Any] = set()
        self._leaves: list[int] = []
        self._shapes: list[tuple[int, ...]] = []
        self._example: Any = None
        self._program = jax.jit(self._rows)

    def find_layers(self, first: Any) -> Layers:
        """Return the outputs in the order of the tree, from their shapes for two rows."""
        example = self.to_arrays(slice_rows(first, 0, 2))
        count = row_count(example, self.name)
        self._example = example
        try:
            outputs = jax.eval_shape(self._function, example)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise SourceError(
                f"{self.name} cannot be traced by JAX ({str(error).splitlines()[0]}): write it with jax.numpy, "
                "or give a torch module."
            ) from None
        found = jax.tree_util.tree_flatten_with_path(outputs)[0]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in found]
        names = [name or "output" for name in names]
        wanted = names
        if self._patterns is not None:
            groups = match_all(self._patterns, names, self.name, LIST_NAMES).values()
            wanted = [name for group in groups for name in group]
        kept = [(i, names[i], leaf) for i, (_, leaf) in enumerate(found) if names[i] in wanted]
        for _, name, leaf in kept:
            if leaf.shape[:1] != (count,) or jnp.issubdtype(leaf.dtype, jnp.complexfloating):
                raise SourceError(
                    f"{self.name}: output {name!r} has shape {leaf.shape} and dtype {leaf.dtype} for {count} "
                    "rows: return real numbers of shape (rows, ...), or leave it out by layers=."
                )
        if not kept:
            raise SourceError(
                f"{self.name} returns no arrays: return the arrays that are the features."
            )
        self._leaves = [i for i, _, _ in kept]
        self.computed = {leaf.dtype for _, _, leaf in kept}
        self._shapes = [array.shape[1:] for array in arrays_of(example)]
        self.layers = Layers.of((name, leaf.shape[1:], False) for _, name, leaf in kept)
        return self.layers

    def use_layers(self, wanted: Layers) -> Layers:
        """Return the layers; raise if they differ from the wanted ones, because a tree has one order."""
        if wanted != self.layers:
            raise SourceError(
                f"{self.name}: the outputs are {self.layers.names} in this order, but {wanted.names} are "
                "wanted, possibly in another memory format: give the function of the fit."
            )
        return self.layers

    def blocks(
        self, batches: Iterator[Any], size: int, row: int, origin: np.ndarray | None = None
    ) -> Iterator[Block]:
        """Yield the outputs for batches that begin at `row`, in blocks of `size` rows, minus an origin (d,)."""
        there = None if origin is None else jax.device_put(np.asarray(origin, np.float32))
        for inputs in self._rechunk(batches, size, row):
            count = row_count(inputs, self.name)
            missing = size - count
            if missing:
                inputs = map_arrays(inputs, partial(pad_rows, missing=missing))
            values, valid = self._program(inputs, there)
            if missing:
                values = values[:count]
            weights = np.asarray(valid, float)[:count] if self._nonfinite == "skip" else None
            yield Block(values, weights)

    def _rechunk(self, batches: Iterator[Any], size: int, row: int) -> Iterator[Any]:
        """Yield inputs of `size` rows, so that one compiled program serves all; the last may be shorter."""
        kept: list[Any] = []
        held = 0
        for batch in batches:
            inputs = self.to_arrays(batch)
            shapes = [array.shape[1:] for array in arrays_of(inputs)]
            if shapes != self._shapes:
                raise SourceError(
                    f"{self.name}: the inputs at row {row} have shapes {shapes}, but the first have "
                    f"{self._shapes}: give inputs of one shape."
                )
            count, begin = row_count(inputs, self.name), 0
            row += count
            while begin < count:
                end = min(begin + size - held, count)
                kept.append(slice_rows(inputs, begin, end) if end - begin < count else inputs)
                held, begin = held + end - begin, end
                if held == size:
                    yield _concatenate(kept)
                    kept, held = [], 0
        if kept:
            yield _concatenate(kept)

    def outputs(self, inputs: Any) -> list[Any]:
        """Return the outputs of the layers, each of shape (m, ...)."""
        leaves = jax.tree.leaves(self._function(inputs))
        return [leaves[i] for i in self._leaves]

    def _rows(self, inputs: Any, origin: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        """Return rows (m, d) about an origin (d,), and whether each of them is used (m,)."""
        parts, begin = [], 0
        for leaf in self.outputs(inputs):
            part = leaf.reshape(leaf.shape[0], -1)
            end = begin + part.shape[1]
            if origin is not None:
                wide = jnp.promote_types(part.dtype, jnp.float32)
                part = part.astype(wide) - origin[None, begin:end]
            parts.append(part.astype(self.dtype))
            begin = end
        rows = jnp.concatenate(parts, axis=1)
        if self._nonfinite == "raise":
            return rows, jnp.ones(rows.shape[0], bool)
        finite = jnp.isfinite(rows)
        if self._nonfinite == "zero":
            return jnp.where(finite, rows, 0), jnp.ones(rows.shape[0], bool)
        valid = finite.all(axis=1)
        return jnp.where(valid[:, None], rows, 0), valid

    def to_arrays(self, batch: Any) -> Any:
        """Return a batch with torch tensors converted to arrays."""
        return map_arrays(batch, lambda a: tensor_to_numpy(a) if hasattr(a, "detach") else a)

    def free_bytes(self) -> int | None:
        """Return None: the outputs are allocated by JAX."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Return the name of the function and the policy for non-finite values."""
        name = getattr(self._function, "__qualname__", type(self._function).__name__)
        return {"function": name, "nonfinite": self._nonfinite}

    def digest(self) -> str | None:
        """Return a digest of the program and its constants; None if it calls back into Python."""
        return digest_of_function(self._function, self._example)


def _dtype_of(dtype: Any) -> Any:
    """Return the dtype of the rows; "auto" is float32 on a CPU and bfloat16 on an accelerator."""
    if isinstance(dtype, str) and dtype == "auto":
        return jnp.dtype("float32" if jax.default_backend() == "cpu" else "bfloat16")
    found = jnp.dtype(dtype)
    if found.name not in ("float32", "bfloat16", "float16"):
        raise SourceError(f'dtype={dtype!r}: give "auto", "float32", "bfloat16" or "float16".')
    return found


def pad_rows(array: Any, missing: int) -> Any:
    """Return an input with its last row repeated `missing` times."""
    return _concatenate([array, *([array[-1:]] * missing)])


def _concatenate(parts: list[Any]) -> Any:
    """Return the rows of several inputs as one."""
    if len(parts) == 1:
        return parts[0]

    def join(*arrays: Any) -> Any:
        on_device = all(isinstance(array, jax.Array) for array in arrays)
        return jnp.concatenate(arrays) if on_device else np.concatenate(arrays)

    return jax.tree.map(join, *parts)
