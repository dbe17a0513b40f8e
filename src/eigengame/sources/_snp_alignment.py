"""SNPs of genotypes, and how those of some data compare with those of a model."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Snps(NamedTuple):
    """SNPs of genotypes.

    Attributes
    ----------
    ids : sequence of str, length d
    alleles : sequence of str, length d
        The counted and the other allele, for example "A/G".
    positions : sequence of str, length d, optional
        Chromosome and position, for example "1:828418".
    """

    ids: Sequence[str]
    alleles: Sequence[str]
    positions: Sequence[str] | None = None


class Match(enum.IntEnum):
    """How a SNP of the model was found in the data."""

    MATCHED = 0
    FLIPPED = 1
    MATCHED_OTHER_STRAND = 2
    FLIPPED_OTHER_STRAND = 3
    OTHER_ALLELES = 4
    MISSING = 5
    DROPPED = 6


FLIPPED = (Match.FLIPPED, Match.FLIPPED_OTHER_STRAND)
OTHER_STRAND = (Match.MATCHED_OTHER_STRAND, Match.FLIPPED_OTHER_STRAND)
UNUSED = (Match.OTHER_ALLELES, Match.MISSING, Match.DROPPED)


@dataclass(frozen=True, eq=False)
class SnpAlignment:
    """Positions in the data of the SNPs of a model, and how their alleles compare.

    Each SNP of the model is counted once in `n_matched`, `n_flipped`, `n_other_alleles`, `n_missing` or
    `n_dropped`.

    Attributes
    ----------
    columns : int array of shape (d,)
        Position in the data of each SNP of the model; -1 if it is not used.
    matches : int8 array of shape (d,)
        A `Match` for each SNP of the model.
    palindromic : bool array of shape (d,)
        SNPs in both whose alleles are complementary (A/T or C/G), so that their strand is ambiguous.
    treatment : str
        What was assumed about ambiguous SNPs.
    n_extra : int
        SNPs of the data that the model does not have.
    noise_factors : array of shape (k,), optional
        Factor of the noise variance of each score if SNPs are not used; see `EigenGamePCA.align`.
    """

    columns: np.ndarray
    matches: np.ndarray
    palindromic: np.ndarray
    treatment: str
    n_extra: int
    noise_factors: np.ndarray | None = None

    @property
    def used(self) -> np.ndarray:
        """Whether each SNP of the model is used, shape (d,)."""
        return self.columns >= 0

    @property
    def flipped(self) -> np.ndarray:
        """Whether the data counts the other allele, shape (d,)."""
        return np.isin(self.matches, FLIPPED)

    @property
    def complete(self) -> bool:
        """Whether all SNPs of the model are used."""
        return bool(self.used.all())

    @property
    def n_matched(self) -> int:
        """SNPs with the same counted allele."""
        return self._count(Match.MATCHED, Match.MATCHED_OTHER_STRAND)

    @property
    def n_flipped(self) -> int:
        """SNPs with swapped alleles, whose values become 2 - g."""
        return self._count(*FLIPPED)

    @property
    def n_other_strand(self) -> int:
        """SNPs with complementary alleles, which are among the matched and the flipped."""
        return self._count(*OTHER_STRAND)

    @property
    def n_ambiguous(self) -> int:
        """SNPs with alleles A/T or C/G in both, however they are treated."""
        return int(self.palindromic.sum())

    @property
    def n_other_alleles(self) -> int:
        """SNPs with other alleles, which are not used."""
        return self._count(Match.OTHER_ALLELES)

    @property
    def n_missing(self) -> int:
        """SNPs that the data does not have."""
        return self._count(Match.MISSING)

    @property
    def n_dropped(self) -> int:
        """Ambiguous SNPs that are not used."""
        return self._count(Match.DROPPED)

    def counts(self) -> dict[str, int]:
        """Return all numbers, by name."""
        return {
            "snps": len(self.columns),
            "matched": self.n_matched,
            "flipped": self.n_flipped,
            "other_strand": self.n_other_strand,
            "ambiguous": self.n_ambiguous,
            "dropped": self.n_dropped,
            "other_alleles": self.n_other_alleles,
            "missing": self.n_missing,
            "extra": self.n_extra,
        }

    def __str__(self) -> str:
        ambiguous = f" ({self.treatment})" if self.n_ambiguous else ""
        text = (
            f"{len(self.columns):,} SNPs of the model: {self.n_matched:,} matched, {self.n_flipped:,} with swapped "
            f"alleles (flipped), {self.n_other_alleles:,} with other alleles, {self.n_missing:,} missing; "
            f"{self.n_other_strand:,} on the other strand, {self.n_ambiguous:,} ambiguous{ambiguous}; "
            f"{self.n_extra:,} SNPs of the data are not in the model."
        )
        if self.complete:
            return text
        text += f" Scores are least-squares fits to the {int(self.used.sum()):,} SNPs in use."
        if self.noise_factors is not None:
            text += (
                f" Their noise variance grows by a factor of up to {self.noise_factors.max():.3g}."
            )
        return text

    def _count(self, *kinds: Match) -> int:
        return int(np.isin(self.matches, kinds).sum())
