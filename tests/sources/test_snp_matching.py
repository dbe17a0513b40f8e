"""SNPs of a model are found in other data by id; alleles are compared on both strands."""

import numpy as np
import pytest

from eigengame import SourceError
from eigengame.sources._snp_alignment import Match, Snps
from eigengame.sources._snp_matching import match_snps

MODEL = Snps(["rs1", "rs2", "rs3"], ["A/G", "C/A", "G/T"])


def matched(alleles, ids=None, model=MODEL, **options):
    ids = list(model.ids[: len(alleles)]) if ids is None else ids
    return match_snps("new", Snps(ids, alleles), model, **options)


@pytest.mark.parametrize(
    ("known", "here", "match"),
    [
        ("A/G", "A/G", Match.MATCHED),
        ("A/G", "a/g", Match.MATCHED),
        ("A/G", "G/A", Match.FLIPPED),
        ("A/G", "T/C", Match.MATCHED_OTHER_STRAND),
        ("A/G", "C/T", Match.FLIPPED_OTHER_STRAND),
        ("A/G", "A/C", Match.OTHER_ALLELES),
        ("A/G", "A/T", Match.OTHER_ALLELES),
        ("A/T", "C/G", Match.OTHER_ALLELES),
        # An allele that does not occur is 0.
        ("A/G", "0/G", Match.MATCHED),
        ("A/G", "0/A", Match.FLIPPED),
        ("A/G", "0/C", Match.MATCHED_OTHER_STRAND),
        ("A/G", "0/T", Match.FLIPPED_OTHER_STRAND),
        ("A/G", "0/0", Match.MATCHED),
        ("A/G", "./A", Match.FLIPPED),
        ("0/G", "A/G", Match.MATCHED),
        ("0/G", "G/A", Match.FLIPPED),
        # Insertions and deletions have no complement.
        ("AC/A", "A/AC", Match.FLIPPED),
        ("AC/A", "TG/T", Match.OTHER_ALLELES),
        ("1/2", "2/1", Match.FLIPPED),
        ("1/2", "3/4", Match.OTHER_ALLELES),
    ],
)
def test_alleles_are_compared_on_both_strands(known, here, match):
    model = Snps(["rs1", "rs2"], [known, "C/A"])
    found = matched([here, "A/C"], model=model, intersect=True)
    assert found.matches.tolist() == [match, Match.FLIPPED]
    assert found.used.tolist() == [match != Match.OTHER_ALLELES, True]


def test_every_snp_is_counted_once_and_the_order_does_not_matter():
    found = matched(["T/G", "T/C", "C/T"], ids=["rs3", "other", "rs1"], intersect=True)
    assert found.columns.tolist() == [2, -1, 0]
    assert found.flipped.tolist() == [True, False, True]
    assert found.counts() == {
        "snps": 3, "matched": 0, "flipped": 2, "other_strand": 1, "ambiguous": 0, "dropped": 0,
        "other_alleles": 0, "missing": 1, "extra": 1,
    }  # fmt: skip
    assert "3 SNPs of the model: 0 matched, 2 with swapped alleles (flipped)" in str(found)
    assert "least-squares fits to the 2 SNPs in use" in str(found)


def test_missing_snps_and_other_alleles_are_refused_unless_intersect():
    with pytest.raises(
        SourceError, match=r"1 missing \(rs2\) and 1 with other alleles \(rs3 is A/G, was G/T\)"
    ):
        matched(["A/G", "A/G"], ids=["rs1", "rs3"])
    assert not matched(["A/G", "A/G"], ids=["rs1", "rs3"], intersect=True).complete


def test_repeated_ids_are_refused_where_they_matter():
    with pytest.raises(SourceError, match=r"1 SNPs of the model occur more than once \(rs1\)"):
        matched(["A/G", "A/G", "C/A", "G/T"], ids=["rs1", "rs1", "rs2", "rs3"])
    found = matched(["A/G", "C/A", "G/T", "A/C", "A/C"], ids=["rs1", "rs2", "rs3", ".", "."])
    assert found.complete
    twice = Snps([".", "."], ["A/G", "A/C"])
    assert match_snps("new", twice, twice).complete
    with pytest.raises(SourceError, match="the model has several SNPs called"):
        matched(["A/G", "A/C"], ids=["rs1", "rs2"], model=twice)


PALINDROMIC = Snps(["rs1", "rs2", "rs3"], ["A/T", "C/G", "A/G"])


def test_the_strand_of_ambiguous_snps_is_that_of_the_others():
    same = matched(["T/A", "C/G", "G/A"], model=PALINDROMIC)
    assert same.matches.tolist() == [Match.FLIPPED, Match.MATCHED, Match.FLIPPED]
    assert (same.n_ambiguous, same.n_other_strand) == (2, 0)
    opposite = matched(["T/A", "C/G", "C/T"], model=PALINDROMIC)
    # On the opposite strand T/A is A/T, and C/G is G/C.
    assert opposite.flipped.tolist() == [False, True, True]
    assert (opposite.n_ambiguous, opposite.n_other_strand) == (2, 3)


def test_ambiguous_snps_are_refused_if_the_others_are_on_both_strands_or_absent():
    both = Snps([*PALINDROMIC.ids, "rs4"], [*PALINDROMIC.alleles, "A/C"])
    with pytest.raises(
        SourceError, match=r"2 SNPs have the alleles A/T or C/G.*1 are on the strand"
    ):
        matched(["T/A", "C/G", "A/G", "T/G"], model=both)
    alone = Snps(["rs1", "rs2"], ["A/T", "C/G"])
    with pytest.raises(SourceError, match="there are no other SNPs"):
        matched(["T/A", "C/G"], model=alone)
    kept = matched(["T/A", "C/G", "A/G", "T/G"], model=both, ambiguous="keep")
    assert kept.flipped.tolist() == [True, False, False, False]
    dropped = matched(["T/A", "C/G", "A/G", "T/G"], model=both, ambiguous="drop")
    assert dropped.used.tolist() == [False, False, True, True]
    assert dropped.n_dropped == 2


def test_the_same_snps_need_no_decision_unless_they_are_dropped():
    alone = Snps(["rs1", "rs2"], ["A/T", "C/G"])
    found = matched(["A/T", "C/G"], model=alone)
    assert (found.n_matched, found.n_ambiguous, found.complete) == (2, 2, True)
    assert not np.any(matched(["A/T", "C/G"], model=alone, ambiguous="drop").used)
