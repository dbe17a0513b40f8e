"""Comparison of SNPs and alleles between two sets of genotypes."""

from __future__ import annotations

from collections.abc import Sequence

from eigengame.sources._base import SourceError

UNKNOWN = "0"
"""PLINK's code for an allele that occurs in no individual."""

MAX_LISTED = 3
"""SNPs of each kind that a message lists."""


def refuse_other_alleles(
    name: str,
    ids: Sequence[str],
    alleles: Sequence[str],
    known_ids: Sequence[str],
    known: Sequence[str],
    where: str = "in the fit",
) -> None:
    """Raise if SNPs are in another order, or if alleles are swapped or different.

    Parameters
    ----------
    name : str
        Name of the data, for the message.
    ids, alleles : sequences of str, length d
        SNPs of the data. Alleles are "A/G": the counted allele, then the other one.
    known_ids, known : sequences of str, length d
        Expected SNPs and alleles.
    where : str
        Place of the expected SNPs, for the message.
    """
    if list(ids) == list(known_ids) and list(alleles) == list(known):
        return
    moved: list[str] = []
    swapped: list[str] = []
    others: list[str] = []
    for i, (snp, pair, known_snp, known_pair) in enumerate(
        zip(ids, alleles, known_ids, known, strict=True)
    ):
        if str(snp) != str(known_snp):
            moved.append(f"SNP {i} is {snp}, was {known_snp}")
        elif not _agree(pair, known_pair):
            is_swap = _agree(_swap(pair), known_pair)
            (swapped if is_swap else others).append(f"{snp} is {pair}, was {known_pair}")
    kinds = (
        (moved, "other ids at their position"),
        (swapped, "swapped alleles"),
        (others, "other alleles"),
    )
    found = [
        f"{len(some)} with {kind} ({'; '.join(some[:MAX_LISTED])}"
        f"{'; ...' if len(some) > MAX_LISTED else ''})"
        for some, kind in kinds
        if some
    ]
    if found:
        raise SourceError(
            f"{name}: the SNPs are not those {where}: of {len(ids)} there are {', '.join(found)}. Give the "
            "same SNPs in the same order, with the same allele counted, for example by plink --extract and "
            "--a1-allele."
        )


def _agree(pair: str, other: str) -> bool:
    """Return whether two pairs of alleles are equal. An unknown allele equals any."""
    return all(
        one == two or UNKNOWN in (one, two)
        for one, two in zip(pair.partition("/"), other.partition("/"), strict=True)
    )


def _swap(pair: str) -> str:
    counted, _, other = pair.partition("/")
    return f"{other}/{counted}"
