"""Genotypes in the order and with the counted alleles of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from eigengame.sources._base import Block, Source
from eigengame.sources._digest import combine_digests
from eigengame.sources._genotype_file import GenotypeFile
from eigengame.sources._snp_alignment import SnpAlignment, Snps


class AlignedSource(Source):
    """Genotypes with the SNPs of a model: in its order, counting its alleles, NaN where a SNP is not used.

    Parameters
    ----------
    source : Source
        Genotypes with any SNPs.
    alignment : SnpAlignment
        Result of `match_snps`.
    snps : Snps
        SNPs of the model.
    """

    def __init__(self, source: Source, alignment: SnpAlignment, snps: Snps) -> None:
        self.source, self.alignment, self.snps = source, alignment, snps
        columns = alignment.columns[alignment.used]
        # Of a file, only the SNPs in use are decoded, in the order of the model.
        self._picked = isinstance(source, GenotypeFile)
        self._input = source.only(columns) if isinstance(source, GenotypeFile) else source
        self._columns, self._flipped = columns, alignment.flipped[alignment.used]
        self.name, self.again = source.name, source.again
        self.shape = (source.shape[0], len(snps.ids))
        self.dtype = np.result_type(source.dtype, np.float32)
        self.feature_names, self.alleles = list(snps.ids), list(snps.alleles)
        self.positions = snps.positions

    def blocks(self, start: int, size: int) -> Iterator[Block]:
        """Yield the rows from `start` on in blocks of `size` rows."""
        used = self.alignment.used
        for block in self._input.blocks(start, size):
            values = block.values.toarray() if issparse(block.values) else block.values
            calls = values if self._picked else values[:, self._columns]
            calls = calls.astype(self.dtype, copy=False)
            if self._flipped.any():
                calls = np.where(self._flipped, 2 - calls, calls)
            if not self.alignment.complete:
                partial = np.full((len(calls), self.shape[1]), np.nan, self.dtype)
                partial[:, used] = calls
                calls = partial
            yield Block(calls, block.weights)

    def in_float64(self) -> Source:
        """Return the same genotypes, computed in float64 if the source computes them."""
        source = self.source.in_float64()
        return self if source is self.source else AlignedSource(source, self.alignment, self.snps)

    def row_ids(self) -> Sequence[str] | None:
        """Return the ids of the source."""
        return self.source.row_ids()

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the id columns of the source."""
        return self.source.id_columns()

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of the source, and the numbers of the alignment."""
        return self.source.fingerprint() | {"alignment": self.alignment.counts()}

    def digest(self) -> str | None:
        """Return the digest of the source and of the alignment."""
        own = (self.alignment.columns, self.alignment.matches)
        return combine_digests([self.source.digest(), *(str(one.tolist()) for one in own)])

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The input may be an open file: the receiving process opens its own.
        return AlignedSource, (self.source, self.alignment, self.snps)
