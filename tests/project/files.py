"""The files at the head of the repository, parsed, and the scripts of `packaging`."""

import importlib.util
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEVELOPMENT = {"test", "lint", "docs"}
EXTRAS = set(PROJECT["optional-dependencies"]) - DEVELOPMENT - {"all"}
"""Extras that install a library for users."""


def script(name):
    """Return a script of `packaging` as a module. The folder is no package: it has the name of a library."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # licences.py imports oldest.py by its name
    spec.loader.exec_module(module)
    return module


def table_of(page, heading):
    """Return the rows of the first table below a heading of a page of the documentation, as lists of cells."""
    text = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = text[text.index("\n|") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
