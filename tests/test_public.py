"""The public names are there, though nothing is imported before one is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

import eigengame

NAMES = list(eigengame.PUBLIC)
FOLDER = Path(eigengame.__file__).parent


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_an_attribute_of_the_package(name):
    value = getattr(eigengame, name)
    assert value.__name__ == name
    assert value.__module__.startswith("eigengame.")
    assert name in dir(eigengame)


def test_no_public_function_shares_its_name_with_a_file():
    # Importing the file would put it in the function's place.
    files = {path.stem for path in FOLDER.iterdir()}
    assert not files & set(NAMES)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = eigengame.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from eigengame import nothing  # noqa: F401


@pytest.mark.parametrize("name", ["algorithms.Oja", "game.as_rows", "sources.ColumnWarning"])
def test_a_name_of_a_subpackage_is_refused_with_its_place(name):
    with pytest.raises(AttributeError, match=rf"it is eigengame\.{name}"):
        getattr(eigengame, name.rpartition(".")[2])


@pytest.mark.parametrize(
    "code",
    [
        "import sys, eigengame\nassert not {'jax', 'numpy'} & set(sys.modules)\n"
        "import eigengame._play\nassert callable(eigengame.play)",
        "from eigengame.game.batching import batches\nimport eigengame\nassert callable(eigengame.game.batches)\n"
        "from eigengame import estimator, EigenGamePCA\nassert estimator.EigenGamePCA is EigenGamePCA",
        "from eigengame import *\nassert callable(play)\nEigenGamePCA, prepare",
    ],
    ids=["package first", "file first", "star"],
)
def test_any_order_of_imports_gives_the_same_names(code):
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(FOLDER.parent)}, check=True)
