"""Genotypes of a fitted estimator: the SNPs of the fit, and the alignment of other data with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eigengame import _check
from eigengame.preparation import (
    Genotypes,
    Missing,
    Preparation,
    PreparedSource,
    Scale,
    preparation_of,
    prepare,
)
from eigengame.preparation.per_feature import without_selection
from eigengame.sources import GenotypeWarning, Source, SourceError
from eigengame.sources._snp_alignment import SnpAlignment, Snps
from eigengame.sources._snp_matching import AMBIGUOUS, match_snps
from eigengame.sources.aligned import AlignedSource

LEAST_SHARE = 0.01
"""Smallest share of a direction of scores that the SNPs in use must hold, for `align` with missing SNPs."""


def without_standardisation(source: Source) -> str | None:
    """Return a warning if a source has genotypes that are not standardised."""
    preparation = preparation_of(source)
    steps = () if preparation is None else preparation.steps
    if source.positions is None or any(isinstance(step, Genotypes | Scale) for step in steps):
        return None
    return (
        f"{source.name}: genotypes are fitted without standardisation, so that components are dominated by common "
        "SNPs: pass prepare(data, genotypes=True), or --genotypes on the command line."
    )


def warn_unless_standardised(source: Source) -> None:
    """Warn if genotypes are fitted without standardisation."""
    text = without_standardisation(source)
    if text is not None:
        warnings.warn(text, GenotypeWarning, stacklevel=5)


def sample_ids(source: Source) -> np.ndarray | None:
    """Return FID and IID of the individuals of genotypes, shape (n, 2); None for other data, or without ids."""
    columns = source.id_columns() if source.positions is not None else {}
    ids = columns.get("IID", columns.get("id"))
    if ids is None:
        return None
    families: Sequence[str] = columns.get("FID", ["0"] * len(ids))
    return np.array([families, ids], dtype=object).T


def joined_ids(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return the ids of the individuals of two parts of the data; None if those of one are not known."""
    return None if one is None or other is None else np.concatenate([one, other])


def aligned_genotypes(estimator: Any, source: Source) -> tuple[Source, Preparation | None]:
    """Return genotypes with the SNPs of the fit, and the preparation that follows.

    Sources that are no genotypes, are prepared already, or meet an estimator without alleles are not changed.
    """
    preparation = estimator._preparation
    known = estimator.snps_
    if known is None or source.alleles is None or isinstance(source, PreparedSource):
        return source, preparation
    after = None if preparation is None else without_selection(preparation)
    if preparation is not None and after is None:
        return source, preparation
    if not isinstance(source, AlignedSource):
        alignment = _match(source, known, intersect=False, ambiguous="auto")
        source = AlignedSource(source, alignment, known)
    # A fit that does not fill missing calls refuses them, and so do its scores.
    return (prepare(source), None) if after is None else (source, after)


def align(estimator: Any, source: Source, *, intersect: bool, ambiguous: str) -> AlignedSource:
    """Return genotypes with the SNPs of the fit; see `EigenGamePCA.align`."""
    _check.one_of("ambiguous", ambiguous, AMBIGUOUS)
    known, preparation = estimator.snps_, estimator._preparation
    if known is None:
        raise SourceError(
            "the model has no SNPs with alleles: fit genotypes from a PLINK file to be able to align others."
        )
    if source.alleles is None:
        raise SourceError(f"{source.name} has no alleles: give a PLINK file with its .bim.")
    if isinstance(source, PreparedSource | AlignedSource):
        raise SourceError(
            f"{source.name} is prepared or aligned already: give the genotypes as they are."
        )
    if preparation is not None and without_selection(preparation) is None:
        raise SourceError(
            "the preparation of the model needs whole rows before it selects SNPs, so that other genotypes cannot "
            "be aligned: prepare with genotypes=True."
        )
    alignment = _match(source, known, intersect=intersect, ambiguous=ambiguous)
    if not alignment.complete:
        steps = () if preparation is None else preparation.steps
        fills = [
            isinstance(step, Genotypes) or (isinstance(step, Missing) and step.policy == "mean")
            for step in steps
        ]
        if not any(fills):
            raise SourceError(
                f"{source.name}: {int((~alignment.used).sum())} SNPs of the model cannot be used, and the model "
                "does not fill missing calls: fit it on prepare(data, genotypes=True)."
            )
        inverse = least_squares(estimator.components_, alignment)
        alignment = replace(alignment, noise_factors=np.diag(inverse))
    return AlignedSource(source, alignment, known)


def alignment_of(source: Source) -> SnpAlignment | None:
    """Return the alignment of genotypes, prepared or not; None for other data."""
    inner = source.source if isinstance(source, PreparedSource) else source
    return inner.alignment if isinstance(inner, AlignedSource) else None


def least_squares(components: np.ndarray, alignment: SnpAlignment) -> np.ndarray:
    r"""Return the matrix (k, k) that turns scores over some SNPs into least-squares scores.

    With the components $V$ (k, d) restricted to the SNPs in use, $V_u$, the scores of a row $z$ are
    $(V_u V_u^T)^{-1} V_u z_u$: those with the smallest squared error over these SNPs. For white noise of variance
    $\sigma^2$ the covariance of their errors is $\sigma^2 (V_u V_u^T)^{-1}$.
    """
    some = components[:, alignment.used].astype(np.float64)
    values, vectors = np.linalg.eigh(some @ some.T)
    if values[0] < LEAST_SHARE:
        raise SourceError(
            f"the {int(alignment.used.sum())} SNPs in use do not determine the {len(components)} scores: a "
            f"direction keeps {max(values[0], 0):.2g} of its weight (at least {LEAST_SHARE} is needed). Give data "
            "with more SNPs of the model, or fit fewer components."
        )
    return np.asarray((vectors / values) @ vectors.T)


def refuse_partial(source: Source) -> None:
    """Raise if SNPs of the model are not used: only scores allow for them."""
    alignment = alignment_of(source)
    if alignment is not None and not alignment.complete:
        raise SourceError(
            f"{source.name}: {int((~alignment.used).sum())} SNPs of the model are not used. Only transform allows "
            "for that: give data with all SNPs."
        )


def _match(source: Source, known: Snps, *, intersect: bool, ambiguous: str) -> SnpAlignment:
    names, alleles = source.feature_names, source.alleles
    assert names is not None
    assert alleles is not None
    data = Snps([str(one) for one in names], alleles)
    return match_snps(source.name, data, known, intersect=intersect, ambiguous=ambiguous)
