"""`eigengame reproduce`: what it lists, writes, refuses and keeps. Experiments are stood in for by a small one."""

import json
import sys
import types

import pytest

pytest.importorskip("matplotlib")

from eigengame import experiments
from reproduction import Claim
from reproduction.figures import panels


def stand_in(fails=False):
    """Return an experiment that measures one number."""
    module = types.ModuleType("stand_in")
    module.TITLE, module.PAPER = "A number", "nowhere"

    def measure(run):
        if fails:
            raise ValueError("no data: give --data.")
        run.say("counting")
        return {"number": 1 if run.quick else 2}

    def draw(results):
        figure, axes = panels(1)
        axes[0, 0].plot([0, results["number"]])
        return figure

    module.measure, module.draw = measure, draw
    module.claims = lambda results: [
        Claim("It is 2.", f"it is {results['number']}.", results["number"] == 2)
    ]
    module.words = lambda results: f"The number is {results['number']}."
    return module


@pytest.fixture(autouse=True)
def two_experiments(monkeypatch):
    names = {"counts": "a number", "breaks": "nothing"}
    monkeypatch.setattr(experiments, "EXPERIMENTS", names)
    monkeypatch.setattr("reproduction.page.EXPERIMENTS", names)
    monkeypatch.setitem(sys.modules, "reproduction.?counts", stand_in())
    monkeypatch.setitem(sys.modules, "reproduction.?breaks", stand_in(fails=True))


def test_without_a_name_it_lists_what_there_is(run):
    listed = run("reproduce")
    assert listed.code == 0
    assert "counts" in listed.out
    assert json.loads(run("reproduce", "--json").out)["experiments"]["counts"] == "a number"


def test_it_writes_figure_numbers_claims_and_a_page(run, tmp_path):
    ended = run("reproduce", "counts", "--out", "found")
    assert ended.code == 0
    assert "counting" in ended.err
    assert "yes" in ended.out
    folder = tmp_path / "found" / "counts"
    assert {path.name for path in folder.iterdir()} == {
        "results.json",
        "claims.json",
        "figure.png",
        "figure.svg",
    }
    assert json.loads((folder / "results.json").read_text())["number"] == 2
    assert "The number is 2." in (tmp_path / "found" / "index.html").read_text()


def test_one_that_fails_does_not_stop_the_others_and_shows_in_the_exit_code(run, tmp_path):
    ended = run("reproduce", "breaks", "counts", "--quick", "--json")
    assert ended.code == 1
    assert "breaks: no data: give --data." in ended.err
    facts = json.loads(ended.out)
    assert facts["failed"] == {"breaks": "no data: give --data."}
    assert facts["claims"]["counts"][0]["holds"] is False
    assert (tmp_path / "reproduction" / "counts" / "results.json").exists()


def test_an_unknown_name_is_refused_before_anything_is_played(run, tmp_path):
    ended = run("reproduce", "counts", "count")
    assert ended.code == 1
    assert "choose one of 'counts', 'breaks', 'all'" in ended.err
    assert not (tmp_path / "reproduction").exists()


def test_a_quick_run_does_not_write_over_a_full_one_unasked(run, tmp_path):
    assert run("reproduce", "counts").code == 0
    refused = run("reproduce", "counts", "--quick")
    assert refused.code == 1
    assert "--force" in refused.err
    path = tmp_path / "reproduction" / "counts" / "results.json"
    assert json.loads(path.read_text())["number"] == 2
    assert run("reproduce", "counts", "--quick", "--force").code == 0
    assert json.loads(path.read_text())["number"] == 1


def test_figures_and_claims_are_made_again_without_playing(run, tmp_path):
    assert run("reproduce", "counts").code == 0
    path = tmp_path / "reproduction" / "counts" / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"number": 3}))
    again = run("reproduce", "counts", "--redraw")
    assert again.code == 0
    assert "counting" not in again.err
    assert "it is 3." in again.out
    path.write_text('{"experiment": "counts", "quick": false}')
    assert "has no 'number'" in run("reproduce", "counts", "--redraw").err
    path.write_text("{")
    assert "run the experiment again" in run("reproduce", "counts", "--redraw").err
    path.unlink()
    assert "run eigengame reproduce counts first" in run("reproduce", "counts", "--redraw").err


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_played(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    ended = run("reproduce", "counts", "--out", "taken/here")
    assert ended.code == 1
    assert "give another --out" in ended.err
    assert "counting" not in ended.err
