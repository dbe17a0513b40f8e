"""The documentation lists every page and every public name."""

import contextlib
import importlib
import inspect
import io
import json
import re
from pathlib import Path

import pytest

import eigengame

DOCS = Path(__file__).parents[1] / "docs"

NUMBER = r"\d+\.?\d*(?:e-\d+)?"


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


def test_every_test_that_the_guarantees_name_exists():
    page = (DOCS / "promises.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 20
    sources = {file: (DOCS.parent / file).read_text() for file, _ in named}
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in sources[file]] == []
    # Guarantees that only a slow test checks say so.
    for file, name in named:
        slow = re.search(rf"@pytest\.mark\.slow\n(@.*\n|    .*\n|\)\n)*def {name}\(", sources[file])
        assert bool(slow) == (f"`{file}::{name}` (slow)" in page), name


def test_the_example_of_a_certificate_is_real_output():
    page = (DOCS / "certificate.md").read_text()
    program, printed = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.S)[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {})
    said = output.getvalue()
    assert re.sub(NUMBER, "#", said).split() == re.sub(NUMBER, "#", printed).split()
    # Digits that are not shown may differ between processors.
    found, written = ([float(one) for one in re.findall(NUMBER, text)] for text in (said, printed))
    assert found == pytest.approx(written, rel=0.1)


def test_the_example_of_a_warning_is_real():
    page = (DOCS / "certificate.md").read_text()
    program, shown = re.search(
        r"```python\n([^`]*?rows_with.*?)```\n\n```text\nUncertifiedWarning: (.*?)\n```", page, re.S
    ).groups()
    with pytest.warns(eigengame.UncertifiedWarning) as caught:
        exec(program, {"EigenGamePCA": eigengame.EigenGamePCA})
    (said,) = (str(one.message) for one in caught)
    assert re.sub(NUMBER, "#", said) == re.sub(NUMBER, "#", shown)
    found, written = ([float(one) for one in re.findall(NUMBER, text)] for text in (said, shown))
    assert found == pytest.approx(written, rel=0.1)


def test_the_example_of_a_report_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "report.md").read_text(), re.S)
    exec(program, {})
    page = (tmp_path / "digits.html").read_text()
    (found,) = re.findall(r'id="data">(.*?)</script>', page, re.S)
    scores = json.loads(found)["scores"]
    assert (scores["of"], scores["overlay"]["of"]) == (1500, 297)
    assert scores["ids"][0] == f"digit {scores['rows'][0]}"
    assert scores["time"]["dates"]


def test_the_example_of_a_drifting_process_is_real_output():
    page = (DOCS / "processes.md").read_text()
    program, printed = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.S)[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {"__name__": "program"})
    said = output.getvalue()
    assert re.sub(NUMBER, "#", said).split() == re.sub(NUMBER, "#", printed).split()
    found, written = ([float(one) for one in re.findall(NUMBER, text)] for text in (said, printed))
    # Two of 50 rows may be on the other side of a limit on another processor.
    assert found == pytest.approx(written, rel=0.1, abs=4)
    before, after = (
        re.findall(r"adaptive (\d+)%, static (\d+)%", part) for part in said.split(" 2000:")
    )
    assert max(int(adaptive) for adaptive, _ in before) <= 10 < int(before[-1][1])
    assert after == [("100", "100")] * 2
    assert said.count("largest SPE by column 11") == 2


def test_the_table_of_the_process_page_is_that_of_the_benchmark():
    stored = (DOCS.parent / "benchmarks" / "results" / "tennessee_eastman.md").read_text()
    lines = {
        line.split("|")[1].strip(): line.split("|")[2:-1]
        for line in stored.splitlines()
        if "|" in line
    }
    page = (DOCS / "processes.md").read_text()
    shown = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in page.split("| method |")[1].splitlines()[2:6]
    ]
    for i, cells in enumerate(shown):
        faults = [lines[fault][3 * i].strip() for fault in ("1", "4", "14", "21")]
        means = [cell.strip() for cell in lines["mean"][3 * i : 3 * i + 3]]
        assert cells == [*means[:2], f"{means[2].split()[0]} of 21", *faults]


def test_the_guide_of_the_report_names_every_argument():
    guide = (DOCS / "report.md").read_text()
    named = set(inspect.signature(eigengame.write_report).parameters)
    assert {name for name in named if f"`{name}" not in guide and f"{name}=" not in guide} <= {
        "model",
        "path",
    }
