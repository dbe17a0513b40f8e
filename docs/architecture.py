"""Import graph of the package: which room imports from which, checked by a test and drawn for the documentation.

A *room* is a subpackage of `eigengame` or a module directly in it. The largest room, `solver`, has folders, which
have an order too. ``python docs/architecture.py`` writes the drawing of the rooms (Mermaid, which GitHub renders)
and both tables into ``CONTRIBUTING.md``, and the drawing as SVG for the page "Contributing" of the site, which
needs no network (`docs/contributing_page.py`). `tests/test_architecture.py` fails when they are out of date.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "eigengame"
LAYERS: tuple[Mapping[str, str], ...] = (
    {
        "_version": "the version number",
        "_check": "checks of arguments; errors that name the argument, the value and the fix",
        "_system": "free memory, atomic writes, checksums, locks, signals, threads, the compilation cache",
    },
    {
        "metrics": "angles, subspace distances and streaks between components",
        "rotation": "varimax rotation of components",
        "testing": "data with a prescribed spectrum",
    },
    {"linalg": "array operations: products with wide arrays, orthonormalisation, kernels"},
    {"game": "the paper: rows, utilities, sphere, best response, Krylov round, memory, theory"},
    {"algorithms": "one file per algorithm: `init`, `update`, `components`"},
    {"sharding": "arrays on a mesh of devices: layout, placement, cost, padding, processes"},
    {"sources": "input formats: each source yields blocks of rows"},
    {"preparation": "transforms of rows while they are read"},
    {"solver": "one fit: plan, batches, passes, refinement, certificate, checkpoint, outcome"},
    {
        "model": "application of fitted components: scores, reconstruction, likelihood",
        "model_file": "model files on disk: writer, reader, check of their content",
    },
    {"export": "components for other libraries: torch modules, LoRA, scikit-learn, files"},
    {"monitoring": "T2, squared prediction error and control limits of rows"},
    {"dask": "a fit on a Dask cluster"},
    {"progress": "progress bars and logs"},
    {"estimator": "`EigenGamePCA`, the scikit-learn interface"},
    {"layerwise": "`fit_layers`: one fit for each layer of a network, in one forward pass"},
    {
        "_rounds": "loops over rounds, compiled once for any number of rounds",
        "_play": "`play` and `play_stream`: the algorithms, called directly",
        "general": "games with other utilities",
        "smallest": "the smallest components",
    },
    {"xarray": "fits of xarray fields, with labelled results"},
    {
        "report": "the HTML report",
        "scanpy": "principal components of AnnData, stored as scanpy stores them",
    },
    {"eigengame": "the public names (`__init__.py`)"},
    {"cli": "the command line"},
    {"__main__": "`python -m eigengame`"},
)
"""The rooms from top to bottom, each with its contents. A room may import only from layers above its own; modules
of one layer may import each other in one direction."""

SOLVER: Mapping[str, tuple[str, str]] = {
    "rows": (
        "batches",
        "rows of a source as batches of one shape; their origin, unit, mean and variance",
    ),
    "certificates": (
        "certificate",
        "bounds on components: angles, rounding, probes; no data is read here",
    ),
    "passes": ("passes", "passes over all rows: folds, sums in float64, progress, checkpoints"),
    "planning": (
        "make_plan",
        "every decision about a fit: options, memory, batch size, route, plan",
    ),
    "streams": ("streaming", "the remembered game, its memory, and the certificate of one pass"),
    "results": ("result", "components in the units of the data, and how the run ended"),
    "refinement": ("refine", "further passes, until the certificate meets the tolerance"),
    "lanczos": ("lanczos", "Lanczos' method for rows in memory"),
    "exact": (
        "covariance",
        "exact solutions: covariance of few features, inner products of few rows",
    ),
    "solver": ("fit", "one fit, from the plan to the result (the files directly in `solver/`)"),
}
"""The folders of `solver` from top to bottom, each with the file to open first and its contents. A folder may
import only from those above it."""

TOP = "eigengame"
Node = int | tuple[int, int, int]
"""In the drawing: a layer, or a point at which an arrow (first two numbers) crosses a row (the third)."""

ORDER = {room: at for at, layer in enumerate(LAYERS) for room in layer}
SOLVER_ORDER = {folder: at for at, folder in enumerate(SOLVER)}


class Edge(NamedTuple):
    """An import between two rooms, or between two folders of `solver`."""

    room: str
    imported: str


def modules() -> dict[str, Path]:
    """Return the file of each module, by its dotted name without ``eigengame.``; the package itself is ``""``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """Return the room of a module."""
    return module.partition(".")[0] or TOP


def folder_of(module: str) -> str:
    """Return the folder of a module of `solver`, "solver" if it is directly in it, "" if it is in another room."""
    room, *parts = module.split(".")
    if room != "solver":
        return ""
    if len(parts) > 1 or (parts and (PACKAGE / room / parts[0]).is_dir()):
        return parts[0]
    return room


