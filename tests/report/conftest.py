"""One fit for all reports on real data, one browser, and pages by name."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA
from eigengame.report import write_report
from tests.report.browser import open_page, start_browser
from tests.report.models import HOSTILE, make_layered_model, make_model, make_partly_certified_model


@pytest.fixture(scope="session")
def fitted():
    return EigenGamePCA(10, tol=1e-3, random_state=0).fit(load_digits().data)


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    """Return the folder of downloaded files."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads):
    pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")
    driver = start_browser(downloads)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory, fitted):
    """Return pages by name: digits as images, a one-pass fit with named columns, and corner cases."""
    folder = tmp_path_factory.mktemp("pages")
    digits = load_digits()
    random = np.random.default_rng(0)
    rows = random.normal(size=(80, 12))
    crowd = random.normal(size=(1000, 12))
    titled = {"title": "Handwritten digits"}
    genes = ["HLA-DRB1", "MMMMMMMMMMMM", "WWWWWWWWWW", *(f"HLA-DQA{i}" for i in range(9))]
    dates = np.arange("1998-03-01", "1998-05-20", dtype="datetime64[D]")
    latitudes, longitudes = np.linspace(-85, 85, 6), np.arange(0, 360, 36.0)
    return {
        "digits": write_report(
            fitted, folder / "digits.html", data=digits.data, labels=digits.target,
            image_shape=(8, 8), **titled,
        ),
        "loadings": write_report(fitted, folder / "loadings.html", **titled),
        "estimate": write_report(
            make_model(k=6, kind="estimate", route="alpha"), folder / "estimate.html", data=rows,
            labels=rows[:, 0], feature_names=[f"a rather long name of feature {i}" for i in range(12)],
        ),
        "one": write_report(make_model(k=1), folder / "one.html", data=rows),
        "partly": write_report(make_partly_certified_model(), folder / "partly.html"),
        "layers": write_report(make_layered_model(), folder / "layers.html"),
        "many": write_report(make_model(k=200, d=210, route="alpha"), folder / "many.html"),
        "colour": write_report(make_model(k=5, d=300), folder / "colour.html", image_shape=(10, 10, 3)),
        "hostile": write_report(
            make_model(), folder / "hostile.html", data=rows, labels=[HOSTILE, "b"] * 40,
            feature_names=[HOSTILE + str(i) for i in range(12)], title=HOSTILE,
            ids=[HOSTILE] * 80, overlay=rows[:5], overlay_name=HOSTILE, overlay_ids=[HOSTILE] * 5,
        ),
        "eleven": write_report(
            make_model(), folder / "eleven.html", data=crowd,
            labels=[f"population {i % 11}" for i in range(1000)],
        ),
        "forty": write_report(
            make_model(), folder / "forty.html", data=crowd,
            labels=[f"a label of some length, number {i % 45}" for i in range(1000)],
        ),
        "years": write_report(
            make_model(), folder / "years.html", data=2000 * rows, labels=1940 + np.arange(80),
            time=1940 + np.arange(80), feature_names=genes,
        ),
        "time": write_report(
            make_model(), folder / "time.html", data=rows, time=dates,
            ids=[f"sample-{i}" for i in range(80)], overlay=rows[:30] + 5, overlay_name="new rows",
            overlay_ids=[f"new-{i}" for i in range(30)],
        ),
        "map": write_report(
            make_model(d=60), folder / "map.html", coordinates=(latitudes, longitudes),
        ),
        "wide": write_report(
            make_model(k=2, d=60_000), folder / "wide.html",
            feature_names=["=1+1", *(f"gene,{i}" for i in range(1, 60_000))],
        ),
    }  # fmt: skip


@pytest.fixture
def visit(browser, pages):
    """Return a function that opens a page at a size; the browser must log no warnings."""
    yield lambda name, *size, **options: open_page(browser, pages[name], *size, **options)
    warnings = [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]
    assert warnings == []
