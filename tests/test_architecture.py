"""The import graph of the package follows the order of its rooms, and its drawings are up to date."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "architecture.py"
specification = importlib.util.spec_from_file_location("architecture", SCRIPT)
architecture = importlib.util.module_from_spec(specification)
specification.loader.exec_module(architecture)

MOST_MODULES = 12
"""Modules directly in the package, not counting `__init__` and `__main__`."""

MOST_SOLVER_MODULES = 6
"""Modules directly in `solver`: the others belong to one of its folders."""

KNOWN: set[str] = set()
"""Violations to be removed, such as "game imports from solver, a room below it"."""


def test_rooms_import_only_from_rooms_above_them():
    found = architecture.violations(architecture.edges())
    assert not [text for text in found if text.partition(":")[0] not in KNOWN]


def test_folders_of_the_solver_import_only_from_folders_above_them():
    found = architecture.edges(architecture.folder_of)
    assert found["solver", "planning"], "no imports between folders were found"
    assert not architecture.violations(found, architecture.SOLVER_ORDER, "folder")


def test_the_file_to_open_first_exists_in_each_folder_of_the_solver():
    solver = architecture.PACKAGE / "solver"
    for folder, (first, _) in architecture.SOLVER.items():
        assert (solver / ("" if folder == "solver" else folder) / f"{first}.py").is_file()


def test_every_module_belongs_to_a_known_room():
    assert not architecture.unknown_rooms()


def test_few_modules_lie_directly_in_the_package_and_in_the_solver():
    files = {path.stem for path in architecture.PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert len(files) <= MOST_MODULES, sorted(files)
    files = {path.stem for path in (architecture.PACKAGE / "solver").glob("*.py")} - {"__init__"}
    assert len(files) <= MOST_SOLVER_MODULES, sorted(files)


@pytest.mark.parametrize("path", architecture.written(), ids=lambda path: path.name)
def test_drawings_are_up_to_date(path):
    assert path.read_text() == architecture.written()[path], "run python docs/architecture.py"


def test_forbidden_imports_are_found(tmp_path, monkeypatch):
    """Also imports inside functions, by name, and from the top-level package."""
    files = {
        "__init__.py": 'PUBLIC = {"prepare": "preparation"}',
        "_check.py": "def check():\n    from eigengame.game import rows",
        "game/__init__.py": "import importlib\nimportlib.import_module('eigengame.solver')",
        "game/rows.py": "from eigengame import prepare, metrics",
        "metrics.py": "from eigengame import testing",
        "testing.py": "import eigengame.metrics",
        "solver/__init__.py": "from eigengame.game import rows\nimport numpy",
        "solver/fit.py": "from eigengame.solver.rows import batches",
        "solver/rows/__init__.py": "",
        "solver/rows/batches.py": "def load():\n    from eigengame.solver.planning import plan",
        "solver/planning/__init__.py": "",
        "solver/planning/plan.py": "from eigengame.solver import fit",
        "solver/spare/__init__.py": "",
        "preparation.py": "",
        "extra.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "src" / "eigengame" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(architecture, "ROOT", tmp_path)
    monkeypatch.setattr(architecture, "PACKAGE", tmp_path / "src" / "eigengame")
    found = architecture.edges()
    assert found["solver", "game"] == ["src/eigengame/solver/__init__.py:1"]
    assert found["eigengame", "preparation"] == ["src/eigengame/__init__.py:1"]
    assert {text.partition(":")[0] for text in architecture.violations(found)} == {
        "_check imports from game, a room below it",
        "game imports from solver, a room below it",
        "game imports from eigengame, a room below it",
        "testing and metrics import from each other",
    }
    assert architecture.unknown_rooms() == {"extra", "spare"}
    found = architecture.edges(architecture.folder_of)
    assert found["solver", "rows"] == ["src/eigengame/solver/fit.py:1"]
    wrong = architecture.violations(found, architecture.SOLVER_ORDER, "folder")
    assert {text.partition(":")[0] for text in wrong} == {
        "rows imports from planning, a folder below it",
        "planning imports from solver, a folder below it",
    }