def edges(part_of: Callable[[str], str] = room_of) -> dict[Edge, list[str]]:
    """Return the imports between rooms, each with the places where it occurs (``file:line``).

    With `folder_of`, those between folders of `solver`.
    """
    known = modules()
    found: dict[Edge, list[str]] = defaultdict(list)
    for module, path in known.items():
        for line, imported in _imports(path, known):
            edge = Edge(part_of(module), part_of(imported))
            if edge.room != edge.imported and all(edge):
                found[edge].append(f"{path.relative_to(ROOT)}:{line}")
    return dict(found)


def violations(
    found: Mapping[Edge, list[str]], order: Mapping[str, int] = ORDER, kind: str = "room"
) -> list[str]:
    """Return a sentence for each import that the order forbids."""
    wrong = []
    for edge, places in found.items():
        where = ", ".join(places)
        if edge.room not in order or edge.imported not in order:
            continue  # `unknown_rooms` reports these
        if order[edge.imported] > order[edge.room]:
            wrong.append(f"{edge.room} imports from {edge.imported}, a {kind} below it: {where}")
        elif (
            order[edge.imported] == order[edge.room]
            and edge.room > edge.imported
            and Edge(edge.imported, edge.room) in found
        ):
            wrong.append(f"{edge.room} and {edge.imported} import from each other: {where}")
    return wrong


def unknown_rooms() -> set[str]:
    """Return the rooms that `LAYERS` does not list, and the folders of `solver` that `SOLVER` does not list."""
    rooms = {room_of(module) for module in modules()} - set(ORDER)
    return rooms | {folder_of(module) for module in modules()} - set(SOLVER_ORDER) - {""}


def _imports(path: Path, known: Mapping[str, Path]) -> Iterator[tuple[int, str]]:
    """Yield line and module of each import from the package, including those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            # `from eigengame.sources import npy` imports a module, `... import as_source` a name of one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Assign) and path == PACKAGE / "__init__.py":
            names = [f"{TOP}.{module}" for module in _public_modules(node)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [_imported_by_name(node.args[0])]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == TOP:
                module = name.removeprefix(TOP).removeprefix(".")
                while module and module not in known:
                    module = module.rpartition(".")[0]
                yield node.lineno, module


def _public_modules(node: ast.Assign) -> list[str]:
    """Return the modules that the table `PUBLIC` names, if this assignment is that table."""
    is_table = any(isinstance(one, ast.Name) and one.id == "PUBLIC" for one in node.targets)
    return list(ast.literal_eval(node.value).values()) if is_table else []


def _imported_by_name(argument: ast.expr) -> str:
    """Return the module, or the beginning of its name, that a call of `import_module` loads."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    if isinstance(argument, ast.Constant):
        return str(argument.value).rstrip(".")
    # `f"{__name__}.{...}"` stays in the module's own room; `PUBLIC` lists what the package itself loads.
    assert ast.unparse(argument) in ("{__name__}", "f'{__name__}'"), ast.unparse(argument)
    return ""


def layer_edges(found: Mapping[Edge, list[str]]) -> list[tuple[int, int]]:
    """Return the imports between layers, without those that follow from others."""
    above: dict[int, set[int]] = {at: set() for at in range(len(LAYERS))}
    for room, imported in found:
        if ORDER.get(imported, len(LAYERS)) < ORDER.get(room, -1):  # violations are not drawn
            above[ORDER[room]].add(ORDER[imported])
    reached: dict[int, set[int]] = {}
    kept = []
    for at in range(len(LAYERS)):
        indirect = set().union(*(reached[one] for one in above[at]))
        kept += [(at, one) for one in sorted(above[at] - indirect)]
        reached[at] = above[at] | indirect
    return kept


def mermaid(found: Mapping[Edge, list[str]]) -> str:
    """Return the drawing as a Mermaid graph."""
    nodes = [f'  {at}["{label(at)}"]' for at in range(len(LAYERS))]
    arrows = [f"  {room} --> {imported}" for room, imported in layer_edges(found)]
    return "\n".join(["```mermaid", "graph BT", *nodes, *arrows, "```"])


def label(at: int) -> str:
    """Return the names of the rooms of a layer."""
    return ", ".join(LAYERS[at])


def table() -> str:
    """Return the table of rooms."""
    rooms = [f"| `{room}` | {contents} |" for layer in LAYERS for room, contents in layer.items()]
    return "\n".join(["| room | contents |", "|---|---|", *rooms])


def solver_table() -> str:
    """Return the table of the folders of `solver`."""
    rows = [f"| `{name}` | {text} | `{first}.py` |" for name, (first, text) in SOLVER.items()]
    return "\n".join(["| folder | contents | open first |", "|---|---|---|", *rows])


