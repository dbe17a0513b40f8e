"""Gradients of single examples in JAX: `vmap(grad)` over chunks, in one compiled program."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import Block, SourceError, list_items
from eigengame.sources._jax_network import JaxNetwork
from eigengame.sources._layer_patterns import match_all
from eigengame.sources._layers import Layers
from eigengame.sources._likelihoods import ExampleLoss, JaxLikelihoods
from eigengame.sources._network_inputs import row_count, slice_rows

LIST_NAMES = "gradients(...).layers.names"
"""Expression that lists the parameters, for messages."""


class JaxGradients(JaxNetwork):
    """Gradients of the loss of each example with respect to a tree of arrays.

    Parameters
    ----------
    loss : ExampleLoss
    params : tree of arrays
    names : sequence of str, or None
        Names or patterns of the leaves to differentiate by; None for all.
    chunk : callable
        Number of examples that are differentiated at once, as a function of the number of parameters.
    dtype, nonfinite, name
        As in `gradients`.
    """

    def __init__(
        self,
        loss: ExampleLoss,
        params: Any,
        names: Any,
        *,
        chunk: Any,
        dtype: Any,
        nonfinite: str,
        name: str,
    ) -> None:
        found, self._tree = jax.tree_util.tree_flatten_with_path(params)
        texts = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in found]
        texts = [text or "params" for text in texts]
        chosen = set(texts)
        if names is not None:
            groups = match_all(names, texts, name, LIST_NAMES).values()
            chosen = {one for group in groups for one in group}
        self._chosen = [i for i, text in enumerate(texts) if text in chosen]
        self._names = [texts[i] for i in self._chosen]
        self._leaves_of_params = [leaf for _, leaf in found]
        self._loss = loss
        self._refuse_other_leaves(name)
        function = partial(self._gradients, self._leaves_of_params)
        super().__init__(function, None, dtype=dtype, nonfinite=nonfinite, name=name)
        sizes = [int(np.size(self._leaves_of_params[i])) for i in self._chosen]
        self.chunk = int(chunk(sum(sizes)))
        # The parameters are an argument: as constants they would be part of the program's text.
        self._program: Any = partial(jax.jit(self._rows_of), self._leaves_of_params)
        self.output_shape: tuple[int, ...] = (1,)

    def find_layers(self, first: Any) -> Layers:
        """Return the parameters in the order of the tree, checked by the loss of the first example."""
        one = self.to_arrays(slice_rows(first, 0, 1))
        if isinstance(self._loss.loss, str):
            tree = jax.tree.unflatten(self._tree, self._leaves_of_params)
            self.output_shape = self._trace(self._loss.outputs_for, tree, one).shape
        uniform = self._loss.uniforms(0, row_count(first, self.name), self.output_shape)
        value = self._trace(self._value, self._leaves_of_params, one, uniform[:1])
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise SourceError(
                f"{self.name}: the loss of one example has shape {value.shape} and dtype {value.dtype}: return one "
                "real number, by .mean() or .sum()."
            )
        self._refuse_unless_dependent(one, uniform[:1])
        super().find_layers((first, uniform))
        leaves = [self._leaves_of_params[i] for i in self._chosen]
        pairs = zip(self._names, leaves, strict=True)
        self.layers = Layers.of((name, np.shape(leaf), False) for name, leaf in pairs)
        return self.layers

    def blocks(
        self, batches: Iterator[Any], size: int, row: int, origin: np.ndarray | None = None
    ) -> Iterator[Block]:
        """Yield the gradients for batches that begin at `row`, in blocks of `size` rows, minus an origin (d,)."""
        labelled = self._loss.with_uniforms(batches, row, self.output_shape)
        return super().blocks(labelled, size, row, origin)

    def unflatten(self, vector: Any) -> Any:
        """Return a vector (d,) as a tree like the parameters; None for leaves that are not differentiated."""
        parts = list(self.layers.cut(vector).values())
        places = dict(zip(self._chosen, parts, strict=True))
        leaves = [places.get(i) for i in range(len(self._leaves_of_params))]
        return jax.tree.unflatten(self._tree, leaves)

    def _rows_of(
        self, leaves: list[Any], inputs: Any, origin: jax.Array | None
    ) -> tuple[jax.Array, jax.Array]:
        """Return rows (m, d), and whether each of them is used, with the parameters as an argument."""
        own = copy.copy(self)
        own._function = partial(self._gradients, leaves)
        return own._rows(inputs, origin)

    def _gradients(self, leaves: list[Any], inputs: Any) -> jax.Array:
        """Return the gradients of all examples as rows (m, d), joined chunk by chunk."""
        chosen = [leaves[i] for i in self._chosen]

        def one(example: Any) -> jax.Array:
            batch, uniform = jax.tree.map(lambda array: jnp.asarray(array)[None], example)
            found = jax.grad(partial(self._value_of, leaves))(chosen, batch, uniform)
            return jnp.concatenate([gradient.ravel().astype(self.dtype) for gradient in found])

        mapped: jax.Array = jax.lax.map(one, inputs, batch_size=self.chunk)
        return mapped

    def _value_of(self, leaves: list[Any], chosen: list[Any], batch: Any, uniform: Any) -> Any:
        """Return the loss of one example, as a function of the chosen parameters."""
        every = list(leaves)
        for i, leaf in zip(self._chosen, chosen, strict=True):
            every[i] = leaf
        return self._value(every, batch, uniform)

    def _value(self, leaves: list[Any], batch: Any, uniform: Any) -> Any:
        """Return the loss of one example, a batch (1, ...)."""
        tree = jax.tree.unflatten(self._tree, leaves)
        return self._loss.value(JaxLikelihoods(), tree, batch, uniform)

    def _trace(self, function: Any, *arguments: Any) -> Any:
        """Return the shape and dtype of a function's value; raise if it is not one array."""
        try:
            found = jax.eval_shape(function, *arguments)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise SourceError(
                f"{self.name} cannot be traced by JAX ({str(error).splitlines()[0]}): write the loss with "
                "jax.numpy, or give a torch module as params."
            ) from None
        if not hasattr(found, "shape"):
            raise SourceError(
                f"{self.name}: a {type(found).__name__} was returned where one array is needed: return the loss, "
                "or the outputs, alone."
            )
        return found

    def _refuse_other_leaves(self, name: str) -> None:
        """Raise SourceError if there are no parameters, or some that have no gradient."""
        if not self._chosen:
            raise SourceError(f"{name}: params has no arrays: give the parameters of the network.")
        kinds = {}
        for text, i in zip(self._names, self._chosen, strict=True):
            leaf = self._leaves_of_params[i]
            array = hasattr(leaf, "dtype") and not hasattr(leaf, "detach")
            if not array and not isinstance(leaf, (int, float)):
                raise SourceError(
                    f"{name}: parameter {text!r} is a {type(leaf).__name__}: give a tree of arrays, or a torch "
                    "module."
                )
            kinds[text] = jnp.result_type(leaf)
        wrong = [text for text, kind in kinds.items() if not jnp.issubdtype(kind, jnp.floating)]
        if wrong:
            raise SourceError(
                f"{name}: parameters {list_items(wrong, 3)} have dtype {kinds[wrong[0]]}, which has no gradient: "
                "leave them out by names=, or convert them to real floating-point numbers."
            )

    def _refuse_unless_dependent(self, batch: Any, uniform: Any) -> None:
        """Raise SourceError if the loss does not depend on the parameters.

        The gradient is then a constant 0 of the program, not only 0 for this example.
        """
        chosen = [self._leaves_of_params[i] for i in self._chosen]
        gradient = jax.grad(partial(self._value_of, self._leaves_of_params))
        program = jax.make_jaxpr(gradient)(chosen, batch, uniform)
        reached: set[Any] = {*program.jaxpr.invars, *program.jaxpr.constvars}
        for equation in program.jaxpr.eqns:
            if any(not hasattr(one, "val") and one in reached for one in equation.invars):
                reached.update(equation.outvars)
        if any(not hasattr(one, "val") and one in reached for one in program.jaxpr.outvars):
            return
        # A loss that is linear in the parameters has a constant gradient too.
        if any(np.any(np.asarray(one)) for one in jax.jit(gradient)(chosen, batch, uniform)):
            return
        raise SourceError(
            f"{self.name}: the loss does not depend on {list_items(self._names, 3)}: compute it from the first "
            "argument of the function, not from parameters outside it."
        )
