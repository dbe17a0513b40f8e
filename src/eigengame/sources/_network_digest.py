"""Digests of networks: weights and code of a torch module, program and constants of a JAX function."""

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
"""Memory address in a `repr`, which differs between processes."""


def digest_of_module(model: Any) -> str:
    """Return a digest of a torch module: weights, buffers, structure, and source code of its classes.

    Functions outside these classes are not covered.
    """
    tensors = itertools.chain(model.named_parameters(), model.named_buffers())
    weights = [digest_of_tree([name, tensor]) for name, tensor in tensors]
    code = sorted({_source_code(type(module)) for module in model.modules()})
    return digest_of_texts([*weights, ADDRESS.sub("", repr(model)), *code])


def digest_of_function(function: Any, example: Any) -> str | None:
    """Return a digest of the program and constants of a function that JAX traces.

    None if it calls back into Python, because the program does not contain that code.
    """
    # JAX caches traces by function. A new function is traced with the current constants.
    program = jax.make_jaxpr(lambda batch: function(batch))(example)
    text = ADDRESS.sub("", str(program))
    if re.search(r"\bcallback=|_callback\[", text):
        return None
    return digest_of_texts([text, digest_of_tree([np.asarray(one) for one in _constants(program)])])


def _constants(program: Any) -> Iterator[Any]:
    """Yield the constants of a program and of its nested programs."""
    yield from getattr(program, "consts", ())
    for equation in program.eqns:
        yield from (one.val for one in equation.invars if hasattr(one, "val"))
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else [value]:
                if hasattr(part, "eqns"):
                    yield from _constants(part)


def _source_code(kind: type) -> str:
    """Return the name and source code of a class; only the name for torch's own classes."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__.split(".")[0] != "torch":
        with contextlib.suppress(OSError, TypeError):
            return f"{name} {inspect.getsource(kind)}"
    return name
