"""Alleles of SNPs: whether two sets of genotypes count the same allele of the same SNP."""

from __future__ import annotations

from collections.abc import Sequence

from eigengame.sources._base import SourceError

UNKNOWN = "0"
"""What PLINK writes for an allele that occurs in no individual."""

SHOWN = 3
"""SNPs of each kind that a message shows."""


def refuse_other_alleles(
    name: str,
    ids: Sequence[str],
    alleles: Sequence[str],
    known_ids: Sequence[str],
    known: Sequence[str],
    where: str = "in the fit",
) -> None:
    """Raise if SNPs have another order, or if an allele is swapped or replaced by another.

    Parameters
    ----------
    name : str
        Name of the data, for the message.
    ids, alleles : sequences of str, length d
        Of the data. Alleles are "A/G": the one that is counted, then the other.
    known_ids, known : sequences of str, length d
        Those expected.
    where : str
        Where they are expected, for the message.
    """
    if list(ids) == list(known_ids) and list(alleles) == list(known):
        return
    moved: list[str] = []
    swapped: list[str] = []
    others: list[str] = []
    for i, (one, pair, wanted, before) in enumerate(
        zip(ids, alleles, known_ids, known, strict=True)
    ):
        if str(one) != str(wanted):
            moved.append(f"SNP {i} is {one}, was {wanted}")
        elif not _agree(pair, before):
            turned = _agree(_turned(pair), before)
            (swapped if turned else others).append(f"{one} is {pair}, was {before}")
    kinds = (
        (moved, "other ids at their place"),
        (swapped, "swapped alleles"),
        (others, "other alleles"),
    )
    found = [
        f"{len(some)} with {kind} ({'; '.join(some[:SHOWN])}{'; ...' if len(some) > SHOWN else ''})"
        for some, kind in kinds
        if some
    ]
    if found:
        raise SourceError(
            f"{name}: SNPs are not those {where}: of {len(ids)} there are {', '.join(found)}. Give the same SNPs "
            "in the same order, with the same allele counted, for example by plink --extract and --a1-allele."
        )


def _agree(pair: str, other: str) -> bool:
    """Return whether two pairs of alleles are the same; an allele that does not occur may be any."""
    return all(
        one == two or UNKNOWN in (one, two)
        for one, two in zip(pair.partition("/"), other.partition("/"), strict=True)
    )


def _turned(pair: str) -> str:
    """Return a pair of alleles the other way round."""
    counted, _, other = pair.partition("/")
    return f"{other}/{counted}"
