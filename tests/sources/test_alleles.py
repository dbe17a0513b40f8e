"""Genotypes with other alleles, or with SNPs in another order: aligned with models, refused in lists of files."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, as_source, prepare, shuffled
from eigengame.model_file import read
from eigengame.sources import GenotypeWarning

bed_reader = pytest.importorskip("bed_reader")

N, D, K = 40, 6, 2
IDS = [f"rs{i}" for i in range(D)]
FIRST, SECOND = list("AACTGA"), list("GGTGCC")
CALLS = np.random.default_rng(0).binomial(2, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7], (N, D))


def bed(path, order=range(D), first=FIRST, second=SECOND, calls=CALLS):
    """Write calls with a given order of the SNPs, and their alleles."""
    properties = {
        "sid": [IDS[i] for i in order],
        "allele_1": [first[i] for i in order],
        "allele_2": [second[i] for i in order],
    }
    bed_reader.to_bed(path, calls[:, list(order)].astype(np.float32), properties=properties)
    return path


def replaced(alleles, **new):
    return [new.get(f"rs{i}", allele) for i, allele in enumerate(alleles)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genotypes")
    train = bed(folder / "train.bed")
    pca = EigenGamePCA(K, random_state=0).fit(prepare(train, genotypes=True))
    return pca.save(folder / "model.safetensors"), train


OTHERS = {
    "swapped": (
        {"first": replaced(FIRST, rs0="G", rs2="T"), "second": replaced(SECOND, rs0="A", rs2="C")},
        r"of 6 there are 2 with swapped alleles \(rs0 is G/A, was A/G; rs2 is T/C, was C/T\)",
    ),
    "other": (
        {"second": replaced(SECOND, rs5="T")},
        r"1 with other alleles \(rs5 is A/T, was A/C\)",
    ),
    "moved": (
        {"order": [1, 0, 2, 3, 4, 5]},
        r"2 with other ids at their position \(SNP 0 is rs1, was rs0; ",
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_lists_of_files_and_merges_refuse_other_alleles_or_another_order(fitted, tmp_path, kind):
    options, message = OTHERS[kind]
    other = bed(tmp_path / "new.bed", **options)
    with pytest.raises(SourceError, match=message):
        as_source([fitted[1], other])
    with pytest.warns(GenotypeWarning):
        one, two = (EigenGamePCA(K, random_state=0).fit(path) for path in (fitted[1], other))
    with pytest.raises(SourceError, match=message):
        one.merge(two)


def test_a_model_refuses_other_alleles(fitted, tmp_path):
    other, pca = bed(tmp_path / "new.bed", **OTHERS["other"][0]), EigenGamePCA.load(fitted[0])
    message = r"of 6 SNPs of the model there are 1 with other alleles \(rs5 is A/T, was A/C\)"
    with pytest.warns(GenotypeWarning):
        raw = EigenGamePCA(K, random_state=0).fit(fitted[1])
    for use in (pca.transform, pca.certify, pca.score_samples, raw.transform, raw.partial_fit):
        with pytest.raises(SourceError, match=message):
            use(other)


@pytest.mark.parametrize("kind", ["swapped", "moved"])
def test_a_model_aligns_swapped_alleles_and_another_order(fitted, tmp_path, kind):
    pca, options = EigenGamePCA.load(fitted[0]), OTHERS[kind][0]
    other = bed(tmp_path / "new.bed", **options)
    # `bed` changes the names of the alleles only, so a swapped SNP has other genotypes.
    calls = CALLS.astype(np.float32)
    if kind == "swapped":
        calls[:, [0, 2]] = 2 - calls[:, [0, 2]]
    same = bed(tmp_path / "same.bed", calls=calls)
    np.testing.assert_array_equal(pca.transform(other), pca.transform(same))
    np.testing.assert_array_equal(pca.score_samples(other), pca.score_samples(same))
    one, two = pca.certify(other), EigenGamePCA.load(fitted[0]).certify(same)
    np.testing.assert_array_equal(one.angle, two.angle)


def test_the_same_snps_are_accepted_and_so_is_an_allele_that_does_not_occur(fitted, tmp_path):
    pca = EigenGamePCA.load(fitted[0])
    scores = pca.transform(fitted[1])
    unknown = bed(tmp_path / "new.bed", first=replaced(FIRST, rs1="0"))
    np.testing.assert_array_equal(pca.transform(unknown), scores)
    # An array has no alleles. Its integers are prepared in float64, those of the file in float32.
    np.testing.assert_allclose(pca.transform(CALLS), scores, atol=1e-5)


def test_chosen_and_shuffled_snps_keep_their_alleles(fitted):
    source = as_source(fitted[1])
    assert source.alleles[:3] == ["A/G", "A/G", "C/T"]
    chosen = prepare(shuffled(source, 0), columns=["rs2", "rs0"], genotypes=True)
    assert chosen.alleles == ["C/T", "A/G"]


def test_a_model_without_alleles_behaves_as_before(fitted, tmp_path):
    pca = EigenGamePCA.load(fitted[0])
    pca._alleles = None
    old = pca.save(tmp_path / "old.safetensors")
    assert read(old)[1]["alleles"] is None
    other = bed(tmp_path / "new.bed", **OTHERS["swapped"][0])
    assert EigenGamePCA.load(old).transform(other).shape == (N, K)
    with pytest.raises(SourceError, match="'rs1', but was 'rs0' in the fit"):
        EigenGamePCA.load(old).transform(bed(tmp_path / "new.bed", **OTHERS["moved"][0]))


def test_a_bim_without_alleles_has_none(tmp_path):
    path = bed(tmp_path / "x.bed")
    path.with_suffix(".bim").write_text("".join(f"1 {name} 0 {i}\n" for i, name in enumerate(IDS)))
    assert as_source(path).alleles is None
