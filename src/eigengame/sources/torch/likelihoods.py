"""The likelihoods of `_likelihoods.py` in torch, for use within `torch.func.vmap`."""

from __future__ import annotations

from typing import Any


class TorchLikelihoods:
    """The likelihoods in torch."""

    def draw(self, likelihood: str, outputs: Any, uniform: Any) -> Any:
        """Return labels from uniform numbers, without a gradient."""
        import torch

        z = outputs.detach().float()
        if likelihood == "gaussian":
            # Half a step from 0, whose quantile is infinite.
            return z + torch.special.ndtri(uniform.clamp(min=2.0**-25))
        if likelihood == "bernoulli":
            return (uniform < torch.sigmoid(z)).to(z.dtype)
        sums = torch.softmax(z, dim=-1).cumsum(dim=-1)
        # Divided by the last sum, so that rounding gives no probability to the last class.
        below = sums <= uniform.unsqueeze(-1) * sums[..., -1:]
        return below.sum(dim=-1).clamp(max=z.shape[-1] - 1)

    def negative_log(self, likelihood: str, outputs: Any, labels: Any) -> Any:
        """Return the negative log-likelihood of labels, without terms that do not depend on the outputs."""
        import torch

        if likelihood == "gaussian":
            return 0.5 * ((labels.to(outputs.dtype) - outputs) ** 2).sum()
        if likelihood == "bernoulli":
            softplus = torch.nn.functional.softplus(outputs)
            return (softplus - labels.to(outputs.dtype) * outputs).sum()
        chosen = torch.gather(outputs, -1, labels.long().unsqueeze(-1)).squeeze(-1)
        return (torch.logsumexp(outputs, dim=-1) - chosen).sum()
