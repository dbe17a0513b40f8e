"""Ids, times and overlays of the rows of a report."""

import datetime

import numpy as np
import pandas as pd
import pytest

from eigengame.report import ReportError, write_report
from eigengame.report.row_set import MAX_ID_LENGTH
from eigengame.sources import ArraySource
from tests.report.models import HOSTILE, dequantize, make_model, read_page


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(60, 12))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "report.html"


def scores_of(target, **options):
    """Return the scores of a new page."""
    return read_page(write_report(make_model(), target, **options))["scores"]


def by_row(scores, values):
    """Return values of the page in the order of the rows."""
    return [values[i] for i in np.argsort(scores["rows"])]


# ---------------------------------------------------------------------- ids


def test_ids_are_those_of_the_sampled_rows(target, rows):
    found = scores_of(target, data=rows, ids=[f"NA{i:05d}" for i in range(60)], most=20)
    assert len(found["ids"]) == 20
    assert found["ids"] == [f"NA{i:05d}" for i in found["rows"]]


def test_numbers_and_missing_values_can_be_ids(target, rows):
    found = scores_of(target, data=rows, ids=[None, np.nan, 7, *range(3, 60)])
    assert by_row(found, found["ids"])[:4] == ["", "", "7", "3"]


def test_long_ids_are_shortened(target, rows):
    found = scores_of(target, data=rows, ids=["x" * 10_000] * 60)
    assert {len(one) for one in found["ids"]} == {MAX_ID_LENGTH}


def test_html_in_ids_and_names_stays_text(target, rows):
    options = {"overlay": rows, "overlay_name": HOSTILE, "overlay_ids": [HOSTILE] * 60}
    found = scores_of(target, data=rows, ids=[HOSTILE] * 60, **options)
    assert HOSTILE not in target.read_text()
    assert target.read_text().count("</script>") == 2
    assert set(found["ids"]) == set(found["overlay"]["ids"]) == {HOSTILE}


def test_the_index_of_a_frame_has_the_ids(target, rows):
    named = pd.DataFrame(rows, index=[f"cell {i}" for i in range(60)])
    found = scores_of(target, data=named)
    assert by_row(found, found["ids"])[:2] == ["cell 0", "cell 1"]
    assert scores_of(target, data=pd.DataFrame(rows))["ids"] is None
    assert scores_of(target, data=rows.tolist())["ids"] is None
    part = scores_of(target, data=pd.DataFrame(rows).iloc[10:])
    assert by_row(part, part["ids"])[0] == "10"


def test_a_source_that_knows_its_ids_has_them(target, rows):
    source = ArraySource(rows)
    source.read_row_ids = lambda: [f"row {i}" for i in range(60)]
    found = scores_of(target, data=source)
    assert by_row(found, found["ids"])[0] == "row 0"
    given = scores_of(target, data=source, ids=[f"given {i}" for i in range(60)])
    assert by_row(given, given["ids"])[0] == "given 0"


# ---------------------------------------------------------------------- times

DATES = np.arange("1998-03-01", "1998-04-30", dtype="datetime64[D]")
FIRST = datetime.datetime(1998, 3, 1, tzinfo=datetime.UTC)
DAYS = [int((FIRST + datetime.timedelta(days=i)).timestamp()) * 1000 for i in range(60)]


@pytest.mark.parametrize(
    "time",
    [
        DATES,
        [FIRST + datetime.timedelta(days=i) for i in range(60)],
        pd.date_range("1998-03-01", periods=60, tz="UTC").tz_convert("Europe/Paris"),
        [str(day) for day in DATES],
        [f"{day}T02:00+02:00" for day in DATES],
        pd.period_range("1998-03-01", periods=60, freq="D"),
    ],
)
def test_dates_of_any_kind_are_times(target, rows, time):
    found = scores_of(target, data=rows, time=time)
    assert found["time"]["dates"]
    assert by_row(found, found["time"]["values"]) == DAYS


def test_years_and_months_as_text_are_dates(target, rows):
    found = scores_of(target, data=rows, time=["1998", "1998-07", *[""] * 58])
    values = by_row(found, found["time"]["values"])
    assert values[:3] == [883612800000, 899251200000, None]


