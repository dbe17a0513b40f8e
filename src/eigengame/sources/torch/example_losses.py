"""Parameters of a torch module to differentiate by, and the module that computes the loss of one example."""

from __future__ import annotations

from typing import Any

from eigengame.sources._base import SourceError, list_items
from eigengame.sources._layer_patterns import match_all
from eigengame.sources._likelihoods import ExampleLoss
from eigengame.sources.torch.likelihoods import TorchLikelihoods

LIST_NAMES = "[name for name, _ in model.named_parameters()]"
"""Expression that lists the parameters of a network, for messages."""


def chosen_parameters(model: Any, names: Any, name: str) -> list[str]:
    """Return the names of the parameters to differentiate by, in the order of the module."""
    every = dict(model.named_parameters())
    if not every:
        raise SourceError(f"{name}: {type(model).__name__} has no parameters: give a network.")
    if names is None:
        found = [one for one, value in every.items() if value.requires_grad]
        if not found:
            raise SourceError(
                f"{name}: no parameter requires a gradient: call model.requires_grad_(True), or choose some by "
                'names="**".'
            )
    else:
        groups = match_all(names, list(every), name, LIST_NAMES).values()
        wanted = {one for group in groups for one in group}
        found = [one for one in every if one in wanted]
    wrong = [one for one in found if not every[one].is_floating_point()]
    if wrong:
        raise SourceError(
            f"{name}: parameters {list_items(wrong, 3)} have dtype {every[wrong[0]].dtype}, which has no gradient: "
            "leave them out by names=, or convert them to real floating-point numbers."
        )
    return found


def refuse_batch_statistics(model: Any, name: str) -> None:
    """Raise SourceError if a batch norm uses the statistics of the batch: no example has a gradient of its own."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for one, module in model.named_modules():
        if not isinstance(module, _BatchNorm):
            continue
        if module.running_mean is None:
            raise SourceError(
                f"{name}: batch norm {one!r} has no running statistics, so the loss of an example depends on the "
                "other examples of its batch: replace it by a group norm, or train with track_running_stats=True."
            )
        if module.training:
            raise SourceError(
                f"{name}: batch norm {one!r} is in training mode, in which the loss of an example depends on the "
                "other examples of its batch: call model.eval(), so that it uses its running statistics."
            )


def with_loss(model: Any, loss: ExampleLoss) -> Any:
    """Return a module that computes the loss of one example, with the network as its submodule `model`."""
    from torch import nn

    class WithLoss(nn.Module):
        """The network as the submodule `model`."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def outputs(self, batch: Any) -> Any:
            """Return the outputs for a batch."""
            return loss.outputs_for(self.model, batch)

        def forward(self, batch: Any, uniform: Any) -> Any:
            """Return the loss of one example, a batch (1, ...)."""
            return loss.value(TorchLikelihoods(), self.model, batch, uniform)

    return WithLoss()
