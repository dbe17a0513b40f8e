"""Headers of text tables that are numbers: detected, refused if unclear, or given."""

import gzip

import numpy as np
import pytest

from eigengame.sources import as_source
from tests.sources.tables import assert_same_blocks, error_of, rows_read

pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
FRACTIONS = RNG.normal(size=(37, 3))
PEOPLE = RNG.integers(10**5, 10**6, size=(37, 3)).astype(float)
GRADES = RNG.integers(0, 6, size=(37, 3)).astype(float)
COUNTRIES = [f"country {i}" for i in range(37)]


def written(path, header, x, first=None):
    """Write a table with integers without a decimal point."""
    whole = bool((x == x.round()).all())
    lines = [",".join(str(int(v)) if whole else repr(float(v)) for v in row) for row in x]
    if first is not None:
        lines = [f"{one},{line}" for one, line in zip(first, lines, strict=True)]
    path.write_text("\n".join([header, *lines] if header else lines) + "\n")
    return path


@pytest.mark.parametrize("x", [FRACTIONS, PEOPLE], ids=["fractions", "people"])
@pytest.mark.parametrize("start", ["country", ""])
def test_years_after_a_column_of_text_are_names(tmp_path, x, start):
    path = written(tmp_path / "x.csv", f"{start},1990,1991,1992", x, COUNTRIES)
    source = as_source(path, columns=["1990", "1991", "1992"])
    assert source.feature_names == ["1990", "1991", "1992"]
    assert_same_blocks(source, x, sizes=(16,))
    if start:
        assert "column 'country' holds text ('country 0' in line 2)" in error_of(as_source, path)
        assert_same_blocks(as_source(path, drop=["country"]), x, sizes=(16,))


@pytest.mark.parametrize("x", [FRACTIONS, PEOPLE], ids=["fractions", "people"])
@pytest.mark.parametrize("header", ["1990,1991,1992", "1990,1995,2000", "2003,2002,2001"])
def test_years_above_numbers_are_names(tmp_path, x, header):
    source = as_source(written(tmp_path / "x.csv", header, x))
    assert source.feature_names == header.split(",")
    assert_same_blocks(source, x, sizes=(16,))


def test_many_counting_names_above_integers_are_names(tmp_path):
    pixels = RNG.integers(0, 256, size=(37, 20)).astype(float)
    source = as_source(written(tmp_path / "x.csv", ",".join(map(str, range(20))), pixels))
    assert source.feature_names == [str(i) for i in range(20)]
    assert_same_blocks(source, pixels, sizes=(16,))


def test_a_mark_for_a_missing_value_is_not_a_name(tmp_path):
    path = written(tmp_path / "x.csv", "?,-0.5,0.25", FRACTIONS)
    assert "column 0 holds text ('?' in line 1)" in error_of(as_source, path)
    assert as_source(path, drop=[0]).shape == (38, 2)


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3"])
def test_counting_names_above_fractions_are_names(tmp_path, header):
    source = as_source(written(tmp_path / "x.csv", header, FRACTIONS))
    assert source.feature_names == header.split(",")
    assert_same_blocks(source, FRACTIONS, sizes=(16,))


@pytest.mark.parametrize(
    ("header", "x"),
    [
        ("0,1,2", GRADES),
        ("1,2,3", GRADES),
        ("1990,1850,2003", PEOPLE),
        ("1990,1850,2003", FRACTIONS),
        ("1990,1991", PEOPLE[:, :2]),
        ("5", FRACTIONS[:, :1]),
        ("1,2,3", FRACTIONS[:1]),
    ],
)
def test_an_ambiguous_first_line_is_refused_with_both_options(tmp_path, header, x):
    path = written(tmp_path / "x.csv", header, x)
    message = error_of(as_source, path)
    assert "line 1" in message
    for option in ("header=True", "--header", "header=False", "--no-header"):
        assert option in message
    assert_same_blocks(as_source(path, header=True), x, sizes=(16,))
    whole = np.vstack([np.array(header.split(","), float), x])
    assert_same_blocks(as_source(path, header=False), whole, sizes=(16,))


