"""Digests of networks: weights and architecture of a torch module, the program and constants of a JAX function."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from eigengame.sources._digest import digest_of_texts, digest_of_tree

ADDRESS = re.compile(r" at 0x[0-9a-fA-FxX]+")
"""A place in memory, which is another one in the next process."""


def digest_of_module(model: Any) -> str:
    """Return a digest of a torch module: all weights and buffers, its parts, and the text of their classes.

    Functions outside of these classes are not covered.
    """
    held = itertools.chain(model.named_parameters(), model.named_buffers())
    weights = [digest_of_tree([name, tensor]) for name, tensor in held]
    code = sorted({_code_of(type(one)) for one in model.modules()})
    return digest_of_texts([*weights, ADDRESS.sub("", repr(model)), *code])


def digest_of_function(function: Any, *given: Any) -> str | None:
    """Return a digest of a function that JAX traces: its program, and all arrays that it closes over.

    None where it calls back into Python, which nobody sees in the program.
    """
    # JAX remembers traces by function: a new one is traced with what it closes over now.
    program = jax.make_jaxpr(lambda *arrays: function(*arrays))(*given)
    text = ADDRESS.sub("", str(program))
    if re.search(r"\bcallback=|_callback\[", text):
        return None
    return digest_of_texts([text, digest_of_tree([np.asarray(one) for one in _constants(program)])])


def _constants(program: Any) -> Iterator[Any]:
    """Give the constants of a program and of the programs within it."""
    yield from getattr(program, "consts", ())
    for equation in program.eqns:
        yield from (one.val for one in equation.invars if hasattr(one, "val"))
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else [value]:
                if hasattr(part, "eqns"):
                    yield from _constants(part)


def _code_of(kind: type) -> str:
    """Return the source text of a class; its name where there is no text, or where it is torch's own."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__.split(".")[0] != "torch":
        with contextlib.suppress(OSError, TypeError):
            return f"{name} {inspect.getsource(kind)}"
    return name
