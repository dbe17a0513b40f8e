"""PLINK 1 genotypes: individuals are rows, SNPs are features, missing calls are NaN.

A `.bed` file is usually stored SNP by SNP, so the calls of one individual are scattered over the whole file. It is
decoded in stripes of as many individuals as fit in a given amount of memory, one byte per call. If all individuals
fit, the file is decoded once and kept in memory.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigengame.sources._base import RandomAccess, SourceError
from eigengame.sources._digest import digest_of_files
from eigengame.sources._paths import file_stamp, local_file

MEMORY = 2**30
"""Default memory for decoded calls, in bytes."""

MAGIC = b"\x6c\x1b"
"""First bytes of a .bed file. The next byte is 1 if it is stored by SNPs, 0 if by individuals."""


class BedSource(RandomAccess):
    """Rows of a `.bed` file with its `.bim` and `.fam`: the number of copies of the first allele.

    Blocks are float32: 0, 1, 2, or NaN for a missing call. Names, alleles and positions of the SNPs come from
    the `.bim`. A model keeps them, and aligns other files with them. Ids of the individuals come from the `.fam`.

    Parameters
    ----------
    path : path
        The `.bed` file, with the other two files beside it.
    memory : int
        Bytes of decoded calls to keep in memory. If not all individuals fit, each pass reads the file once
        per stripe.
    name : str, optional
        Defaults to the path.
    """

    feature_names: list[str]
    positions: list[str]

    def __init__(
        self, path: str | os.PathLike[str], memory: int = MEMORY, name: str | None = None
    ) -> None:
        from bed_reader import open_bed

        self._path = local_file(path, ".bed files")
        self.name = name or self._path
        snps = _read_table(self._path, ".bim", "SNPs")
        self.feature_names = [fields[1] for fields in snps]
        if all(len(fields) >= 6 for fields in snps):
            self.alleles = [f"{fields[4]}/{fields[5]}" for fields in snps]
        self.positions = [f"{one[0]}:{one[3] if len(one) > 3 else 0}" for one in snps]
        rows, features = len(_read_table(self._path, ".fam", "individuals")), len(snps)
        self.shape, self.dtype = (rows, features), np.dtype(np.float32)
        _check_size(self._path, rows, features)
        self._bed = open_bed(self._path, iid_count=rows, sid_count=features)
        self._snps: np.ndarray | None = None
        self._memory, self._stripe_rows = memory, max(1, memory // features)
        self._stripe = (0, np.empty((0, features), np.int8))

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return rows `begin` to `end`."""
        first, calls = self._stripe
        if begin < first or end > first + len(calls):
            first, calls = self._stripe = self._decode_stripe(begin, end)
        as_numbers = np.full(256, np.nan, np.float32)
        as_numbers[:3] = (0, 1, 2)
        return as_numbers[calls[begin - first : end - first].view(np.uint8)]

    def only(self, snps: np.ndarray) -> BedSource:
        """Return a source of the calls of some SNPs only, by their positions in this one, in this order."""
        chosen = copy.copy(self)
        if np.array_equal(snps, np.arange(self.shape[1])):
            return chosen
        places = np.asarray(snps) if self._snps is None else self._snps[snps]
        chosen._snps, chosen.opened_from = places, None
        chosen.shape = (self.shape[0], len(snps))
        chosen.feature_names = [self.feature_names[i] for i in snps]
        chosen.alleles = None if self.alleles is None else [self.alleles[i] for i in snps]
        chosen.positions = [self.positions[i] for i in snps]
        chosen._stripe_rows = max(1, self._memory // max(len(snps), 1))
        chosen._stripe = (0, np.empty((0, len(snps)), np.int8))
        return chosen

    def _decode_stripe(self, begin: int, end: int) -> tuple[int, np.ndarray]:
        """Return the first row and the calls of a stripe that contains these rows."""
        rows = self.shape[0]
        assert rows is not None
        first = 0 if self._stripe_rows >= rows else begin
        last = min(first + max(self._stripe_rows, end - begin), rows)
        self._stripe = (0, self._stripe[1][:0].copy())  # free the old stripe before the next one
        try:
            snps = slice(None) if self._snps is None else self._snps
            return first, self._bed.read((np.s_[first:last], snps), dtype="int8", order="C")
        except (OSError, ValueError) as error:
            raise SourceError(
                f"{self.name}: individuals {first} to {last} cannot be read ({error}): it is damaged."
            ) from error

    def row_ids(self) -> Sequence[str]:
        """Return the ids of the individuals (IID)."""
        return self.id_columns()["IID"]

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the family ids (FID) and the ids within the family (IID) of the individuals."""
        people = _read_table(self._path, ".fam", "individuals")
        return {"FID": [one[0] for one in people], "IID": [one[1] for one in people]}

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype, and size and time of the three files."""
        beside = {
            ending: file_stamp(str(Path(self._path).with_suffix(ending)))
            for ending in (".bim", ".fam")
        }
        return super().fingerprint() | file_stamp(self._path) | beside

    def digest(self) -> str | None:
        """Return a digest of the three files."""
        beside = [str(Path(self._path).with_suffix(ending)) for ending in (".bim", ".fam")]
        return digest_of_files([self._path, *beside])


def _read_table(path: str, ending: str, what: str) -> list[list[str]]:
    """Return the fields of the `.bim` or `.fam` file: one line for each SNP or individual."""
    beside = Path(path).with_suffix(ending)
    if not beside.is_file():
        raise SourceError(f"{beside} is missing: put the file with the {what} beside {path}.")
    found = list(_read_fields(beside))
    if not found:
        raise SourceError(f"{beside} is empty: it must have one line for each of the {what}.")
    return found


def _read_fields(path: Path) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if len(fields) == 1:
                raise SourceError(f"{path}: line {number} has one field: six are expected.")
            if fields:
                yield fields


def _check_size(path: str, rows: int, features: int) -> None:
    """Raise if a file is not a `.bed`, or does not have the calls of all SNPs and individuals."""
    with open(path, "rb") as file:
        start = file.read(3)
    if start[:2] != MAGIC or start[2:] not in (b"\x00", b"\x01"):
        raise SourceError(
            f"{path} is not a PLINK 1 .bed file: it begins with {start.hex() or 'nothing'}."
        )
    by_snps = start[2] == 1
    expected = 3 + (features * -(-rows // 4) if by_snps else rows * -(-features // 4))
    size = os.path.getsize(path)
    if size != expected:
        raise SourceError(
            f"{path} has {size} bytes, but {rows} individuals and {features} SNPs need {expected}: it is "
            "truncated, or its .bim and .fam belong to another file; copy all three again."
        )
