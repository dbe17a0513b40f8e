"""How the tests run the examples: in this process, in a folder of their own, without a display."""

import runpy
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs an example, checks that it wrote its figure, and returns its variables."""
    import matplotlib.pyplot as plt

    def run_example(name, data=None):
        monkeypatch.chdir(tmp_path)
        # Without real data: an empty folder.
        monkeypatch.setenv("EIGENGAME_DATA", str(tmp_path / "none" if data is None else data))
        with matplotlib.rc_context():
            found = runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        figure = tmp_path / f"{name}.png"
        assert figure.read_bytes().startswith(b"\x89PNG")
        assert len(plt.imread(figure)) >= 300
        return found

    matplotlib.use("Agg")
    yield run_example
    plt.close("all")
