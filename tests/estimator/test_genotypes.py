"""Models of genotypes: warnings, SNPs and ids in model files, and scores of other individuals."""

import pickle
import warnings

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, as_source, prepare
from eigengame._system.array_file import read_arrays
from eigengame.sources import GenotypeWarning
from tests.sources.genotype_files import recoded, write_bed

N, D, K = 60, 80, 3
IDS = [f"rs{i}" for i in range(D)]
# Every tenth SNP is palindromic.
ALLELES = [
    ("A/T" if i % 20 else "C/G") if i % 10 == 0 else ("A/G", "T/G", "C/A")[i % 3] for i in range(D)
]


def population(seed, n=N):
    """Return calls (n, d) of three groups with different frequencies."""
    groups = np.random.default_rng(5).uniform(0.1, 0.9, (3, D))
    rng = np.random.default_rng(seed)
    return rng.binomial(2, groups[np.arange(n) % 3]).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("genotypes")


@pytest.fixture(scope="module")
def train(folder):
    calls = population(0)
    calls[np.random.default_rng(1).random(calls.shape) < 0.02] = np.nan
    people = {"fid": [f"f{i}" for i in range(N)], "iid": [f"i{i}" for i in range(N)]}
    return write_bed(
        folder / "train.bed", calls, IDS, ALLELES, bp_position=list(range(D)), **people
    )


@pytest.fixture(scope="module")
def pca(train):
    return EigenGamePCA(K, algorithm="exact").fit(prepare(train, genotypes=True))


@pytest.fixture(scope="module")
def new(folder):
    """Return other individuals with the SNPs of the model, and their calls."""
    calls = population(7, 40)
    return write_bed(folder / "new.bed", calls, IDS, ALLELES), calls


# ---------------------------------------------------------------- standardisation


