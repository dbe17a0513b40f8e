"""Version, citation, classifiers, workflow and policy agree with pyproject.toml and with the code."""

import os
import re

import pytest

import eigengame
from eigengame import model_file
from eigengame.layerwise import files as layer_files
from eigengame.solver.passes import run_record
from tests.project.files import EXTRAS, PROJECT, ROOT, script, table_of

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text())


def test_the_version_of_the_metadata_is_that_of_the_package():
    metadata = pytest.importorskip("hatchling.metadata.core", reason="hatchling is not installed")
    from hatchling.plugin.manager import PluginManager

    assert metadata.ProjectMetadata(str(ROOT), PluginManager()).version == eigengame.__version__


def test_the_citation_has_the_version_licence_and_paper():
    cited = read_yaml("CITATION.cff")
    assert str(cited["version"]) == eigengame.__version__
    assert cited["license"] == PROJECT["license"]
    (paper,) = cited["references"]
    assert paper["title"] == "EigenGame: PCA as a Nash Equilibrium"
    names = [one["family-names"] for one in paper["authors"]]
    assert names == ["Gemp", "McWilliams", "Vernade", "Graepel"]
    assert paper["year"] == 2021


def versions_of_python():
    """Return the versions of Python that the classifiers name."""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in CLASSIFIERS
    )
    return [one[1] for one in found if one]


CLASSIFIERS = PROJECT["classifiers"]


def test_classifiers_begin_with_the_oldest_python_and_have_no_gap():
    versions = versions_of_python()
    assert f">={versions[0]}" == PROJECT["requires-python"]
    minors = [int(one.split(".")[1]) for one in versions]
    assert minors == list(range(minors[0], minors[0] + len(minors)))


def test_the_workflow_runs_the_script_of_ci_with_every_declared_python():
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == versions_of_python()
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    (oldest,) = (one for one in jobs["oldest"]["steps"] if "setup-python" in one.get("uses", ""))
    assert oldest["with"]["python-version"] == versions_of_python()[0]


def test_every_make_target_that_files_of_the_project_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    places = [".ci/run", ".github/workflows/ci.yml", "docs/stability.md", "CONTRIBUTING.md"]
    text = "\n".join((ROOT / place).read_text() for place in places)
    named = set(re.findall(r"(?:^|`|run: )make ([a-z-]+)", text, re.M))
    assert {"lint", "test", "test-oldest"} <= named <= targets


def test_issue_templates_have_names_and_labels():
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert templates
    for path in templates:
        head = yaml.safe_load(path.read_text().split("---\n")[1])
        assert head.keys() == {"name", "about", "labels"}, path.name


def test_the_policy_states_the_formats_of_files_that_the_code_writes():
    rows = {row[0]: row[1:] for row in table_of("stability.md", "Model files and checkpoints")}
    formats = {
        "model file": model_file.FORMAT,
        "file of several layers (`fit_layers`)": layer_files.FORMAT,
        "checkpoint folder": run_record.FORMAT,
    }
    known = {
        name: [str(newest), ", ".join(str(i + 1) for i in range(newest))]
        for name, newest in formats.items()
    }
    assert rows == known


def test_the_policy_states_the_declared_versions():
    rows = {row[0]: row[1] for row in table_of("stability.md", "Supported versions")}
    versions = versions_of_python()
    assert rows["Python"] == f"{versions[0]} to {versions[-1]}"
    minima = script("oldest").minimum_versions(PROJECT["dependencies"])
    assert rows["JAX"] == f"{minima['jax']} and later"
    assert rows["scikit-learn"] == f"{minima['scikit-learn']} and later"


def test_the_policy_lists_every_extra_with_its_libraries():
    oldest = script("oldest")
    rows = {row[0].strip("`"): row[1] for row in table_of("stability.md", "Extras")}
    assert rows.keys() >= EXTRAS | {"all"}
    for extra in EXTRAS:
        listed = PROJECT["optional-dependencies"][extra]
        assert rows[extra] == ", ".join(oldest.parsed(one)[0] for one in listed)
    (every,) = PROJECT["optional-dependencies"]["all"]
    left_out = EXTRAS - set(re.findall(r"[a-z0-9]+", every.split("[")[1]))
    assert rows["all"] == "the above, without " + " and ".join(
        f"`{one}`" for one in rows if one in left_out
    )
