"""The page itself: one template, one style, a few scripts and the data, written into one file."""

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
    "tip.js",
    "chart.js",
    "variance.js",
    "paint.js",
    "scores.js",
    "pictures.js",
    "loadings.js",
    "components.js",
    "layers.js",
    "table.js",
    "main.js",
)
"""In this order; each uses what stands in those before it."""


def filled(title: str, data: dict[str, Any]) -> str:
    """Return the page: nothing in it is fetched from anywhere."""
    parts = {
        "title": html.escape(title),
        "style": _asset("page.css"),
        "data": as_script_json(data),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
    }
    # In one go, so that a title that looks like a place to fill stays a title.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _asset("page.html"))


def as_script_json(data: Any) -> str:
    """Return JSON that no HTML can begin or end in: `</script>` in a label stays a label."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    folder = resources.files("eigengame.report").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")
