"""Genotype files that are stored SNP by SNP: decoded in stripes of individuals, of all SNPs or of some."""

from __future__ import annotations

import abc
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._paths import file_stamp

MEMORY = 2**30
"""Default memory for decoded calls, in bytes."""


class GenotypeFile(RandomAccess):
    """Rows of a file that is stored SNP by SNP, so that the calls of one individual are scattered over it.

    It is decoded in stripes of as many individuals as fit in a given amount of memory. If all individuals fit, the
    file is decoded once and kept in memory.

    Parameters
    ----------
    path : str
    beside : sequence of str
        Paths of the other files that belong to it.
    rows : int
        Number of individuals.
    ids, alleles, positions : lists of str, length d
        About the SNPs; see `Source`. Alleles may be None.
    memory : int
        Bytes of decoded calls to keep in memory.
    """

    call: np.dtype
    """Dtype of the decoded calls."""

    feature_names: list[str]
    positions: list[str]

    def __init__(
        self,
        path: str,
        beside: list[str],
        rows: int,
        ids: list[str],
        alleles: list[str] | None,
        positions: list[str],
        memory: int,
    ) -> None:
        self._path, self._beside, self._memory = path, beside, memory
        self.feature_names, self.alleles, self.positions = ids, alleles, positions
        self.dtype = np.dtype(np.float32)
        self._set_snps(rows, None, len(ids))

    def _set_snps(self, rows: int, snps: np.ndarray | None, count: int) -> None:
        """Set the shape, and forget decoded calls."""
        self._snps, self.shape = snps, (rows, count)
        self._stripe_rows = max(1, self._memory // max(count * self.call.itemsize, 1))
        self._stripe = (0, np.empty((0, count), self.call))

    def only(self, snps: np.ndarray) -> Self:
        """Return a source of the calls of some SNPs only, by their positions in this one, in this order."""
        rows, d = self.shape
        assert rows is not None
        chosen = copy.copy(self)
        if np.array_equal(snps, np.arange(d)):
            return chosen
        chosen.opened_from = None
        chosen.feature_names = [self.feature_names[i] for i in snps]
        chosen.alleles = None if self.alleles is None else [self.alleles[i] for i in snps]
        chosen.positions = [self.positions[i] for i in snps]
        places = np.asarray(snps) if self._snps is None else self._snps[snps]
        chosen._set_snps(rows, places, len(places))
        return chosen

    @abc.abstractmethod
    def decode(self, first: int, last: int, snps: np.ndarray | None) -> np.ndarray:
        """Return the calls of individuals `first` to `last`, of some SNPs or of all, in the dtype `call`."""

    @abc.abstractmethod
    def numbers(self, calls: np.ndarray) -> np.ndarray:
        """Return decoded calls as float32, with NaN for missing ones."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        first, calls = self._stripe
        if begin < first or end > first + len(calls):
            first, calls = self._stripe = self._decode_stripe(begin, end)
        return self.numbers(calls[begin - first : end - first])

    def _decode_stripe(self, begin: int, end: int) -> tuple[int, np.ndarray]:
        """Return the first row and the calls of a stripe that contains these rows."""
        rows = self.shape[0]
        assert rows is not None
        first = 0 if self._stripe_rows >= rows else begin
        last = min(first + max(self._stripe_rows, end - begin), rows)
        self._stripe = (0, self._stripe[1][:0].copy())  # free the old stripe before the next one
        try:
            return first, self.decode(first, last, self._snps)
        except (OSError, ValueError, RuntimeError) as error:
            raise SourceError(
                f"{self.name}: individuals {first} to {last} cannot be read ({error}): it is damaged."
            ) from error

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, and size and time of the files."""
        beside = {Path(path).suffix: file_stamp(path) for path in self._beside}
        return super().fingerprint() | file_stamp(self._path) | beside

    def digest(self) -> str | None:
        """Return a digest of the files."""
        return digest_of_files([self._path, *self._beside])


def read_table(path: str, ending: str, what: str, least: int = 2) -> list[list[str]]:
    """Return the fields of a text file beside another: one line for each SNP or individual.

    Lines with fewer than `least` fields raise, unless they begin with "#".
    """
    beside = Path(path).with_suffix(ending)
    if not beside.is_file():
        raise SourceError(f"{beside} is missing: put the file with the {what} beside {path}.")
    found = list(_read_fields(beside, least))
    if not found:
        raise SourceError(f"{beside} is empty: it must have one line for each of the {what}.")
    return found


def _read_fields(path: Path, least: int) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if fields and len(fields) < least and not fields[0].startswith("#"):
                raise SourceError(f"{path}: line {number} has one field: six are expected.")
            if fields:
                yield fields
