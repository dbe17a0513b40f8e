"""Rows in the page in headless Chromium: ids, time, overlay, maps, and the download of loadings."""

import csv
import datetime
import re
import time

import numpy as np
import pytest

from eigengame.report.loading_table import MAX_LARGEST
from tests.report.browser import find, find_all, hover, needs_browser, pixels
from tests.report.models import HOSTILE, make_model

pytestmark = needs_browser


def press(browser, words):
    """Press the button of a view."""
    (button,) = (one for one in find_all(browser, "#scores .choice button") if one.text == words)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"


def ticks(browser):
    return [one.text for one in find_all(browser, ".scatter .tick")]


def hover_over_rows(browser):
    """Move the pointer over the scatter plot until a tooltip appears; return its text."""
    for across, down in ((0, 0), (30, 20), (-40, -30), (60, -40), (-80, 40), (-20, 60)):
        hover(browser, find(browser, ".scatter"), across, down)
        if find(browser, "#tip").is_displayed():
            return find(browser, "#tip").text
    raise AssertionError("no row is near the middle of the plot")


def test_scores_can_be_drawn_over_rows_and_over_time(visit):
    browser = visit("time")
    start = pixels(browser, ".scatter canvas")
    press(browser, "Over rows")
    rows = pixels(browser, ".scatter canvas")
    assert "row number and component 1" in find(browser, ".scatter").get_attribute("aria-label")
    press(browser, "Over time")
    assert "by time and component 1" in find(browser, ".scatter").get_attribute("aria-label")
    days = [text for text in ticks(browser) if re.fullmatch(r"1998-0[345]-\d\d", text)]
    assert len(days) >= 5
    assert {datetime.date.fromisoformat(day).weekday() for day in days} == {0}  # Mondays
    assert len({start, rows, pixels(browser, ".scatter canvas")}) == 3
    press(browser, "Components")
    assert pixels(browser, ".scatter canvas") == start


def test_an_overlay_without_times_is_named_over_time(visit):
    browser = visit("time")
    note = "The overlay has no times"
    assert note not in find(browser, "#scores").text
    press(browser, "Over time")
    assert note in find(browser, "#scores").text


def test_the_tooltip_has_the_id_and_the_time_of_a_row(visit):
    browser = visit("time")
    press(browser, "Over time")
    heading, *pairs = hover_over_rows(browser).split("\n")
    assert heading.startswith("sample-")
    assert pairs[pairs.index("row") + 1] == heading.removeprefix("sample-")
    row = int(heading.removeprefix("sample-"))
    assert pairs[pairs.index("time") + 1] == str(
        np.datetime64("1998-03-01") + np.timedelta64(row, "D")
    )


def test_ids_with_html_are_shown_as_text(visit):
    browser = visit("hostile")
    assert hover_over_rows(browser).startswith(HOSTILE)
    assert not find_all(browser, "#tip strong b, #overlay-legend span b")
    assert find(browser, "#overlay-legend span").text == HOSTILE


def test_the_overlay_has_a_mark_of_its_own_and_can_be_switched_off(visit):
    browser = visit("time")
    with_overlay = pixels(browser, ".scatter canvas")
    button = find(browser, "#overlay-legend .class")
    assert button.text.split("\n") == ["new rows", "30"]
    shapes = [one.get_attribute("data-shape") for one in find_all(browser, ".class")]
    assert shapes == ["circle", "ring"]
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    without = pixels(browser, ".scatter canvas")
    assert without != with_overlay
    find_all(browser, ".class")[0].click()  # the first data set too
    assert pixels(browser, ".scatter canvas") not in (without, with_overlay)
    find_all(browser, ".class")[0].click()
    button.click()
    assert pixels(browser, ".scatter canvas") == with_overlay


def test_hover_over_a_ring_names_the_overlay(visit):
    browser = visit("time")
    find_all(browser, ".class")[0].click()  # hide the first data set
    assert "new rows" in (text := hover_near_any_ring(browser))
    assert text.startswith("new-")


def hover_near_any_ring(browser):
    """Move the pointer to a drawn pixel, and return the text of the tooltip."""
    x, y = browser.execute_script(
        "const c = document.querySelector('.scatter canvas');"
        "const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const i = data.findIndex((v, n) => n % 4 === 3 && v > 99);"
        "const p = Math.floor(i / 4); return [p % c.width - c.width / 2, Math.floor(p / c.width) - c.height / 2]"
    )
    hover(browser, find(browser, ".scatter"), int(x), int(y))
    return find(browser, "#tip").text


def test_the_tooltip_of_a_map_has_coordinates_and_north_is_up(visit):
    browser = visit("map")
    canvas = find(browser, ".picture")
    hover(browser, canvas, 0, -int(canvas.size["height"] / 2) + 4)
    assert find(browser, "#tip strong").text == "85° N, 180° W"
    assert "north up" in find(browser, "#components").text


# ---------------------------------------------------------------------- download


@pytest.fixture
def download(visit, downloads):
    """Return a function that downloads the loadings of a page as a table of texts."""

    def read(name):
        path = downloads / "loadings.csv"
        path.unlink(missing_ok=True)
        find(visit(name), "#download").click()
        for _ in range(100):
            if path.exists():
                with path.open(newline="", encoding="utf-8") as file:
                    return list(csv.reader(file))
            time.sleep(0.05)
        raise AssertionError("no file was downloaded")

    return read


def numbers(lines, first):
    return np.array([line[first:] for line in lines], dtype=float)


def test_all_loadings_are_downloaded_with_the_names_of_features(download):
    heading, *lines = download("years")
    assert heading == ["feature", "name", "component 1", "component 2", "component 3"]
    assert lines[0][:2] == ["0", "HLA-DRB1"]
    np.testing.assert_allclose(numbers(lines, 2).T, make_model().components_, rtol=1e-6, atol=1e-9)


def test_the_largest_of_many_loadings_are_downloaded_and_texts_are_no_formulas(download, visit):
    heading, *lines = download("wide")
    assert heading == ["component", "rank", "feature", "name", "loading"]
    assert len(lines) == MAX_LARGEST
    components = make_model(k=2, d=60_000).components_
    for line in (lines[0], lines[7], lines[-1]):
        component, rank, feature = (int(text) for text in line[:3])
        order = np.argsort(-np.abs(components[component - 1]))
        assert order[rank - 1] == feature
        assert float(line[4]) == pytest.approx(components[component - 1, feature], rel=1e-6)
        assert line[3] == ("'=1+1" if feature == 0 else f"gene,{feature}")
    assert not [line for line in lines if line[3].startswith("=")]
    assert "largest loadings of each component" in find(visit("wide"), "#download-note").text


def test_loadings_of_images_and_maps_have_positions(download):
    heading, *lines = download("colour")
    assert heading[:5] == ["feature", "row", "column", "channel", "component 1"]
    assert lines[37][:4] == ["37", "1", "2", "green"]
    heading, *lines = download("map")
    assert heading[:3] == ["feature", "latitude", "longitude"]
    assert lines[11][:3] == ["11", "-51", "36"]  # in the order of the data, from the south
    np.testing.assert_allclose(numbers(lines, 3).T, make_model(d=60).components_, rtol=1e-6)
