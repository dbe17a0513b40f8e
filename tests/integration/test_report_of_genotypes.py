"""The report of HapMap3: eleven populations with distinct marks, and the ids of the individuals."""

from pathlib import Path

import pandas as pd
import pytest

from eigengame import EigenGamePCA, prepare, write_report
from tests.report.browser import (
    PHONE,
    WIDE,
    find_all,
    layout_faults,
    needs_browser,
    open_page,
    start_browser,
)
from tests.report.models import read_page
from tests.sources.same_rows import real

pytest.importorskip("bed_reader")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    bed = real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed")
    lines = real("genotypes_hapmap3/relationships_w_pops_121708.txt").read_text().splitlines()
    population = {line.split()[1]: line.split()[-1] for line in lines}
    ids = [line.split()[1] for line in Path(bed).with_suffix(".fam").read_text().splitlines()]
    labels = pd.Series([population[one] for one in ids], name="population")
    pca = EigenGamePCA(4, algorithm="exact").fit(prepare(str(bed), genotypes=True))
    target = tmp_path_factory.mktemp("hapmap3") / "report.html"
    return write_report(pca, target, data=str(bed), labels=labels), ids, labels


def test_every_individual_has_its_id_and_population(page):
    path, ids, labels = page
    found = read_page(path)["scores"]
    assert found["ids"] == [ids[row] for row in found["rows"]]
    classes = found["labels"]["classes"]
    assert classes == sorted(set(labels))
    assert [classes[code] for code in found["labels"]["codes"]] == [
        labels[row] for row in found["rows"]
    ]
    assert path.stat().st_size < 700_000


@needs_browser
def test_eleven_populations_have_distinct_colours_and_marks(page, tmp_path):
    pytest.importorskip("selenium")
    browser = start_browser(tmp_path)
    try:
        for size in (WIDE, PHONE):
            for scheme in ("light", "dark"):
                open_page(browser, page[0], size, scheme)
                assert layout_faults(browser) == []
                keys = find_all(browser, ".class")
                assert [key.text.split("\n")[0] for key in keys] == [
                    "ASW", "CEU", "CHB", "CHD", "GIH", "JPT", "LWK", "MEX", "MKK", "TSI", "YRI",
                ]  # fmt: skip
                colours = {key.get_attribute("data-colour") for key in keys}
                assert len(colours) == 11
                assert len({key.get_attribute("data-shape") for key in keys}) == 8
    finally:
        browser.quit()
