r"""The certificate of one pass, on data that is not read again.

After the pass the memory claims $M \approx V^\top SV$ with orthonormal players $V$ and strengths $S$. Let
$E = M - V^\top SV$. The residual of player $i$ is $Ev_i = Mv_i - s_iv_i$, although $Mv_i$ was never computed. With
probes $G$ and $P = GM$, the vector $Y_i = Pv_i - s_iGv_i = GEv_i$ is known. Its entries are Gaussian with variance
$\|Ev_i\|^2$, since the players do not depend on the probes. So with probability $1 - \delta$ each

* $\|Ev_i\| \le R_i = \|Y_i\|/\sqrt{\chi^2_r(\delta)}$, and $\|EV_C^\top\| \le \|Y_C\|/\sqrt{\chi^2_r(\delta)}$ in
  the spectral norm for a group $C$ of players, $\epsilon$ for all of them;
* the largest eigenvalue $\lambda$ of $F = \Pi M\Pi$ outside the players, with eigenvector $y$, satisfies
  $GMy = \lambda Gy + GV^\top(VMy)$ and $\|VMy\| \le \epsilon$, so that
  $\lambda\sqrt{\chi^2_r(\delta)} \le \|P\Pi\| + \|GV^\top\|\epsilon$. With more probes than players a rotation of
  the probes removes their part in the players: $r - K$ of them give a second bound, without the last term.

**Eigenvalues.** By dilation there is a symmetric $X$ with $XV^\top = EV^\top$ and $\|X\| \le \epsilon$, and
$M - X$ has the eigenvalues $s$, and others of at most $\mu + \epsilon$. So if $s_q - \epsilon$ is above
$b = \max(s_{q+1}, \mu + \epsilon) + \epsilon$, exactly $q$ eigenvalues of $M$ are above $b$. Each of the first $q$
intervals $s_i \pm R_i$ holds an eigenvalue. If they are disjoint and above $b$ they hold one each; intervals that
overlap are joined, with the norm of the group in place of $R_i$.

**Eigenvectors.** $\sin\angle_i \le R_i/\mathrm{gap}_i$, with the gap from $s_i$ to the nearest other enclosure or
to $b$.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eigengame._system.lazy import lazy
from eigengame.metrics import streak_of
from eigengame.sharding.gather import any_distributed, gather
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.probes import ProbeImages, least_norm, spectral_norm
from eigengame.solver.certificates.risk import PROBES_RISK, RISK
from eigengame.solver.streams.probe_products import probe_error, probe_products
from eigengame.solver.streams.stream import Stream, estimate

SHARES = 4
"""Events among which the risk is shared: residuals, groups, the coupling, and the level."""


@dataclass(frozen=True)
class OnePassBlock:
    r"""What one pass shows of the players.

    Attributes
    ----------
    strengths : array of shape (K,)
        $s$, largest first.
    seen : array of shape (r, K)
        $Y$.
    errors : array of shape (K,)
        Bound on the rounding error of the norm of each column of $Y$.
    outside : array of shape (r, r), or (r, d)
        $P\Pi$, or a matrix with the same inner products of rows.
    outside_error : float
        Bound on the rounding error of its norm.
    shares : array of shape (r, K)
        $GV^\top$.
    risk : float
    whole : bool
        Whether the players span the whole space.
    """

    strengths: np.ndarray
    seen: np.ndarray
    errors: np.ndarray
    outside: np.ndarray
    outside_error: float
    shares: np.ndarray
    risk: float
    whole: bool = False

    @property
    def count(self) -> int:
        """Number of probes r."""
        return len(self.seen)

    @lazy
    def residuals(self) -> np.ndarray:
        """$R$, shape (K,)."""
        each = self._least(self.count, len(self.strengths))
        return (np.linalg.norm(self.seen, axis=0) + self.errors) / each

    @lazy
    def coupling(self) -> float:
        r"""$\epsilon$."""
        return self._coupling(slice(None), 1)

    def coupling_of(self, group: slice) -> float:
        r"""Return a bound on $\|EV_C^\top\|$ for a group of neighbours."""
        return self._coupling(group, len(self.strengths) ** 2)

    def _coupling(self, group: slice, events: int) -> float:
        """Return a bound for a group, one of several."""
        error = float(np.linalg.norm(self.errors[group]))
        return (spectral_norm(self.seen[:, group].T) + error) / self._least(self.count, events)

    @lazy
    def level(self) -> float:
        r"""$\mu$; 0 if the players span the whole space."""
        if self.whole:
            return 0.0
        slack = spectral_norm(self.shares.T) * self.coupling
        norm = spectral_norm(self.outside) + self.outside_error
        level = (norm + slack) / self._least(self.count, 2)
        free = self.count - self.shares.shape[1]
        if free > 0:
            turn = np.linalg.qr(self.shares, mode="complete")[0][:, -free:]
            norm = spectral_norm(turn.T @ self.outside) + self.outside_error
            level = min(level, norm / self._least(free, 2))
        return level

    @lazy
    def separations(self) -> list[tuple[float, list[tuple[slice, float]]]]:
        """For each number q of leading players whose eigenvalues are above all others: $b$, and groups of them.

        The groups have disjoint enclosures, each with the half width of these.
        """
        return list(_separations(self))

    def _least(self, degrees: int, events: int) -> float:
        """Return the least norm of a Gaussian vector, for one of several events of one kind."""
        return least_norm(self.risk / SHARES / events, degrees)


def one_pass_angles(block: OnePassBlock, k: int) -> np.ndarray:
    """Return a bound on the angle of each of the first k players to its eigenvector, shape (k,).

    It is pi/2 where there is none.
    """
    s = block.strengths
    angle = np.full(k, math.pi / 2)
    for rest, groups in block.separations:
        for place, (group, width) in enumerate(groups):
            i = group.start
            if group.stop - i > 1 or i >= k:
                continue
            above = s[groups[place - 1][0].stop - 1] - groups[place - 1][1] if place else math.inf
            beneath = rest
            if place + 1 < len(groups):
                beneath = s[groups[place + 1][0].start] + groups[place + 1][1]
            gap = min(above - s[i], s[i] - beneath)
            if gap > width:
                angle[i] = min(angle[i], math.asin(width / gap))
    return angle


def separated(block: OnePassBlock) -> int:
    """Return the largest number of leading players whose eigenvalues are above all others."""
    return max((groups[-1][0].stop for _, groups in block.separations), default=0)


def _separations(block: OnePassBlock) -> Iterator[tuple[float, list[tuple[slice, float]]]]:
    """Iterate over the separations of a block."""
    s, residual = block.strengths, block.residuals
    coupling, level = block.coupling, block.level
    for count in range(1, len(s) + 1):
        below = s[count] if count < len(s) else -math.inf
        rest = max(below, level + coupling) + coupling
        if not s[count - 1] - coupling > rest:
            continue
        groups = _disjoint(block, residual, count)
        # An enclosure that reaches the rest may hold an eigenvalue of it.
        if all(s[group.stop - 1] - width > rest for group, width in groups):
            yield rest, groups


def _disjoint(block: OnePassBlock, residual: np.ndarray, count: int) -> list[tuple[slice, float]]:
    """Return groups of the first players with disjoint enclosures, each with the half width of these."""
    s = block.strengths
    groups = [(slice(i, i + 1), float(residual[i])) for i in range(count)]
    place = 0
    while place + 1 < len(groups):
        (one, wide), (other, wider) = groups[place : place + 2]
        if s[one.stop - 1] - wide > s[other.start] + wider:
            place += 1
            continue
        joined = slice(one.start, other.stop)
        groups[place : place + 2] = [(joined, block.coupling_of(joined))]
        place = max(place - 1, 0)
    return groups


def certifiable(stream: Stream) -> bool:
    """Return whether a stream has rows and probes."""
    return stream.probes is not None and stream.rows > 0


def one_pass_certificate(stream: Stream, scale: float, risk: float = PROBES_RISK) -> Certificate:
    """Return the certificate of the components of a stream with probes.

    Parameters
    ----------
    stream : Stream
        On one device.
    scale : float
        Divisor of M for a covariance.
    risk : float
        Probability that the bounds of the probes do not hold.
    """
    k, (block, tilt) = stream.k, one_pass_block(stream, risk)
    tilt, strengths = tilt[:k], block.strengths
    residual, level = block.residuals, block.level
    angle = np.minimum(one_pass_angles(block, k) + tilt, math.pi / 2)
    angle[strengths[:k] <= 0] = math.pi / 2
    below, above = np.append(strengths[1:], 0.0)[:k], np.append(np.inf, strengths[:-1])[:k]
    gap = np.minimum(above - strengths[:k], strengths[:k] - np.maximum(below, level))
    unknown = np.full(k, np.nan)
    return Certificate(
        kind="certified",
        rayleigh=strengths[:k] / scale,
        residual=residual[:k] / scale,
        gap=gap / scale,
        angle=angle,
        level=level / scale,
        confidence=1 - RISK,
        gradient_angle=unknown,
        penalty_ratio=unknown,
        probes=block.count,
        powers=1,
        estimate=np.minimum(_estimates(block, k) + tilt, math.pi / 2),
        coupling=block.coupling / scale,
        separated=separated(block),
    )


def certificate_of(stream: Stream, scale: float) -> Certificate:
    """Return the certificate of one pass; without probes an estimate."""
    return one_pass_certificate(stream, scale) if certifiable(stream) else estimate(stream, scale)


def figures(stream: Stream) -> dict[str, float]:
    """Return figures of a stream for progress callbacks: share of variance explained, and estimated streak."""
    if any_distributed(stream):
        # Only all processes together could compute them, and not all have callbacks.
        return {}
    strengths = np.asarray(stream.state.memory.strengths, np.float64)[: stream.k]
    total = float(np.sum(np.asarray(stream.moments.scatter, np.float64)))
    share = float(np.sum(strengths)) / total if total > 0 else 0.0
    found = certificate_of(stream, 1.0)
    angles = found.angle if found.estimate is None else found.estimate
    return {"variance": share, "streak": float(streak_of(angles))}


def one_pass_block(stream: Stream, risk: float = PROBES_RISK) -> tuple[OnePassBlock, np.ndarray]:
    """Return what the probes of a stream show of its players, and the angles (K,) of these to orthonormal ones."""
    memory, found = stream.state.memory, probe_products(stream)
    strengths = gather(memory.strengths).astype(np.float64)
    block = OnePassBlock(
        strengths,
        found.inside - found.shares * strengths,
        found.along,
        found.outside,
        found.error,
        found.shares,
        risk,
        whole=memory.players.shape[0] == memory.players.shape[1],
    )
    return block, found.tilt


def probe_images(stream: Stream) -> ProbeImages | None:
    """Return the products of the probes of a stream in float64 on the host; None without probes."""
    if stream.probes is None:
        return None
    draws, images = (gather(one).astype(np.float64) for one in stream.probes[:2])
    return ProbeImages(draws, images, probe_error(stream))


def _estimates(block: OnePassBlock, k: int) -> np.ndarray:
    """Return estimates of the angles, shape (k,).

    Most of a residual lies in directions of little variance; about a tenth is shared with the neighbours.
    """
    s = block.strengths
    typical = np.linalg.norm(block.seen, axis=0)[:k] / math.sqrt(block.count)
    below, above = np.append(s[1:], 0.0)[:k], np.append(np.inf, s[:-1])[:k]
    gap = np.maximum(np.minimum(above - s[:k], s[:k] - below), np.finfo(float).tiny)
    safe = np.maximum(s[:k], np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return np.arctan(typical * np.hypot(1 / safe, 0.1 / gap))
