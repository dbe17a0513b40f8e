"""Genotypes on the command line: prefixes, alignment of SNPs, and tables of scores with ids."""

import json
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA
from tests.estimator.test_genotypes import ALLELES, IDS, K, N, population
from tests.sources.genotype_files import recoded, write_bed

PEOPLE = {"fid": [f"f{i}" for i in range(N)], "iid": [f"i{i}" for i in range(N)]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a reference, its model, and the same individuals recoded."""
    folder = tmp_path_factory.mktemp("genotypes")
    calls = population(0)
    write_bed(folder / "reference.bed", calls, IDS, ALLELES, **PEOPLE)
    (other, ids, alleles), _ = recoded(calls, IDS, ALLELES, 0, missing=0)
    write_bed(folder / "other.bed", other, ids, alleles, **PEOPLE)
    write_bed(folder / "some.bed", other[:, 20:], ids[20:], alleles[20:], **PEOPLE)
    return folder


@pytest.fixture
def model(run, folder):
    path = folder / "model.safetensors"
    if not path.exists():
        options = ("-k", K, "--algorithm", "exact", "--genotypes", "-q", "-o", path)
        assert run("fit", folder / "reference", *options).code == 0
    return path


def test_a_prefix_can_be_fitted_transformed_and_reported(run, folder, model):
    done = run("transform", model, folder / "reference", "-q")
    assert "Written: reference-scores.npy, 60 rows of 3 scores" in done.out
    assert run("report", model, folder / "reference").code == 0
    assert '"i59"' in Path("model.html").read_text()


def test_a_fit_without_standardisation_prints_one_message(run, folder):
    done = run("fit", folder / "reference", "-k", K, "--algorithm", "exact", "-q")
    assert done.code == 0
    assert [line for line in done.err.splitlines() if "standardisation" in line] == [
        f"eigengame: {folder / 'reference.bed'}: genotypes are fitted without standardisation, so that components "
        "are dominated by common SNPs: pass prepare(data, genotypes=True), or --genotypes on the command line."
    ]


def test_recoded_genotypes_are_aligned_and_the_numbers_are_printed(run, folder, model):
    assert run("transform", model, folder / "reference", "-o", "one.npy", "-q").code == 0
    done = run("transform", model, folder / "other", "-o", "other.npy", "-q", "--json")
    np.testing.assert_array_equal(np.load("one.npy"), np.load("other.npy"))
    found = json.loads(done.out)["alignment"]
    assert found["matched"] + found["flipped"] == found["snps"] == 80
    assert f"{found['flipped']} with swapped alleles (flipped)" in done.err


def test_missing_snps_need_intersect(run, folder, model):
    done = run("transform", model, folder / "some", "-q")
    assert (done.code, "--intersect" in done.err, "20 missing" in done.err) == (1, True, True)
    done = run(
        "transform",
        model,
        folder / "some",
        "--intersect",
        "--ambiguous",
        "drop",
        "-o",
        "x.npy",
        "-q",
    )
    assert done.code == 0
    assert "noise variance grows by a factor of up to" in done.err
    pca = EigenGamePCA.load(model)
    aligned = pca.align(folder / "some", intersect=True, ambiguous="drop")
    np.testing.assert_array_equal(np.load("x.npy"), pca.transform(aligned))
    assert run("report", model, folder / "some", "--intersect").code == 0
    assert run("report", model, folder / "some", "-o", "x.html").code == 1
    assert run("report", model, "--intersect", "-o", "x.html").code == 2


def test_options_for_genotypes_are_refused_for_other_data(run, data, files, folder, model):
    rows = EigenGamePCA(K, algorithm="exact").fit(np.load(data)).save(folder / "rows.safetensors")
    done = run("transform", rows, data, "--intersect")
    assert (done.code, "need PLINK genotypes" in done.err) == (1, True)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".eigenvec", ".parquet"])
def test_tables_of_scores_begin_with_the_ids(run, folder, model, ending):
    assert run("transform", model, folder / "reference", "-o", f"x{ending}", "-q").code == 0
    if ending == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table("x.parquet").to_pandas()
        header, rows = list(table.columns), table.astype(str).to_numpy().tolist()
    else:
        lines = Path(f"x{ending}").read_text().splitlines()
        split = "," if ending == ".csv" else "\t"
        header, *rows = [line.split(split) for line in lines]
    names = (
        ["#FID", "IID", "PC1", "PC2", "PC3"]
        if ending == ".eigenvec"
        else ["FID", "IID", "pc1", "pc2", "pc3"]
    )
    assert header == names
    assert [row[:2] for row in rows] == [[f"f{i}", f"i{i}"] for i in range(N)]
    scores = EigenGamePCA.load(model).transform(folder / "reference")
    np.testing.assert_array_equal(np.array([row[2:] for row in rows], np.float32), scores)


def test_an_eigenvec_needs_ids(run, files, data):
    rows = (
        EigenGamePCA(K, algorithm="exact")
        .fit(np.load(data))
        .save(Path("rows.safetensors").absolute())
    )
    done = run("transform", rows, data, "-o", "x.eigenvec")
    assert (done.code, "has no ids of its rows" in done.err) == (1, True)
    assert not Path("x.eigenvec").exists()


def test_scores_of_new_individuals_are_corrected_for_shrinkage(run, folder, model):
    done = run("transform", model, folder / "reference", "--correct-shrinkage", "-q")
    assert (done.code, "60 of 60 individuals are in the fit" in done.err) == (1, True)
    new = write_bed(folder / "new.bed", population(3), IDS, ALLELES)
    # Three groups span two directions.
    assert np.isnan(EigenGamePCA.load(model).score_shrinkage()).tolist() == [False, False, True]
    done = run("transform", model, new, "--correct-shrinkage", "-q")
    assert (done.code, "components 3 are within the noise" in done.err) == (1, True)
    two = folder / "two.safetensors"
    options = ("-k", 2, "--algorithm", "exact", "--genotypes", "-q", "-o", two, "--force")
    assert run("fit", folder / "reference", *options).code == 0
    pca = EigenGamePCA.load(two)
    factors = pca.score_shrinkage()
    done = run("transform", two, new, "--correct-shrinkage", "-o", "x.npy", "-q", "--json")
    assert json.loads(done.out)["shrinkage"] == factors.tolist()
    assert factors.max() < 1
    expected = pca.transform(new) / factors
    np.testing.assert_allclose(np.load("x.npy"), expected, rtol=1e-5)