STYLE = """
.page { fill: #fff; stroke: none }
text { font: 13px monospace; text-anchor: middle; dominant-baseline: central; fill: #222 }
rect.room { fill: #eef2fb; stroke: #5570b0 } path { fill: none; stroke: #777 } marker path { fill: #777 }
@media (prefers-color-scheme: dark) {
  .page { fill: #1e2129 } text { fill: #eee } rect.room { fill: #26304a; stroke: #8aa2dc }
  path { stroke: #aaa } marker path { fill: #aaa }
}
"""


def svg(found: Mapping[Edge, list[str]]) -> str:
    """Return the drawing as SVG: each layer below those it imports from, arrows pointing to what is imported."""
    rows, lines = _rows(layer_edges(found))
    height, gap = 26, 64
    widths = {at: 8 * len(label(at)) + 20 for at in range(len(LAYERS))}

    def room_for(node: Node) -> int:
        return 24 + (widths[node] if isinstance(node, int) else 30)

    place: dict[Node, tuple[float, float]] = {}
    total = max(sum(map(room_for, row)) for row in rows)
    for depth, row in enumerate(rows):
        x = (total - sum(map(room_for, row))) / 2
        for node in row:
            wide = room_for(node)
            place[node] = (x + wide / 2, 20 + depth * gap)
            x += wide
    parts = []
    for line in lines:
        points = [place[node] for node in line]
        path = f"M{points[0][0]:.0f},{points[0][1] - height / 2:.0f}"
        for (x0, y0), (x1, y1) in pairwise(points):
            below = height / 2 + 7 if (x1, y1) == points[-1] else 0
            middle = (y0 + y1) / 2
            path += f" C{x0:.0f},{middle:.0f} {x1:.0f},{middle:.0f} {x1:.0f},{y1 + below:.0f}"
        parts.append(f'<path d="{path}" marker-end="url(#arrow)"/>')
    for at, wide in widths.items():
        x, y = place[at]
        parts.append(
            f'<rect class="room" x="{x - wide / 2:.0f}" y="{y - height / 2:.0f}" '
            f'width="{wide}" height="{height}" rx="5"/>'
            f'<text x="{x:.0f}" y="{y:.0f}">{label(at)}</text>'
        )
    size = f"{total:.0f} {40 + (len(rows) - 1) * gap:.0f}"
    marker = (
        '<marker id="arrow" viewBox="0 0 8 8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{total:.0f}">'
    page = '<rect class="page" width="100%" height="100%"/>'  # readable on a page of either colour
    return "\n".join([head, f"<style>{STYLE}</style>", page, marker, *parts, "</svg>\n"])


def _rows(arrows: list[tuple[int, int]]) -> tuple[list[list[Node]], list[list[Node]]]:
    """Return the nodes of each row of the drawing, and the nodes along each arrow.

    An arrow that spans several rows has a node without a label in each row that it crosses.
    """
    depth = dict.fromkeys(range(len(LAYERS)), 0)
    for room, imported in sorted(arrows):
        depth[room] = max(depth[room], depth[imported] + 1)
    rows: list[list[Node]] = [[] for _ in range(max(depth.values()) + 1)]
    for node, at in depth.items():
        rows[at].append(node)
    lines: list[list[Node]] = []
    for room, imported in arrows:
        crossed = range(depth[room] - 1, depth[imported], -1)
        lines.append([room, *((room, imported, at) for at in crossed), imported])
        for at in crossed:
            rows[at].append((room, imported, at))
    for _ in range(8):  # order each row by the mean position of what its nodes are connected to
        for at, row in enumerate(rows):
            where = {node: (n + 0.5) / len(one) for one in rows for n, node in enumerate(one)}
            linked: dict[Node, list[float]] = defaultdict(list)
            for line in lines:
                for below, over in pairwise(line):
                    linked[below].append(where[over])
                    linked[over].append(where[below])
            rows[at] = sorted(row, key=lambda node: sum(linked[node]) / max(len(linked[node]), 1))
    return rows, lines


def written() -> dict[Path, str]:
    """Return the files that contain the drawing or the table, with their up-to-date contents."""
    found = edges()
    contributing = ROOT / "CONTRIBUTING.md"
    page = contributing.read_text()
    page = _between(page, "architecture", f"{mermaid(found)}\n\n{table()}")
    page = _between(page, "solver", solver_table())
    return {contributing: page, ROOT / "docs" / "architecture.svg": svg(found)}


def _between(page: str, name: str, text: str) -> str:
    """Return a page with `text` between the two markers of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(f"{begin}.*{end}", re.S)
    assert pattern.search(page), f"CONTRIBUTING.md has no markers {begin} and {end}"
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page)


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
