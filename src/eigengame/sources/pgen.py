"""PLINK 2 genotypes, hard calls or dosages: individuals are rows, variants are features, missing calls are NaN."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eigengame.sources._alleles import UNKNOWN
from eigengame.sources._base import SourceError
from eigengame.sources._genotype_file import MEMORY, GenotypeFile, read_table
from eigengame.sources._paths import local_file

VARIANTS = 256
"""Variants that are read at once, before they are transposed."""

MISSING = -9
"""Code of pgenlib for a missing dosage."""

REQUIRED = ("CHROM", "POS", "ID", "REF", "ALT")


class PgenSource(GenotypeFile):
    """Rows of a `.pgen` file with its `.pvar` and `.psam`: the dosage of the alternative allele.

    Blocks are float32: dosages from 0 to 2, or NaN for a missing call. The `.pvar` and `.psam` files may have no
    header, which is the format of `.bim` and `.fam`. Variants with several alternative alleles are refused.

    Parameters
    ----------
    path : path
        The `.pgen` file, with the other two files beside it, not compressed.
    memory : int
        Bytes of dosages to keep in memory, four bytes per call.
    name : str, optional
        Defaults to the path.
    """

    call = np.dtype(np.float32)

    def __init__(
        self, path: str | os.PathLike[str], memory: int = MEMORY, name: str | None = None
    ) -> None:
        import pgenlib

        file = local_file(path, ".pgen files")
        self.name = name or file
        if Path(f"{Path(file).with_suffix('.pvar')}.zst").is_file():
            raise SourceError(
                f"{Path(file).with_suffix('.pvar')}.zst is compressed: run plink2 --zst-decompress on it."
            )
        ids, alleles, positions = _read_variants(file)
        self._people = _read_people(file)
        rows = len(self._people)
        beside = [str(Path(file).with_suffix(ending)) for ending in (".pvar", ".psam")]
        super().__init__(file, beside, rows, ids, alleles, positions, memory)
        try:
            # Numbers that differ from those in the file are refused here.
            self._reader = pgenlib.PgenReader(os.fsencode(file), rows, len(ids))
        except (RuntimeError, OSError, ValueError) as error:
            raise SourceError(
                f"{file} cannot be read with its .pvar and .psam ({error}): copy all three again."
            ) from None

    def decode(self, first: int, last: int, snps: np.ndarray | None) -> np.ndarray:
        """Return dosages as float32, with -9 for missing ones."""
        places = np.arange(self.shape[1]) if snps is None else snps
        order = np.argsort(places)  # variants are read in the order of the file
        dosages = np.empty((last - first, len(places)), np.float32)
        self._reader.change_sample_subset(np.arange(first, last, dtype=np.uint32))
        for begin in range(0, len(places), VARIANTS):
            some = order[begin : begin + VARIANTS]
            buffer = np.empty((len(some), last - first), np.float32)
            self._reader.read_dosages_list(places[some].astype(np.uint32), buffer)
            dosages[:, some] = buffer.T
        return dosages

    def numbers(self, calls: np.ndarray) -> np.ndarray:
        """Return dosages with NaN for missing ones."""
        return np.where(calls == MISSING, np.float32(np.nan), calls)

    def row_ids(self) -> Sequence[str]:
        """Return the ids of the individuals (IID)."""
        return self.id_columns()["IID"]

    def id_columns(self) -> dict[str, Sequence[str]]:
        """Return the family ids (FID), where known, and the ids (IID) of the individuals."""
        columns: dict[str, Sequence[str]] = {}
        if any(family != UNKNOWN for family, _ in self._people):
            columns["FID"] = [family for family, _ in self._people]
        return columns | {"IID": [one for _, one in self._people]}


def _read_variants(path: str) -> tuple[list[str], list[str], list[str]]:
    """Return ids, alleles (the alternative one first) and positions from the `.pvar` file."""
    header, lines = _split_header(read_table(path, ".pvar", "variants"))
    if header is None:  # the columns of a .bim file, perhaps without the third
        names = ["CHROM", "ID", "CM", "POS", "ALT", "REF"]
        header = names if len(lines[0]) >= 6 else [one for one in names if one != "CM"]
    absent = [name for name in REQUIRED if name not in header]
    if absent:
        raise SourceError(
            f"{Path(path).with_suffix('.pvar')} has no column {', '.join(absent)}: its header must have "
            f"{', '.join(REQUIRED)}."
        )
    chromosome, position, name, ref, alt = (header.index(one) for one in REQUIRED)
    least = max(chromosome, position, name, ref, alt)
    for fields in lines:
        if len(fields) <= least:
            raise SourceError(
                f"{Path(path).with_suffix('.pvar')}: the line {' '.join(fields)!r} has {len(fields)} fields: "
                f"{least + 1} are needed."
            )
        if "," in fields[alt]:
            raise SourceError(
                f"{Path(path).with_suffix('.pvar')}: {fields[name]} has several alternative alleles "
                f"({fields[alt]}): keep variants with two alleles, for example by plink2 --max-alleles 2."
            )
    alleles = [f"{_allele(one[alt])}/{_allele(one[ref])}" for one in lines]
    positions = [f"{one[chromosome]}:{one[position]}" for one in lines]
    return [one[name] for one in lines], alleles, positions


def _read_people(path: str) -> list[tuple[str, str]]:
    """Return FID and IID of each individual from the `.psam` file; FID is 0 if it is not known."""
    header, lines = _split_header(read_table(path, ".psam", "individuals", least=1))
    header = ["FID", "IID"] if header is None else header
    if "IID" not in header or not lines:
        raise SourceError(f"{Path(path).with_suffix('.psam')} has no individuals with an IID.")
    family = header.index("FID") if "FID" in header else None
    own = header.index("IID")
    short = next((one for one in lines if len(one) <= max(own, family or 0)), None)
    if short is not None:
        raise SourceError(
            f"{Path(path).with_suffix('.psam')}: the line {' '.join(short)!r} has no IID: check the file."
        )
    return [(UNKNOWN if family is None else one[family], one[own]) for one in lines]


def _split_header(lines: list[list[str]]) -> tuple[list[str] | None, list[list[str]]]:
    """Return the names of the columns, if there is a header, and the other lines without comments."""
    header = None
    for i, fields in enumerate(lines):
        if fields[0].startswith("##"):
            continue
        if not fields[0].startswith("#"):
            return header, lines[i:]
        header = [fields[0][1:], *fields[1:]]
    return header, []


def _allele(code: str) -> str:
    return UNKNOWN if code == "." else code
