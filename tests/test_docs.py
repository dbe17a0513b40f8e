"""The documentation lists every page and every public name."""

import importlib
import re
from pathlib import Path

import eigengame

DOCS = Path(__file__).parents[1] / "docs"


def documented():
    """Return the names on the API pages."""
    pages = (path.read_text() for path in (DOCS / "api").glob("*.md"))
    return [name for text in pages for name in re.findall(r"^::: (\S+)$", text, re.M)]


def defined(name):
    """Return whether a dotted name is a module, or an attribute of one; ``package.*`` is all of a package."""
    name = name.removesuffix(".*")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True


def test_every_public_name_is_on_the_api_page():
    assert {f"eigengame.{name}" for name in eigengame.PUBLIC} <= set(documented())


def test_every_name_on_the_api_pages_exists():
    assert [name for name in documented() if not defined(name)] == []


def test_every_page_is_in_the_navigation():
    listed = re.findall(r": (\S+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
