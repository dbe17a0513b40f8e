"""The communication between devices in a compiled program, read from its HLO."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2}
SIZES |= {"f32": 4, "s32": 4, "u32": 4, "f64": 8, "s64": 8, "u64": 8}
LINE = re.compile(rf"= (.*?) ({'|'.join(KINDS)})(-start)?\(")
SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")
HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
CALLED = re.compile(r"(?:body|condition|calls|to_apply)=%?([\w.\-]+)")


class Collective(NamedTuple):
    """One collective: its kind, and the bytes of its result on each device."""

    kind: str
    bytes: int


def collectives(compiled: Any) -> list[Collective]:
    """Return the collectives of a compiled function, `jax.jit(f).lower(...).compile()`.

    Those in a branch of a `cond`, such as further rounds on a first batch, do not count. The body of a loop counts
    once.
    """
    parts, entry = _computations(compiled.as_text())
    found, waiting, seen = [], [entry], {entry}
    while waiting:
        for line in parts.get(waiting.pop(), ()):
            match = LINE.search(line)
            if match:
                size = sum(_bytes(*one) for one in SHAPE.findall(match.group(1)))
                found.append(Collective(match.group(2), size))
            called = set(CALLED.findall(line))
            waiting += called - seen
            seen |= called
    return found


def bytes_moved(compiled: Any) -> int:
    """Return the bytes that each device receives in all collectives of a compiled function."""
    return sum(one.bytes for one in collectives(compiled))


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    """Return the lines of each computation by name, and the name of the entry computation."""
    parts: dict[str, list[str]] = {}
    entry = name = ""
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            name = head.group(2)
            parts[name] = []
            entry = name if head.group(1) else entry
        elif name:
            parts[name].append(line)
    return parts, entry


def _bytes(dtype: str, sizes: str) -> int:
    count = 1
    for size in filter(None, sizes.split(",")):
        count *= int(size)
    return count * SIZES.get(dtype, 0)
