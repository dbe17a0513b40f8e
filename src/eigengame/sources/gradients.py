"""Gradients of the loss of each example as rows, computed batch by batch on the device and never stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Literal

from eigengame import _check
from eigengame.sources._base import Block, Source, SourceError
from eigengame.sources._digest import combine_digests, digest_of_texts
from eigengame.sources._jax_gradients import JaxGradients
from eigengame.sources._layers import Layers
from eigengame.sources._likelihoods import KINDS, LIKELIHOODS, ExampleLoss
from eigengame.sources._network_inputs import NetworkInputs

POLICIES = ("raise", "skip")
"""Policies for non-finite gradients."""

CHUNK_BYTES = 2**30
"""Memory for the gradients of a chunk in float32, if `chunk` is "auto"."""

MOST_EXAMPLES = 64
"""Largest chunk, if `chunk` is "auto"."""


def gradients(
    loss: str | Callable[..., Any],
    params: Any,
    loader: Iterable[Any],
    kind: Literal["sampled", "empirical"] = "sampled",
    *,
    outputs: Callable[..., Any] | None = None,
    target: int | str = 1,
    names: str | Sequence[str] | None = None,
    chunk: int | Literal["auto"] = "auto",
    dtype: Any = "auto",
    device: Any = None,
    nonfinite: Literal["raise", "skip"] = "raise",
    covariance: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> GradientsSource:
    r"""Return the gradients of the loss of each example as a source: one row per example, parameters side by side.

    Row $i$ is $g_i = \nabla_\theta\, \ell(\theta; x_i, y_i)$. Fitted with ``center=False``, the components are the
    top eigenvectors of

    $$F = \frac1n \sum_i g_i g_i^\top,$$

    and ``singular_values_ ** 2 / n_samples_seen_`` are its eigenvalues. With ``kind="sampled"`` the label is drawn
    from the distribution of the network, $y_i \sim p(\cdot \mid x_i, \theta)$, and $\ell = -\log p$: $F$ estimates
    the Fisher information, which for these likelihoods is the generalised Gauss-Newton matrix. With
    ``kind="empirical"`` $y_i$ is the observed label: $F$ is the empirical Fisher matrix.

    Rows are computed when they are needed and stay on the device of the network.

    Parameters
    ----------
    loss : {"categorical", "bernoulli", "gaussian"}, or function
        Likelihood of the labels given the outputs of the network: softmax with classes on the last axis, sigmoid,
        or half the squared error (unit variance), summed over all labels of an example. A function
        ``loss(params, *batch)`` returns one number; with torch its first argument is the module. It is called with
        batches of one example, shape (1, ...), so that a loss for batches works as it is. It needs
        ``kind="empirical"``, because it does not state how to draw labels.
    params : torch Module, or tree of JAX arrays
        Parameters, at which gradients are computed. Torch modules run in evaluation mode and are never changed.
        Batch norms must be in evaluation mode already.
    loader : DataLoader, or any iterable of batches
        Arrays (m, ...); tuples and lists are passed as several arguments, dicts as one. A loader that shuffles or
        augments gives other rows in each pass.
    kind : {"sampled", "empirical"}
        Labels that are drawn, or those of the loader. Labels drawn depend on `seed` and on the index of the row, so
        that every pass has the same.
    outputs : function, optional
        ``outputs(params, *batch)`` returns the outputs (m, ...) that a named likelihood needs. By default a torch
        module is called with the first part of the batch.
    target : int or str
        Part of a batch that contains the observed labels, for a named likelihood with ``kind="empirical"``.
    names : str or sequence of str, optional
        Names or patterns of the parameters to differentiate by, such as ``"layer4.**"``. By default the parameters
        of a module that require a gradient, or all leaves of a tree.
    chunk : int or "auto"
        Examples that are differentiated at once by `vmap`: the memory for gradients is ``chunk`` times the size of
        the parameters, besides the buffers of a fit. With 1, torch differentiates them one by one, without `vmap`.
        "auto" is at most 64, as many as 1 GiB holds.
    dtype : {"auto", "float32", "bfloat16"}
        Dtype of the rows. Gradients are computed in the precision of the network. "auto" is bfloat16 on an
        accelerator and float32 on a CPU.
    device : torch device, optional
        Device on which a copy of a torch network runs. Defaults to the device of the network. It must be the
        device that JAX uses.
    nonfinite : {"raise", "skip"}
        Policy for NaN and infinity: an error at the end of the pass that names the example and the parameter, or
        weight 0 for the example.
    covariance : bool
        Whether a fit may subtract the mean, for the components of the covariance of the gradients (gradient noise).
        By default ``center=True`` is refused, because $F$ is not centred.
    seed : int
        Seed of the labels that are drawn.
    name : str, optional
        Name for messages.

    Returns
    -------
    GradientsSource
        Its attribute `layers` has names, shapes and positions of the parameters; `unflatten` turns a component into
        a tree like the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> params = {"weights": np.ones((3, 2), np.float32), "bias": np.zeros(2, np.float32)}
    >>> outputs = lambda p, x: x @ p["weights"] + p["bias"]
    >>> source = gradients("categorical", params, [np.ones((8, 3), np.float32)], outputs=outputs)
    >>> source.shape, source.layers.names
    ((8, 8), ['bias', 'weights'])
    """
    _check.one_of("kind", kind, KINDS)
    _check.one_of("nonfinite", nonfinite, POLICIES)
    module = any(one.__module__.split(".")[0] == "torch" for one in type(params).__mro__)
    if isinstance(loss, str):
        _check.one_of("loss", loss, LIKELIHOODS)
        if outputs is None and not module:
            raise SourceError(
                f"loss={loss!r} needs the outputs of the network: give outputs=lambda params, x, *rest: ..."
            )
    elif not callable(loss):
        raise SourceError(f"loss={loss!r}: give {', '.join(LIKELIHOODS)}, or a function.")
    elif kind == "sampled":
        raise SourceError(
            "kind='sampled' draws labels from the distribution of the network, which a loss of your own does not "
            f"state: give loss= one of {', '.join(LIKELIHOODS)} with outputs=, or kind='empirical' for the "
            "observed labels."
        )
    elif outputs is not None:
        raise SourceError("outputs= is for a named likelihood: leave it out with your own loss.")
    name = name or f"gradients of {type(params).__name__ if module else 'a loss'}"
    if not isinstance(seed, Integral) or seed < 0:
        raise SourceError(f"seed={seed!r}: give an integer from 0.")
    if str(dtype).endswith("float16") and "bfloat16" not in str(dtype):
        raise SourceError(
            f"dtype={dtype!r}: small gradients are 0 in float16; give bfloat16 or float32."
        )
    inputs = NetworkInputs(loader, None, name)
    spec = ExampleLoss(
        loss, outputs or _first_part, target, kind, int(seed), name, default_outputs=outputs is None
    )
    options: dict[str, Any] = {
        "chunk": _chunk_of(chunk),
        "dtype": dtype,
        "nonfinite": nonfinite,
        "name": name,
    }
    patterns = [names] if isinstance(names, str) else None if names is None else list(names)
    network: Any
    if module:
        if not hasattr(params, "named_parameters"):
            raise SourceError(
                f"params is a torch {type(params).__name__}: give the module that has the parameters."
            )
        from eigengame.sources.torch.gradients import TorchGradients

        network = TorchGradients(spec, params, patterns, device=device, **options)
    else:
        if device is not None:
            raise SourceError(
                f"device={device!r}: this option is for torch modules; set the device of JAX by jax.default_device."
            )
        network = JaxGradients(spec, params, patterns, **options)
    return GradientsSource(network, inputs, spec, covariance=covariance)


class GradientsSource(Source):
    """Gradients of examples; see `gradients`.

    Attributes
    ----------
    layers : Layers
        Names, shapes and positions of the parameters in a row: the order of ``named_parameters()`` of a torch
        module, or of the leaves of a tree in JAX, each flattened in row-major order.
    chunk : int
        Examples that are differentiated at once.
    """

    on_device = True
    slow = False
    layers: Layers

    def __init__(
        self, network: Any, inputs: NetworkInputs, loss: ExampleLoss, *, covariance: bool
    ) -> None:
        self.name, self._network, self._inputs, self._loss = loss.name, network, inputs, loss
        self.layers = network.find_layers(inputs.first)
        self.shape = (inputs.rows, self.layers.width)
        self.dtype, self.again, self.block_rows = network.dtype, inputs.again, inputs.batch_rows
        self.chunk: int = network.chunk
        self.uncentered = not covariance
        self._started = False

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows. Earlier rows are not computed."""
        if self._started and not self.again:
            raise SourceError(
                f"{self.name}: the loader can be read once, and was read already: give a DataLoader, or a "
                "list of batches."
            )
        self._started = True
        found: Iterator[Block] = self._network.blocks(self._inputs.batches(start), size, start)
        return found

    def unflatten(self, component: Any) -> Any:
        """Return a component (d,) as a tree like the parameters: for torch a dict of arrays by name.

        Leaves of a JAX tree that are not differentiated are None.
        """
        if len(component.shape) != 1:
            raise ValueError(
                f"component has shape {component.shape}: give one of them, shape ({self.shape[1]},); "
                "layers.cut splits several."
            )
        return self._network.unflatten(component)

    def describe_feature(self, column: int) -> str:
        """Return the parameter of a feature, and the index within it."""
        layer, index = self.layers.at(column)
        return f"the gradient by {layer.name!r} at {index}"

    def free_bytes(self) -> int | None:
        """Return the free memory for buffers if they are not allocated by JAX, else None."""
        found: int | None = self._network.free_bytes()
        return found

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, a digest of the parameters' names, the loss, and facts about the network."""
        layers = hashlib.sha256(json.dumps(self.layers.facts()).encode()).hexdigest()[:16]
        about = {"layers": layers, "block_rows": self.block_rows} | self._about_labels()
        return super().fingerprint() | about | self._network.fingerprint()

    def digest(self) -> str | None:
        """Return a digest of the network, the loss and all inputs; None if one of them is unknown."""
        network = self._network.digest()
        if network is None:
            return None
        labels = digest_of_texts([json.dumps(self._about_labels())])
        return combine_digests([network, labels, self._inputs.digest()])

    def _about_labels(self) -> dict[str, Any]:
        """Return what determines the labels, as plain JSON."""
        loss = self._loss.loss if isinstance(self._loss.loss, str) else "function"
        return {"loss": loss, "kind": self._loss.kind, "seed": self._loss.seed}


def _first_part(model: Any, *parts: Any) -> Any:
    """Return the outputs of a module for the first part of a batch."""
    if isinstance(parts[0], dict):
        raise SourceError(
            f"a batch is a dict with {', '.join(map(repr, parts[0]))}: give outputs=, a function of the network "
            "and the batch, such as lambda model, batch: model(batch['x'])."
        )
    return model(parts[0])


def _chunk_of(chunk: Any) -> Callable[[int], int]:
    """Return the number of examples of a chunk as a function of the number of parameters."""
    if chunk == "auto":
        return lambda width: min(max(CHUNK_BYTES // (4 * width), 1), MOST_EXAMPLES)
    if not isinstance(chunk, Integral) or isinstance(chunk, bool) or chunk < 1:
        raise SourceError(f'chunk={chunk!r}: give an integer from 1, or "auto".')
    return lambda width: int(chunk)
