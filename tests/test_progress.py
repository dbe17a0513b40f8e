"""Progress of a fit: bars, lines, logs, and scikit-learn's callbacks."""

import io
import json
import re
import sys
import types

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eigengame import Status
from eigengame.progress import JsonLines, PlainLines, ProgressBar, TensorBoard, progress_watcher
from eigengame.solver.passes.events import Progress
from eigengame.solver.refinement.float32_products import LONG_BATCH
from tests.game_pca import game_pca

X = load_digits().data.astype("float32").repeat(3, axis=0)


def fitted(progress, **options):
    return game_pca(4, batch_size=512, random_state=3, **options).fit(X, progress=progress)


def test_nothing_is_printed_by_default(capsys):
    fitted(False)
    assert capsys.readouterr() == ("", "")


def test_plain_lines_without_a_terminal(capsys):
    fitted(True, passes=3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("all passes were made")
    text = "\n".join(lines)
    assert lines[0].startswith("plan: 4 components by 12 players, remembered")
    assert "pass 1, remembered: 5,391 rows (100%)" in text
    assert "variance" in text
    assert re.search(r"streak about \d+ \(estimate\)", text)
    assert "rows/s" in text
    assert "pass 2, refinement" in text


def test_a_bar_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    watcher = progress_watcher(out)
    assert isinstance(watcher, ProgressBar)
    fitted(watcher)
    shown = out.getvalue()
    assert "remembered" in shown
    assert "100%" in shown
    assert "all rows were read" in shown


def test_time_left_is_estimated_from_the_rate():
    lines = PlainLines(io.StringIO(), every=0.0)
    lines.report(Progress("remembered", 1, 1000, 4000), 100.0)
    assert "0:30 left" in lines.stream.getvalue()
    lines.report(Progress("remembered", 1, 1000, None), 100.0)
    assert "left" not in lines.stream.getvalue().splitlines()[-1]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        '{"type": "FeatureCollection"}\n',
        '{"time": 3, "temperature": 4}\n{"time": 5}\n',
        "[1, 2]",
    ],
    ids=["csv", "json", "json lines", "a list"],
)
def test_a_log_is_never_appended_to_another_file(tmp_path, text):
    data = tmp_path / "data.txt"
    data.write_text(text)
    with pytest.raises(ValueError, match="exists and is not a log of a fit"):
        JsonLines(data)
    assert data.read_text() == text


def test_an_existing_log_is_extended_by_whole_lines(tmp_path):
    log = tmp_path / "new.jsonl"
    JsonLines(log).end("done")
    with log.open("a") as file:
        file.write('{"time": 1, "pa')  # of a run that was killed
    JsonLines(log).end("done again")
    first, half, second = log.read_text().splitlines()
    assert json.loads(first)["outcome"] == "done"
    assert half == '{"time": 1, "pa'
    assert json.loads(second)["outcome"] == "done again"
    log.write_text("")
    JsonLines(log)
    assert log.read_text() == ""


def test_a_log_can_be_a_device():
    JsonLines("/dev/null").end("done")


def test_json_lines_can_be_read_back(tmp_path):
    path = tmp_path / "run.jsonl"
    fitted(JsonLines(path, every=0.0))
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    assert facts[-1]["outcome"].startswith("all rows were read")
    assert facts[-2]["rows"] == len(X)
    assert 0.3 < facts[-2]["variance"] < 1
    assert {"time", "pass", "task", "rows_per_second", "streak"} <= facts[0].keys()


def test_scalars_for_tensorboard(tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder):
            written.append(folder)

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    fitted(TensorBoard(tmp_path / "logs", every=0.0))
    assert written[0] == str(tmp_path / "logs")
    assert written[-1] == "closed"
    names, values, steps = zip(*written[1:-1], strict=True)
    assert set(names) == {f"eigengame/{name}" for name in ("rows_per_second", "variance", "streak")}
    assert steps[-1] == len(X)
    assert all(np.isfinite(values))


def test_an_object_without_a_batch_method_is_rejected():
    with pytest.raises(TypeError, match=r"batch\(at\)"):
        fitted("yes")


def test_a_watcher_can_stop_the_run_and_keep_the_best_components():
    class StopAfter2000:
        def batch(self, at):
            return at.rows >= 2000

    for options in ({}, {"passes": 4}):
        pca = fitted(StopAfter2000(), **options)
        assert pca.outcome_.status is Status.STOPPED
        assert pca.n_samples_seen_ == 2048
        assert pca.n_passes_ == 1
    assert np.isfinite(pca.components_).all()


# scikit-learn's callbacks


callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")


class Counting:
    """Callback that records its calls."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.begun.append("setup")

    def teardown(self, estimator, context):
        self.ended.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.stop_after is not None and self.ended.count("batch") >= self.stop_after


def test_callbacks_receive_the_number_of_batches_of_the_plan(monkeypatch):
    """The rows of a batch depend on the number of players, not only on the data."""

    class Tasks(Counting):
        def __init__(self):
            super().__init__()
            self.subtasks = []

        def on_fit_task_begin(self, estimator, context):
            super().on_fit_task_begin(estimator, context)
            self.subtasks.append(context.max_subtasks)

    monkeypatch.setattr("eigengame.solver.planning.batch_size.BATCH_BYTES", 2**12)
    monkeypatch.setattr("eigengame.solver.planning.batch_size.LARGE_BATCH_BYTES", 2**12)
    calls = Tasks()
    game_pca(4, random_state=3).set_callbacks(calls).fit(X[:240])
    assert calls.subtasks[1] == calls.ended.count("batch") == 240 // 24


def test_callbacks_are_called_for_the_fit_its_passes_and_its_batches():
    calls = Counting()
    game_pca(4, batch_size=512, random_state=3, passes=2).set_callbacks(calls).fit(X)
    # Refinement reads an array in memory in longer batches.
    batches = -(-len(X) // 512) + -(-len(X) // LONG_BATCH)
    assert calls.begun[:3] == ["setup", "fit", "pass 1: remembered"]
    assert calls.begun.count("batch") == calls.ended.count("batch") == batches
    assert calls.ended[-3:] == ["pass 2: refinement", "fit", "teardown"]


def test_a_callback_can_stop_the_fit():
    pca = game_pca(4, batch_size=512, random_state=3, passes=5).set_callbacks(Counting(3)).fit(X)
    assert pca.outcome_.status is Status.STOPPED
    assert pca.n_samples_seen_ == 3 * 512


def test_teardown_is_called_even_if_the_fit_fails():
    calls, bad = Counting(), X.copy()
    bad[5000, 3] = np.nan
    with pytest.raises(ValueError, match="nan"):
        game_pca(4, batch_size=512).set_callbacks(calls).fit(bad)
    assert calls.ended[-1] == "teardown"


def test_the_progress_bar_of_scikit_learn_works_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), game_pca(4, batch_size=512, random_state=3))
    pipeline.set_callbacks(callback.ProgressBar())
    pipeline.fit(X)
    assert pipeline[-1].n_samples_seen_ == len(X)
