"""The pages and notebooks of the gallery agree with the examples."""

import ast
import json
import re

import pytest
from examples import build_gallery as build
from PIL import Image

from tests.examples.conftest import ROOT

NAMES = list(build.EXTRAS)
GALLERY = ROOT / "docs" / "gallery"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_text_and_the_code_of_the_example(name):
    example = build.read_example(name)
    stored = (GALLERY / f"{name}.md").read_text()
    expected = build.page(example, [""] * len(example.cells))
    assert build.without_output(stored) == expected, f"run: python examples/build_gallery.py {name}"
    assert "```text\ndata: " in stored


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_has_the_cells_of_the_example(name):
    stored = json.loads((GALLERY / f"{name}.ipynb").read_text())
    assert stored == build.notebook(build.read_example(name))
    ids = [cell["id"] for cell in stored["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids)


@pytest.mark.parametrize("name", NAMES)
def test_cells_together_are_the_whole_program(name):
    example = build.read_example(name)
    source = (ROOT / "examples" / f"{name}.py").read_text()
    program = ast.parse("\n".join(cell.code for cell in example.cells))
    assert ast.dump(program) == ast.dump(ast.Module(ast.parse(source).body[1:], []))
    assert 40 <= len(source.splitlines()) <= 120


def test_the_overview_lists_every_example_with_a_small_figure():
    stored = (ROOT / "docs" / "gallery.md").read_text()
    assert stored == build.overview([build.read_example(name) for name in NAMES])
    for name in NAMES:
        for path, width in ((GALLERY, 800), (GALLERY / "thumbnails", 360)):
            file = path / f"{name}.png"
            with Image.open(file) as image:
                assert image.width >= width
            assert file.stat().st_size <= 100_000


def test_every_example_is_in_the_gallery():
    others = {"activations", "build_gallery", "demo"}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {*NAMES, *others}


def test_output_is_what_the_cells_print(tmp_path):
    cells = [build.Cell("", "x = 2"), build.Cell("Twice.", "print(2 * x)")]
    example = build.Example("digits", "Title", "Introduction.", cells)
    printed = build.run(example, tmp_path)
    assert printed == ["", "4"]
    page = build.page(example, printed)
    assert page.endswith("Twice.\n\n```python\nprint(2 * x)\n```\n\n```text\n4\n```\n")
