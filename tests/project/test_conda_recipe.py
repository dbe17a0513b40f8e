"""The conda recipe requires what pyproject.toml requires."""

import pytest

import eigengame
from tests.project.files import EXTRAS, PROJECT, ROOT, script

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
oldest = script("oldest")


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())


def minima(*extras, core=False):
    """Return the minimum versions of the libraries of some extras."""
    project = PROJECT if core else PROJECT | {"dependencies": []}
    return oldest.minimum_versions(oldest.requirements(project, extras))


def listed(lines):
    """Return the requirements of a recipe, such as ``numpy >=2.0``, as a dictionary."""
    return dict(line.split(" >=") for line in lines)


def test_the_recipe_has_the_name_version_and_licence_of_the_project(recipe):
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["context"]["version"] == eigengame.__version__
    assert recipe["about"]["license"] == PROJECT["license"]
    assert [recipe["about"]["license_file"]] == PROJECT["license-files"]


def test_the_recipe_requires_what_the_package_and_its_command_line_require(recipe):
    python = PROJECT["requires-python"].removeprefix(">=")
    assert listed(recipe["requirements"]["run"]) == minima("cli", core=True) | {"python": python}


def test_the_recipe_limits_the_versions_of_all_other_optional_libraries(recipe):
    expected = minima(*(EXTRAS - {"cli"}))
    assert listed(recipe["requirements"]["run_constraints"]) == expected


def test_the_recipe_makes_the_same_commands(recipe):
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
