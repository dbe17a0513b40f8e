"""The tensor of a layer's output: outputs may be tuples, lists, dicts and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from eigengame.sources._base import SourceError

HIDDEN = "last_hidden_state"
"""Name of the hidden states in the outputs of Hugging Face models."""

MOST_DESCRIBED = 4
"""Number of parts of an output that a message describes."""

OutputChoice = int | str | Callable[[Any], Any] | None
"""Position, name, or function that chooses the tensor of an output; None chooses by convention."""


def tensor_of(
    owner: str, name: str, output: Any, choice: OutputChoice = None, *, first: bool = False
) -> Any:
    """Return the tensor of an output; raise SourceError if there is none, or if it is complex.

    Parameters
    ----------
    owner, name : str
        Names of the network and the layer, for messages.
    output : object
        What the layer returned.
    choice : int, str, callable or None
        None takes the only tensor. If there are several and `first`, it takes the hidden states of a Hugging Face
        model, or the first element of a tuple or list: attention and recurrent layers return their output first.
    first : bool
    """
    found = _chosen(owner, name, output, choice)
    tensors = list(_tensors(found))
    tensor = tensors[0] if len(tensors) == 1 else _by_convention(found) if first else None
    if tensor is None:
        how = "choose one by output= (a position, a name or a function)" if tensors else ""
        raise SourceError(
            f"{owner}: layer {name!r} gives a {type(found).__name__} with {len(tensors)} tensors "
            f"({describe(found)}): {how or 'choose a layer within it that gives one'}, or wrap the network."
        )
    if tensor.is_complex():
        raise SourceError(f"{owner}: layer {name!r} gives complex numbers: choose another layer.")
    return tensor


def describe(output: Any) -> str:
    """Return a short description of an output: its type, and those of its parts."""
    if _is_tensor(output):
        return f"a tensor of shape {tuple(output.shape)}"
    parts = _parts(output)
    kind = f"a {type(output).__name__}"
    if parts is None:
        return kind
    named = isinstance(output, (tuple, list)) and not hasattr(output, "_fields")
    texts = [describe(one) if named else f"{key}: {describe(one)}" for key, one in parts]
    more = f" and {len(texts) - MOST_DESCRIBED} more" if len(texts) > MOST_DESCRIBED else ""
    return (
        f"{kind} of ({', '.join(texts[:MOST_DESCRIBED])}{more})"
        if texts
        else f"an empty {kind[2:]}"
    )


def _chosen(owner: str, name: str, output: Any, choice: OutputChoice) -> Any:
    """Return the part of an output that `choice` stands for."""
    if choice is None:
        return output
    if callable(choice):
        return choice(output)
    parts = dict(_parts(output) or ())
    if isinstance(choice, int) and choice not in parts:
        # Parts of dicts and dataclasses have an order too.
        parts = dict(enumerate(parts.values()))
    if choice in parts:
        return parts[choice]
    # Layers of one network may differ: a tensor alone is what position 0 stands for.
    if choice == 0 and _is_tensor(output):
        return output
    raise SourceError(
        f"{owner}: layer {name!r} gives {describe(output)}, which has no part output={choice!r}: give a position, "
        "a name, or a function of the output."
    )


def _by_convention(output: Any) -> Any:
    """Return the hidden states of an output, or its first element; None if that is no tensor."""
    parts = _parts(output) or []
    named = dict(parts)
    if _is_tensor(named.get(HIDDEN)):
        return named[HIDDEN]
    if isinstance(output, (tuple, list)) and parts and _is_tensor(parts[0][1]):
        return parts[0][1]
    return None


def _parts(output: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts of an output by name or position; None if it has none."""
    if isinstance(output, Mapping):
        return list(output.items())
    if hasattr(output, "_fields"):
        return list(zip(output._fields, output, strict=True))
    if isinstance(output, (tuple, list)):
        return list(enumerate(output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return [(one.name, getattr(output, one.name)) for one in dataclasses.fields(output)]
    return None


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "is_complex") and hasattr(value, "shape")


def _tensors(output: Any) -> Any:
    """Yield all tensors of an output."""
    if _is_tensor(output):
        yield output
        return
    for _, part in _parts(output) or ():
        yield from _tensors(part)
