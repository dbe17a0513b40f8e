"""PLINK genotypes: individuals as rows, missing calls as NaN, stripes that fit in memory, and errors."""

import pickle

import numpy as np
import pytest

from eigengame import prepare, shuffled
from eigengame.sources import SourceError, as_source
from eigengame.sources.plink import BedSource
from tests.sources.same_rows import assert_read_on_a_thread, real
from tests.sources.tables import assert_same_blocks, error_of, same_fingerprint

bed_reader = pytest.importorskip("bed_reader")

CALLS = np.random.default_rng(0).integers(0, 4, size=(37, 10)).astype(np.float32)
CALLS[CALLS == 3] = np.nan
NAMES = [f"rs{i}" for i in range(10)]


def bed(path, calls=CALLS, **options):
    bed_reader.to_bed(path, calls, properties={"sid": NAMES[: calls.shape[1]]}, **options)
    return path


def test_rows_are_individuals_and_missing_calls_nan(tmp_path):
    source = as_source(bed(tmp_path / "x.bed"))
    assert_same_blocks(source, CALLS)
    assert source.shape == (37, 10)
    assert source.dtype == np.float32
    assert source.feature_names == NAMES
    assert source.row_ids() == [f"iid{i + 1}" for i in range(37)]
    assert prepare(source, genotypes=True).row_ids() == source.row_ids()
    assert_read_on_a_thread(source, CALLS)


def test_positions_and_both_ids_are_read(tmp_path):
    path = bed(tmp_path / "x.bed")
    path.with_suffix(".bim").write_text(
        "".join(f"2 {name} 0 {i} A G\n" for i, name in enumerate(NAMES))
    )
    path.with_suffix(".fam").write_text("".join(f"f{i % 5} i{i} 0 0 1 1\n" for i in range(37)))
    source = as_source(path)
    assert source.positions[:2] == ["2:0", "2:1"]
    ids = source.id_columns()
    assert list(ids) == ["FID", "IID"]
    assert (ids["FID"][6], ids["IID"][6]) == ("f1", "i6")
    mixed = shuffled(source, 3)
    assert mixed.row_ids() == [f"i{i}" for i in mixed.order()]
    assert mixed.id_columns()["FID"] == [f"f{i % 5}" for i in mixed.order()]
    both = as_source([path, path])
    assert both.id_columns()["IID"] == ids["IID"] * 2
    assert both.row_ids() == ids["IID"] * 2
    assert prepare(both, columns=["rs3"], genotypes=True).positions == ["2:3"]


@pytest.mark.parametrize("given", ["x.v1", "x.v1.bim", "x.v1.fam"])
def test_a_prefix_stands_for_its_bed_file(tmp_path, given):
    path = bed(tmp_path / "x.v1.bed")
    source = as_source(tmp_path / given)
    assert source.name == str(path)
    assert_same_blocks(source, CALLS)
    assert_same_blocks(pickle.loads(pickle.dumps(source)), CALLS)
    assert "does not exist" in error_of(as_source, tmp_path / "y")


def test_some_snps_are_decoded_in_any_order(tmp_path):
    chosen = as_source(bed(tmp_path / "x.bed"), memory=50).only(np.array([7, 2, 3]))
    assert_same_blocks(chosen, CALLS[:, [7, 2, 3]])
    assert chosen.feature_names == ["rs7", "rs2", "rs3"]
    assert_same_blocks(chosen.only(np.array([2, 0])), CALLS[:, [3, 7]])


def test_files_stored_by_individuals_are_read(tmp_path):
    assert_same_blocks(as_source(bed(tmp_path / "x.bed", major="individual")), CALLS)


def test_calls_that_fit_are_decoded_once(tmp_path, monkeypatch):
    stripes = watched_stripes(monkeypatch)
    assert_same_blocks(as_source(bed(tmp_path / "x.bed")), CALLS)
    assert stripes == [(0, 37)]


