"""Certificates in words: kind and reason of each component, and long tables."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from eigengame import Certificate, EigenGamePCA
from eigengame.solver.certificates.certificate_text import (
    LEADING,
    counts,
    findings,
    meaning,
    shortfall,
)
from eigengame.solver.certificates.clusters import Cluster
from eigengame.solver.streams.one_pass import one_pass_block
from tests.game_pca import game_pca

DIGITS = load_digits().data


def make(angle, *, kind="certified", estimate=None, level=0.5, **options):
    """Return a certificate with given angles; variances fall from k to 1."""
    k = len(angle)
    return Certificate(
        kind=kind,
        rayleigh=np.arange(k, 0, -1.0),
        residual=np.full(k, 0.01),
        gap=np.ones(k),
        angle=np.array(angle, float),
        level=level,
        confidence=0.999,
        gradient_angle=np.full(k, np.nan),
        penalty_ratio=np.full(k, np.nan),
        estimate=None if estimate is None else np.array(estimate, float),
        **options,
    )


def streamed(k=8, parts=6, **options):
    settings = {"extra": 8, "probes": 32, "algorithm": "remembered"} | options
    pca = game_pca(k, random_state=0, **settings)
    for rows in np.array_split(DIGITS, parts):
        pca.partial_fit(rows)
    return pca


OPEN = math.pi / 2


def test_the_reason_is_the_condition_that_failed():
    pca = streamed()
    found, stream = pca.certificate_, pca._result.stream
    block, _ = one_pass_block(stream)
    s, error, level = block.strengths, block.coupling, block.level
    causes = [one.cause for one in found.findings()]
    # All three cases occur: bounded, too close to what follows, and too close to what may be missed.
    assert causes[0] == ""
    assert {"gap", "level"} <= set(causes)
    for i, cause in enumerate(causes):
        clear = s[i] > level + 3 * error
        assert (cause == "level") == (not clear)
        if cause == "gap":
            apart = [s[q] - s[q + 1] > 2 * error for q in range(i, 15) if s[q] > level + 3 * error]
            assert not any(apart)
    scale = s[0] / found.rayleigh[0]
    assert f"{(level + 2 * error) / scale:.3g}" in found.findings()[causes.index("level")].reason


def test_a_component_whose_neighbour_is_too_close_says_so_with_the_gap():
    found = make([0.01, OPEN, OPEN, 0.01], estimate=[0.001] * 4, separated=4, coupling=0.01)
    one = found.findings()[1]
    assert (one.known, one.kind) == ("estimate", "estimate (gap)")
    assert "gap to the nearest variance (1)" in one.reason
    assert "components 2 to 3 without a bound: the gap to the nearest variance is" in str(found)


def test_a_refined_certificate_has_reasons_too():
    found = make([0.01, OPEN, OPEN], level=1.5)
    assert [one.kind for one in found.findings()] == [
        "certified", "no bound (gap)", "no bound (level)",
    ]  # fmt: skip
    assert "component 3 without a bound: a direction of variance up to 1.5" in str(found)


@pytest.mark.parametrize("estimate", [None, [0.02, 0.03]])
def test_an_angle_is_either_a_bound_or_labelled_as_an_estimate(estimate):
    found = make([0.01, OPEN], estimate=estimate)
    heading, *rows = str(found).splitlines()[1:4]
    assert heading.split()[4:] == ["bound", *(["estimate"] if estimate else []), "kind"]
    cells = [row.split()[4:] for row in rows]
    if estimate:
        assert cells == [["0.01", "0.02", "certified"], ["-", "0.03", "estimate", "(gap)"]]
    else:
        assert cells == [["0.01", "certified"], ["-", "no", "bound", "(gap)"]]
    shown = [one.angle_text() for one in found.findings()]
    assert shown == ["<= 0.01", "~ 0.03" if estimate else "unknown"]


def test_without_probes_everything_is_an_estimate():
    found = streamed(probes=0).certificate_
    assert {one.known for one in found.findings()} == {"estimate"}
    lines = str(found).splitlines()
    assert lines[0].endswith("no component has a bound")
    assert all(line.split()[4] == "-" and line.endswith("estimate") for line in lines[2:10])
    assert "probes=48" in lines[-1]


def test_a_conditional_bound_is_labelled():
    assert [one.kind for one in make([0.1, 0.2], kind="conditional").findings()] == [
        "conditional"
    ] * 2


def test_a_tied_component_has_the_bound_of_its_span():
    cluster = Cluster(members=(0, 1), angle=1e-4, gap=1.0, spread=1e-9)
    found = make([OPEN, OPEN, 0.2], clusters=(cluster,))
    assert [(one.kind, one.angle) for one in found.findings()] == [
        ("certified span", 1e-4), ("certified span", 1e-4), ("certified", 0.2),
    ]  # fmt: skip
    assert (
        "2 of 3 components within 0.05 rad (2 of them only as part of a span), 1 within a larger angle"
        in str(found)
    )


def test_a_shortfall_names_the_bound_the_gap_and_the_reason():
    assert shortfall(make([0.01, 0.42, 0.01]), [1]) == (
        "bound 0.42 rad, with a gap of 0.5 times its variance to the nearest one"
    )
    several = shortfall(make([0.2, 0.42, OPEN, OPEN], level=1.5), [0, 1, 2, 3])
    assert several.startswith("2 bounds of at most 0.42 rad")
    assert "; 2 without a bound: " in several
    assert shortfall(make([0.01, OPEN]), iter([1])).startswith("no bound: the gap to the nearest")


def test_components_are_counted_by_the_requested_tolerance():
    found = make([0.001, 0.02, 0.5, OPEN])
    assert counts(found).startswith("2 of 4 components within 0.05 rad, 1 within")
    assert counts(found, 0.01).startswith("1 of 4 components within 0.01 rad, 2 within")
    assert counts(make([0.001])) == "1 of 1 component within 0.05 rad"


def test_a_long_table_shows_every_component_that_is_not_certified_within_the_tolerance():
    angle = np.full(200, 0.01)
    angle[[50, 120, 121]] = OPEN, 0.06, OPEN
    lines = str(make(angle)).splitlines()
    numbers = [line.split()[0] for line in lines[2:] if line.startswith("  ")]
    first = [str(i + 1) for i in range(LEADING)]
    assert numbers == [*first, "...", "51", "...", "121", "122"]
    assert f"{200 - LEADING - 3} components are not shown" in str(make(angle))


def test_a_table_without_bounds_shows_all_components():
    text = str(make(np.full(500, OPEN), estimate=np.full(500, 0.1)))
    lines = [line.split()[0] for line in text.splitlines()[2:502]]
    assert lines == [str(i + 1) for i in range(500)]
    assert "components 1 to 500 without a bound" in text


def test_a_variance_of_zero_is_a_reason_of_its_own():
    found = make([0.01, OPEN], estimate=[0.1, OPEN], separated=1, coupling=1e-9, level=0.0)
    found = replace(found, rayleigh=np.array([1.0, 1e-12]))
    assert findings(found)[1].kind == "no bound (rank)"


def test_an_exact_route_is_said_to_be_exact():
    found = EigenGamePCA(3, algorithm="exact").fit(DIGITS).certificate_
    assert meaning(found) == "exact up to rounding, certified"
    assert "probability" not in str(found)
    one_pass = game_pca(3, random_state=0).fit(DIGITS).certificate_
    assert meaning(one_pass) == "certified with probability 0.999"
