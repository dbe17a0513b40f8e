"""The HTML page: template, style sheet, scripts and data in one string."""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from typing import Any

SCRIPTS = (
    "text.js",
    "elements.js",
    "scales.js",
    "dates.js",
    "tip.js",
    "chart.js",
    "variance.js",
    "marks.js",
    "paint.js",
    "scatter.js",
    "scores.js",
    "pictures.js",
    "loadings.js",
    "components.js",
    "download.js",
    "layers.js",
    "table.js",
    "main.js",
)
"""Scripts in order: each uses definitions of those before it."""


def render_page(title: str, data: dict[str, Any]) -> str:
    """Return the complete page, which loads nothing from elsewhere."""
    parts = {
        "title": html.escape(title),
        "style": read_asset("page.css"),
        "data": as_script_json(data),
        "script": "\n".join(read_asset(name) for name in SCRIPTS),
    }
    # One substitution, so that a title that contains a placeholder is not expanded.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_asset("page.html"))


def as_script_json(data: Any) -> str:
    """Return JSON that is safe inside a script element: `</script>` in a label cannot end it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def read_asset(name: str) -> str:
    """Return the text of a file of the page."""
    folder = resources.files("eigengame.report").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")
