"""Standardisation of genotypes by allele frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._base import BadValue, PreparationStep, TrainingData
from eigengame.preparation.stored_values import row_weights
from eigengame.sources import Block


@dataclass(frozen=True, eq=False)
class Genotypes(PreparationStep):
    r"""Standardise calls by their allele frequency: $(g - 2p) / \sqrt{2p(1 - p)}$.

    A missing call (NaN) becomes 0, which is the mean. So do all calls of a SNP without variation. Dosages,
    fractions from 0 to 2, are accepted.

    Parameters
    ----------
    frequencies : array of shape (d,), optional
        Learnt frequency p of each SNP, from the calls that are not missing.
    """

    kind: ClassVar[str] = "genotypes"
    floating: ClassVar[bool] = True
    dense: ClassVar[bool] = True

    frequencies: np.ndarray | None = None

    def learn(self, source: TrainingData) -> Genotypes:
        """Return the step with the allele frequencies, from one pass."""
        d = source.shape[1]
        alleles, called = source.fold(_add, (np.zeros(d), np.zeros(d)), "genotypes=True")
        return Genotypes(alleles / (2 * np.where(called > 0, called, 1)))

    def apply(self, block: Block) -> Block:
        """Return the standardised calls."""
        assert self.frequencies is not None
        calls = _checked_calls(block)
        dtype = np.result_type(calls.dtype, np.float32)
        variance = 2 * self.frequencies * (1 - self.frequencies)
        unit = np.divide(1, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
        standard = np.subtract(calls, (2 * self.frequencies).astype(dtype), dtype=dtype)
        standard *= unit.astype(dtype)
        standard[np.isnan(standard)] = 0
        return Block(standard, block.weights)


def _checked_calls(block: Block) -> np.ndarray:
    """Return the calls as a dense array; raise if one is outside [0, 2]."""
    calls = block.values.toarray() if issparse(block.values) else block.values
    if np.fmin.reduce(calls, axis=None) < 0 or np.fmax.reduce(calls, axis=None) > 2:
        raise BadValue(
            Block(calls, block.weights),
            (calls < 0) | (calls > 2),
            "but genotypes are 0, 1 or 2, and NaN if missing.",
        )
    return calls


def _add(carry: tuple[np.ndarray, np.ndarray], block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Add one block to the weighted numbers of alleles and calls, each of shape (d,)."""
    alleles, called = carry
    calls, weights = _checked_calls(block), row_weights(block)[:, None]
    present = ~np.isnan(calls)
    alleles = alleles + (weights * np.where(present, calls, 0)).sum(axis=0)
    return alleles, called + (weights * present).sum(axis=0)
