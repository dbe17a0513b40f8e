"""Features of a fit, found by name in other data."""

from __future__ import annotations

from typing import Any

from eigengame.preparation import PreparedSource
from eigengame.sources import Source, SourceError
from eigengame.sources.matched_columns import can_match, match_columns


def with_features_of_fit(estimator: Any, source: Source) -> Source:
    """Return a source with the features of a fit without preparation, found by name, in their order.

    Data that cannot be matched is returned unchanged, and so are data and models without names.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or source.feature_names is None or _prepared(source) or not can_match(source):
        return source
    return match_columns(source, names)


def align_features(estimator: Any, source: Source, *, intersect: bool, ambiguous: str) -> Source:
    """Return data with the features of the fit, before its preparation; see `EigenGamePCA.align`."""
    if ambiguous != "auto":
        raise SourceError(
            f"ambiguous={ambiguous!r} is an option for genotypes: the model has no SNPs with alleles."
        )
    preparation = estimator._preparation
    names = getattr(estimator, "feature_names_in_", None)
    if preparation is not None:
        names = preparation.names
    if names is None or source.feature_names is None:
        without = "the model" if names is None else source.name
        raise SourceError(
            f"{without} has no names of features, by which others are aligned: give data with the same columns in "
            "the same order to transform."
        )
    if _prepared(source):
        raise SourceError(f"{source.name} is prepared already: give the data as it is.")
    if not can_match(source):
        raise SourceError(
            f"{source.name} cannot be aligned: select its features yourself, in the order of the fit."
        )
    if preparation is None:
        return match_columns(source, names, absent_as_zero=intersect)
    return preparation.match(source, absent_as_zero=intersect)


def _prepared(source: Source) -> bool:
    return isinstance(source, PreparedSource)
