"""PLINK 1 genotypes: individuals are rows, SNPs are features, missing calls are NaN.

A `.bed` file lies SNP by SNP, so that the calls of some individuals lie all over it. They are decoded in
stripes of as many individuals as fit in a stated memory, one byte for each call. Where all of them fit, as
is usual, the file is decoded once and read from memory from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._stored_arrays import local, stamp

MEMORY = 2**30
"""Bytes of decoded calls that are held, by default."""

MAGIC = b"\x6c\x1b"
"""What a .bed file begins with. The byte after it says whether it lies by SNPs (1) or individuals (0)."""


class BedSource(RandomAccess):
    """Rows of a `.bed` file with its `.bim` and `.fam`: how often each call has the first allele.

    Blocks are float32: 0, 1, 2, and NaN for a missing call. Ids and alleles of the SNPs are those of the
    `.bim`; a model keeps them, and refuses files with other ones.

    Parameters
    ----------
    path : path
        Of the `.bed`; the other two lie beside it.
    memory : int
        Bytes of decoded calls that may be held. Where they do not hold all individuals, a pass reads the
        file once for every stripe: more memory, fewer times.
    name : str, optional
    """

    def __init__(
        self, path: str | os.PathLike[str], memory: int = MEMORY, name: str | None = None
    ) -> None:
        from bed_reader import open_bed

        self._path = local(path, ".bed files")
        self.name = name or self._path
        snps = _table(self._path, ".bim", "SNPs")
        self.feature_names = [fields[1] for fields in snps]
        if all(len(fields) >= 6 for fields in snps):
            self.alleles = [f"{fields[4]}/{fields[5]}" for fields in snps]
        rows, features = len(_table(self._path, ".fam", "individuals")), len(snps)
        self.shape, self.dtype = (rows, features), np.dtype(np.float32)
        _check_size(self._path, rows, features)
        self._bed = open_bed(self._path, iid_count=rows, sid_count=features)
        self._fitting = max(1, memory // features)
        self._held = (0, np.empty((0, features), np.int8))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        first, calls = self._held
        if begin < first or end > first + len(calls):
            first, calls = self._held = self._stripe(begin, end)
        as_numbers = np.full(256, np.nan, np.float32)
        as_numbers[:3] = (0, 1, 2)
        return as_numbers[calls[begin - first : end - first].view(np.uint8)]

    def _stripe(self, begin: int, end: int) -> tuple[int, np.ndarray]:
        """Return the calls of a stripe that has these rows, and the row it begins with."""
        rows = self.shape[0]
        assert rows is not None
        first = 0 if self._fitting >= rows else begin
        last = min(first + max(self._fitting, end - begin), rows)
        self._held = (0, self._held[1][:0].copy())  # let go of one before the next is made
        try:
            return first, self._bed.read(np.s_[first:last, :], dtype="int8", order="C")
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{self.name}: individuals {first} to {last} cannot be read ({error}): it is damaged."
            ) from error

    def fingerprint(self) -> dict[str, Any]:
        """Return shape and dtype, size and time of the file, and of the one with the names."""
        about = {one: stamp(str(Path(self._path).with_suffix(one))) for one in (".bim", ".fam")}
        return super().fingerprint() | stamp(self._path) | about

    def digest(self) -> str | None:
        """Return a digest of the three files."""
        beside = [str(Path(self._path).with_suffix(one)) for one in (".bim", ".fam")]
        return digest_of_files([self._path, *beside])


def _table(path: str, ending: str, what: str) -> list[list[str]]:
    """Return the fields of a table beside the `.bed`: one line for each SNP or individual."""
    beside = Path(path).with_suffix(ending)
    if not beside.is_file():
        raise SourceError(f"{beside} is missing: it has the {what} of {path}; put it beside it.")
    found = list(_fields(beside))
    if not found:
        raise SourceError(f"{beside} is empty: it must have one line for each of the {what}.")
    return found


def _fields(path: Path) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if len(fields) == 1:
                raise SourceError(f"{path}: line {number} has one field: six are expected.")
            if fields:
                yield fields


def _check_size(path: str, rows: int, features: int) -> None:
    """Refuse a file that is no `.bed`, or has not the calls of all SNPs and individuals."""
    with open(path, "rb") as file:
        start = file.read(3)
    if start[:2] != MAGIC or start[2:] not in (b"\x00", b"\x01"):
        raise SourceError(
            f"{path} is no PLINK 1 .bed file: it begins with {start.hex() or 'nothing'}."
        )
    by_snps = start[2] == 1
    expected = 3 + (features * -(-rows // 4) if by_snps else rows * -(-features // 4))
    there = os.path.getsize(path)
    if there != expected:
        raise SourceError(
            f"{path} has {there} bytes, but {rows} individuals and {features} SNPs take {expected}: it is "
            "truncated, or its .bim and .fam belong to another; copy all three again."
        )
