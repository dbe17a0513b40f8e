"""MkDocs hook: fills the page "Contributing" with ``CONTRIBUTING.md``, and with the drawing as SVG.

GitHub renders the Mermaid graph of that file. The site shows ``architecture.svg``, which needs no script.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GRAPH = re.compile(r"```mermaid\n.*?```", re.S)
FILE_OF_THE_REPOSITORY = re.compile(r"\[([^\]]+)\]\((?!docs/|#|\w+:)[^)]+\)")


def site_page(text: str) -> str:
    """Return ``CONTRIBUTING.md`` as a page of the site."""
    text = FILE_OF_THE_REPOSITORY.sub(r"`\1`", text)  # the site does not contain it
    text = GRAPH.sub("![Imports between the rooms](architecture.svg)", text)
    return text.replace("](docs/", "](")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page."""
    if page.file.src_path != "contributing.md":
        return markdown
    return site_page((ROOT / "CONTRIBUTING.md").read_text())
