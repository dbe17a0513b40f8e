"""Properties of every experiment: its module, its record, and the page of the documentation."""

import json
import re
from pathlib import Path

import pytest

from reproduction import EXPERIMENTS, experiment, page
from reproduction.base import Claim, Verdict
from reproduction.record import read_results
from tests.reproduction.conftest import DOCS

SMALLEST = "sphere"
"""The experiment that the fast tests run from end to end."""


def test_every_experiment_has_a_module_of_its_name():
    for name in EXPERIMENTS:
        one = experiment(name)
        assert one.TITLE
        assert one.PAPER
        for part in ("measure", "claims", "draw", "summary", "reading"):
            assert callable(getattr(one, part))


def test_every_module_belongs_to_an_experiment():
    folder = Path(page.__file__).parent / "experiments"
    names = [name.replace("-", "_") for name in EXPERIMENTS]
    for path in folder.iterdir():
        assert path.name.startswith("__") or path.stem.startswith(tuple(names))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == SMALLEST else pytest.mark.slow)
        for name in EXPERIMENTS
    ],
)
def test_a_quick_run_writes_numbers_claims_and_figures(name, quick):
    folder = quick(name)
    results = read_results(folder)
    assert results["quick"] is True
    assert results["experiment"] == name
    claims = json.loads((folder / "claims.json").read_text())
    assert claims
    for claim in claims:
        assert set(claim) == {"claim", "measured", "verdict", "reading", "ours"}
        assert claim["verdict"] in list(Verdict)
        assert claim["reading"]
        assert claim["claim"].endswith(".")
        assert re.search(r"\d", claim["measured"])
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "figure.svg").read_text().rstrip().endswith("</svg>")
    assert (folder / "results.json").stat().st_size < 300_000
    assert "a quick run, too small for conclusions" in page.page(folder.parent)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_stored_claims_follow_from_the_stored_results(name, stored):
    results = stored(name)
    assert results["quick"] is False
    recorded = json.loads((DOCS / "reproduction" / name / "claims.json").read_text())
    assert recorded == [claim._asdict() for claim in experiment(name).claims(results)]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_texts_are_made_of_sentences(name, stored):
    module, results = experiment(name), stored(name)
    for text in (module.summary(results), module.reading(results)):
        assert text[0].isupper() or text[0].isdigit() or text[0] == "`"
        assert text.endswith(".")
        assert "  " not in text
        assert not re.search(r"\bNone\b|\bnan\b|\binf\b", text)


def test_the_page_of_the_documentation_follows_from_the_stored_results():
    made = page.page(DOCS / "reproduction", "reproduction/")
    assert (DOCS / "reproduction.md").read_text() == made


HOLDS, FAILS = (
    Claim("It is so | or not.", "1 < 2", verdict, reading)
    for verdict, reading in ((Verdict.HOLDS, "centred"), (Verdict.DOES_NOT_HOLD, "as given"))
)
OURS = Claim("It is ours.", "1", Verdict.HOLDS, "any", ours=True)
OTHER = Claim("It is.", "1", Verdict.NOT_COMPARABLE, "another network")


def test_a_table_shows_reading_and_verdict_and_marks_claims_that_do_not_hold():
    assert page.claims_table([HOLDS, FAILS, OURS]).splitlines()[2:] == [
        r"| It is so \| or not. | centred | 1 < 2 | holds |",
        r"| It is so \| or not. | as given | 1 < 2 | **does not hold** |",
        "| It is ours. (Our own claim.) | any | 1 | holds |",
    ]


def test_readings_that_disagree_are_one_claim_that_depends_on_the_reading():
    assert page.verdicts([HOLDS]) == {HOLDS.claim: "holds"}
    assert page.verdicts([HOLDS, HOLDS]) == {HOLDS.claim: "holds"}
    assert page.verdicts([HOLDS, FAILS]) == {HOLDS.claim: page.DEPENDS}
    assert page.verdicts([FAILS, HOLDS, FAILS]) == {HOLDS.claim: page.DEPENDS}


def test_the_table_of_verdicts_counts_the_claims_of_the_paper():
    table = page.verdict_table({"one": [HOLDS, FAILS, OURS], "two": [OTHER, FAILS]}, "{0}")
    assert table.splitlines() == [
        "| experiment | holds | does not hold | not comparable | depends on the reading |",
        "|---|---|---|---|---|",
        "| one |  |  |  | 1 |",
        "| two |  | 1 | 1 |  |",
        "| all | 0 | 1 | 1 | 1 |",
    ]


def test_a_folder_without_results_is_an_error_with_the_command_to_run(tmp_path):
    with pytest.raises(ValueError, match="run python -m reproduction all"):
        page.page(tmp_path)


def test_the_errata_page_names_tests_that_exist():
    names = set(re.findall(r"`(test_\w+)`", (DOCS / "errata.md").read_text()))
    found = "".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert not {name for name in names if f"def {name}(" not in found}
