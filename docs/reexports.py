"""MkDocs hook: expands ``::: eigengame.sources.*`` on an API page to one directive for each public name.

The public names of a subpackage are those that its ``__init__.py`` defines, or imports with ``as`` the same name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"


def public_names(package: str) -> Iterator[str]:
    """Yield the public names of a package, in the order of its ``__init__.py``."""
    path = SOURCE.joinpath(*package.split("."), "__init__.py")
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names if one.asname == one.name)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with its directives expanded."""

    def expand(match: re.Match[str]) -> str:
        package = match.group(1)
        return "\n\n".join(f"::: {package}.{name}" for name in public_names(package))

    return re.sub(r"^::: (\S+)\.\*$", expand, markdown, flags=re.M)
