"""PLINK 1 genotypes: individuals are rows, SNPs are features, missing calls are NaN."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eigengame.sources._base import SourceError
from eigengame.sources._genotype_file import MEMORY, GenotypeFile, read_table
from eigengame.sources._paths import local_file

MAGIC = b"\x6c\x1b"
"""First bytes of a .bed file. The next byte is 1 if it is stored by SNPs, 0 if by individuals."""


class BedSource(GenotypeFile):
    """Rows of a `.bed` file with its `.bim` and `.fam`: the number of copies of the first allele.

    Blocks are float32: 0, 1, 2, or NaN for a missing call. Names, alleles and positions of the SNPs come from
    the `.bim`. A model keeps them, and aligns other files with them. Ids of the individuals come from the `.fam`.

    Parameters
    ----------
    path : path
        The `.bed` file, with the other two files beside it.
    memory : int
        Bytes of decoded calls to keep in memory, one byte per call. If not all individuals fit, each pass reads the
        file once per stripe.
    name : str, optional
        Defaults to the path.
    """

    call = np.dtype(np.int8)

    def __init__(
        self, path: str | os.PathLike[str], memory: int = MEMORY, name: str | None = None
    ) -> None:
        from bed_reader import open_bed

        file = local_file(path, ".bed files")
        self.name = name or file
        snps = read_table(file, ".bim", "SNPs")
        rows = len(read_table(file, ".fam", "individuals"))
        _check_size(file, rows, len(snps))
        alleles = None
        if all(len(fields) >= 6 for fields in snps):
            alleles = [f"{fields[4]}/{fields[5]}" for fields in snps]
        super().__init__(
            file,
            [str(Path(file).with_suffix(ending)) for ending in (".bim", ".fam")],
            rows,
            [fields[1] for fields in snps],
            alleles,
            [f"{fields[0]}:{fields[3] if len(fields) > 3 else 0}" for fields in snps],
            memory,
        )
        self._bed = open_bed(file, iid_count=rows, sid_count=len(snps))

    def decode(self, first: int, last: int, snps: np.ndarray | None) -> np.ndarray:
        """Return calls as int8, with -127 for missing ones."""
        columns = slice(None) if snps is None else snps
        calls: np.ndarray = self._bed.read((np.s_[first:last], columns), dtype="int8", order="C")
        return calls

    def numbers(self, calls: np.ndarray) -> np.ndarray:
        """Return decoded calls as float32, with NaN for missing ones."""
        as_numbers = np.full(256, np.nan, np.float32)
        as_numbers[:3] = (0, 1, 2)
        return as_numbers[calls.view(np.uint8)]

    def row_ids(self) -> Sequence[str]:
        """Return the ids of the individuals (IID)."""
        return self.id_columns()["IID"]

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the family ids (FID) and the ids within the family (IID) of the individuals."""
        people = read_table(self._path, ".fam", "individuals")
        return {"FID": [one[0] for one in people], "IID": [one[1] for one in people]}


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