@pytest.mark.parametrize("memory", [1, 50, 100, 369])
def test_calls_that_do_not_fit_are_decoded_in_stripes(tmp_path, monkeypatch, memory):
    stripes = watched_stripes(monkeypatch)
    source = as_source(bed(tmp_path / "x.bed"), memory=memory)
    assert_same_blocks(source, CALLS)
    stripes.clear()
    list(source.blocks(0, 4))
    most = max(memory // 10, 4)
    assert all(last - first <= most for first, last in stripes)
    assert len(stripes) <= -(-37 // max(most - 3, 4))


def watched_stripes(monkeypatch):
    """Return a list to which the range of individuals of every decoded stripe is appended."""
    stripes = []
    real_read = bed_reader.open_bed.read

    def read(self, index, **options):
        stripes.append((index[0].start, index[0].stop))
        return real_read(self, index, **options)

    monkeypatch.setattr(bed_reader.open_bed, "read", read)
    return stripes


# ---------------------------------------------------------------- what is refused


def test_a_missing_file_is_named(tmp_path):
    assert "does not exist" in error_of(as_source, tmp_path / "x.bed")
    assert "is not a file" in error_of(BedSource, tmp_path / "x.bed")


@pytest.mark.parametrize("ending", [".bim", ".fam"])
def test_a_missing_bim_or_fam_is_reported(tmp_path, ending):
    path = bed(tmp_path / "x.bed")
    path.with_suffix(ending).unlink()
    assert f"x{ending} is missing" in error_of(as_source, path)
    path.with_suffix(ending).touch()
    assert f"x{ending} is empty" in error_of(as_source, path)
    path.with_suffix(ending).write_text("alone\n")
    assert "line 1 has one field" in error_of(as_source, path)


@pytest.mark.parametrize("change", [-1, -50, 1])
def test_a_file_of_wrong_length_is_refused(tmp_path, change):
    path = bed(tmp_path / "x.bed")
    whole = path.read_bytes()
    path.write_bytes(whole[:change] if change < 0 else whole + b"\0")
    message = error_of(as_source, path)
    assert f"has {103 + change} bytes, but 37 individuals and 10 SNPs need 103" in message
    assert "truncated" in message


@pytest.mark.parametrize("start", [b"abc", b"\x6c\x1b\x07", b"\x6c"])
def test_a_file_that_is_not_bed_is_refused(tmp_path, start):
    path = bed(tmp_path / "x.bed")
    path.write_bytes(start + path.read_bytes()[3:] if len(start) == 3 else start)
    assert "is not a PLINK 1 .bed file" in error_of(as_source, path)


def test_zero_individuals_are_refused(tmp_path):
    path = bed(tmp_path / "x.bed")
    path.with_suffix(".fam").write_text("\n")
    path.write_bytes(path.read_bytes()[:3])
    assert "x.fam is empty" in error_of(as_source, path)


def test_a_file_that_shrinks_while_it_is_read_is_reported(tmp_path):
    source = as_source(bed(tmp_path / "x.bed"), memory=1)
    path = tmp_path / "x.bed"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(SourceError, match="individuals 8 to 16 cannot be read"):
        next(source.blocks(8, 8))


@pytest.mark.parametrize("ending", [".bed", ".bim", ".fam"])
def test_a_changed_file_changes_the_fingerprint(tmp_path, ending):
    path = bed(tmp_path / "x.bed")
    one = as_source(path)
    before = one.fingerprint()
    assert same_fingerprint(one, as_source(path))
    changed = path.with_suffix(ending)
    changed.write_bytes(changed.read_bytes() + b"\n")
    assert one.fingerprint() != before


# ---------------------------------------------------------------- real genotypes


def test_hapmap3_has_its_shape_names_and_missing_rate():
    source = as_source(real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed"))
    assert source.shape == (957, 14079)
    assert len(set(source.feature_names)) == 14079
    blocks = [block.values for block in source.blocks(0, 256)]
    assert [len(block) for block in blocks] == [256, 256, 256, 189]
    calls = np.vstack(blocks)
    assert set(np.unique(calls[~np.isnan(calls)])) == {0, 1, 2}
    assert np.isnan(calls).mean() == pytest.approx(0.00153, abs=5e-6)


def test_hapmap3_in_stripes_equals_hapmap3_at_once():
    path = real("genotypes_hapmap3/HM3_thinned_autosomal_overlap.bed")
    once = next(BedSource(path).blocks(300, 200)).values
    striped = next(BedSource(path, memory=14079 * 50).blocks(300, 200)).values
    np.testing.assert_array_equal(once, striped)
