"""Run the examples, and write the gallery of the documentation: pages, figures and notebooks from one source.

``python examples/build_gallery.py`` rebuilds all, ``python examples/build_gallery.py digits cells`` some. The
docstring of an example is its introduction; ``# %%`` begins a cell, and the comment lines after it are its text.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXTRAS = {
    "digits": "plots",
    "larger_than_memory": "plots",
    "cells": "plots,hdf5",
    "genotypes": "plots,genotypes",
    "fields": "plots,xarray",
    "process": "plots",
    "topics": "plots",
    "three_sites": "plots",
    "transformer_layers": "plots",
    "certificate": "plots",
}
"""The examples in the order of the gallery, and the extras of the package that each needs."""

OUTPUT = re.compile(r"```text\n.*?\n```\n\n", re.S)


class Cell(NamedTuple):
    """A part of an example: text in Markdown, and code."""

    text: str
    code: str


class Example(NamedTuple):
    """An example: its name, title, introduction and cells."""

    name: str
    title: str
    introduction: str
    cells: list[Cell]


def read_example(name: str) -> Example:
    """Return the example in `examples/NAME.py`."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    title, _, introduction = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    cells = []
    for part in re.split(r"^# %%\n", source, flags=re.M)[1:]:
        text, code = re.match(r"((?:#[^\n]*\n)*)(.*)", part, re.S).groups()  # type: ignore[union-attr]
        cells.append(Cell(re.sub(r"^# ?", "", text, flags=re.M).strip(), code.strip()))
    return Example(name, title.rstrip("."), introduction.strip(), cells)


def run(example: Example, folder: Path) -> list[str]:
    """Run the cells in a folder, which receives the figure, and return what each prints."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    with contextlib.chdir(folder):
        for cell in example.cells:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(cell.code, f"{example.name}.py", "exec"), namespace)
            printed.append(output.getvalue().strip())
    return printed


def page(example: Example, printed: list[str]) -> str:
    """Return the page of an example in Markdown."""
    name = example.name
    needs = f'`pip install "eigengame[{EXTRAS[name]}]"`'
    needs += " and PyTorch" if name == "transformer_layers" else ""
    parts = [
        f"# {example.title}",
        example.introduction,
        f"Run it with `python examples/{name}.py`, or as a [notebook]({name}.ipynb). It needs {needs}.",
    ]
    for cell, output in zip(example.cells, printed, strict=True):
        parts += [cell.text, f"```python\n{cell.code}\n```", output and f"```text\n{output}\n```"]
        if "savefig(" in cell.code:
            parts.append(f"![{example.title}]({name}.png)")
    return "\n\n".join(filter(None, parts)) + "\n"


def without_output(text: str) -> str:
    """Return a page without the printed output, which may differ between machines."""
    return OUTPUT.sub("", text)


def notebook(example: Example) -> dict[str, Any]:
    """Return the notebook of an example (nbformat 4.5), without output."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str, **fields: Any) -> None:
        identity = f"{example.name}-{len(cells)}"
        lines = text.splitlines(keepends=True)
        cells.append({"cell_type": kind, "id": identity, "metadata": {}, "source": lines} | fields)

    add("markdown", f"# {example.title}\n\n{example.introduction}")
    for cell in example.cells:
        if cell.text:
            add("markdown", cell.text)
        add("code", cell.code, execution_count=None, outputs=[])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def overview(examples: list[Example]) -> str:
    """Return the page with a small figure of each example."""
    lines = [
        "# Gallery",
        "",
        "Short programs, each with its printed output and its figure. They use data that comes with scikit-learn",
        "or is in the folder `EIGENGAME_DATA`, and otherwise generated data; each prints which.",
        "`make gallery` runs all of them and writes these pages.",
        "",
    ]
    entries = []
    for name, title, _, _ in examples:
        image = f"[![{title}](gallery/thumbnails/{name}.png)](gallery/{name}.md)"
        entries.append(f"{image}<br>**[{title}](gallery/{name}.md)**")
    rows = [f"| {' | '.join(entries[i : i + 2])} |" for i in range(0, len(entries), 2)]
    return "\n".join([*lines, rows[0], "|---|---|", *rows[1:]]) + "\n"


def write_figures(name: str, figure: Path) -> None:
    """Write the figure and its thumbnail, with 256 colours."""
    from PIL import Image

    with Image.open(figure) as opened:
        picture = opened.convert("RGB")
    small = picture.resize(
        (360, round(360 * picture.height / picture.width)), Image.Resampling.LANCZOS
    )
    for path, image in ((DOCS / "gallery", picture), (DOCS / "gallery" / "thumbnails", small)):
        path.mkdir(parents=True, exist_ok=True)
        few = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(path / f"{name}.png", optimize=True)


def main() -> None:
    """Rebuild the pages of the examples that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(EXTRAS)}")
    names = parser.parse_args().names or list(EXTRAS)
    os.environ.setdefault("EIGENGAME_DATA", str(ROOT.parent / "shared" / "data"))
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in names:
        example = read_example(name)
        with tempfile.TemporaryDirectory() as folder:
            printed = run(example, Path(folder))
            write_figures(name, Path(folder) / f"{name}.png")
        (DOCS / "gallery" / f"{name}.md").write_text(page(example, printed), encoding="utf-8")
        text = json.dumps(notebook(example), indent=1, ensure_ascii=False) + "\n"
        (DOCS / "gallery" / f"{name}.ipynb").write_text(text, encoding="utf-8")
        print(f"docs/gallery/{name}.md")
    (DOCS / "gallery.md").write_text(overview([read_example(n) for n in EXTRAS]), encoding="utf-8")


if __name__ == "__main__":
    main()
