"""What every experiment has in common: files, claims, words, a figure, all of them made of its results."""

import json
import re
from pathlib import Path

import pytest
from reproduction.record import read_results

from reproduction import EXPERIMENTS, experiment, page
from tests.integration.test_mnist import IMAGES
from tests.sources.same_rows import real

NEED_MNIST = ("mnist", "scree")
DOCS = Path(__file__).parents[2] / "docs"


def here(name):
    """Skip what needs data that is not here."""
    if name in NEED_MNIST and not IMAGES.exists():
        pytest.skip(f"MNIST is not at {IMAGES}: set EIGENGAME_DATA to the folder that holds mnist/")
    if name == "resnet":
        pytest.importorskip("torch", reason="torch is not installed")
        for part in (_photographs.PHOTOGRAPHS, _photographs.WEIGHTS):
            real(part)
    return name


def test_every_experiment_has_a_file_of_its_name():
    for name in EXPERIMENTS:
        one = experiment(name)
        assert one.TITLE
        assert one.PAPER
    files = {path.stem for path in Path(page.__file__).parent.glob("[a-z]*.py")}
    assert files - {"page"} == {name.replace("-", "_") for name in EXPERIMENTS}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_writes_numbers_claims_and_figures(name, quick):
    folder = quick(here(name))
    results = read_results(folder)
    assert results["quick"] is True
    assert results["experiment"] == name
    claims = json.loads((folder / "claims.json").read_text())
    assert claims
    for claim in claims:
        assert set(claim) == {"claim", "measured", "holds"}
        assert isinstance(claim["holds"], bool)
        assert claim["claim"].endswith(".")
        assert re.search(r"\d", claim["measured"])
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "figure.svg").read_text().rstrip().endswith("</svg>")
    assert (folder / "results.json").stat().st_size < 300_000


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_documentation_shows_what_a_full_run_measured(name):
    """Claims and words are made anew from the results: a number written by hand would differ."""
    folder = DOCS / "reproduction" / name
    results = read_results(folder)
    assert results["quick"] is False
    recorded = json.loads((folder / "claims.json").read_text())
    assert recorded == [claim._asdict() for claim in experiment(name).claims(results)]


def test_the_documentations_page_is_made_of_the_results_alone():
    made = page.markdown(page.sections(DOCS / "reproduction", "reproduction/"))
    assert (DOCS / "reproduction.md").read_text() == made


def test_a_page_shows_quick_runs_as_such_and_marks_what_does_not_hold(quick):
    folder = quick("errors").parent
    found = [one for one in page.sections(folder) if one.name == "errors"]
    claims = [page.Claim("It is so | or not.", "seen 1 < 2", False), *found[0].claims]
    found = [found[0]._replace(claims=claims, words="**A** `b` *c* [d](e.md) & f")]
    text, web = page.markdown(found), page.webpage(found)
    assert "too small to judge by" in text
    assert r"| It is so \| or not. | seen 1 < 2 | **no** |" in text
    assert '<b>A</b> <code>b</code> <i>c</i> <a href="e.md">d</a> &amp; f' in web
    assert '<td class="no">no</td>' in web
    assert "seen 1 &lt; 2" in web


def test_a_folder_without_results_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="run eigengame reproduce all"):
        page.sections(tmp_path)
