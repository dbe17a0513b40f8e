"""Runs that are killed at any moment resume to the same bits. EIGENGAME_KILLS sets the number of kills."""

import os

import numpy as np
import pytest

pytest.importorskip("typer")

from benchmarks import kills

from eigengame._system.array_file import write_arrays

KILLS = int(os.environ.get("EIGENGAME_KILLS", "100"))


@pytest.mark.slow
def test_runs_resume_to_the_same_bits_after_kills_in_all_phases(capsys):
    counts = kills.run(KILLS, seed=0)
    with capsys.disabled():
        print(f"\n{counts}")
    assert counts.problems == []
    assert counts.kills.total() == KILLS


def test_a_run_that_differs_is_reported(tmp_path, monkeypatch):
    """The harness itself: one bit of a model is enough."""
    monkeypatch.setattr(kills.Runs, "_wait", lambda self, process: process)
    monkeypatch.setattr(kills.Runs, "_start", lambda self, name, at, number: 0)
    (tmp_path / "note").write_text("5")
    runs = kills.Runs(tmp_path, "one pass")
    arrays = {"components_": np.ones(3)}
    write_arrays(runs._path("expected"), arrays, {})
    arrays["components_"][2] = np.nextafter(1, 2)
    write_arrays(runs._path("1"), arrays, {})
    assert runs._difference("1") == "components_ differs"
