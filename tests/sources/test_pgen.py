"""PLINK 2 genotypes: dosages, headers of .pvar and .psam, and errors.

The tests run with pgenlib where it is installed, and everywhere with a stand-in for the documented part of its
interface that the source uses.
"""

import sys
import types

import numpy as np
import pytest

from eigengame import EigenGamePCA, prepare
from eigengame.sources import as_source
from tests.sources.tables import assert_same_blocks, error_of

N, D = 23, 9
CALLS = np.random.default_rng(0).integers(0, 4, size=(N, D)).astype(np.float32)
CALLS[CALLS == 3] = np.nan
IDS = [f"rs{i}" for i in range(D)]
PVAR = "".join(f"1\t{100 + i}\trs{i}\tG\tA\n" for i in range(D))
PSAM = "".join(f"f{i}\ti{i}\t1\n" for i in range(N))


class StandIn:
    """The part of `pgenlib.PgenReader` that is used, on a NumPy file of calls (n, d) with -9 for missing ones."""

    def __init__(self, filename, raw_sample_ct=None, variant_ct=None, sample_subset=None):
        with open(filename, "rb") as file:
            self._calls = np.load(file)
        if self._calls.shape != (raw_sample_ct, variant_ct):
            raise RuntimeError("sample_ct or variant_ct does not match")
        self.change_sample_subset(sample_subset)

    def change_sample_subset(self, sample_subset=None):
        assert sample_subset.dtype == np.uint32 if sample_subset is not None else True
        self._rows = slice(None) if sample_subset is None else sample_subset

    def read_dosages_list(self, variant_idxs, floatarr_out, allele_idx=1):
        assert variant_idxs.dtype == np.uint32
        assert floatarr_out.flags.c_contiguous
        floatarr_out[:] = self._calls[self._rows][:, variant_idxs].T


@pytest.fixture(params=["stand-in", "pgenlib"])
def write(request, monkeypatch, tmp_path):
    """Return a function that writes the three files, and gives the path of the .pgen."""
    if request.param == "pgenlib":
        pgenlib = pytest.importorskip("pgenlib", reason="pgenlib is not installed")
    else:
        module = types.ModuleType("pgenlib")
        module.PgenReader = StandIn
        monkeypatch.setitem(sys.modules, "pgenlib", module)

    def written(pvar=f"##x=1\n#CHROM\tPOS\tID\tREF\tALT\n{PVAR}", psam=f"#FID\tIID\tSEX\n{PSAM}"):
        path = tmp_path / "x.pgen"
        calls = np.where(np.isnan(CALLS), -9, CALLS).astype(np.int8)
        if request.param == "pgenlib":
            with pgenlib.PgenWriter(
                str(path).encode(), N, variant_ct=D, nonref_flags=False
            ) as writer:
                for variant in calls.T:
                    writer.append_biallelic(np.ascontiguousarray(variant))
        else:
            with path.open("wb") as file:
                np.save(file, calls)
        path.with_suffix(".pvar").write_text(pvar)
        path.with_suffix(".psam").write_text(psam)
        return path

    return written


@pytest.mark.parametrize("memory", [1, 4 * D * 5, 2**20])
def test_rows_are_individuals_and_missing_calls_nan(write, memory):
    source = as_source(write(), memory=memory)
    assert_same_blocks(source, CALLS)
    assert source.feature_names == IDS
    assert source.alleles == ["A/G"] * D
    assert source.positions == [f"1:{100 + i}" for i in range(D)]
    assert source.id_columns()["FID"] == [f"f{i}" for i in range(N)]
    assert source.row_ids() == [f"i{i}" for i in range(N)]
    some = np.array([5, 0, 7])
    assert_same_blocks(source.only(some), CALLS[:, some])


def test_files_without_a_header_have_the_columns_of_bim_and_fam(write):
    bim = "".join(f"1 rs{i} 0 {100 + i} A G\n" for i in range(D))
    source = as_source(write(bim, PSAM).with_suffix(""))
    assert (source.feature_names, source.alleles) == (IDS, ["A/G"] * D)
    assert source.positions[3] == "1:103"
    assert list(source.id_columns()) == ["FID", "IID"]


def test_individuals_may_have_no_family(write):
    psam = "#IID\n" + "".join(f"i{i}\n" for i in range(N))
    source = as_source(write(psam=psam))
    assert source.id_columns() == {"IID": [f"i{i}" for i in range(N)]}
    pca = EigenGamePCA(2, algorithm="exact").fit(prepare(source, genotypes=True))
    assert pca.sample_ids_[3].tolist() == ["0", "i3"]


def test_a_model_of_a_bed_file_aligns_a_pgen_file(write, tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    about = {"sid": IDS[::-1], "allele_1": ["G"] * D, "allele_2": ["A"] * D}
    bed_reader.to_bed(tmp_path / "y.bed", 2 - CALLS[:, ::-1], properties=about)
    pca = EigenGamePCA(2, algorithm="exact").fit(prepare(tmp_path / "y.bed", genotypes=True))
    path = write()
    np.testing.assert_array_equal(pca.transform(path), pca.transform(tmp_path / "y.bed"))
    assert pca.align(path).alignment.n_flipped == D


def test_several_alternative_alleles_are_refused(write):
    path = write(f"#CHROM\tPOS\tID\tREF\tALT\n{PVAR}".replace("rs4\tG\tA", "rs4\tG\tA,T"))
    assert "rs4 has several alternative alleles (A,T)" in error_of(as_source, path)


def test_other_numbers_of_variants_or_individuals_are_refused(write):
    path = write(psam=f"#FID\tIID\n{PSAM}f99\ti99\n")
    assert "cannot be read with its .pvar and .psam" in error_of(as_source, path)


@pytest.mark.parametrize(
    ("pvar", "psam", "message"),
    [
        ("#CHROM\tPOS\tID\tREF\n1\t1\trs0\tG\n", PSAM, "has no column ALT"),
        ("#CHROM\tPOS\tID\tREF\tALT\n1\t1\n", PSAM, "has 2 fields: 5 are needed"),
        ("", PSAM, "x.pvar is empty"),
        (PVAR, "#FID\tSEX\nf0\t1\n", "has no individuals with an IID"),
        (PVAR, "#FID\tIID\nf0\n", "has no IID"),
    ],
)
def test_incomplete_tables_are_refused(write, pvar, psam, message):
    pvar = f"#CHROM\tPOS\tID\tREF\tALT\n{pvar}" if pvar == PVAR else pvar
    assert message in error_of(as_source, write(pvar, psam))


def test_a_compressed_pvar_is_refused(write):
    path = write()
    path.with_suffix(".pvar").rename(f"{path.with_suffix('.pvar')}.zst")
    assert "plink2 --zst-decompress" in error_of(as_source, path)


def test_a_prefix_of_two_files_is_refused(write):
    path = write()
    path.with_suffix(".bed").touch()
    assert "give one of them" in error_of(as_source, path.with_suffix(""))
    assert as_source(path.with_suffix(".psam")).name == str(path)


def test_without_pgenlib_the_message_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pgenlib", None)
    (tmp_path / "x.pgen").write_bytes(b"x")
    message = error_of(as_source, tmp_path / "x.pgen")
    assert message == 'Pgenlib is needed to read this data: pip install "eigengame[pgen]".'
