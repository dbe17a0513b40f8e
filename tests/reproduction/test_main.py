"""`python -m reproduction`: list, output, errors and exit codes, with small substitutes for the experiments."""

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import reproduction
from reproduction import __main__ as program
from reproduction.base import Claim, holds_if
from reproduction.figures import panels
from reproduction.record import read_results

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the program in an empty folder, with two experiments."""
    names = {"counts": "a number", "breaks": "nothing"}
    monkeypatch.setattr(reproduction, "EXPERIMENTS", names)
    monkeypatch.setattr(program, "EXPERIMENTS", names)
    monkeypatch.setitem(sys.modules, "reproduction.experiments.counts", substitute())
    monkeypatch.setitem(sys.modules, "reproduction.experiments.breaks", substitute(fails=True))
    monkeypatch.setattr(program, "keep_compilations", lambda: None)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        try:
            code = program.main(arguments)
        except SystemExit as ended:
            code = ended.code
        return Ended(code, *capsys.readouterr())

    return call


def substitute(fails=False):
    """Return an experiment that measures one number."""
    module = types.ModuleType("substitute")
    module.TITLE, module.PAPER = "A number", "nowhere"

    def measure(run):
        if fails:
            raise ValueError("no data: give --data.")
        run.progress("counting")
        return {"number": 1 if run.quick else 2}

    def draw(results):
        figure, axes = panels(1)
        axes[0, 0].plot([0, results["number"]])
        return figure

    module.measure, module.draw = measure, draw
    module.claims = lambda results: [
        Claim(
            "It is 2.",
            f"it is {results['number']}.",
            holds_if(results["number"] == 2),
            "as a number",
        )
    ]
    module.summary = lambda results: f"The number is {results['number']}."
    module.reading = lambda results: "The paper has no number."
    return module


def test_without_a_name_or_with_list_it_lists_the_experiments(run):
    for arguments in ((), ("--list",), ("counts", "--list")):
        listed = run(*arguments)
        assert listed.code == 0
        assert "counts" in listed.out
    assert json.loads(run("--list", "--json").out)["experiments"]["counts"] == "a number"


def test_it_writes_figure_numbers_claims_and_a_page(run, tmp_path):
    ended = run("counts", "--out", "found")
    assert ended.code == 0
    assert "counts, 0 s: counting" in ended.err
    assert "holds: It is 2." in ended.out
    assert "| counts | 1 |" in ended.out
    folder = tmp_path / "found" / "counts"
    names = {path.name for path in folder.iterdir()}
    assert names == {"results.json", "claims.json", "figure.png", "figure.svg"}
    assert json.loads((folder / "results.json").read_text())["number"] == 2
    page = (tmp_path / "found" / "index.md").read_text()
    assert "The number is 2." in page
    assert "*Reading of the paper.* The paper has no number." in page


def test_an_experiment_that_fails_does_not_stop_the_others(run, tmp_path):
    ended = run("all", "--quick", "--json")
    assert ended.code == 1
    assert "breaks: no data: give --data." in ended.err
    facts = json.loads(ended.out)
    assert facts["failed"] == {"breaks": "no data: give --data."}
    assert facts["claims"]["counts"][0]["verdict"] == "does not hold"
    assert (tmp_path / program.OUTPUT / "counts" / "results.json").exists()


def test_an_unknown_name_is_refused_before_anything_runs(run, tmp_path):
    ended = run("counts", "count")
    assert ended.code == 2
    assert "unknown experiment 'count': choose from counts, breaks, all." in ended.err
    assert not (tmp_path / program.OUTPUT).exists()


def test_a_quick_run_does_not_overwrite_a_full_one_without_force(run, tmp_path):
    assert run("counts").code == 0
    refused = run("counts", "--quick")
    assert refused.code == 1
    assert "--force" in refused.err
    path = tmp_path / program.OUTPUT / "counts" / "results.json"
    assert json.loads(path.read_text())["number"] == 2
    assert run("counts", "--quick", "--force").code == 0
    assert json.loads(path.read_text())["number"] == 1


def test_redraw_updates_claims_and_figures_without_a_run(run, tmp_path):
    assert run("counts").code == 0
    path = tmp_path / program.OUTPUT / "counts" / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"number": 3}))
    again = run("counts", "--redraw")
    assert again.code == 0
    assert "counting" not in again.err
    assert "it is 3." in again.out
    path.write_text('{"experiment": "counts", "quick": false}')
    assert "has no 'number'" in run("counts", "--redraw").err
    path.write_text("{")
    assert "run the experiment again" in run("counts", "--redraw").err
    path.unlink()
    assert "run python -m reproduction counts first" in run("counts", "--redraw").err


def test_arrays_are_stored_beside_the_numbers_and_removed_by_a_run_without_them(
    run, tmp_path, monkeypatch
):
    counts = sys.modules["reproduction.experiments.counts"]
    measure, maps = counts.measure, np.arange(6, dtype=np.uint8).reshape(2, 3)
    monkeypatch.setattr(counts, "measure", lambda run: measure(run) | {"arrays": {"maps": maps}})
    assert run("counts").code == 0
    folder = tmp_path / program.OUTPUT / "counts"
    assert "arrays" not in json.loads((folder / "results.json").read_text())
    np.testing.assert_array_equal(read_results(folder)["arrays"]["maps"], maps)
    assert run("counts", "--redraw").code == 0
    (folder / "arrays.npz").write_bytes(b"PK no archive")
    assert "arrays.npz is not a file of arrays" in run("counts", "--redraw").err
    monkeypatch.setattr(counts, "measure", measure)
    assert run("counts").code == 0
    assert not (folder / "arrays.npz").exists()


def test_results_without_what_the_figure_needs_are_an_error_that_names_it(
    run, tmp_path, monkeypatch
):
    assert run("counts").code == 0
    counts = sys.modules["reproduction.experiments.counts"]
    monkeypatch.setattr(counts, "draw", lambda results: results["arrays"])
    assert "has no 'arrays'" in run("counts", "--redraw").err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    ended = run("counts", "--out", "taken/here")
    assert ended.code == 1
    assert "give another --out" in ended.err
    assert "counting" not in ended.err


def test_a_missing_matplotlib_is_named_with_the_extra_to_install(run, monkeypatch):
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    ended = run("counts")
    assert ended.code == 1
    assert "pip install 'eigengame[plots]'" in ended.err


def test_a_missing_module_and_an_interrupt_are_reported_without_a_traceback(run, monkeypatch):
    def missing(_):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    def interrupted(_):
        raise KeyboardInterrupt

    counts = sys.modules["reproduction.experiments.counts"]
    monkeypatch.setattr(counts, "measure", missing)
    assert "torch is not installed: pip install torch." in run("counts").err
    monkeypatch.setattr(counts, "measure", interrupted)
    assert run("counts").code == 130


def test_the_module_runs_from_the_root_of_the_repository():
    ended = subprocess.run(
        [sys.executable, "-m", "reproduction", "--list"], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0
    assert "synthetic" in ended.stdout
