"""The wheel and the source distribution contain what they should, and the wheel works in an empty environment."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import eigengame
from tests.project.files import PROJECT, ROOT

pytest.importorskip("hatchling", reason="hatchling is not installed")
PACKAGE = Path(eigengame.__file__).parent
NAME = f"eigengame-{eigengame.__version__}"


def built(root, folder, kind):
    """Build one distribution of a source tree, without an environment of its own, and return its path."""
    code = f"import hatchling.build as build; print(build.build_{kind}({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True
    )
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return the folder of an unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built(ROOT, folder, "sdist")) as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_of_the_package():
    """Return the files of the package in this checkout, by their names in a wheel."""
    found = (path for path in PACKAGE.rglob("*") if path.is_file())
    return {
        f"eigengame/{path.relative_to(PACKAGE).as_posix()}"
        for path in found
        if "__pycache__" not in path.parts
    }


def test_the_wheel_has_the_package_its_licence_and_nothing_else(wheel):
    folder = f"{NAME}.dist-info"
    about = {f"{folder}/{one}" for one in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert names(wheel) == files_of_the_package() | about | {f"{folder}/licenses/LICENSE"}


def test_the_wheel_has_types_and_the_files_of_the_report(wheel):
    endings = {
        Path(one).suffix for one in names(wheel) if one.startswith("eigengame/report/assets/")
    }
    assert endings == {".html", ".css", ".js"}
    assert "eigengame/py.typed" in names(wheel)
    assert not [
        one for one in names(wheel) if one.startswith(("tests", "benchmarks", "reproduction"))
    ]


def test_the_metadata_of_the_wheel_are_those_of_the_project(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{NAME}.dist-info/METADATA").decode()
    assert f"\nVersion: {eigengame.__version__}\n" in text
    assert f"\nLicense-Expression: {PROJECT['license']}\n" in text
    assert set(re.findall(r"^Provides-Extra: (.*)$", text, re.M)) == set(
        PROJECT["optional-dependencies"]
    )
    required = re.findall(r"^Requires-Dist: ([^;\n]*)$", text, re.M)
    assert sorted(required) == sorted(PROJECT["dependencies"])


def test_the_source_distribution_has_tests_scripts_and_licence(unpacked):
    for name in (
        "LICENSE",
        "CITATION.cff",
        "CHANGELOG.md",
        "Makefile",
        "tests/oracle.py",
        "tests/previous/model.safetensors",
        "packaging/oldest.py",
        "benchmarks/peers.py",
        "docs/stability.md",
    ):
        assert (unpacked / name).is_file(), name
    # Results and pictures of the reproduction are many megabytes.
    assert not (unpacked / "docs" / "reproduction").exists()
    assert not [path for path in unpacked.rglob("*") if path.name.startswith(".venv")]


def test_a_wheel_of_the_source_distribution_equals_that_of_the_checkout(unpacked, wheel, tmp_path):
    again = built(unpacked, tmp_path, "wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert one.namelist() == other.namelist()
        assert all(one.read(name) == other.read(name) for name in one.namelist())


class Environment:
    """An environment with the wheel, which knows nothing of this checkout."""

    def __init__(self, folder, wheel):
        self.folder, self.wheel = folder, wheel
        self.python = folder / "env" / "bin" / "python"
        venv.create(folder / "env", with_pip=True)

    def install(self, extra=""):
        """Install the wheel with an extra such as ``[cli]``."""
        self.run(self.python, "-m", "pip", "install", "-q", f"{self.wheel}{extra}")

    def run(self, *command, check=True):
        """Run a command in another folder than the repository."""
        free = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=work, env=free, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done


FIT = """
import json, sys, time
start = time.perf_counter()
import eigengame
seconds = time.perf_counter() - start
heavy = sorted({"jax", "numpy", "scipy", "sklearn"} & set(sys.modules))
from sklearn.datasets import load_digits
pca = eigengame.EigenGamePCA(8).fit(load_digits().data)
print(json.dumps({
    "file": eigengame.__file__, "seconds": seconds, "heavy": heavy,
    "certified": bool((pca.certificate_.angle <= 0.05).all()), "status": pca.outcome_.status.name,
}))
"""


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_without_extras_and_then_with_the_command_line(
    wheel, tmp_path
):
    environment = Environment(tmp_path, wheel)
    environment.install()
    found = json.loads(environment.run(environment.python, "-c", FIT).stdout)
    assert found["file"].startswith(str(environment.folder))
    assert found["heavy"] == []
    assert found["seconds"] < 1  # it takes some milliseconds; JAX alone takes longer than this
    assert found["certified"], found
    command = environment.python.parent / "eigengame"
    done = environment.run(command, "--help", check=False)
    assert done.returncode == 1
    assert 'pip install "eigengame[cli]"' in done.stderr

    environment.install("[cli]")
    rows = np.random.default_rng(0).normal(size=(200, 6)) * np.arange(6, 0, -1)
    np.save(tmp_path / "work" / "file.npy", rows)
    environment.run(command, "fit", "file.npy", "-k", "3", "-o", "m.safetensors")
    model = eigengame.EigenGamePCA.load(tmp_path / "work" / "m.safetensors")
    exact = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:3]
    cosines = np.abs((model.components_ * exact).sum(axis=1))
    assert (cosines > np.cos(0.05)).all()
