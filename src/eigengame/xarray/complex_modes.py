r"""Complex components by a real fit of twice the size.

The components of complex rows $x_t$ are the eigenvectors of the Hermitian matrix $C = \sum_t x_t^* x_t^\top$. A
vector $z = u + iw$ corresponds to the real vector $(u, w)$ of twice the length, and multiplication by $i$ to a
rotation $J(u, w) = (-w, u)$. The real rows $(\mathrm{Re}\,x_t, \mathrm{Im}\,x_t)$ together with their images under
$J$ have the scatter matrix $M$ with $r^\top M r = \sum_t |\bar z \cdot x_t|^2$. So each eigenvalue of $C$ is one of
$M$ twice, and its eigenspace, a complex line, is a plane that $J$ maps to itself. Two real components span the
plane; their certificate is that of a cluster of two.

**Recovery.** Let $2m$ real components span a space within an angle $\varphi$ of the eigenspace $E$, of complex
dimension $m$. Their complex counterparts are the rows of $Z$, shape (2m, d). The complex components are the first
$m$ right singular vectors of $Z$; $m = 1$ unless components cannot be separated.

**Bound.** Let $P$ be the projection on $E$. For real coefficients $c$, $\|cZ(1 - P)\| \le \sin\varphi\,\|c\|$, so
that $\|Z(1 - P)\| \le \sqrt2\sin\varphi$ for complex ones. $ZP$ has rank $m$ and
$\|ZP\|_F^2 \ge 2m\cos^2\varphi$, and no singular value of $Z$ exceeds $\sqrt2$: $ZZ^*$ is the identity plus $i$
times a real antisymmetric matrix, so that its eigenvalues are pairs $1 \pm a \ge 0$. So the m-th singular value is
at least $\sqrt{2 - 2m\sin^2\varphi}$, and the span of the first m right singular vectors is within $\theta$ of
$E$, where

$$\sin\theta \le \frac{\sin\varphi}{\sqrt{1 - m\sin^2\varphi}}.$$

Planes that are not within a cluster of whole planes have no bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eigengame.sources import SourceError
from eigengame.sources._field_labels import import_xarray
from eigengame.xarray.modes import Modes

PART, TURN = "_part", "_turn"
"""Dimensions of the real rows: real and imaginary part of a feature; a row and i times the row."""


def is_complex(dataset: Any) -> bool:
    """Return whether a variable of a dataset is complex."""
    return any(one.dtype.kind == "c" for one in dataset.data_vars.values())


def as_real(dataset: Any, dims: tuple[str, ...], mean: Any) -> Any:
    """Return the real rows of centred complex rows, in float64. Dask chunks stay lazy.

    Parameters
    ----------
    dataset : xarray.Dataset
    dims : tuple of str
        Sample dimensions.
    mean : xarray.Dataset

    Returns
    -------
    xarray.Dataset
        With the further sample dimension `TURN`, and the feature dimension `PART` before those of the data.
    """
    xarray = import_xarray()
    if any(one.dtype.kind != "c" for one in dataset.data_vars.values()):
        raise SourceError(
            "the Dataset has real and complex variables: convert all to complex by astype(complex)."
        )
    # Rounding after the subtraction would change the components, and no bound would contain it.
    centred = dataset.astype(np.complex128) - mean
    there = centred.notnull()  # a value that is missing has no part
    real, imaginary = centred.map(np.real).where(there), centred.map(np.imag).where(there)
    rows = xarray.concat([real, imaginary], PART)
    turned = xarray.concat([-imaginary, real], PART)
    both = xarray.concat([rows, turned], TURN)
    found = {}
    for name, one in both.data_vars.items():
        features = [dim for dim in one.dims if dim not in (*dims, PART, TURN)]
        ordered = one.transpose(*dims, TURN, PART, *features)
        if ordered.chunks is not None:  # a row, and i times the row, are read together
            ordered = ordered.chunk({TURN: -1, PART: -1})
        found[name] = ordered
    return both.assign(found)


def complex_modes(pca: Any, parts: list[tuple[int, int]], samples: int, mean: np.ndarray) -> Modes:
    """Return the complex components of a real fit of `as_real`.

    Parameters
    ----------
    pca : EigenGamePCA
        With an even number of components and ``center=False``.
    parts : list of (int, int)
        First and last feature of each variable; its first half are real parts.
    samples : int
        Number of complex rows.
    mean : complex array of shape (d,)
    """
    k = len(pca.components_) // 2
    found = to_complex(np.asarray(pca.components_[: 2 * k], np.float64), parts)
    spaces, certificate = _spaces(pca.certificate_, k), pca.certificate_
    # The scatter of 2n real rows is that of n complex ones, and has other degrees of freedom.
    pairs = np.asarray(pca.explained_variance_[: 2 * k], np.float64).reshape(k, 2)
    variance = pairs.mean(axis=1) * (pca.n_samples_seen_ - 1) / (samples - 1)
    ratio = np.asarray(pca.explained_variance_ratio_[: 2 * k], np.float64).reshape(k, 2).sum(axis=1)
    components, angle = np.empty((k, found.shape[1]), complex), np.full(k, math.pi / 2)
    for members, bound in spaces:
        rows = found[2 * members[0] : 2 * members[-1] + 2]
        components[list(members)] = np.linalg.svd(rows, full_matrices=False)[2][: len(members)]
        angle[list(members)] = bound
    return Modes(
        components=_with_phase(components),
        variance=variance,
        ratio=ratio,
        mean=mean,
        angle=angle,
        clusters=tuple(members for members, _ in spaces if len(members) > 1),
        kind=certificate.kind,
        confidence=float(certificate.confidence),
    )


def to_complex(rows: np.ndarray, parts: list[tuple[int, int]]) -> np.ndarray:
    """Return real vectors (m, 2d) as complex ones (m, d)."""
    halves = [np.split(rows[:, begin:end], 2, axis=1) for begin, end in parts]
    return np.hstack([real + 1j * imaginary for real, imaginary in halves])


def _spaces(certificate: Any, k: int) -> list[tuple[tuple[int, ...], float]]:
    """Return groups of complex components whose span is determined, each with its bound."""
    bounds: dict[tuple[int, ...], float] = {}
    for cluster in certificate.clusters:
        first, last = cluster.members[0], cluster.members[-1]
        if first % 2 == 0 and last % 2 == 1 and last < 2 * k:
            members = tuple(range(first // 2, last // 2 + 1))
            bounds[members] = span_bound(cluster.angle, len(members))
    found = list(bounds.items())
    covered = {i for members in bounds for i in members}
    found += [((i,), math.pi / 2) for i in range(k) if i not in covered]
    return sorted(found)


def span_bound(angle: float, m: int) -> float:
    """Return the bound on the angle of m complex components from that of their 2m real ones."""
    sine = math.sin(min(angle, math.pi / 2))
    if m * sine**2 >= 1:
        return math.pi / 2
    return math.asin(min(sine / math.sqrt(1 - m * sine**2), 1.0))


def _with_phase(components: np.ndarray) -> np.ndarray:
    """Return components whose entry of largest modulus is real and positive."""
    at = np.abs(components).argmax(axis=1)[:, None]
    largest = np.take_along_axis(components, at, axis=1)
    return components * (np.abs(largest) / largest)
