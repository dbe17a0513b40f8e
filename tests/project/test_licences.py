"""The page of licences lists the dependencies of pyproject.toml, with what installed packages declare."""

import re
from email.message import Message

import pytest

from tests.project.files import EXTRAS, PROJECT, ROOT, script, table_of

oldest, licences = script("oldest"), script("licences")


def test_the_page_lists_every_required_package():
    names = [row[0] for row in table_of("licences.md", "Required")]
    assert names == sorted(oldest.minimum_versions(PROJECT["dependencies"]))


def test_the_page_lists_every_optional_package_of_users():
    rows = [(row[0].strip("`"), row[1]) for row in table_of("licences.md", "Optional")]
    expected = {
        (extra, name)
        for extra in EXTRAS
        for name in oldest.minimum_versions(PROJECT["optional-dependencies"][extra])
    }
    assert set(rows) == expected
    assert len(rows) == len(expected)


def test_no_package_is_listed_without_a_licence():
    page = (ROOT / "docs" / "licences.md").read_text()
    assert "not declared" not in page
    assert not re.search(r"\|\s*\|$", page, re.M)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([("License-Expression", "MIT"), ("License", "other")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: BSD License")], "BSD License"),
        ([("Classifier", "License :: OSI Approved"), ("License", "Zlib\nlong text")], "Zlib"),
        ([("License-File", "LICENSE.md"), ("License-File", "AUTHORS")], "see its LICENSE.md"),
        ([], "not declared"),
    ],
)
def test_a_licence_is_read_from_the_metadata(monkeypatch, fields, text):
    about = Message()
    for name, value in fields:
        about[name] = value
    monkeypatch.setattr(licences.importlib.metadata, "metadata", lambda name: about)
    assert licences.licence("x") == text


def test_the_page_of_this_environment_has_the_same_required_packages(monkeypatch):
    # Optional packages may be missing here.
    text = licences.page(PROJECT | {"optional-dependencies": {}})
    stored = (ROOT / "docs" / "licences.md").read_text()
    head = text.split("## Required by these")[0]
    assert re.sub(r"\| [^|]+ \|$", "", head, flags=re.M) == re.sub(
        r"\| [^|]+ \|$", "", stored.split("## Required by these")[0], flags=re.M
    )
