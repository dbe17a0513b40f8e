"""The page in headless Chromium: charts, tooltips, switches, screenshots."""

import base64
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.report.browser import PHONE, WIDE, find, hover, needs_browser, pixels
from tests.report.models import HOSTILE, make_model

selenium = pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")

from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

FOLDER = Path(__file__).parent
CHARTS = ("#scree", "#total", "#angle", "#penalty")

pytestmark = needs_browser


# ---------------------------------------------------------------------- drawing


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("name", ["digits", "loadings", "estimate", "one", "many", "colour"])
def test_every_page_is_drawn_and_fits_the_width_of_the_screen(visit, name, size):
    browser = visit(name, size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    for chart in CHARTS[: 4 if name == "many" else 3]:
        drawn = find(browser, f"{chart} .plot svg")
        assert drawn.size["width"] > 250
        assert drawn.size["height"] > 150
        marks = browser.find_elements(By.CSS_SELECTOR, f"{chart} svg :is(.bar, .mark, .line, .dot)")
        assert any(min(mark.rect["width"], mark.rect["height"]) > 0 for mark in marks)
    shown = find(browser, "#components :is(.picture, .plot svg)")
    assert min(shown.size.values()) > 80
    rows = len(browser.find_elements(By.CSS_SELECTOR, "#table tbody tr"))
    assert (
        rows
        == {"digits": 10, "loadings": 10, "estimate": 6, "one": 1, "many": 200, "colour": 5}[name]
    )


def test_the_height_of_bars_is_proportional_to_variance(visit):
    browser = visit("many")
    heights = [
        float(bar.get_attribute("height")) for bar in browser.find_elements(By.CSS_SELECTOR, ".bar")
    ]
    assert len(heights) == 200
    assert heights[0] / heights[1] == pytest.approx(2, rel=0.01)


def test_every_level_of_trust_has_its_own_style(visit):
    browser = visit("many")
    for level in ("near", "rough", "unsure"):
        assert browser.find_elements(By.CSS_SELECTOR, f"#scree .bar.{level}")
        assert browser.find_elements(By.CSS_SELECTOR, f"#angle .mark.{level}")
    fills = browser.execute_script(
        "return ['near', 'rough', 'unsure'].map(l => getComputedStyle(document.querySelector('.bar.' + l)).fill)"
    )
    assert len(set(fills)) == 3
    assert "within 0.05 rad" in find(browser, "#trust").text


def test_an_estimate_has_no_levels_of_trust_and_explains_missing_penalties(visit):
    browser = visit("estimate")
    assert browser.find_elements(By.CSS_SELECTOR, ".bar.unmeasured")
    assert not browser.find_elements(By.CSS_SELECTOR, ".bar.near, .bar.rough, .bar.unsure")
    assert "Not measured" in find(browser, "#penalty .plot").text
    assert "nothing is guaranteed" in find(browser, "#verdict").text


def test_bounds_and_estimates_have_distinct_marks(visit):
    browser = visit("partly")
    marks = browser.find_elements(By.CSS_SELECTOR, "#angle .mark")
    assert [mark.get_attribute("class") for mark in marks] == [
        "mark near", "mark rough", "mark unsure", "mark near", "mark unmeasured", "mark unmeasured",
    ]  # fmt: skip
    styles = browser.execute_script(
        "return [...document.querySelectorAll('#angle .mark')].map(m => [m.tagName, getComputedStyle(m).fill])"
    )
    assert tuple(styles[4]) not in [tuple(style) for style in styles[:4]]
    assert len(browser.find_elements(By.CSS_SELECTOR, "#angle .stem")) == 2
    assert "estimates" in find(browser, "#angle figcaption").text
    lines = [line.text for line in browser.find_elements(By.CSS_SELECTOR, ".reference-text")]
    assert lines == ["0.05", "π/8"]


def test_the_requested_tolerance_is_a_line(visit):
    browser = visit("digits")
    lines = [line.text for line in browser.find_elements(By.CSS_SELECTOR, "#angle .reference-text")]
    assert lines == ["tol", "π/8"]
    assert "within tol, 0.001 rad" in find(browser, "#trust").text
    assert "judged by the tol of the fit, 0.001 rad" in find(browser, "#verdict").text
    assert "No tol was requested" in find(visit("many"), "#verdict").text


def test_penalties_are_shown_and_explained_for_the_algorithms_of_the_paper_only(visit):
    browser = visit("many")
    note = find(browser, "#penalty figcaption .note").text
    assert "overlap with earlier ones" in note
    assert note.count(". ") == 0  # one sentence
    assert not find(visit("digits"), "#penalty").is_displayed()
    assert "Penalty" not in find(browser, "main").text


def test_the_reason_of_a_missing_bound_is_in_tooltip_and_table(visit):
    browser = visit("partly")
    chart = find(browser, "#angle svg")
    hover(browser, chart, across=int(chart.size["width"] * 0.4) - 10)
    shown = find(browser, "#tip").text
    assert "Component 6" in shown
    assert "estimate, no bound" in shown
    assert "may have been missed" in shown
    cells = [
        row.find_elements(By.TAG_NAME, "td")
        for row in browser.find_elements(By.CSS_SELECTOR, "#table tbody tr")
    ]
    assert [cells[i][5].text for i in (0, 5)] == ["certified", "estimate (level)"]
    assert [cells[i][-1].text != "" for i in (0, 5)] == [False, True]
    assert cells[5][3].text == "–"
    heads = browser.find_elements(By.CSS_SELECTOR, "#table th button")
    cut = "return arguments[0].scrollWidth > arguments[0].clientWidth"
    assert not any(browser.execute_script(cut, head) for head in heads)


def test_without_data_the_page_explains_how_to_get_the_scatter_plot(visit):
    assert "data=X, labels=y" in find(visit("loadings"), "#scores").text


def test_html_in_texts_is_shown_as_text(visit):
    browser = visit("hostile")
    assert find(browser, "h1").text == HOSTILE
    assert find(browser, ".class span").text == HOSTILE
    assert not browser.find_elements(By.CSS_SELECTOR, "h1 b, .class span b, #components b")


def test_dark_pages_are_dark(visit):
    background = "return getComputedStyle(document.body).backgroundColor"
    assert visit("digits").execute_script(background) == "rgb(246, 246, 243)"
    assert visit("digits", scheme="dark").execute_script(background) == "rgb(15, 18, 21)"


# ---------------------------------------------------------------------- hover


@pytest.mark.parametrize("chart", CHARTS)
def test_hover_over_a_chart_shows_the_component(visit, chart):
    browser = visit("many" if chart == "#penalty" else "digits")
    assert not find(browser, "#tip").is_displayed()
    hover(browser, find(browser, f"{chart} .plot svg"))
    assert find(browser, "#tip").is_displayed()
    assert find(browser, "#tip strong").text.startswith("Component ")
    ActionChains(browser).move_to_element(find(browser, f"{chart} h3")).perform()
    assert not find(browser, "#tip").is_displayed()


def test_hover_over_the_scatter_plot_shows_row_label_and_scores(visit):
    browser = visit("digits")
    hover(browser, find(browser, ".scatter"), 30, 10)
    tip = find(browser, "#tip").text
    assert tip.startswith("Row ")
    assert "label" in tip
    assert "component 1" in tip
    assert "component 2" in tip


def test_hover_over_an_image_shows_the_loading(visit):
    browser = visit("colour")
    hover(browser, find(browser, ".picture[data-plane=green]"), 4, 4)
    heading, name, value = find(browser, "#tip").text.split("\n")
    assert (heading, name) == ("Row 5, column 5", "green")
    loading = make_model(k=5, d=300).components_[0].reshape(10, 10, 3)[5, 5, 1]
    assert float(value.replace("−", "-")) == pytest.approx(loading, abs=0.005)


def test_arrow_keys_move_along_a_chart(visit):
    browser = visit("digits")
    find(browser, "#scree .plot svg").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert find(browser, "#tip strong").text == "Component 2"


# ---------------------------------------------------------------------- switches


def test_log_and_linear_switch(visit):
    browser = visit("digits")
    before = find(browser, "#scree svg").get_attribute("innerHTML")
    find(browser, "#scree [data-scale=log]").click()
    after = find(browser, "#scree svg").get_attribute("innerHTML")
    assert before != after
    assert find(browser, "#scree [data-scale=log]").get_attribute("aria-pressed") == "true"
    find(browser, "#scree [data-scale=linear]").click()
    assert find(browser, "#scree svg").get_attribute("innerHTML") == before


def test_axes_of_the_scatter_plot_can_be_chosen(visit):
    browser = visit("digits")
    before = pixels(browser, ".scatter canvas")
    Select(find(browser, "select[data-axis=x]")).select_by_value("3")
    assert pixels(browser, ".scatter canvas") != before
    assert "component 3" in find(browser, ".scatter").get_attribute("aria-label")


def test_a_drag_of_the_mouse_zooms_in_and_a_button_resets_the_zoom(visit):
    browser = visit("digits")
    full = pixels(browser, ".scatter canvas")
    reset = find(browser, "#scores .controls > button")
    assert not reset.is_displayed()
    hover(browser, find(browser, ".scatter"), -60, -60)
    ActionChains(browser).click_and_hold().move_by_offset(120, 90).release().perform()
    assert pixels(browser, ".scatter canvas") != full
    reset.click()
    assert pixels(browser, ".scatter canvas") == full


def test_classes_can_be_switched_off_and_on(visit):
    browser = visit("digits")
    full = pixels(browser, ".scatter canvas")
    first = find(browser, ".class")
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    assert pixels(browser, ".scatter canvas") != full
    first.click()
    assert pixels(browser, ".scatter canvas") == full


def test_the_component_is_switched_by_button_slider_key_thumb_and_click(visit):
    browser = visit("digits")
    seen = [pixels(browser, ".picture")]

    def switched_to(number):
        assert find(browser, "#components h3").text == f"Component {number} of 10"
        seen.append(pixels(browser, ".picture"))

    find(browser, "[aria-label='Next component']").click()
    switched_to(2)
    find(browser, "#components input").send_keys(Keys.ARROW_RIGHT)
    switched_to(3)
    find(browser, "#components .thumb:nth-child(7)").click()
    switched_to(7)
    find(browser, "#components .thumb:nth-child(7)").send_keys(Keys.ARROW_LEFT)
    switched_to(6)
    find(browser, "#table tr[data-component='8']").click()
    switched_to(9)
    hover(browser, find(browser, "#scree .plot svg"))
    ActionChains(browser).click().perform()
    heading = find(browser, "#tip strong").text
    switched_to(int(heading.removeprefix("Component ")))
    assert len(set(seen)) == len(seen)


def test_the_loadings_are_switched_too(visit):
    browser = visit("loadings")
    before = find(browser, "#components .plot").text
    find(browser, "[aria-label='Next component']").click()
    assert find(browser, "#components .plot").text != before


def test_layers_of_a_network_are_drawn_and_select_components(visit):
    browser = visit("layers")
    cells = browser.find_elements(By.CSS_SELECTOR, "#layers .cell")
    assert len(cells) == 2 * 3
    hover(browser, cells[1])
    assert "conv1, component 2" in find(browser, "#tip").text
    cells[1].click()
    assert find(browser, "#components h3").text == "Component 2 of 3"
    assert not visit("loadings").find_element(By.ID, "layers").is_displayed()


def test_the_table_is_sorted_and_copied(visit):
    browser = visit("digits")
    first = "#table tbody tr:first-child"
    assert find(browser, first).get_attribute("data-component") == "0"
    heading = find(browser, "#table th:nth-child(2)")
    heading.find_element(By.TAG_NAME, "button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert find(browser, first).get_attribute("data-component") == "9"
    heading.find_element(By.TAG_NAME, "button").click()
    assert find(browser, first).get_attribute("data-component") == "0"
    browser.execute_script(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
    )
    find(browser, "#copy").click()
    lines = browser.execute_script("return window.copied").split("\n")
    assert lines[0].split("\t")[:3] == ["component", "variance", "share"]
    assert len(lines) == 11
    assert float(lines[1].split("\t")[1]) == pytest.approx(179.0, rel=0.01)


# ---------------------------------------------------------------------- screenshots

PARTS = ("#scree .plot", "#total .plot", ".scatter", ".panels", ".walk")
"""Without the points of angle and penalty: few, small, and for a converged fit at the level of rounding."""
GRID = (32, 20)
TOLERANCE = 2.0
"""Mean difference of cells, out of 255, that is tolerated for fonts and rounding."""


def screenshot_of(browser, selector):
    """Return a screenshot of a part of the page."""
    x, y, width, height = browser.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [box.left + scrollX, box.top + scrollY, box.width, box.height]",
        selector,
    )
    clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


def grids_of(browser):
    """Return every part as a grid of mean colours, one part below the other."""
    return np.concatenate(
        [screenshot_of(browser, part).resize(GRID, Image.Resampling.BOX) for part in PARTS]
    )


def differences(one, other):
    """Return the mean difference of colours of each part, by its name."""
    apart = np.abs(one.astype(float) - other.astype(float))
    return dict(zip(PARTS, apart.reshape(len(PARTS), -1).mean(axis=1).tolist(), strict=True))


@pytest.mark.parametrize(("name", "size"), [("wide", WIDE), ("phone", PHONE)])
def test_the_page_matches_its_reference_screenshot(visit, name, size, tmp_path):
    browser = visit("digits", size)
    whole = screenshot_of(browser, "html")
    whole.save(tmp_path / "seen.png")
    assert whole.size[0] == size[0]
    assert np.asarray(whole, float).std() > 10  # not blank
    seen, reference = grids_of(browser), FOLDER / f"reference_{name}.png"
    if os.environ.get("EIGENGAME_NEW_REFERENCES"):
        Image.fromarray(seen).save(reference, optimize=True)
    with Image.open(reference) as before:
        apart = differences(seen, np.asarray(before.convert("RGB")))
    assert max(apart.values()) < TOLERANCE, (
        f"parts differ by {apart}: see {tmp_path / 'seen.png'}; if the change is intended, "
        "write a new reference with EIGENGAME_NEW_REFERENCES=1"
    )


def test_the_comparison_detects_missing_marks_and_tolerates_fonts(visit):
    browser = visit("digits")
    whole = grids_of(browser)
    style = "const style = document.createElement('style'); style.textContent = arguments[0];"
    style += "document.head.append(style)"
    browser.execute_script(style, "svg text { font-family: monospace !important }")
    assert max(differences(grids_of(browser), whole).values()) < TOLERANCE
    browser.execute_script(style, ":is(.bar, .mark, .line, .under, canvas) { visibility: hidden }")
    assert min(differences(grids_of(browser), whole).values()) > TOLERANCE
    dark = grids_of(visit("digits", scheme="dark"))
    assert min(differences(dark, whole).values()) > TOLERANCE
