"""Tables on the command line: dropped columns, numeric headers, stored indexes, damaged files."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.cli.label_reader import read_labels
from eigengame.sources import SourceError

from .conftest import FEATURES, ROWS, K
from .test_bad_inputs import assert_error

pytest.importorskip("pyarrow")

NAMES = [f"f{i}" for i in range(FEATURES)]
YEARS = [str(1990 + i) for i in range(FEATURES)]


def load_fitted(done):
    assert done.code == 0, done.err
    return EigenGamePCA.load("m.safetensors")


def test_drop_removes_columns_and_the_model_accepts_the_same_file(run, files, pca):
    table = files / "data.csv"
    found = load_fitted(run("fit", table, "-k", K, "--drop", "kind", "-o", "m.safetensors", "-q"))
    assert list(found.feature_names_in_) == NAMES
    np.testing.assert_allclose(found.explained_variance_, pca.explained_variance_, rtol=1e-4)
    for command in (("transform", "-o", "scores.npy"), ("certify",), ("report", "-o", "r.html")):
        name, *options = command
        done = run(name, "m.safetensors", table, *options)
        assert done.code == 0, done.err
    assert np.load("scores.npy").shape == (ROWS, K)
    done = run("report", "m.safetensors", table, "--labels", "kind", "-o", "labelled.html")
    assert done.code == 0, done.err
    given = run("transform", "m.safetensors", table, "--drop", "kind", "-o", "other.npy")
    assert given.code == 0, given.err
    np.testing.assert_array_equal(np.load("scores.npy"), np.load("other.npy"))


def test_drop_accepts_indices_and_works_with_preparation(run, files, data):
    table = files / "data.csv"
    options = ("-k", K, "--drop", "12,0", "--scale", "two-pass", "-o", "m.safetensors", "-q")
    found = load_fitted(run("fit", table, *options))
    assert list(found.feature_names_in_) == NAMES[1:]
    assert run("transform", "m.safetensors", table, "-o", "scores.npy").code == 0
    load_fitted(run("fit", data, "-k", K, "--drop", "0,3", "-o", "m.safetensors", "--force", "-q"))
    done = run("transform", "m.safetensors", data, "-o", "more.npy", "--json")
    assert json.loads(done.out)["rows"] == ROWS


def test_invalid_drop_is_rejected(run, files):
    table = files / "data.csv"
    assert_error(run("fit", table, "--drop", "knid"), 1, "no column 'knid'", "did you mean 'kind'?")
    assert_error(run("fit", table, "--drop", "kind", "--columns", "f1"), 1, "columns=", "drop=")
    assert_error(run("fit", table), 1, "drop=['kind'] (--drop)")


def years(x, first):
    lines = [",".join([*first, *YEARS])]
    lines += [",".join(["place"] * len(first) + [repr(float(v)) for v in row]) for row in x]
    Path("years.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("first", [["country"], []])
def test_years_in_the_header_are_column_names(run, x, first):
    years(x, first)
    drop = ["--drop", "country"] if first else []
    found = load_fitted(run("fit", "years.csv", "-k", K, *drop, "-o", "m.safetensors", "-q"))
    assert list(found.feature_names_in_) == YEARS
    assert found.n_samples_seen_ == ROWS
    assert run("transform", "m.safetensors", "years.csv", "-o", "scores.npy").code == 0
    assert len(np.load("scores.npy")) == ROWS


def test_an_ambiguous_header_needs_an_option(run, x):
    codes = np.random.default_rng(1).permutation(FEATURES) * 10
    text = "\n".join([",".join(map(str, codes)), *(",".join(map(str, row)) for row in x)])
    Path("codes.csv").write_text(text)
    assert_error(run("fit", "codes.csv", "-k", K), 1, "--header", "--no-header")
    options = ("-k", K, "-o", "m.safetensors", "-q", "--force")
    assert load_fitted(run("fit", "codes.csv", "--header", *options)).n_samples_seen_ == ROWS
    done = run("transform", "m.safetensors", "codes.csv", "--header", "-o", "scores.npy")
    assert done.code == 0, done.err
    assert load_fitted(run("fit", "codes.csv", "--no-header", *options)).n_samples_seen_ == ROWS + 1
    assert run("fit", "codes.csv", "--key", "a", "--header", *options).code == 1


def test_a_stored_index_is_dropped_with_a_message(run, x):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(x, columns=NAMES)
    frame[frame.f0 > 0].to_parquet("sub.parquet")
    done = run("fit", "sub.parquet", "-k", K, "-o", "m.safetensors", "-q", "--json")
    assert json.loads(done.out)["features"] == FEATURES
    assert done.err.startswith("eigengame: sub.parquet: column '__index_level_0__' is an index")
    assert len(done.err.splitlines()) == 1
    assert run("transform", "m.safetensors", "sub.parquet", "-o", "scores.npy").code == 0


def test_a_damaged_gzip_file_is_rejected(run, files):
    whole = bytearray(gzip.compress((files / "data.csv").read_bytes(), mtime=0))
    whole[12:16] = b"\xff" * 4
    Path("bad.csv.gz").write_bytes(whole)
    assert_error(run("fit", "bad.csv.gz", "--drop", "kind", "-q"), 1, "bad.csv.gz", "damaged")


def test_labels_from_a_damaged_gzip_file_and_with_a_given_header(tmp_path):
    whole = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 20000, mtime=0))
    whole[-6] ^= 1
    (tmp_path / "x.csv.gz").write_bytes(whole)
    with pytest.raises(SourceError, match="damaged"):
        read_labels("a", str(tmp_path / "x.csv.gz"))
    (tmp_path / "y.csv").write_text("7,3\n1,2\n4,6\n")
    assert read_labels("3", str(tmp_path / "y.csv"), True) == [2, 6]


def test_columns_and_drop_together_are_rejected_for_a_model(run, x):
    Path("plain.csv").write_text("\n".join(",".join(map(repr, map(float, row))) for row in x))
    options = ("--no-header", "--columns", "0,1,2")
    load_fitted(run("fit", "plain.csv", *options, "-k", 2, "-o", "m.safetensors", "-q"))
    for command in (("transform", "-o", "scores.npy"), ("certify",), ("report",)):
        name, *rest = command
        done = run(name, "m.safetensors", "plain.csv", *options, "--drop", "0,1", *rest)
        assert (done.code, "columns=" in done.err, "drop=" in done.err) == (1, True, True)
