"""A network that JAX computes: what it returns for a batch, flattened to rows in one program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import Block, SourceError
from eigengame.sources._layer_patterns import chosen
from eigengame.sources._layers import Layers
from eigengame.sources._network_digest import digest_of_function
from eigengame.sources._network_inputs import arrays_of, mapped, rows_of, sliced
from eigengame.sources.iterators import tensor_to_numpy

LIST = "activations(fn, loader).layers.names"


class JaxNetwork:
    """A function of a batch whose outputs are rows.

    Parameters
    ----------
    function : callable
        From a batch to an array, or any tree of arrays, each of shape (m, ...). It is traced by JAX, and
        rows must not depend on each other: the last batch is filled up.
    layers : sequence of str, or None
        Names or patterns of outputs, which are their paths in the tree; None for all.
    dtype, nonfinite, name
        As for `activations`.
    """

    def __init__(
        self, function: Any, layers: Any, *, dtype: Any, nonfinite: str, name: str
    ) -> None:
        self.name, self._function, self._asked = name, function, layers
        self._nonfinite = nonfinite
        self.dtype = _precision(dtype)
        self.layers = Layers()
        self._leaves: list[int] = []
        self._shapes: list[tuple[int, ...]] = []
        self._given: Any = None
        self._program = jax.jit(self._rows)

    def look(self, first: Any) -> Layers:
        """Return the outputs, in the order of the tree, without computing any."""
        given = self._arrays(sliced(first, 0, 2))
        count = rows_of(given, self.name)
        self._given = given
        try:
            seen = jax.eval_shape(self._function, given)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise SourceError(
                f"{self.name} cannot be traced by JAX ({str(error).splitlines()[0]}): write it with jax.numpy, "
                "or give a torch module."
            ) from None
        found = jax.tree_util.tree_flatten_with_path(seen)[0]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in found]
        names = [name or "output" for name in names]
        wanted = names
        if self._asked is not None:
            groups = chosen(self._asked, names, self.name, LIST).values()
            wanted = [name for group in groups for name in group]
        kept = [(i, names[i], leaf) for i, (_, leaf) in enumerate(found) if names[i] in wanted]
        for _, name, leaf in kept:
            if leaf.shape[:1] != (count,) or jnp.issubdtype(leaf.dtype, jnp.complexfloating):
                raise SourceError(
                    f"{self.name}: output {name!r} has shape {leaf.shape} and dtype {leaf.dtype} for {count} "
                    "rows: give real numbers of shape (rows, ...), or leave it out by layers=."
                )
        if not kept:
            raise SourceError(f"{self.name} returns no arrays: return those that are the features.")
        self._leaves = [i for i, _, _ in kept]
        self._shapes = [array.shape[1:] for array in arrays_of(given)]
        self.layers = Layers.of((name, leaf.shape[1:], False) for _, name, leaf in kept)
        return self.layers

    def lie_as(self, wanted: Layers) -> Layers:
        """Return the layers if they lie as wanted: a tree has one order."""
        if wanted != self.layers:
            raise SourceError(
                f"{self.name}: outputs are {self.layers.names} in this order, but {wanted.names} are wanted, or "
                "in another memory format: give the function of the fit."
            )
        return self.layers

    def blocks(self, batches: Iterator[Any], size: int, row: int) -> Iterator[Block]:
        """Give what the function makes of the batches, in blocks of `size` rows, the last one shorter."""
        for inputs in self._recut(batches, size, row):
            count = rows_of(inputs, self.name)
            missing = size - count
            if missing:
                inputs = mapped(inputs, partial(_filled, missing=missing))
            values, good = self._program(inputs)
            if missing:
                values = values[:count]
            weights = np.asarray(good, float)[:count] if self._nonfinite == "skip" else None
            yield Block(values, weights)

    def _recut(self, batches: Iterator[Any], size: int, row: int) -> Iterator[Any]:
        """Give inputs of exactly `size` rows but for the last, so that there is one program."""
        kept: list[Any] = []
        held = 0
        for batch in batches:
            given = self._arrays(batch)
            shapes = [array.shape[1:] for array in arrays_of(given)]
            if shapes != self._shapes:
                raise SourceError(
                    f"{self.name}: inputs have shapes {shapes} at row {row}, but {self._shapes} at first: "
                    "bring all to one shape."
                )
            count, begin = rows_of(given, self.name), 0
            row += count
            while begin < count:
                end = min(begin + size - held, count)
                kept.append(sliced(given, begin, end) if end - begin < count else given)
                held, begin = held + end - begin, end
                if held == size:
                    yield _joined(kept)
                    kept, held = [], 0
        if kept:
            yield _joined(kept)

    def _rows(self, inputs: Any) -> tuple[jax.Array, jax.Array]:
        """Return rows (m, d), and which of them count."""
        leaves = jax.tree.leaves(self._function(inputs))
        parts = [leaves[i].reshape(leaves[i].shape[0], -1).astype(self.dtype) for i in self._leaves]
        rows = jnp.concatenate(parts, axis=1)
        if self._nonfinite == "raise":
            return rows, jnp.ones(rows.shape[0], bool)
        finite = jnp.isfinite(rows)
        if self._nonfinite == "zero":
            return jnp.where(finite, rows, 0), jnp.ones(rows.shape[0], bool)
        good = finite.all(axis=1)
        return jnp.where(good[:, None], rows, 0), good

    def _arrays(self, batch: Any) -> Any:
        """Return a batch with torch's tensors as arrays."""
        return mapped(batch, lambda a: tensor_to_numpy(a) if hasattr(a, "detach") else a)

    def room(self) -> int | None:
        """Return None: what it computes lies in JAX's own memory."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Return what the function is called: what it closes over cannot be seen."""
        name = getattr(self._function, "__qualname__", type(self._function).__name__)
        return {"function": name, "nonfinite": self._nonfinite}

    def digest(self) -> str | None:
        """Return a digest of the program and its constants; None where it calls back into Python."""
        return digest_of_function(self._function, self._given)


def _precision(dtype: Any) -> Any:
    """Return the rows' dtype: for "auto" bfloat16 on an accelerator, float32 on the host."""
    if isinstance(dtype, str) and dtype == "auto":
        return jnp.dtype("float32" if jax.default_backend() == "cpu" else "bfloat16")
    found = jnp.dtype(dtype)
    if found.name not in ("float32", "bfloat16", "float16"):
        raise SourceError(f'dtype={dtype!r}: give "auto", "float32", "bfloat16" or "float16".')
    return found


def _filled(array: Any, missing: int) -> Any:
    """Return an input with its last row repeated, which the network surely takes."""
    return _joined([array, *([array[-1:]] * missing)])


def _joined(parts: list[Any]) -> Any:
    """Return the rows of several inputs of one kind as one."""
    if len(parts) == 1:
        return parts[0]

    def join(*arrays: Any) -> Any:
        on_device = all(isinstance(array, jax.Array) for array in arrays)
        return jnp.concatenate(arrays) if on_device else np.concatenate(arrays)

    return jax.tree.map(join, *parts)
