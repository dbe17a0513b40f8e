"""Write docs/licences.md: the licences of the dependencies, read from the metadata of the installed packages.

``pip install -e ".[all,pgen,cells]"``, then ``python packaging/licences.py``.
"""

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable

from oldest import PYPROJECT, normal, parsed, requirements

PAGE = PYPROJECT.parent / "docs" / "licences.md"
DEVELOPMENT = ("test", "lint", "docs")
HEAD = """\
# Licences of dependencies

The package is licensed under Apache-2.0. It contains no code of its dependencies: they are installed as packages of
their own. `python packaging/licences.py` writes this page from the metadata of installed packages, which state what
their authors declared. The licence files in the packages are authoritative, also for libraries that binary builds
contain.
"""


def licence(name: str) -> str:
    """Return the licence that a package declares: by an expression, classifiers, a text, or the name of a file."""
    about = importlib.metadata.metadata(name)
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    classified = [
        one.rpartition(" :: ")[2]
        for one in about.get_all("Classifier", [])
        if one.startswith("License :: ") and not one.endswith(":: OSI Approved")
    ]
    if classified:
        return ", ".join(classified)
    text = str(about.get("License") or "").strip()
    if text:
        return text.splitlines()[0]
    files = [one for one in about.get_all("License-File", []) if "licen" in one.lower()]
    return f"see its {' and '.join(files)}" if files else "not declared"


def direct(names: Iterable[str]) -> dict[str, str]:
    """Return the licence of each of these packages, by their names in alphabetical order."""
    return {name: licence(name) for name in sorted(set(names))}


def required_by(name: str, found: set[str]) -> set[str]:
    """Add the packages that a package requires without extras, and what these require in turn."""
    for one in importlib.metadata.requires(name) or ():
        requirement, _, marker = one.partition(";")
        other = normal(re.split(r"[\s\[<>=!~(]", requirement.strip())[0])
        if "extra" in marker or other in found or not installed(other):
            continue
        found.add(other)
        required_by(other, found)
    return found


def installed(name: str) -> bool:
    """Return whether a package is installed; others belong to other systems or versions of Python."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def extras_of(project: dict) -> dict[str, list[str]]:
    """Return the packages of each extra for users, without extras that only name other extras."""
    return {
        extra: [normal(parsed(one)[0]) for one in listed]
        for extra, listed in project["optional-dependencies"].items()
        if extra not in DEVELOPMENT and not any(one.startswith("eigengame[") for one in listed)
    }


def page(project: dict) -> str:
    """Return the page."""
    core = [normal(parsed(one)[0]) for one in requirements(project, ())]
    further: set[str] = set()
    for name in core:
        required_by(name, further)
    lines = [HEAD, "## Required", "", "| package | licence |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in direct(core).items()]
    lines += ["", "## Required by these", "", "| package | licence |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in direct(further - set(core)).items()]
    lines += ["", "## Optional", "", "| extra | package | licence |", "|---|---|---|"]
    for extra, names in extras_of(project).items():
        lines += [f"| `{extra}` | {name} | {text} |" for name, text in direct(names).items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or name the package that is missing."""
    try:
        text = page(tomllib.loads(PYPROJECT.read_text())["project"])
    except importlib.metadata.PackageNotFoundError as error:
        sys.exit(f'{error.name} is not installed: pip install -e ".[all,pgen,cells]"')
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
