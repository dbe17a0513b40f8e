"""MkDocs hook: shows the light figure of ``docs/figures`` on light pages, and the dark one on dark pages.

Pages refer to ``figures/NAME-light.svg``, which every renderer of Markdown shows; ``docs/figures/style.py`` writes
both.
"""

from __future__ import annotations

import re
from typing import Any

FIGURE = re.compile(r"!\[([^\]]*)\]\(((?:\.\./)*figures/[\w-]+)-light\.svg\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with each figure twice, one of them hidden by the style sheet of the theme."""
    return FIGURE.sub(r"![\1](\2-light.svg#only-light)![\1](\2-dark.svg#only-dark)", markdown)
