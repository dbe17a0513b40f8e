"""ResNets with bottleneck blocks in plain torch, with the names of torchvision's state dict."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

RESNET50: tuple[int, ...] = (3, 4, 6, 3)
RESNET200: tuple[int, ...] = (3, 24, 36, 3)
"""Number of blocks in each of the four stages."""


class Bottleneck(nn.Module):
    """A residual block: 1x1, 3x3 and 1x1 convolutions and a shortcut.

    Parameters
    ----------
    before : int
        Number of input channels.
    width : int
        Number of inner channels; a quarter of the output channels.
    stride : int
    stride_first : bool
        Apply the stride in the first 1x1 convolution, as in the original layout (v1); else in the 3x3
        convolution, as in torchvision.
    eps : float
        Epsilon of the batch norms.
    """

    def __init__(
        self, before: int, width: int, stride: int, *, stride_first: bool, eps: float
    ) -> None:
        super().__init__()
        first, second, after = (
            stride if stride_first else 1,
            1 if stride_first else stride,
            4 * width,
        )
        self.conv1 = nn.Conv2d(before, width, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(width, eps)
        self.conv2 = nn.Conv2d(width, width, 3, second, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, eps)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(after, eps)
        self.relu = nn.ReLU()
        self.downsample: nn.Module | None = None
        if stride > 1 or before != after:
            shortcut = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(after, eps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output, shape (rows, 4 width, height / stride, ...)."""
        kept = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + kept)


class ResNet(nn.Module):
    """A ResNet for images of any size, shape (rows, 3, height, width).

    Parameters
    ----------
    counts : sequence of int
        Number of blocks in each stage: `RESNET50`, `RESNET200`.
    classes : int
    stride_first : bool
        As in `Bottleneck`.
    eps : float
        Epsilon of the batch norms.
    """

    def __init__(
        self,
        counts: Sequence[int] = RESNET50,
        classes: int = 1000,
        *,
        stride_first: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, eps)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, count in enumerate(counts):
            width, blocks = 64 * 2**stage, []
            for block in range(count):
                stride = 2 if stage and not block else 1
                blocks.append(Bottleneck(before, width, stride, stride_first=stride_first, eps=eps))
                before = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.stages = len(counts)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a score for each class, shape (rows, classes)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean(dim=(2, 3)))


def load(
    path: str | os.PathLike[str], counts: Sequence[int] = RESNET50, *, unit: float = 1.0
) -> ResNet:
    """Return a network of the original layout with the weights of an `.npz` file, in evaluation mode.

    The arrays have the names of torchvision's state dict; half precision is converted to float32. Batch norms
    have the epsilon of Keras, where the weights come from.

    Parameters
    ----------
    path : path
    counts : sequence of int
        Number of blocks in each stage.
    unit : float
        Divisor of the pixels. The first batch norm is scaled accordingly, so that only the output of `conv1`
        changes.
    """
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name].astype(np.float32)) for name in file.files}
    classes = arrays["fc.bias"].numel() if "fc.bias" in arrays else 1000
    network = ResNet(counts, classes, stride_first=True, eps=1e-3)
    found = network.load_state_dict(arrays, strict=False)
    missing = [name for name in found.missing_keys if not name.endswith("num_batches_tracked")]
    if missing or found.unexpected_keys:
        names = ", ".join([*missing, *found.unexpected_keys][:4])
        raise ValueError(
            f"{path} does not hold the weights of a ResNet with {tuple(counts)} blocks (see {names}): give "
            "arrays named as torchvision's state dict."
        )
    first = network.bn1
    first.running_mean /= unit
    first.running_var /= unit**2
    first.eps /= unit**2
    return network.eval().requires_grad_(False)


def block_names(counts: Sequence[int] = RESNET50) -> list[str]:
    """Return the names of the residual blocks in order, such as layer1.0."""
    return [f"layer{stage}.{block}" for stage, n in enumerate(counts, 1) for block in range(n)]
