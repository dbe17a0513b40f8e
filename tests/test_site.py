"""The pages of the site: names on the API pages, tables from results, samples that run, no other host."""

import ast
import contextlib
import importlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "eigengame"

NOT_CALLED_DIRECTLY = {
    "cli": "commands, on the page of the command line",
    "dask": "called by `fit` for Dask data",
    "estimator": "its class is a name of the top level",
    "export": "called by the methods of the estimator",
    "layerwise": "its names are those of the top level",
    "linalg": "array operations",
    "model": "called by the methods of the estimator",
    "model_file": "called by `save` and `load`",
    "sharding": "placement by the argument `mesh`; the page has the one function that users call",
    "solver": "called by `fit`; its results are names of the top level",
}
"""Rooms without an API page of all their names, with the reason."""

NUMBER = r"\d+\.?\d*(?:e-\d+)?"


def script(name):
    """Return a module of the folder ``docs``."""
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


measured, other_hosts, reexports = map(script, ("measured", "other_hosts", "reexports"))
both_themes, contributing_page = script("both_themes"), script("contributing_page")


def public_rooms():
    """Return the subpackages and modules that users import from."""
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    return sorted(room for room in rooms - set(NOT_CALLED_DIRECTLY) if not room.startswith("_"))


def public_names(room):
    """Return the public names of a subpackage or a module."""
    if (PACKAGE / room).is_dir():
        return set(reexports.public_names(f"eigengame.{room}"))
    body = ast.parse((PACKAGE / f"{room}.py").read_text()).body
    defined = (one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef))
    return {name for name in defined if not name.startswith("_")}


def documented(room):
    """Return the names of a room on the API pages: all of them, if a page has the whole room."""
    pages = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    found = re.findall(rf"^::: eigengame\.{room}(\S*)$", pages, re.M)
    whole = {".*", ""} if (PACKAGE / room).is_dir() else {""}
    return public_names(room) if whole & set(found) else {name.removeprefix(".") for name in found}


@pytest.mark.parametrize("room", public_rooms())
def test_every_public_name_of_a_subpackage_is_on_an_api_page(room):
    assert public_names(room)
    assert public_names(room) - documented(room) == set()


def test_every_room_without_an_api_page_exists():
    assert {name for name in NOT_CALLED_DIRECTLY if not list(PACKAGE.glob(f"{name}*"))} == set()


def test_every_dotted_name_in_the_guides_exists():
    missing = []
    for page in DOCS.glob("*.md"):
        for name in set(re.findall(r"(?<![\w./])eigengame(?:\.[A-Za-z_]\w*)+", page.read_text())):
            if not exists(name):
                missing.append(f"{page.name}: {name}")
    assert missing == []


def exists(name):
    """Return whether a dotted name is a module or an attribute, or a file of the package."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for at, part in enumerate(parts[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:at]))
            except ModuleNotFoundError:
                return False
    return True


@pytest.mark.parametrize("path", measured.written(), ids=lambda path: path.name)
def test_tables_of_results_are_up_to_date(path):
    assert path.read_text() == measured.written()[path], "run python docs/measured.py"


def test_the_table_of_solvers_follows_the_results(monkeypatch):
    row = {
        "data": "wide", "peer": "lobpcg", "scale": "full", "status": "ok", "best_s": 0.125, "streak_32": 32,
        "asked": 32, "memory_mb": {"own": 7.4}, "date": "2027-01-02T10:00", "cpu": "Other", "threads": 8,
    }  # fmt: skip
    rows = [one for one in measured.stored() if (one["data"], one["peer"]) != ("wide", "lobpcg")]
    monkeypatch.setattr(measured, "stored", lambda: [*rows, row])
    (line,) = re.findall(r"^\| SciPy `lobpcg`.*$", measured.peers(), re.M)
    assert "| **0.12 s**, 32/32, 7 MB |" in line
    assert " 2026 to 2 January 2027" in measured.peers()


def samples(page):
    """Return pairs of a Python sample and the text that follows it, or None."""
    found = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", page.read_text(), re.S | re.M
    )
    return [(program, printed or None) for program, printed in found]


@pytest.mark.parametrize("name", ["quickstart", "streaming", "explained"])
def test_the_samples_of_a_page_print_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    shown = samples(DOCS / f"{name}.md")
    # On the page of streams only the first sample is a whole program.
    for program, printed in shown[:1] if name == "streaming" else shown:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(program, names)
        if printed is not None:
            said = output.getvalue()
            assert re.sub(NUMBER, "#", said).split() == re.sub(NUMBER, "#", printed).split()
            # Rounding errors, and the last digit, may differ between processors.
            pairs = [[float(one) for one in re.findall(NUMBER, text)] for text in (said, printed)]
            assert pairs[0] == pytest.approx(pairs[1], rel=0.4, abs=1e-8)


@pytest.mark.parametrize(
    "page", [DOCS / "index.md", ROOT / "README.md"], ids=lambda path: path.stem
)
def test_the_first_samples_that_a_reader_sees_run(page):
    for program, _ in samples(page):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(program, {})
        assert output.getvalue()


def test_every_figure_has_a_light_and_a_dark_form():
    pages = [path.read_text() for path in DOCS.glob("*.md")]
    shown = {one[1] for text in pages for one in both_themes.FIGURE.findall(text)}
    assert len(shown) >= 5
    drawn = {f"figures/{path.stem}" for path in (DOCS / "figures").glob("*-*.svg")}
    assert drawn == {f"{one}-{theme}" for one in shown for theme in ("light", "dark")}
    text = both_themes.on_page_markdown("![A](figures/stream-light.svg)")
    assert (
        text == "![A](figures/stream-light.svg#only-light)![A](figures/stream-dark.svg#only-dark)"
    )


def test_the_contributing_page_has_the_drawing_and_links_within_the_site():
    page = contributing_page.site_page((ROOT / "CONTRIBUTING.md").read_text())
    assert "![Imports between the rooms](architecture.svg)" in page
    assert "mermaid" not in page
    links = [one for one in re.findall(r"\]\(([^)#]+)", page) if "://" not in one]
    assert [one for one in links if not (DOCS / one).exists()] == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://unpkg.com/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link href="//cdn.example/x.css" rel="stylesheet">',
        "<img alt='x' src='http://other.example/x.png'>",
        "body { background: url(https://other.example/x.png) }",
        '@import "https://other.example/x.css";',
    ],
)
def test_what_a_page_loads_from_another_host_is_found(text):
    assert len(other_hosts.loaded_from(text)) == 1


def test_links_and_own_files_are_not_taken_for_other_hosts():
    text = (
        '<a href="https://optax.readthedocs.io">optax</a> <img src="../figures/x.svg"> url(x.svg)'
    )
    assert other_hosts.loaded_from(text) == []


def test_a_built_site_loads_nothing_from_another_host(tmp_path):
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material")
    config = importlib.import_module("mkdocs.config").load_config(
        str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True
    )
    build.build(config)
    assert (tmp_path / "index.html").exists()
    assert list(other_hosts.found(tmp_path)) == []
