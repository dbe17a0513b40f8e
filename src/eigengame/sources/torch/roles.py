"""Layers that need no names: the blocks of a network, and parts of a transformer by their role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from eigengame.sources._base import SourceError

ROLES = {
    "residual": None,
    "attention": re.compile(r"(self_?|cross_?)?(attn|attention|mha)"),
    "mlp": re.compile(r"mlp|feed_?forward|ffn?|moe|block_sparse_moe|dense\w*dense"),
}
"""Names of submodules for each role; the residual stream is the output (or the input) of a block."""


def blocks_of(model: Any) -> list[str]:
    """Return the names of a network's blocks: children with weights, looking inside containers.

    For a ResNet these are `conv1`, `bn1`, every residual block and `fc`.
    """
    import torch

    containers = (torch.nn.Sequential, torch.nn.ModuleList)

    def visit(module: Any, prefix: str) -> Iterator[str]:
        for name, child in module.named_children():
            if isinstance(child, containers):
                yield from visit(child, f"{prefix}{name}.")
            elif next(child.parameters(), None) is not None:
                yield f"{prefix}{name}"

    names = list(visit(model, ""))
    if not names:
        raise SourceError(
            f"{type(model).__name__} has no children with weights: wrap it in torch.nn.Sequential."
        )
    return names


def expand_roles(model: Any, patterns: Sequence[str], name: str) -> list[str]:
    """Return patterns with each role replaced by the names of its modules. A module of that name has priority.

    Parameters
    ----------
    model : Module
    patterns : sequence of str
    name : str
        Name of the network, for messages.
    """
    names = dict(model.named_modules())
    found: list[str] = []
    for pattern in patterns:
        if pattern not in ROLES or pattern in names:
            found.append(pattern)
            continue
        layers = _modules_of(model, pattern)
        if not layers:
            raise SourceError(
                f"layers={pattern!r}: {name} has no list of equal blocks"
                f"{'' if pattern == 'residual' else ' with a module of such a name'}; give names or patterns, such "
                "as 'layers.*'."
            )
        found += layers
    return found


def repeated_blocks(model: Any) -> list[str]:
    """Return the names of the blocks of a network: members of lists of at least two modules of one class."""
    import torch

    found: list[str] = []
    for name, module in model.named_modules():
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) or len(module) < 2:
            continue
        inner = any(name == one or name.startswith(f"{one}.") for one in found)
        # A block has parts of its own: a list of linear layers is not one of blocks.
        alike = len({type(one) for one in module}) == 1 and any(True for _ in module[0].children())
        if alike and not inner:
            found += [f"{name}.{i}".lstrip(".") for i in range(len(module))]
    return found


def _modules_of(model: Any, role: str) -> list[str]:
    """Return the names of the modules of a role, one or more for each block."""
    blocks, expression = repeated_blocks(model), ROLES[role]
    if expression is None:
        return blocks
    found = []
    for block in blocks:
        names = [name for name, _ in model.get_submodule(block).named_modules() if name]
        own = [name for name in names if expression.fullmatch(name.rpartition(".")[2].lower())]
        # The outermost of them: an attention module often has another one inside.
        outer = [one for one in own if not any(one.startswith(f"{other}.") for other in own)]
        found += [f"{block}.{one}" for one in outer]
    return found