def test_genotypes_without_standardisation_give_a_warning(new, train, pca):
    with pytest.warns(
        GenotypeWarning, match=r"pass prepare\(data, genotypes=True\), or --genotypes"
    ):
        EigenGamePCA(K, algorithm="exact").fit(new[0])
    with pytest.warns(GenotypeWarning):
        EigenGamePCA(K, algorithm="exact").fit(prepare(train, missing="mean"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (
            prepare(train, genotypes=True),
            prepare(train, missing="mean", scale="two-pass"),
            new[1],
        ):
            EigenGamePCA(K, algorithm="exact").fit(source)
        pca.transform(new[0])


def test_a_model_without_standardisation_refuses_missing_calls_in_scores(new, train):
    with pytest.warns(GenotypeWarning):
        raw = EigenGamePCA(K, algorithm="exact").fit(new[0])
    with pytest.raises(SourceError, match=r"column \d+ \(rs\d+\) is nan, which is missing"):
        raw.transform(train)
    expected = (new[1] - raw.mean_) @ raw.components_.T
    np.testing.assert_allclose(raw.transform(new[0]), expected, atol=1e-4)


# ---------------------------------------------------------------- model files


def test_a_model_keeps_snps_and_individuals(pca, folder):
    path = pca.save(folder / "model.safetensors")
    loaded = EigenGamePCA.load(path)
    for model in (pca, loaded):
        assert model.snps_.ids == IDS
        assert model.snps_.alleles == ALLELES
        assert model.snps_.positions == [f"0:{i}" for i in range(D)]
        assert model.sample_ids_.tolist() == [[f"f{i}", f"i{i}"] for i in range(N)]
    loaded.sample_ids_ = None
    arrays, _ = read_arrays(loaded.save(folder / "anonymous.safetensors"))
    assert "samples.ids" not in arrays
    assert EigenGamePCA.load(folder / "anonymous.safetensors").sample_ids_ is None
    assert b"i59" not in (folder / "anonymous.safetensors").read_bytes()


def test_other_models_have_neither_snps_nor_individuals(new):
    pca = EigenGamePCA(K, algorithm="exact").fit(new[1])
    assert pca.snps_ is None
    assert pca.sample_ids_ is None
    with pytest.raises(SourceError, match="the model has no SNPs with alleles"):
        pca.align(new[0])


def test_streams_and_merges_collect_the_individuals(train, new):
    parts = prepare(train, genotypes=True)
    pca = EigenGamePCA(K, random_state=0).partial_fit(parts)
    pca.partial_fit(new[0])
    assert len(pca.sample_ids_) == N + 40
    merged = pca.merge(pca)
    assert len(merged.sample_ids_) == 2 * (N + 40)
    assert merged.snps_ == pca.snps_
    calls = np.nan_to_num(population(7, 40))
    assert pca.partial_fit(calls).sample_ids_ is None


# ---------------------------------------------------------------- alignment


@pytest.mark.parametrize("seed", range(3))
def test_recoded_genotypes_have_the_scores_of_aligned_ones(pca, new, tmp_path, seed):
    (calls, ids, alleles), gaps = recoded(new[1], IDS, ALLELES, seed)
    other = write_bed(tmp_path / "other.bed", calls, ids, alleles)
    plain = write_bed(tmp_path / "plain.bed", np.where(gaps, np.nan, new[1]), IDS, ALLELES)
    np.testing.assert_array_equal(pca.transform(other), pca.transform(plain))
    assert not np.allclose(
        pca.transform(other), pca.transform(new[0]), atol=0.1
    )  # missing calls matter
    found = pca.align(other).alignment
    assert found.n_flipped == sum(
        pair != ALLELES[IDS.index(name)] for name, pair in zip(ids, alleles, strict=True)
    )
    assert found.n_matched + found.n_flipped == D
    assert found.n_ambiguous == 8


def test_missing_calls_are_filled_by_the_mean_of_the_fit(pca, new, train):
    frequencies = pca._preparation.steps[0].frequencies
    calls = new[1].astype(np.float64)
    calls[:, 3] = np.nan
    filled = np.where(np.isnan(calls), 2 * frequencies, calls)
    np.testing.assert_allclose(pca.transform(calls), pca.transform(filled), atol=1e-10)


def test_more_snps_and_the_other_strand_make_no_difference(pca, new, tmp_path):
    turn = str.maketrans("ACGT", "TGCA")
    alleles = ["A/C", *(pair.translate(turn) for pair in ALLELES)]
    calls = np.column_stack([np.ones(40), new[1]])
    other = write_bed(tmp_path / "other.bed", calls, ["new", *IDS], alleles)
    np.testing.assert_array_equal(pca.transform(other), pca.transform(new[0]))
    found = pca.align(other).alignment
    assert (found.n_other_strand, found.n_extra) == (D, 1)


def test_selected_snps_are_aligned_whatever_the_order_of_the_steps(train, new, tmp_path):
    some = [IDS[i] for i in (4, 71, 30, 2, 55, 8, 13, 21)]
    before = prepare(train, columns=some, genotypes=True)
    after = prepare(prepare(train, genotypes=True), columns=some)
    (calls, ids, alleles), _ = recoded(new[1], IDS, ALLELES, 3, missing=0)
    # Only the selected SNPs are needed.
    kept = [i for i, name in enumerate(ids) if name in some]
    other = write_bed(
        tmp_path / "other.bed", calls[:, kept], [ids[i] for i in kept], [alleles[i] for i in kept]
    )
    expected = EigenGamePCA(2, algorithm="exact").fit(before)
    for source in (before, after):
        pca = EigenGamePCA(2, algorithm="exact").fit(source)
        np.testing.assert_allclose(pca.transform(other), expected.transform(new[0]), atol=1e-5)


def test_several_files_are_aligned_as_one(pca, new, tmp_path):
    (calls, ids, alleles), _ = recoded(new[1], IDS, ALLELES, 4, missing=0)
    parts = [
        write_bed(tmp_path / f"{i}.bed", part, ids, alleles)
        for i, part in enumerate((calls[:15], calls[15:]))
    ]
    np.testing.assert_allclose(pca.transform(parts), pca.transform(new[0]), atol=1e-5)


# ---------------------------------------------------------------- some SNPs only


def test_rows_in_the_span_of_the_components_keep_their_scores_without_some_snps(pca, new):
    from eigengame.estimator.genotypes import alignment_of, least_squares
    from eigengame.estimator.inputs import checked_source

    source = as_source(new[0]).only(np.arange(0, D, 2))
    aligned = pca.align(source, intersect=True)
    mixing = least_squares(pca.components_, alignment_of(aligned))
    scores = np.random.default_rng(0).standard_normal((5, K))
    rows = scores @ pca.components_
    rows[:, ~aligned.alignment.used] = 0
    np.testing.assert_allclose(rows @ pca.components_.T @ mixing, scores, atol=1e-10)
    assert checked_source(pca, aligned, reset=False, partial=True).shape == (40, D)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_some_snps_are_least_squares_fits(pca, new, train, weighted):
    if weighted:  # frequencies are not weighted, so that the mean of the fit is not 0
        weights = np.linspace(0, 2, N)
        pca = EigenGamePCA(K, algorithm="exact").fit(prepare(train, genotypes=True), None, weights)
    some = np.random.default_rng(2).permutation(D)[:60]
    aligned = pca.align(as_source(new[0]).only(some), intersect=True)
    p = pca._preparation.steps[0].frequencies
    z = (new[1] - 2 * p) / np.sqrt(2 * p * (1 - p)) - pca.mean_
    expected = np.linalg.lstsq(pca.components_[:, some].T, z[:, some].T, rcond=None)[0].T
    np.testing.assert_allclose(pca.transform(aligned), expected, atol=1e-4)
    gram = pca.components_[:, some] @ pca.components_[:, some].T
    factors = np.diag(np.linalg.inv(gram))
    np.testing.assert_allclose(aligned.alignment.noise_factors, factors)
    assert f"grows by a factor of up to {factors.max():.3g}" in str(aligned.alignment)
    for use in (pca.certify, pca.score_samples):
        with pytest.raises(SourceError, match="20 SNPs of the model are not used"):
            use(aligned)


def test_whitened_scores_of_some_snps_are_scaled_by_the_deviations_of_the_fit(train, new):
    plain = EigenGamePCA(K, algorithm="exact").fit(prepare(train, genotypes=True))
    white = EigenGamePCA(K, algorithm="exact", whiten=True).fit(prepare(train, genotypes=True))
    some = as_source(new[0]).only(np.arange(50))
    expected = plain.transform(plain.align(some, intersect=True)) / np.sqrt(
        plain.explained_variance_
    )
    found = white.transform(white.align(some, intersect=True))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_missing_snps_are_refused_by_default(pca, new):
    with pytest.raises(
        SourceError, match=r"40 missing \(rs1; rs3; rs5; \.\.\.\)\. Give data with all of them"
    ):
        pca.transform(as_source(new[0]).only(np.arange(0, D, 2)))
    with pytest.raises(SourceError, match="do not determine the 3 scores"):
        pca.align(as_source(new[0]).only(np.arange(2)), intersect=True)


def test_a_model_that_does_not_fill_calls_needs_all_snps(new):
    with pytest.warns(GenotypeWarning):
        raw = EigenGamePCA(K, algorithm="exact").fit(new[0])
    with pytest.raises(SourceError, match="the model does not fill missing calls"):
        raw.align(as_source(new[0]).only(np.arange(50)), intersect=True)


def test_ambiguous_snps_can_be_dropped(pca, new):
    dropped = pca.align(new[0], ambiguous="drop")
    assert dropped.alignment.n_dropped == 8
    rest = [i for i in range(D) if i % 10]
    expected = pca.transform(pca.align(as_source(new[0]).only(np.array(rest)), intersect=True))
    np.testing.assert_array_equal(pca.transform(dropped), expected)
    with pytest.raises(ValueError, match="ambiguous"):
        pca.align(new[0], ambiguous="maybe")


def test_aligned_genotypes_can_be_pickled_and_cannot_be_aligned_again(pca, new):
    aligned = pca.align(as_source(new[0]).only(np.arange(D)[::-1]))
    again = pickle.loads(pickle.dumps(pca.align(new[0])))
    np.testing.assert_array_equal(pca.transform(again), pca.transform(aligned))
    assert list(again.id_columns()) == ["FID", "IID"]
    with pytest.raises(SourceError, match="prepared or aligned already"):
        pca.align(aligned)
    with pytest.raises(SourceError, match="has no alleles"):
        pca.align(new[1])


def test_a_fit_that_fails_keeps_the_positions_of_the_one_before(train):
    pca = EigenGamePCA(K, algorithm="exact").fit(prepare(train, genotypes=True))
    before = list(pca.snps_.positions)
    with pytest.raises(ValueError, match="n_components=3 is more than 2"):
        pca.fit(np.ones((9, 2)))
    assert list(pca.snps_.positions) == before