def test_text_above_text_beside_integers_of_another_size_is_refused(tmp_path):
    path = written(tmp_path / "x.csv", "place,77,31", GRADES[:, :2], COUNTRIES)
    for options in ({}, {"columns": [1, 2]}):
        message = error_of(as_source, path, **options)
        assert "header=True" in message
        assert "header=False" in message
    assert_same_blocks(as_source(path, header=True, drop="place"), GRADES[:, :2], sizes=(16,))


@pytest.mark.parametrize(
    "x",
    [
        np.arange(111.0).reshape(37, 3),
        np.arange(1.0, 7).reshape(2, 3),
        PEOPLE,
        GRADES + np.array([0.5, 0, 0]),
        np.abs(FRACTIONS),
        np.vstack([[3.0, 1, 2], GRADES]),
        np.ones((37, 3)),
    ],
    ids=["counted", "small", "people", "mixed", "fractions", "grades", "ones"],
)
def test_rows_that_look_like_the_others_are_rows(tmp_path, x):
    assert_same_blocks(as_source(written(tmp_path / "x.csv", None, x)), x, sizes=(16,))


def test_rows_with_text_that_look_like_the_others_are_rows(tmp_path):
    path = written(tmp_path / "x.csv", None, PEOPLE, COUNTRIES)
    assert "column 0 holds text ('country 0' in line 1)" in error_of(as_source, path)
    assert_same_blocks(as_source(path, columns=[1, 2, 3]), PEOPLE, sizes=(16,))
    assert_same_blocks(as_source(path, drop=[0]), PEOPLE, sizes=(16,))


def test_columns_can_be_given_by_number_with_an_explicit_header(tmp_path):
    path = written(tmp_path / "x.csv", "7,3,9", PEOPLE)
    source = as_source(path, header=True, columns=[2, 0])
    assert source.feature_names == ["9", "7"]
    assert_same_blocks(source, PEOPLE[:, [2, 0]], sizes=(16,))
    named = as_source(path, header=True, columns=["9", "7"])
    assert_same_blocks(named, PEOPLE[:, [2, 0]], sizes=(16,))
    text = written(tmp_path / "y.csv", "a,b,c", PEOPLE)
    assert as_source(text, columns=[2, 0]).feature_names == ["c", "a"]
    assert as_source(text, columns=["2", "0"]).feature_names == ["c", "a"]


def test_a_year_may_be_given_as_a_number(tmp_path):
    path = written(tmp_path / "x.csv", "1990,1991,1992", PEOPLE)
    assert as_source(path, columns=[1992, 1990]).feature_names == ["1992", "1990"]
    assert as_source(path, drop=[1991]).feature_names == ["1990", "1992"]


def test_a_number_that_is_a_position_and_another_name_is_refused(tmp_path):
    path = written(tmp_path / "x.csv", "1,2,3", FRACTIONS)
    message = error_of(as_source, path, columns=[1])
    assert "'1'" in message
    assert "'2'" in message
    assert as_source(path, columns=["1"]).feature_names == ["1"]
    assert as_source(path, columns=[0]).feature_names == ["1"]
    assert "no column '0'" in error_of(as_source, path, columns=["0"])


@pytest.mark.parametrize("header", ["yes", 1, None, "True"])
def test_an_invalid_header_option_is_refused(tmp_path, header):
    path = written(tmp_path / "x.csv", "a,b,c", PEOPLE)
    message = error_of(as_source, path, header=header)
    assert f"header={header!r}" in message
    assert "True, False or 'auto'" in message


def test_the_fingerprint_distinguishes_a_header_from_a_row(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"7,3,9\n5,1,2\n4,6,8\n"))
    one, other = as_source(path, header=True), as_source(path, header=False)
    assert one.fingerprint() != other.fingerprint()
    assert len(rows_read(one)) + 1 == len(rows_read(other))
