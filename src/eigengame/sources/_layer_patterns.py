"""Selection of layers by name patterns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from eigengame.sources._base import SourceError

TOKENS = re.compile(r"\*\*|\*|\?|\[[^\]]+\]|.")
WILDCARDS = {"**": ".*", "*": "[^.]*", "?": "[^.]"}

MAX_LISTED = 12
"""Number of names that a message lists."""


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that match a pattern.

    `*` and `?` match anything but a dot, so that `layer1.*` matches the blocks of `layer1` but not their
    parts. `**` matches anything; `[0-3]` and `[!0]` match one character.
    """
    if pattern in names:
        return [pattern]
    expression = re.compile("".join(_translate(token) for token in TOKENS.findall(pattern)))
    return [name for name in names if expression.fullmatch(name)]


def match_all(
    patterns: Sequence[str], names: Sequence[str], owner: str, how: str
) -> dict[str, list[str]]:
    """Return the names that match each pattern; raise if a pattern matches nothing.

    Parameters
    ----------
    patterns, names : sequence of str
    owner : str
        Name of the network, for messages.
    how : str
        Expression that lists the names, for messages.
    """
    found = {pattern: matching(pattern, names) for pattern in patterns}
    for pattern, matched in found.items():
        if not matched:
            near = difflib.get_close_matches(pattern, names, n=5, cutoff=0.4)
            few = ", ".join(names) if len(names) <= MAX_LISTED else f"{len(names)} others"
            hint = f"similar names are {', '.join(near)}" if near else f"there are {few}"
            raise SourceError(
                f"layers: {pattern!r} matches nothing in {owner}; {hint}: {how} lists all."
            )
    if not found:
        raise SourceError(f"layers=[]: give at least one name or pattern; {how} lists all.")
    return found


def _translate(token: str) -> str:
    """Return one token of a pattern as a regular expression."""
    if token in WILDCARDS:
        return WILDCARDS[token]
    return token.replace("[!", "[^", 1) if len(token) > 1 else re.escape(token)
