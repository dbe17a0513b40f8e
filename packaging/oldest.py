"""Print pip constraints that pin every dependency to the minimum version of pyproject.toml.

``python packaging/oldest.py > constraints.txt`` is the first step of ``make test-oldest``. It needs the standard
library only, because it runs before anything is installed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[[\w,-]+\])?\s*>=\s*(?P<minimum>[\d.]+)(\s*,\s*<[\d.]+)?"
)


def parsed(requirement: str) -> tuple[str, str]:
    """Return the name and the minimum version of a requirement such as ``dask[array]>=2024.12``."""
    match = REQUIREMENT.fullmatch(requirement.strip())
    if match is None:
        raise ValueError(f"{requirement!r} has no minimum version: write it as name>=version.")
    return match["name"], match["minimum"]


def normal(name: str) -> str:
    """Return the normalised name of a distribution: lower case, with hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def minimum_versions(requirements: Iterable[str]) -> dict[str, str]:
    """Return the minimum version of each distribution; two different ones raise ValueError."""
    found: dict[str, str] = {}
    for name, minimum in map(parsed, requirements):
        if found.setdefault(normal(name), minimum) != minimum:
            raise ValueError(
                f"{name} has two minimum versions: {found[normal(name)]} and {minimum}."
            )
    return found


def requirements(project: dict, extras: Iterable[str]) -> Iterator[str]:
    """Yield the requirements of a ``[project]`` table and of its extras; references to itself are followed."""
    yield from project["dependencies"]
    optional = project["optional-dependencies"]
    for extra in extras:
        for requirement in optional[extra]:
            own = re.fullmatch(rf"{project['name']}\[([\w,-]+)\]", requirement)
            if own is None:
                yield requirement
            else:
                yield from requirements({**project, "dependencies": []}, own[1].split(","))


def main(extras: list[str]) -> None:
    """Print the constraints of the dependencies and of these extras."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    for name, minimum in sorted(minimum_versions(requirements(project, extras)).items()):
        print(f"{name}=={minimum}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["test"])
