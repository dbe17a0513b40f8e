"""PLINK files with given calls, SNPs and individuals."""

import numpy as np
import pytest

bed_reader = pytest.importorskip("bed_reader")


def write_bed(path, calls, ids, alleles, **properties):
    """Write calls (n, d), NaN if missing, with alleles such as "A/G", and return the path."""
    first, second = zip(*(pair.split("/") for pair in alleles), strict=True)
    about = {"sid": list(ids), "allele_1": list(first), "allele_2": list(second)}
    bed_reader.to_bed(path, np.ascontiguousarray(calls, np.float32), properties=about | properties)
    return path


def swap(pair):
    return "/".join(reversed(pair.split("/")))


def recoded(calls, ids, alleles, seed, swapped=0.3, missing=0.05):
    """Return the same calls in another order of SNPs, with swapped alleles and missing calls, and their mask."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(ids))
    flips = rng.random(len(ids)) < swapped
    gaps = rng.random(calls.shape) < missing
    new = np.where(gaps, np.nan, np.where(flips, 2 - calls, calls))
    pairs = [swap(pair) if flip else pair for pair, flip in zip(alleles, flips, strict=True)]
    moved = new[:, order], [ids[i] for i in order], [pairs[i] for i in order]
    return moved, gaps
