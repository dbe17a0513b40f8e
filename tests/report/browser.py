"""Headless Chromium: pages at a size, elements, the pointer, and checks of the layout."""

import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
WIDE, PHONE = (1280, 900), (390, 844)

needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed: make browser"
)


def start_browser(downloads):
    """Return a driver that saves downloads in a folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        f"--window-size={WIDE[0]},{WIDE[1]}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    return driver


def open_page(browser, path, size=WIDE, scheme="light"):
    """Open a page, and check that it was drawn."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
    )
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},  # no smooth scrolling
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(path.as_uri())
    assert find(browser, "html").get_attribute("data-drawn") == "yes"
    return browser


def find(browser, selector):
    return browser.find_element("css selector", selector)


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def pixels(browser, selector):
    """Return the content of a canvas as a data URL."""
    return browser.execute_script(f"return document.querySelector({selector!r}).toDataURL()")


def hover(browser, element, across=0, down=0):
    """Scroll to an element, and move the pointer over it once the page has stopped scrolling."""
    from selenium.webdriver import ActionChains

    browser.execute_async_script(
        "arguments[0].scrollIntoView({block: 'center'});"
        "requestAnimationFrame(() => requestAnimationFrame(arguments[1]))",
        element,
    )
    for step in (3, 0):  # the pointer has to move even if it is there already
        ActionChains(browser).move_to_element_with_offset(element, across + step, down).perform()


LAYOUT = """
const width = document.documentElement.clientWidth, found = [];
const name = (e) => `${e.tagName} ${e.getAttribute("class") ?? ""} "${e.textContent.slice(0, 40)}"`;
for (const e of document.body.querySelectorAll("*")) {
  if (!e.getClientRects().length || e.closest(".hidden, .skip, .patterns, #tip, script, noscript")) continue;
  const box = e.getBoundingClientRect();
  const scrolls = e.closest(".table-card, .gallery");
  if (!scrolls && (box.left < -0.5 || box.right > width + 0.5)) found.push(`outside the screen: ${name(e)}`);
  if (e.tagName === "text") {
    const frame = e.ownerSVGElement.getBoundingClientRect();
    if (box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.top < frame.top - 0.5
        || box.bottom > frame.bottom + 0.5) found.push(`clipped: ${name(e)}`);
  } else if (e instanceof HTMLElement && e.clientWidth > 0 && !e.matches(".table-card, .gallery, select, option")
      && e.scrollWidth > e.clientWidth + 1) found.push(`wider than its box: ${name(e)}`);
}
return found;
"""


def layout_faults(browser):
    """Return elements outside the screen, texts that a chart clips, and texts wider than their box."""
    return browser.execute_script(LAYOUT)
