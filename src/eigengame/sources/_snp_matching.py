"""Search for the SNPs of a model in some data: by id, with swapped alleles, on either strand."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from eigengame.sources._alleles import MAX_LISTED, UNKNOWN
from eigengame.sources._base import SourceError
from eigengame.sources._snp_alignment import OTHER_STRAND, UNUSED, Match, SnpAlignment, Snps

COMPLEMENT = {"A": "T", "T": "A", "C": "G", "G": "C", UNKNOWN: UNKNOWN}
"""Nucleotides on the other strand. Longer alleles (insertions, deletions) are not complemented."""

AMBIGUOUS = ("auto", "keep", "drop")
"""Treatments of SNPs whose strand cannot be told from their alleles."""

Pair = tuple[str, str]
"""The counted and the other allele."""


def match_snps(
    name: str, data: Snps, model: Snps, *, intersect: bool = False, ambiguous: str = "auto"
) -> SnpAlignment:
    """Find the SNPs of a model in some data by their ids, and compare alleles.

    Parameters
    ----------
    name : str
        Name of the data, for messages.
    data, model : Snps
    intersect : bool
        Whether SNPs may be missing or have other alleles; otherwise they raise.
    ambiguous : {"auto", "keep", "drop"}
        Treatment of palindromic SNPs: "keep" assumes the strand of the model, "drop" does not use them. "auto"
        uses the strand of all other SNPs, and raises if they are on both strands or if there are none.
    """
    d = len(model.ids)
    same = list(data.ids) == list(model.ids) and list(data.alleles) == list(model.alleles)
    if same and ambiguous != "drop":
        palindromic = np.array([_is_palindromic(_split(one)) for one in model.alleles])
        assumed = "alleles are those of the fit: same strand assumed"
        return SnpAlignment(np.arange(d), np.zeros(d, np.int8), palindromic, assumed, 0)
    _refuse_duplicates(name, data.ids, model.ids)
    places = {snp: i for i, snp in enumerate(data.ids)}
    columns = np.array([places.get(snp, -1) for snp in model.ids])
    matches = np.full(d, Match.MISSING, np.int8)
    palindromic = np.zeros(d, bool)
    for i, (column, known) in enumerate(zip(columns.tolist(), model.alleles, strict=True)):
        if column >= 0:
            matches[i], palindromic[i] = _compare(data.alleles[column], known)
    palindromic &= matches != Match.OTHER_ALLELES
    treatment = _treat_ambiguous(name, matches, palindromic, ambiguous)
    if not intersect:
        _refuse_unless_found(name, data, model, columns, matches)
    extra = len(data.ids) - int((columns >= 0).sum())
    columns[np.isin(matches, UNUSED)] = -1
    return SnpAlignment(columns, matches, palindromic, treatment, extra)


@functools.lru_cache(maxsize=4096)
def _compare(alleles: str, known_alleles: str) -> tuple[Match, bool]:
    """Return how the alleles of a SNP compare, and whether their strand is ambiguous.

    Files have few distinct pairs of alleles, so that most results are cached.
    """
    here, known = _split(alleles), _split(known_alleles)
    palindromic = _is_palindromic(known) or _is_palindromic(here)
    if _agree(here, known):
        return Match.MATCHED, palindromic
    if _agree(here[::-1], known):
        return Match.FLIPPED, palindromic
    if not palindromic and all(allele in COMPLEMENT for allele in here):
        turned = (COMPLEMENT[here[0]], COMPLEMENT[here[1]])
        if _agree(turned, known):
            return Match.MATCHED_OTHER_STRAND, False
        if _agree(turned[::-1], known):
            return Match.FLIPPED_OTHER_STRAND, False
    return Match.OTHER_ALLELES, palindromic


def _treat_ambiguous(
    name: str, matches: np.ndarray, palindromic: np.ndarray, ambiguous: str
) -> str:
    """Change the matches of palindromic SNPs as requested, and return what was assumed."""
    if ambiguous == "drop":
        matches[palindromic] = Match.DROPPED
        return "A/T or C/G: not used"
    if ambiguous == "keep":
        return "A/T or C/G: same strand assumed"
    clear = ~palindromic
    ours = int(np.isin(matches[clear], (Match.MATCHED, Match.FLIPPED)).sum())
    other = int(np.isin(matches[clear], OTHER_STRAND).sum())
    if palindromic.any() and (ours > 0) == (other > 0):
        evidence = (
            f"of the other SNPs {ours} are on the strand of the model and {other} on the opposite one"
            if ours
            else "there are no other SNPs to tell the strand from"
        )
        raise SourceError(
            f"{name}: {int(palindromic.sum())} SNPs have the alleles A/T or C/G, so their strand is ambiguous, and "
            f"{evidence}. Leave them out by pca.align(data, ambiguous='drop') (--ambiguous drop), or assume the "
            "strand of the model by ambiguous='keep'."
        )
    if other:
        # On the opposite strand, the same two letters stand for each other.
        turned = {
            Match.MATCHED: Match.FLIPPED_OTHER_STRAND,
            Match.FLIPPED: Match.MATCHED_OTHER_STRAND,
        }
        before = matches.copy()
        for one, opposite in turned.items():
            matches[palindromic & (before == one)] = opposite
        return f"A/T or C/G: opposite strand, as all of {other:,} other SNPs"
    return f"A/T or C/G: same strand, as all of {ours:,} other SNPs"


def _refuse_duplicates(name: str, ids: Sequence[str], model_ids: Sequence[str]) -> None:
    """Raise if an id of the model occurs more than once in the model or in the data."""
    known = set(model_ids)
    if len(known) < len(model_ids):
        twice = [snp for snp, count in Counter(model_ids).items() if count > 1]
        raise SourceError(
            f"the model has several SNPs called {', '.join(twice[:MAX_LISTED])}: data can only be aligned by "
            "unique ids. Fit files with unique ids (plink2 --set-all-var-ids), or give the same SNPs in "
            "the same order."
        )
    if len(set(ids)) == len(ids):
        return
    twice = [snp for snp, count in Counter(ids).items() if count > 1 and snp in known]
    if twice:
        raise SourceError(
            f"{name}: {len(twice)} SNPs of the model occur more than once ({', '.join(twice[:MAX_LISTED])}"
            f"{', ...' if len(twice) > MAX_LISTED else ''}): remove duplicates, for example by plink2 --rm-dup."
        )


def _refuse_unless_found(
    name: str, data: Snps, model: Snps, columns: np.ndarray, matches: np.ndarray
) -> None:
    """Raise if SNPs of the model are missing in the data, or have other alleles."""
    missing = np.flatnonzero(matches == Match.MISSING)
    others = np.flatnonzero(matches == Match.OTHER_ALLELES)
    kinds = (
        (len(missing), "missing", [model.ids[i] for i in missing[:MAX_LISTED]]),
        (
            len(others),
            "with other alleles",
            [
                f"{model.ids[i]} is {data.alleles[columns[i]]}, was {model.alleles[i]}"
                for i in others[:MAX_LISTED]
            ],
        ),
    )
    found = [
        f"{count} {kind} ({'; '.join(some)}{'; ...' if count > MAX_LISTED else ''})"
        for count, kind, some in kinds
        if count
    ]
    if found:
        raise SourceError(
            f"{name}: of {len(model.ids)} SNPs of the model there are {' and '.join(found)}. Give data with all of "
            "them, or use the others only: transform(pca.align(data, intersect=True)), or eigengame transform "
            "--intersect."
        )


def _split(alleles: str) -> Pair:
    counted, _, other = alleles.upper().partition("/")
    return (UNKNOWN if counted == "." else counted), (UNKNOWN if other == "." else other)


def _agree(pair: Pair, known: Pair) -> bool:
    """Return whether two pairs of alleles are equal. An unknown allele equals any."""
    return all(one == two or UNKNOWN in (one, two) for one, two in zip(pair, known, strict=True))


def _is_palindromic(pair: Pair) -> bool:
    """Return whether the two alleles are complementary, so that the strand cannot be told from them."""
    return pair[0] != UNKNOWN and COMPLEMENT.get(pair[0]) == pair[1]
