"""Genotypes: calls of 0, 1 or 2 alleles to standardised ones, as in common practice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse

from eigengame.preparation._base import BadValue, Step, TrainingData
from eigengame.preparation.stored_values import weights_of
from eigengame.sources import Block


@dataclass(frozen=True, eq=False)
class Genotypes(Step):
    r"""Standardise calls by their allele frequency: $(g - 2p) / \sqrt{2p(1 - p)}$.

    A missing call (NaN) becomes 0, which is the mean; so does a SNP that is the same in all rows.
    Dosages, that is fractions from 0 to 2, are taken too.

    Parameters
    ----------
    frequencies : array of shape (d,), optional
        p of each SNP, from the calls that are there: learnt.
    """

    kind: ClassVar[str] = "genotypes"
    floating: ClassVar[bool] = True
    dense: ClassVar[bool] = True

    frequencies: np.ndarray | None = None

    def learn(self, source: TrainingData) -> Genotypes:
        """Return the step with the allele frequencies: one pass."""
        d = source.shape[1]
        alleles, called = source.fold(_add, (np.zeros(d), np.zeros(d)), "genotypes=True")
        return Genotypes(alleles / (2 * np.where(called > 0, called, 1)))

    def apply(self, block: Block) -> Block:
        """Return the calls standardised."""
        assert self.frequencies is not None
        calls = _calls(block)
        dtype = np.result_type(calls.dtype, np.float32)
        variance = 2 * self.frequencies * (1 - self.frequencies)
        unit = np.divide(1, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
        standard = np.subtract(calls, (2 * self.frequencies).astype(dtype), dtype=dtype)
        standard *= unit.astype(dtype)
        standard[np.isnan(standard)] = 0
        return Block(standard, block.weights)


def _calls(block: Block) -> np.ndarray:
    """Return the calls as a dense array, refusing what is none."""
    calls = block.values.toarray() if issparse(block.values) else block.values
    if np.fmin.reduce(calls, axis=None) < 0 or np.fmax.reduce(calls, axis=None) > 2:
        raise BadValue(
            Block(calls, block.weights),
            (calls < 0) | (calls > 2),
            "but genotypes are 0, 1 or 2, and NaN where missing.",
        )
    return calls


def _add(carry: tuple[np.ndarray, np.ndarray], block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Add one block to the alleles counted, and to the weight of the calls."""
    alleles, called = carry
    calls, weights = _calls(block), weights_of(block)[:, None]
    there = ~np.isnan(calls)
    alleles = alleles + (weights * np.where(there, calls, 0)).sum(axis=0)
    return alleles, called + (weights * there).sum(axis=0)
