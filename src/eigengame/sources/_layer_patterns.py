"""Names chosen by patterns, with a helpful word where nothing matches."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from eigengame.sources._base import SourceError

TOKENS = re.compile(r"\*\*|\*|\?|\[[^\]]+\]|.")
MEANT = {"**": ".*", "*": "[^.]*", "?": "[^.]"}


FEW = 12
"""Names that are listed in an error."""


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that a pattern means.

    `*` and `?` stand for anything but a dot, so that `layer1.*` is the blocks of `layer1` and not what is
    in them; `**` stands for anything, `[0-3]` and `[!0]` for one of some characters.
    """
    if pattern in names:
        return [pattern]
    wanted = re.compile("".join(_translated(one) for one in TOKENS.findall(pattern)))
    return [name for name in names if wanted.fullmatch(name)]


def chosen(
    patterns: Sequence[str], names: Sequence[str], owner: str, how: str
) -> dict[str, list[str]]:
    """Return the names that each pattern means, and refuse one that means none.

    Parameters
    ----------
    patterns, names : sequence of str
    owner : str
        Whose names they are.
    how : str
        How to list them.
    """
    found = {pattern: matching(pattern, names) for pattern in patterns}
    for pattern, matched in found.items():
        if not matched:
            near = difflib.get_close_matches(pattern, names, n=5, cutoff=0.4)
            few = ", ".join(names) if len(names) <= FEW else f"{len(names)} others"
            like = f"near it are {', '.join(near)}" if near else f"there are {few}"
            raise SourceError(
                f"layers: {pattern!r} matches nothing in {owner}; {like}: {how} lists all."
            )
    if not found:
        raise SourceError(f"layers=[]: give at least one name or pattern; {how} lists all.")
    return found


def _translated(token: str) -> str:
    """Return one token of a pattern as a regular expression."""
    if token in MEANT:
        return MEANT[token]
    return token.replace("[!", "[^", 1) if len(token) > 1 else re.escape(token)
