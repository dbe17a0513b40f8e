"""`eigengame monitor`: statistics of all rows, alarms with the names of features, and a page of charts."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.cli import monitor_writer
from eigengame.monitoring import ControlLimits
from eigengame.report.monitor_page import AlarmRow, write_monitor_page

from .conftest import FEATURES, K

RNG = np.random.default_rng(0)
NAMES = [f"sensor{i}" for i in range(FEATURES)]
SPREAD = np.r_[9.0, 5, 3, np.linspace(1, 0.3, FEATURES - 3)]


def table(path, rows):
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(NAMES)
        lines.writerows([f"{one:.17g}" for one in row] for row in rows)
    return path


@pytest.fixture
def files(run, tmp_path):
    """Tables of normal and new rows, of which row 5 has a broken sensor, and a fitted model."""
    normal, new = (RNG.standard_normal((n, FEATURES)) * SPREAD for n in (400, 60))
    new[5, 7] += 30
    table(tmp_path / "normal.csv", normal)
    table(tmp_path / "new.csv", new)
    assert run("fit", "normal.csv", "-k", K, "-o", "model.safetensors").code == 0
    return new


def test_alarms_are_printed_and_all_rows_are_written(run, files):
    done = run("monitor", "model.safetensors", "new.csv", "-o", "rows.csv", "--quiet")
    assert done.code == 0, done.err
    assert re.search(r"^ *5 .*sensor7 (9\d|100)%", done.out, re.M)
    assert "Limits: T2" in done.out
    assert "Written: rows.csv" in done.out
    with open("rows.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    found = EigenGamePCA.load("model.safetensors").monitor("new.csv")
    assert [int(one["row"]) for one in lines] == list(range(60))
    for name in ("t2", "spe"):
        written = [float(one[name]) for one in lines]
        np.testing.assert_allclose(written, getattr(found, name), rtol=1e-8)
        flags = [one[f"{name}_alarm"] == "1" for one in lines]
        np.testing.assert_array_equal(flags, getattr(found, f"{name}_alarms"))
    assert lines[5]["spe_features"].startswith("sensor7 ")
    assert all(not one["spe_features"] for one in lines if one["spe_alarm"] == "0")


def test_json_has_limits_alarms_and_angles(run, files):
    given = ("monitor", "model.safetensors", "new.csv", "--json", "--quiet")
    facts = json.loads(run(*given, "--reference", "model.safetensors").out)
    assert facts["rows"] == 60
    assert 5 in facts["spe_alarms"]
    assert facts["limits"]["method"] == "theory"
    assert max(facts["angles"]) == pytest.approx(0, abs=1e-6)
    assert [one["features"].split()[0] for one in facts["worst"] if one["name"] == "5"] == [
        "sensor7"
    ]
    other = json.loads(run(*given, "--limits-from", "normal.csv", "--confidence", "0.9").out)
    assert other["limits"]["method"] == "reference"
    assert other["limits"]["rows"] == 400
    assert len(other["spe_alarms"]) >= len(facts["spe_alarms"])
    assert facts["angles"] is not other["angles"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--confidence", "2"], "confidence=2.0: give a confidence between 0 and 1"),
        (["--limits-from", "new.csv"], "at least 99 reference rows"),
        (["-o", "rows.npy"], "ends in .csv or .tsv"),
        (["--page", "page.csv"], "ends in .html"),
    ],
)
def test_wrong_options_are_refused_in_one_line(run, files, options, message):
    done = run("monitor", "model.safetensors", "new.csv", "--quiet", *options)
    assert done.code != 0
    assert message in done.err
    assert not Path("rows.csv").exists()


class Shapes(HTMLParser):
    """The elements of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def shapes(path):
    parser = Shapes()
    parser.feed(path.read_text())
    return parser.found


def test_the_page_has_both_charts_with_their_limits_and_alarms(run, files):
    done = run("monitor", "model.safetensors", "new.csv", "--page", "alarms.html", "--quiet")
    assert "Written: alarms.html" in done.out
    found = EigenGamePCA.load("model.safetensors").monitor("new.csv")
    drawn, text = shapes(Path("alarms.html")), Path("alarms.html").read_text()
    marks = [one for tag, one in drawn if tag == "circle"]
    assert len(marks) == found.t2_alarms.sum() + found.spe_alarms.sum()
    assert len([one for _, one in drawn if one.get("class") == "reference"]) == 2
    points = [one["points"].split() for tag, one in drawn if tag == "polyline"]
    assert [len(one) for one in points] == [60, 60]
    heights = [float(one.split(",")[1]) for one in points[1]]
    assert int(np.argmin(heights)) == int(found.spe.argmax())  # y grows downwards
    assert "sensor7" in text
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", text)


def test_a_page_of_many_rows_shows_the_range_of_each_bin(tmp_path):
    limits = ControlLimits(10.0, 20.0, 0.99, "theory", 100, "given")
    t2, spe = RNG.exponential(size=(2, 50_000))
    t2[12_345], spe[7] = 500, np.nan
    worst = [AlarmRow("<b>row</b>", 500, 1, "a & b")]
    path = write_monitor_page(tmp_path / "page.html", t2, spe, limits, worst=worst, title="<i>")
    drawn, text = shapes(path), path.read_text()
    paths = [one["d"] for tag, one in drawn if tag == "path"]
    assert [one.count("M") for one in paths] == [1000, 1000]
    assert "row 12345: 500" in text
    assert "&lt;b&gt;row&lt;/b&gt;" in text
    assert "<title>&lt;i&gt;</title>" in text
    assert len(text) < 300_000


def test_the_largest_alarms_of_all_blocks_are_kept(run, files, monkeypatch):
    pca = EigenGamePCA.load("model.safetensors")
    limits = ControlLimits(1e-9, 1e-9, 0.99, "theory", 100, "given")
    monkeypatch.setattr(monitor_writer, "MAX_SHOWN", 4)
    blocks = pca.monitor_blocks("new.csv", limits=limits, size=7)
    found = monitor_writer.monitor_rows(blocks, {}, None, 2)
    whole = pca.monitor("new.csv", limits=limits)
    largest = np.sort(np.argsort(-np.maximum(whole.t2, whole.spe))[:4])
    assert [int(one.name) for one in found.worst] == largest.tolist()
    np.testing.assert_array_equal(found.t2, whole.t2)
