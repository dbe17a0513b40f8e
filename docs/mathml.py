"""MkDocs hook: replaces the LaTeX of formulas by MathML, which browsers render without a script or a network.

`pymdownx.arithmatex` marks formulas (``$...$`` and ``$$...$$``), on the pages and in the docstrings of the API.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return the HTML of a page with its formulas as MathML."""

    def replace(match: re.Match[str]) -> str:
        latex = unescape(match.group(2)).strip()
        mathml = convert(latex, display="block" if match.group(1) == "div" else "inline")
        if "\\" in mathml:  # an unknown command is copied as it is
            raise ValueError(f"{page.file.src_path}: cannot convert {latex!r} to MathML: {mathml}")
        return mathml

    return FORMULA.sub(replace, html)
