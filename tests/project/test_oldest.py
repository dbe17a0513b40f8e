"""The script that pins every dependency to its minimum version."""

import pytest

from tests.project.files import PROJECT, script

oldest = script("oldest")


def test_every_dependency_of_the_tests_is_pinned_to_its_minimum(capsys):
    oldest.main(["test"])
    lines = capsys.readouterr().out.splitlines()
    listed = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    assert len(lines) == len(set(lines))
    assert set(lines) == {"{}=={}".format(*pinned(one)) for one in listed}


def pinned(requirement):
    """Return the normalised name and the minimum of a requirement, by splitting it."""
    name, _, rest = requirement.partition(">=")
    return name.split("[")[0].lower(), rest.split(",")[0]


def test_every_requirement_of_every_extra_has_a_minimum_and_only_one():
    every = list(oldest.requirements(PROJECT, PROJECT["optional-dependencies"]))
    assert len(oldest.minimum_versions(every)) > 20


@pytest.mark.parametrize("requirement", ["numpy", "numpy==2.0", "numpy<3", "numpy >= 2 ; extra"])
def test_a_requirement_without_a_minimum_is_refused(requirement):
    with pytest.raises(ValueError, match="has no minimum version"):
        oldest.parsed(requirement)


def test_two_minima_of_one_package_are_refused():
    with pytest.raises(ValueError, match="two minimum versions: 1 and 2"):
        oldest.minimum_versions(["bed_reader>=1", "Bed-Reader>=2"])


def test_extras_that_name_extras_are_followed():
    project = {
        "name": "x",
        "dependencies": ["a>=1"],
        "optional-dependencies": {"one": ["b[z]>=2,<3"], "all": ["x[one]"]},
    }
    found = oldest.minimum_versions(oldest.requirements(project, ["all"]))
    assert found == {"a": "1", "b": "2"}
