r"""Losses of single examples, and labels that are drawn from the distribution of a network's outputs.

Three likelihoods have names. With outputs $z$ of one example, the losses are

- "categorical": $-\log \mathrm{softmax}(z)_y$, classes on the last axis;
- "bernoulli": $\log(1 + e^z) - y z$;
- "gaussian": $\frac12 (y - z)^2$, unit variance;

summed over all labels of the example. Labels are functions of uniform numbers, which depend only on the seed and
the index of the row. Every pass, and every size of a block, therefore draws the same labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._network_inputs import row_count
from eigengame.sources.iterators import tensor_to_numpy

LIKELIHOODS = ("categorical", "bernoulli", "gaussian")

KINDS = ("sampled", "empirical")

PER_COUNTER = 4
"""Numbers of 64 bits that Philox computes from one value of its counter."""

LARGEST_UNIFORM = 1 - 2.0**-24
"""Largest number below 1 in float32."""


class Likelihoods(Protocol):
    """Operations of one array library on the outputs (1, ...) of one example."""

    def draw(self, likelihood: str, outputs: Any, uniform: Any) -> Any:
        """Return labels from uniform numbers, without a gradient."""

    def negative_log(self, likelihood: str, outputs: Any, labels: Any) -> Any:
        """Return the negative log-likelihood of labels, without terms that do not depend on the outputs."""


@dataclass(frozen=True)
class ExampleLoss:
    """Loss of one example, given as a batch of one.

    Attributes
    ----------
    loss : callable or str
        Function of the parameters and the parts of a batch, or one of `LIKELIHOODS`.
    outputs : callable or None
        Function of the parameters and the parts of a batch, for a named likelihood.
    target : int or str
        Part of a batch that contains the observed labels.
    kind : {"sampled", "empirical"}
    seed : int
        Seed of the labels that are drawn.
    name : str
        Name of the source, for messages.
    default_outputs : bool
        Whether `outputs` is that of this package, a call of the network.
    """

    loss: Callable[..., Any] | str
    outputs: Callable[..., Any] | None
    target: int | str
    kind: str
    seed: int
    name: str
    default_outputs: bool = False

    @property
    def sampled(self) -> bool:
        """Whether labels are drawn."""
        return self.kind == "sampled"

    @property
    def labelled(self) -> bool:
        """Whether a named likelihood uses observed labels."""
        return isinstance(self.loss, str) and not self.sampled

    def value(self, library: Likelihoods, params: Any, batch: Any, uniform: Any) -> Any:
        """Return the loss of one example, a batch (1, ...), with uniform numbers (1, ...) for its labels."""
        parts = parts_of(batch)
        if not isinstance(self.loss, str):
            return self.loss(params, *parts)
        outputs = self.outputs_for(params, batch)
        if self.sampled:
            labels = library.draw(self.loss, outputs, uniform)
        else:
            labels = self.observed(batch)
            expected = label_shape(self.loss, outputs.shape)
            if tuple(labels.shape) != expected:
                raise SourceError(
                    f"{self.name}: labels of one example have shape {tuple(labels.shape)}, but its outputs have "
                    f"{tuple(outputs.shape)}: loss={self.loss!r} needs labels of shape {expected}."
                )
        return library.negative_log(self.loss, outputs, labels)

    def outputs_for(self, params: Any, batch: Any) -> Any:
        """Return the outputs for one example, a batch (1, ...); raise if they are not one array (1, ...)."""
        assert self.outputs is not None
        found = self.outputs(params, *parts_of(batch))
        shape = getattr(found, "shape", None)
        if shape is None or tuple(shape[:1]) != (1,):
            what = f"a {type(found).__name__}" if shape is None else f"of shape {tuple(shape)}"
            raise SourceError(
                f"{self.name}: the outputs for one example are {what}: give outputs=, a function that returns one "
                "array of shape (1, ...), such as lambda model, x, *rest: model(x).logits."
            )
        return found

    def observed(self, batch: Any) -> Any:
        """Return the observed labels of a batch."""
        found = batch if hasattr(batch, "items") else parts_of(batch)
        try:
            return found[self.target]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            parts = list(found) if hasattr(batch, "items") else f"{len(found)} parts"
            raise SourceError(
                f"{self.name}: a batch has {parts}, but target={self.target!r}: give the part that contains the "
                "labels, or kind='sampled', which needs none."
            ) from None

    def uniforms(self, row: int, count: int, outputs: tuple[int, ...]) -> np.ndarray:
        """Return uniform numbers (count, ...) for the labels of rows from `row` on; (count,) if none are drawn.

        `outputs` is the shape of the outputs of one example, (1, ...).
        """
        if not self.sampled or not isinstance(self.loss, str):
            return np.zeros(count, np.float32)
        return uniforms(self.seed, row, count, label_shape(self.loss, outputs)[1:])

    def with_uniforms(
        self, batches: Iterator[Any], row: int, outputs: tuple[int, ...]
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield batches that begin at `row`, with their labels checked, and uniform numbers as in `uniforms`."""
        for batch in batches:
            count = row_count(batch, self.name)
            if self.labelled:
                self.check_labels(batch, row, outputs[-1])
            yield batch, self.uniforms(row, count, outputs)
            row += count

    def check_labels(self, batch: Any, row: int, classes: int) -> None:
        """Raise SourceError for labels that the likelihood does not have: indexing would use others in silence."""
        labels = self.observed(batch)
        found = tensor_to_numpy(labels) if hasattr(labels, "detach") else np.asarray(labels)
        if self.loss == "categorical":
            if found.dtype.kind not in "iu":
                raise SourceError(
                    f"{self.name}: labels are {found.dtype}, but loss='categorical' needs indices of classes: give "
                    "integers, or a loss of your own."
                )
            wrong, fix = (found < 0) | (found >= classes), f"give integers from 0 to {classes - 1}"
        elif self.loss == "bernoulli":
            wrong, fix = ~((found >= 0) & (found <= 1)), "give numbers from 0 to 1"
        else:
            wrong, fix = ~np.isfinite(found), "give finite numbers"
        if wrong.any():
            at = tuple(int(one) for one in np.argwhere(wrong)[0])
            raise SourceError(
                f"{self.name}: the label of example {row + at[0]} is {found[at]}: {fix}, or a loss of your own "
                "that leaves such labels out."
            )


