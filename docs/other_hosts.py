"""MkDocs hook: refuses a site that loads anything from another host, so that it works without a network.

Links that a reader follows may point anywhere; scripts, styles, fonts and images may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ADDRESS = r"(?:https?:)?//[^\s\"'<>)]+"
LOADED = (
    # Elements that load what they refer to. A canonical link or a link to another page does not.
    re.compile(
        rf"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc(?:set)?=[\"']?({ADDRESS})"
    ),
    re.compile(
        rf"<link\b(?=[^>]*rel=[\"']?(?:stylesheet|icon|preload|preconnect))[^>]*href=[\"']?({ADDRESS})"
    ),
    re.compile(rf"<object\b[^>]*\sdata=[\"']?({ADDRESS})"),
    re.compile(rf"url\([\"']?({ADDRESS})"),
    re.compile(rf"@import\s+[\"']({ADDRESS})"),
)


def loaded_from(text: str) -> list[str]:
    """Return the addresses on other hosts that a page or a style sheet loads."""
    return [match for pattern in LOADED for match in pattern.findall(text)]


def found(folder: Path) -> Iterator[str]:
    """Yield a sentence for each address that a built site loads from another host."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            for address in loaded_from(path.read_text()):
                yield f"{path.relative_to(folder)} loads {address}"


def on_post_build(config: Any, **_: Any) -> None:
    """Raise if the site that was built loads anything from another host."""
    wrong = list(found(Path(config["site_dir"])))
    if wrong:
        raise ValueError("the site needs a network: " + "; ".join(wrong))
