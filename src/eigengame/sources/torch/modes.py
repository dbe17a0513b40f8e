"""Modes of torch during a forward pass: evaluation, eager execution, and the choice of convolutions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def eager(compiled: bool) -> Iterator[None]:
    """Run compiled modules without their compiled programs, which do not call hooks."""
    import torch

    if not compiled:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def cudnn_benchmark() -> Iterator[None]:
    """Let cuDNN choose the fastest convolutions by trial, which pays off because batches have one shape."""
    from torch.backends import cudnn

    before = cudnn.benchmark
    cudnn.benchmark = True
    try:
        yield
    finally:
        cudnn.benchmark = before


@contextlib.contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Put a network into evaluation mode, and restore the mode of each module afterwards."""
    training = [module for module in model.modules() if module.training]
    if not training:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
