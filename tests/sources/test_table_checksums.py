"""Damaged table files: a flipped bit or a missing end raises, and never gives other numbers."""

import gzip

import numpy as np
import pytest

from eigengame.sources import SourceError, as_source, csv
from tests.sources.tables import rows_read

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
TEXT = "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in X)
SPACED = TEXT.replace(",", "  ")


def same_or_refused(path, content, truth=X):
    """Read changed content; return whether it was refused, and check the rows if it was not."""
    path.write_bytes(content)
    try:
        found = rows_read(as_source(path))
    except SourceError:
        return True
    np.testing.assert_array_equal(found, truth)
    return False


@pytest.mark.parametrize(("name", "text"), [("x.csv.gz", TEXT), ("x.tsv.gz", SPACED)])
def test_a_flipped_bit_in_gzip_is_refused(tmp_path, monkeypatch, name, text):
    monkeypatch.setattr(csv, "CHUNK", 256)
    whole = gzip.compress(text.encode(), mtime=0)
    refused = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        refused += same_or_refused(tmp_path / name, bytes(changed))
    # Only the ten header bytes contain values without effect, for example the time.
    assert refused >= len(whole) - 10


def test_a_gzip_that_is_cut_off_anywhere_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "CHUNK", 256)
    whole = gzip.compress(TEXT.encode(), mtime=0)
    assert not same_or_refused(tmp_path / "x.csv.gz", whole)
    for length in range(1, len(whole)):
        assert same_or_refused(tmp_path / "x.csv.gz", whole[:length]), length


def test_every_member_of_a_gzip_is_verified(tmp_path):
    half = len(TEXT) // 2
    one, other = (gzip.compress(part.encode(), mtime=0) for part in (TEXT[:half], TEXT[half:]))
    assert not same_or_refused(tmp_path / "x.csv.gz", one + other)
    for broken in (one[:-8] + b"\0" * 8 + other, one + other[:-1], one + other + b"more"):
        assert same_or_refused(tmp_path / "x.csv.gz", broken)


def test_damage_in_the_first_bytes_is_refused(tmp_path):
    whole = bytearray(gzip.compress(TEXT.encode(), mtime=0))
    whole[10:14] = b"\xff" * 4
    (tmp_path / "x.csv.gz").write_bytes(whole)
    with pytest.raises(SourceError, match=r"x\.csv\.gz cannot be read .*damaged"):
        as_source(tmp_path / "x.csv.gz")


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_flipped_bit_in_a_parquet_page_is_refused(tmp_path, compression):
    path = tmp_path / "x.parquet"
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    pq.write_table(
        table,
        path,
        compression=compression,
        use_dictionary=False,
        row_group_size=20,
        write_page_checksum=True,
    )
    whole, about = path.read_bytes(), pq.ParquetFile(path).metadata
    for group in range(3):
        for column in range(3):
            chunk = about.row_group(group).column(column)
            changed = bytearray(whole)
            changed[chunk.data_page_offset + chunk.total_compressed_size - 9] ^= 4
            assert same_or_refused(path, bytes(changed))
    assert not same_or_refused(path, whole)
