import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from reproduction.experiments import sphere
from tests import oracle


@pytest.fixture(scope="module")
def seen(results):
    return results("sphere")


@pytest.fixture(scope="module")
def extras(quick):
    return [quick("sphere") / name for name in ("animation.gif", "animation.html")]


def test_all_players_of_all_trials_end_on_their_axes(seen):
    for ends in seen["ends"].values():
        assert np.shape(ends) == (10, 3)
        assert np.max(ends) < 0.1
    np.testing.assert_allclose(seen["way"][-1], np.eye(3), atol=1e-3)


def test_players_stay_on_the_unit_sphere(seen):
    np.testing.assert_allclose(np.linalg.norm(seen["way"], axis=-1), 1, atol=1e-3)


def test_flipping_the_sign_of_players_does_not_change_the_game():
    root = np.diag(np.sqrt([3.0, 2.0, 1.0]))
    players = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] + 0.2
    players /= np.linalg.norm(players, axis=1, keepdims=True)
    signs = np.array([[-1.0], [1], [-1]])
    np.testing.assert_allclose(
        oracle.algorithm_2(root, signs * players, 0.01),
        signs * oracle.algorithm_2(root, players, 0.01),
    )
    way = np.stack([players, -np.eye(3)])
    np.testing.assert_allclose(sphere.with_positive_ends(way), np.stack([-players, np.eye(3)]))


def test_an_arrival_counts_only_if_no_player_leaves_again():
    angles = np.array([[50, 0.5, 2, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1]])[:, :, None]
    results = {"angles": angles, "iterations": [0, 10, 20, 30, 40]}
    assert sphere.last_arrival(results, 0) == 30
    assert sphere.last_arrival({**results, "angles": np.full((1, 5, 1), 0.1)}, 0) == 0
    assert sphere.last_arrival({**results, "angles": np.full((1, 5, 1), 9.0)}, 0) is None


def test_the_animation_moves_and_is_small(extras):
    with Image.open(extras[0]) as picture:
        assert picture.n_frames > 1
    assert extras[0].stat().st_size < 1_000_000


def test_the_page_contains_its_numbers_and_loads_nothing(extras, seen):
    page = extras[1].read_text(encoding="utf-8")
    held = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert held["way"] == seen["way"]
    assert held["angles"] == seen["angles"][sphere.SHOWN]
    assert not re.search(r"https?:|src=|import ", page)


def test_the_page_draws_and_rotates_in_a_browser(extras):
    pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
    from selenium import webdriver
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("chromium and chromedriver are not installed: make browser")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument("--force-prefers-reduced-motion")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.get(extras[1].as_uri())
        canvas = browser.find_element(By.ID, "scene")
        pixels = "return document.getElementById('scene').toDataURL()"
        before = browser.execute_script(pixels)
        # With reduced motion the animation starts paused.
        assert browser.find_element(By.ID, "play").text == "Play"
        assert "iteration 0" in browser.find_element(By.ID, "now").text
        ActionChains(browser).click_and_hold(canvas).move_by_offset(60, 20).release().perform()
        assert browser.execute_script(pixels) != before
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    finally:
        browser.quit()


def test_the_summary_depends_on_arrivals(stored):
    results = stored("sphere")
    assert "player 1 by iteration 345" in sphere.summary(results)
    results["angles"][0][-1][0] = 45.0
    assert "player 1 not in all trials" in sphere.summary(results)
