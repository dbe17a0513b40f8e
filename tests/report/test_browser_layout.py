"""Labels, ticks and widths of the page in headless Chromium."""

import re
from itertools import pairwise

import pytest

from tests.report.browser import PHONE, WIDE, find, find_all, layout_faults, needs_browser

pytestmark = needs_browser

PAGES = (
    "digits", "loadings", "estimate", "one", "partly", "layers", "many", "colour", "hostile", "eleven", "forty",
    "years", "time", "map", "wide",
)  # fmt: skip


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_clipped_or_outside_the_screen(visit, name, size):
    browser = visit(name, size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert layout_faults(browser) == []
    for button in find_all(browser, "#scores .choice button"):
        button.click()
        assert layout_faults(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]


def test_the_check_of_the_layout_detects_clipped_texts_and_wide_elements(visit):
    browser = visit("years")
    browser.execute_script(
        "document.querySelector('#scree svg').style.width = '40px';"
        "document.querySelector('#components .name').setAttribute('x', 10);"
        "document.querySelector('#scores .card').style.width = '2000px'"
    )
    faults = " ".join(layout_faults(browser))
    assert "clipped: text name" in faults
    assert "outside the screen: DIV card" in faults


def test_years_have_no_separators(visit):
    browser = visit("years")
    assert [one.text for one in find_all(browser, ".scale-ends span")][:2] == ["1940", "2019"]
    find_all(browser, "#scores .choice button")[-1].click()
    ticks = [one.text for one in find_all(browser, ".scatter .tick")]
    years = [text for text in ticks if re.fullmatch(r"(19|20)\d\d", text)]
    assert len(years) > 4
    assert not any(re.fullmatch(r"[12],\d{3}", text) for text in ticks)


def test_ticks_have_the_digits_that_they_need(visit):
    browser = visit("years", PHONE)
    find_all(browser, "#scores .choice button")[-1].click()
    ticks = [one.text for one in find_all(browser, ".scatter .tick[text-anchor=middle]")]
    assert len(set(ticks)) == len(ticks) > 2
    years = [int(text) for text in ticks if re.fullmatch(r"(19|20)\d\d", text)]
    steps = {after - before for before, after in pairwise(years)}
    assert len(steps) == 1  # no year is rounded


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "labels"), [("eleven", 11), ("forty", 39)])
def test_every_label_has_its_own_colour_and_mark(visit, name, labels, scheme):
    browser = visit(name, scheme=scheme)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.class svg path')].map("
        "(p) => [getComputedStyle(p).fill, p.getAttribute('d')])"
    )
    assert len({tuple(one) for one in drawn[:labels]}) == labels
    assert len({colour for colour, _ in drawn[:labels]}) == min(labels, 20)
    assert len({mark for _, mark in drawn[:labels]}) == 8


def test_up_to_ten_labels_are_circles_of_ten_colours(visit):
    keys = find_all(visit("digits"), ".class")
    assert {key.get_attribute("data-shape") for key in keys} == {"circle"}
    assert len({key.get_attribute("data-colour") for key in keys}) == 10


def test_the_marks_on_the_canvas_are_those_of_the_legend(visit):
    browser = visit("eleven")
    find_all(browser, ".classes-head button")[1].click()  # hide all
    shown = browser.execute_script(
        """
        const copy = document.createElement('canvas');
        const pen = copy.getContext('2d', { willReadFrequently: true });
        return [...document.querySelectorAll('.class')].map((button) => {
          button.click();
          const canvas = document.querySelector('.scatter canvas');
          [copy.width, copy.height] = [canvas.width, canvas.height];
          pen.drawImage(canvas, 0, 0);
          const data = pen.getImageData(0, 0, copy.width, copy.height).data;
          const seen = {};
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] > 190) {
              const key = [0, 1, 2].map((c) => data[i + c] >> 3).join();
              seen[key] = (seen[key] ?? 0) + 1;
            }
          }
          button.click();
          return Object.entries(seen).sort((a, b) => b[1] - a[1])[0][0];
        });
        """
    )
    assert len(set(shown)) == 11


def test_the_grouped_labels_are_counted_in_a_note(visit):
    assert "The 6 rarest labels are grouped" in find(visit("forty"), ".classes").text
    assert find_all(visit("forty"), ".class")[-1].text.startswith("other")


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_label_is_readable_in_the_legend(visit, size):
    browser = visit("forty", size)
    texts = [one.text for one in find_all(browser, ".class span")]
    assert texts[0] == "a label of some length, number 0"
    assert all(one.is_displayed() for one in find_all(browser, ".class span"))
    boxes = [one.rect for one in find_all(browser, ".class")]
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            across = one["x"] < other["x"] + other["width"] and other["x"] < one["x"] + one["width"]
            down = one["y"] < other["y"] + other["height"] and other["y"] < one["y"] + one["height"]
            assert not (across and down)
