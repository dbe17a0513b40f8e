"""Numbers of a fit on fields: real components as they are, complex ones from the pairs of a real fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Modes:
    """Components of a field, in the space of the fit: weighted, without empty cells.

    Attributes
    ----------
    components : array of shape (k, d), real or complex
        Orthonormal rows.
    variance : array of shape (k,)
        Variance of each score, with n - 1 degrees of freedom.
    ratio : array of shape (k,)
        Share of each component in the total variance.
    mean : array of shape (d,)
        Mean of each weighted feature.
    angle : array of shape (k,)
        Bound on the angle to the true component, or from its cluster to the true span, in radians.
    clusters : tuple of tuple of int
        Ranks, from 0, of components that cannot be separated: the bound is that of their span.
    kind : str
        Kind of the certificate.
    confidence : float
    """

    components: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray
    mean: np.ndarray
    angle: np.ndarray
    clusters: tuple[tuple[int, ...], ...]
    kind: str
    confidence: float

    @property
    def is_complex(self) -> bool:
        """Whether components are complex."""
        return self.components.dtype.kind == "c"

    def attributes(self) -> dict[str, Any]:
        """Return the certificate as attributes that netCDF can store."""
        found: dict[str, Any] = {
            "certificate": self.kind,
            "certificate_confidence": self.confidence,
            "certificate_angles": self.angle.astype(np.float64),
            "certificate_unit": "rad",
        }
        groups = ["-".join(str(i + 1) for i in one) for one in self.clusters]
        if groups:
            found["certificate_of_spans"] = " ".join(groups)
        return found


def real_modes(pca: Any) -> Modes:
    """Return the components of a fitted estimator."""
    certificate = pca.certificate_
    k = len(certificate.angle)
    clusters = (tuple(i for i in one.members if i < k) for one in certificate.clusters)
    return Modes(
        components=pca.components_,
        variance=pca.explained_variance_,
        ratio=pca.explained_variance_ratio_,
        mean=pca.mean_,
        angle=certificate.group_angle,
        clusters=tuple(one for one in clusters if one),
        kind=certificate.kind,
        confidence=float(certificate.confidence),
    )