def parts_of(batch: Any) -> tuple[Any, ...]:
    """Return the arguments of a loss: the parts of a tuple or list; anything else is one argument."""
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def label_shape(likelihood: str, shape: Any) -> tuple[int, ...]:
    """Return the shape of labels for outputs of a shape (m, ...)."""
    return tuple(shape[:-1]) if likelihood == "categorical" else tuple(shape)


def uniforms(seed: int, row: int, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return uniform numbers in [0, 1) in float32, shape (count, *shape), for the rows from `row` on.

    Those of a row do not depend on the other rows: Philox computes them from a counter.
    """
    each = int(np.prod(shape, dtype=np.int64))
    counters = -(-max(each, 1) // PER_COUNTER)
    bits = np.random.Philox(key=seed)
    bits.advance(row * counters)
    drawn = np.random.Generator(bits).random((count, counters * PER_COUNTER))[:, :each]
    return np.minimum(drawn, LARGEST_UNIFORM).astype(np.float32).reshape(count, *shape)


class JaxLikelihoods:
    """The likelihoods in JAX."""

    def draw(self, likelihood: str, outputs: Any, uniform: Any) -> Any:
        """Return labels from uniform numbers, without a gradient."""
        z = jax.lax.stop_gradient(outputs).astype(jnp.float32)
        if likelihood == "gaussian":
            # Half a step from 0, whose quantile is infinite.
            return z + jax.scipy.special.ndtri(jnp.clip(uniform, 2.0**-25, None)).astype(z.dtype)
        if likelihood == "bernoulli":
            return (uniform < jax.nn.sigmoid(z)).astype(z.dtype)
        sums = jnp.cumsum(jax.nn.softmax(z, axis=-1), axis=-1)
        # Divided by the last sum, so that rounding gives no probability to the last class.
        below = sums <= uniform[..., None] * sums[..., -1:]
        return jnp.minimum(below.sum(axis=-1), z.shape[-1] - 1)

    def negative_log(self, likelihood: str, outputs: Any, labels: Any) -> Any:
        """Return the negative log-likelihood of labels, without terms that do not depend on the outputs."""
        if likelihood == "gaussian":
            return 0.5 * jnp.sum((labels.astype(outputs.dtype) - outputs) ** 2)
        if likelihood == "bernoulli":
            return jnp.sum(jax.nn.softplus(outputs) - labels.astype(outputs.dtype) * outputs)
        chosen = jnp.take_along_axis(outputs, labels[..., None].astype(jnp.int32), axis=-1)
        return jnp.sum(jax.nn.logsumexp(outputs, axis=-1) - chosen[..., 0])