def test_numbers_are_times_without_dates(target, rows):
    time = pd.Series(1950 + np.arange(60) / 4, name="year")
    time[0] = np.nan
    found = scores_of(target, data=rows, time=time)["time"]
    assert (found["name"], found["dates"]) == ("year", False)
    assert None in found["values"]
    assert 1950.25 in found["values"]


def test_the_time_index_of_a_frame_has_the_times(target, rows):
    index = pd.date_range("1998-03-01", periods=60, name="day")
    found = scores_of(target, data=pd.DataFrame(rows, index=index))
    assert by_row(found, found["time"]["values"]) == DAYS
    assert found["time"]["name"] == "day"
    assert found["ids"] is None  # the time is shown already


def test_a_time_that_cannot_be_read_is_named(target, rows):
    with pytest.raises(ReportError, match=r"time has the value '01/02/1998': .* ISO 8601"):
        write_report(make_model(), target, data=rows, time=["01/02/1998"] * 60)


# ---------------------------------------------------------------------- overlay


def test_an_overlay_is_projected_by_the_same_model(target, rows):
    model, other = make_model(), 3 * np.random.default_rng(2).normal(size=(40, 12))
    write_report(model, target, data=rows, overlay=other, overlay_name="new")
    found = read_page(target)["scores"]["overlay"]
    assert (found["name"], found["of"]) == ("new", 40)
    scores = model.transform(other)[found["rows"]]
    for i, column in enumerate(found["columns"]):
        np.testing.assert_allclose(
            dequantize(column), scores[:, i], atol=np.ptp(scores[:, i]) / 1e4
        )
    assert scores_of(target, data=rows)["overlay"] is None


def test_an_overlay_with_a_time_index_has_times(target, rows):
    frames = [
        pd.DataFrame(rows, index=pd.date_range(start, periods=60))
        for start in ("1998-03-01", "1999-03-01")
    ]
    found = scores_of(target, data=frames[0], overlay=frames[1])["overlay"]
    assert min(found["time"]["values"]) == 920246400000


def test_an_overlay_can_be_a_stream_and_is_sampled(target, rows):
    found = scores_of(target, data=rows, overlay=iter(np.split(np.tile(rows, (10, 1)), 6)), most=50)
    assert (len(found["overlay"]["rows"]), found["overlay"]["of"]) == (50, 600)


def test_two_data_sets_stay_small(target):
    many = np.random.default_rng(0).normal(size=(6000, 250))
    ids = ["x" * 100] * 6000
    options = {"overlay": many, "overlay_ids": ids, "ids": ids, "time": np.arange(6000) + 0.123456}
    write_report(make_model(k=200, d=250), target, data=many, **options)
    assert len(read_page(target)["scores"]["columns"]) == 20
    assert target.stat().st_size < 2_000_000


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": ["a"] * 59}, "ids has 59 entries, but data has 60 rows"),
        ({"time": [1998] * 61}, "time has 61 entries, but data has 60 rows"),
        ({"ids": "abc"}, "ids='abc' is a single string"),
        ({"time": "1998"}, "time='1998' is a single string"),
        ({"time": np.zeros((60, 2))}, r"time has shape \(60, 2\)"),
        ({"overlay_ids": ["a"]}, "need overlay"),
        ({"overlay_name": "a"}, "need overlay"),
    ],
)
def test_invalid_values_of_rows_are_named(target, rows, options, words):
    with pytest.raises(ReportError, match=words):
        write_report(make_model(), target, data=rows, **options)
    assert not target.exists()


def test_ids_of_the_wrong_length_for_an_overlay_are_named(target, rows):
    with pytest.raises(ReportError, match="overlay_ids has 3 entries, but overlay has 60 rows"):
        write_report(make_model(), target, data=rows, overlay=rows, overlay_ids=["a"] * 3)


@pytest.mark.parametrize("name", ["ids", "time", "overlay"])
def test_values_without_rows_are_rejected(target, name):
    with pytest.raises(ReportError, match=f"{name} w.* given without data"):
        write_report(make_model(), target, **{name: [1.0]})
