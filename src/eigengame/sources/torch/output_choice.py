"""The tensor of a layer's output, which may be a tuple, list, dict or dataclass, or of its arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from eigengame.sources._base import SourceError
from eigengame.sources._layers import SIDES
from eigengame.sources.torch.layer_hooks import Arguments

HIDDEN = "last_hidden_state"
"""Name of the hidden states in the outputs of Hugging Face models."""

MOST_DESCRIBED = 4
"""Number of parts of an output that a message describes."""

OutputChoice = int | str | Callable[[Any], Any] | None
"""Position, name, or function that chooses the tensor of an output; None chooses by convention."""


@dataclasses.dataclass(frozen=True)
class TensorChoice:
    """Chooses the tensor of a layer's output, or of its arguments.

    Attributes
    ----------
    owner : str
        Name of the network, for messages.
    output : int, str, callable or None
        Position, name, or function that chooses; None chooses by convention.
    side : {"outputs", "inputs"}
    """

    owner: str
    output: OutputChoice = None
    side: str = SIDES[0]

    @property
    def verb(self) -> str:
        """What a layer does with the tensor, for messages."""
        return "gives" if self.side == SIDES[0] else "takes"

    def facts(self) -> dict[str, Any]:
        """Return what is not the default, as plain data: the side, and the position or name of the tensor."""
        facts: dict[str, Any] = {} if self.side == SIDES[0] else {"side": self.side}
        if self.output is not None:
            plain = isinstance(self.output, int | str)
            facts["output"] = (
                self.output if plain else getattr(self.output, "__qualname__", "function")
            )
        return facts

    def __call__(self, name: str, value: Any, *, first: bool = False) -> Any:
        """Return the tensor of an output or of arguments; raise SourceError if there is none, or if it is complex.

        Parameters
        ----------
        name : str
            Name of the layer, for messages.
        value : object or Arguments
            What the layer returned, or what it is called with.
        first : bool
            If a choice by convention finds several tensors in an output, take the hidden states of a Hugging Face
            model, or the first element of a tuple or list: attention and recurrent layers return their output
            first. Of arguments, the first one with a tensor is taken in any case.
        """
        found = self._part(name, value)
        if isinstance(found, Arguments):
            tensor = self._first_argument(name, found)
        else:
            tensor = self._only_tensor(name, found, first)
        if tensor.is_complex():
            raise SourceError(
                f"{self.owner}: layer {name!r} {self.verb} complex numbers: choose another layer."
            )
        return tensor

    def _part(self, name: str, value: Any) -> Any:
        """Return the part of an output, or the argument, that `output` stands for."""
        choice = self.output
        if choice is None:
            return value
        if callable(choice):
            return choice(value)
        parts = dict(_parts(value) or ())
        if isinstance(choice, int) and choice not in parts:
            # Parts of dicts and dataclasses have an order too.
            parts = dict(enumerate(parts.values()))
        if choice in parts:
            return parts[choice]
        # Layers of one network may differ: a tensor alone is what position 0 stands for.
        if choice == 0 and _is_tensor(value):
            return value
        of = "the output" if self.side == SIDES[0] else "the arguments"
        raise SourceError(
            f"{self.owner}: layer {name!r} {self.verb} {describe(value)}, which has no part output={choice!r}: "
            f"give a position, a name, or a function of {of}."
        )

    def _only_tensor(self, name: str, found: Any, first: bool) -> Any:
        """Return the only tensor of an output or a chosen part, or one by convention."""
        tensors = list(_tensors(found))
        if len(tensors) == 1:
            return tensors[0]
        if self.side != SIDES[0]:
            raise SourceError(
                f"{self.owner}: layer {name!r}: output= chooses {describe(found)} among the arguments, with "
                f"{len(tensors)} tensors: choose one tensor."
            )
        tensor = _by_convention(found) if first else None
        if tensor is None:
            how = "choose one by output= (a position, a name or a function)" if tensors else ""
            raise SourceError(
                f"{self.owner}: layer {name!r} gives a {type(found).__name__} with {len(tensors)} tensors "
                f"({describe(found)}): {how or 'choose a layer within it that gives one'}, or wrap the network."
            )
        return tensor

    def _first_argument(self, name: str, arguments: Arguments) -> Any:
        """Return the tensor of the first argument that contains one."""
        for argument, value in arguments.items():
            tensors = list(_tensors(value))
            if len(tensors) == 1:
                return tensors[0]
            if tensors:
                raise SourceError(
                    f"{self.owner}: layer {name!r} takes an argument {argument!r} with {len(tensors)} tensors "
                    f"({describe(value)}): choose one by output=, such as lambda arguments: arguments[0][1], or "
                    "choose another layer."
                )
        seen = describe(arguments) if arguments else "it is called without arguments"
        raise SourceError(
            f"{self.owner}: layer {name!r} takes no tensor ({seen}): choose another layer, or use side='outputs'."
        )


def describe(output: Any) -> str:
    """Return a short description of an output or of arguments: the type, and those of the parts."""
    if _is_tensor(output):
        return f"a tensor of shape {tuple(output.shape)}"
    parts = _parts(output)
    kind = "arguments" if isinstance(output, Arguments) else f"a {type(output).__name__}"
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
