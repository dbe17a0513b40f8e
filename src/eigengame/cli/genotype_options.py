"""Options for genotypes and named features: how other data is aligned with the features of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from eigengame.cli.errors import print_message
from eigengame.cli.options import options_in_panel

_option = options_in_panel("Genotypes")


@dataclass(frozen=True)
class GenotypeOptions:
    """Options for the alignment of SNPs."""

    intersect: Annotated[
        bool,
        _option(
            "--intersect",
            help="Use the SNPs that MODEL and DATA share, if some are missing or have other alleles. Of counts: "
            "treat genes that DATA lacks as 0, if components have no loadings on them.",
        ),
    ] = False
    ambiguous: Annotated[
        Literal["auto", "keep", "drop"],
        _option(
            help="SNPs with alleles A/T or C/G: use the strand of all others, keep them as they are, or do not use "
            "them."
        ),
    ] = "auto"

    def given(self) -> bool:
        """Return whether an option differs from its default."""
        return self.intersect or self.ambiguous != "auto"


def align_genotypes(source: Any, model: Any, options: GenotypeOptions) -> Any:
    """Return genotypes with the SNPs of a model, and print how they were matched.

    Other data is not changed, unless `--intersect` requires it.
    """
    if model.snps_ is None or source.alleles is None:
        if options.ambiguous != "auto" or (options.intersect and source.feature_names is None):
            raise ValueError(
                "--intersect and --ambiguous need PLINK genotypes, and a model that was fitted to such a file; or "
                "--intersect alone data with names of features."
            )
        return align_features(source, model) if options.intersect else source
    aligned = model.align(source, intersect=options.intersect, ambiguous=options.ambiguous)
    print_message(str(aligned.alignment))
    return aligned


def align_features(source: Any, model: Any) -> Any:
    """Return data with the features of a model, found by name, and print how many are absent."""
    aligned = model.align(source, intersect=True)
    absent, unused = getattr(aligned, "absent", 0), getattr(aligned, "unused", 0)
    print_message(
        f"{source.name}: {absent:,} of {aligned.shape[1]:,} features of the fit are absent and count as 0; "
        f"{unused:,} other features are not used."
    )
    return aligned


def shrinkage_of(model: Any, source: Any) -> Any:
    """Return the shrinkage of each score; raise if it is not known, or if rows are those of the fit."""
    import numpy as np

    from eigengame.estimator.genotypes import sample_ids

    known, new = model.sample_ids_, sample_ids(source)
    if known is not None and new is not None:
        fitted = set(map(tuple, known))
        shared = sum(tuple(one) in fitted for one in new)
        if shared:
            raise ValueError(
                f"--correct-shrinkage: {shared} of {len(new)} individuals are in the fit, whose scores are not "
                "shrunk: give the others only."
            )
    factors = model.score_shrinkage()
    unknown = [str(i + 1) for i in np.flatnonzero(np.isnan(factors))]
    if unknown:
        raise ValueError(
            f"--correct-shrinkage: components {', '.join(unknown)} are within the noise, so that their shrinkage "
            "is not known: fit fewer components."
        )
    return factors
