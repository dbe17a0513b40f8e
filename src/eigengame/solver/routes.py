"""The routes from a source to its components: remembered, by the covariance, by steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.algorithms import REGISTRY, Algorithm, Remembered, make
from eigengame.game.rayleigh_ritz import settle
from eigengame.game.rows import DenseRows, play_dtype
from eigengame.game.sphere import random_players
from eigengame.linalg.orthonormal import orthonormalise
from eigengame.linalg.wide import MOST_WIDE, kernels_fit
from eigengame.sharding.gather import whole
from eigengame.sharding.placement import Placement
from eigengame.solver import covariance
from eigengame.solver import streaming as stream
from eigengame.solver import wide_streaming as wide_stream
from eigengame.solver.batches import refuse_unless_finite
from eigengame.solver.forgetting import faded_again, refuse_unless_fading
from eigengame.solver.moments import Moments, add_moments, gathered_moments, no_moments
from eigengame.solver.outcome import Outcome, Status
from eigengame.solver.passes import Reading
from eigengame.solver.refine import MOST_PASSES, Found, Goal, measured_only, refined, status_of
from eigengame.solver.rounding import Rounding
from eigengame.solver.row_counts import refuse_unless_counted

COVARIANCE = "covariance"
"""The route that accumulates M in one pass and solves its eigenproblem: for few features."""

COVARIANCE_TOL = 1e-3
"""The angle that counts as converged on that route where no `tol` is given."""


DEVICE_BYTES = 2**30
"""Bytes that rows of a device, players and their images may take in float64 for a measurement."""


@dataclass(frozen=True)
class Options:
    """What a fit is asked for, beside its data and the number of components.

    `hosted` is not asked for: players that a device has no room for stay on the host.
    """

    extra: int | Literal["auto"] = "auto"
    rounds: int = 1
    passes: int = 1
    tol: float | None = None
    center: bool = True
    forget: float = 1.0
    step_size: float | None = None
    dtype: Any = np.float32
    seed: int = 0
    hosted: bool = False

    def players(self, k: int, d: int) -> int:
        """Return K, the number of players for k components."""
        return self.game().players_for(k, d)

    def on_device(self, k: int) -> Options:
        """Return the same for rows of a device that kernels play on.

        Left to us, players and mean together are half as many again as the components, in sixteens: what
        kernels take at a time.
        """
        together = -(-3 * k // 32) * 16
        if self.extra != "auto" or together > MOST_WIDE:
            return self
        return replace(self, extra=together - k - int(self.center))

    def game(self) -> Remembered:
        """Return the remembered game with these options: the same for every seed, so compiled once."""
        return Remembered(
            extra=self.extra,
            rounds=self.rounds,
            center=self.center,
            forget=self.forget,
        )

    def most_passes(self) -> int:
        """Return how often the data may be read: with tol alone, as often as it needs."""
        return MOST_PASSES if self.tol is not None and self.passes == 1 else self.passes


class Fitted(NamedTuple):
    """What a route found, and what it learnt of the data on the way.

    Attributes
    ----------
    found : Found
    moments : Moments
    rows : int
        Rows seen.
    stream : Stream or None
        The remembered pass, to go on from, where there was one.
    """

    found: Found
    moments: Moments
    rows: int
    stream: stream.Stream | None = None

    def scale(self, options: Options) -> float:
        """Return what M is divided by to be a covariance."""
        return scale_of(self.moments, self.rows, fading=options.forget < 1)

    def total(self, options: Options) -> float:
        """Return the trace of M: all that can be explained."""
        mean, weight = np.asarray(self.moments.mean, np.float64), float(self.moments.weight)
        scatter = float(np.sum(np.asarray(self.moments.scatter, np.float64)))
        return scatter if options.center else scatter + weight * float(np.sum(mean**2))

    def ratios(self, options: Options) -> np.ndarray:
        """Return the share of all variance that each component explains, shape (k,)."""
        total, strengths = self.total(options), np.maximum(self.found.strengths, 0)
        explained = float(np.sum(strengths))
        if explained > total + self._rounding():
            raise ArithmeticError(
                f"the components explain {explained:.6g}, more than the total of {total:.6g}: either "
                f"{np.dtype(self.moments.scatter.dtype)} is too coarse for this data (pass dtype='float64', or "
                "subtract the mean first), or this is a bug in eigengame (please report it)."
            )
        return strengths / (total if total > 0 else 1)

    def _rounding(self) -> float:
        """Return by how much rounding may make the strengths exceed the total."""
        mean, weight = np.asarray(self.moments.mean, np.float64), float(self.moments.weight)
        # Scatter is a difference of sums of squares, which round in proportion to their own size.
        squares = float(np.sum(np.asarray(self.moments.scatter, np.float64)))
        squares += weight * float(np.sum(mean**2))
        # Every update rounds once more: measured, 0.2 eps for each in streams of single rows.
        updates = self.rows if self.stream is None else int(self.stream.state.step)
        eps = float(np.finfo(self.moments.scatter.dtype).eps)
        return min(eps * (1000 + updates), 0.05) * squares


def fit_by(route: str, reading: Reading, k: int, options: Options) -> Fitted:
    """Fit k components of what is read by the route of that name."""
    if route == "remembered":
        return _remembered(reading, k, options)
    if route == COVARIANCE:
        return _covariance(reading, k, options)
    return _steps(route, reading, k, options)


def scale_of(moments: Moments, rows: int, *, fading: bool) -> float:
    """Return what M is divided by to be a covariance; see `divisor`."""
    return divisor(float(moments.weight), rows, fading=fading)


def divisor(weight: float, rows: int, *, fading: bool) -> float:
    """Return the divisor of a covariance: one less than the weight of the rows.

    Weights with a mean below 1 are relative, not counts of rows: the divisor is then that of the same
    weights scaled to a mean of 1, times the scale. `rows` are those with a weight above 0.
    """
    if fading:
        return max(weight - 1, weight / 2, 1e-300)
    # An exact count where there is one: float32 counts lose single rows beyond 16 million.
    if abs(weight - rows) <= 1e-6 * rows:
        return max(rows - 1, 1)
    return max(weight - min(1.0, weight / max(rows, 1)), 1e-300)


def from_stream(seen: stream.Stream, options: Options) -> Fitted:
    """Return what a remembered game holds after one pass, or so far."""
    memory, k = seen.state.memory, seen.state.k
    scale = scale_of(seen.moments, seen.rows, fading=options.forget < 1)
    found = Found(
        np.asarray(memory.players)[:k],
        np.asarray(memory.strengths, np.float64)[:k],
        stream.estimated(seen, k, scale),
        Outcome(Status.STREAM_ENDED, "remembered", 1),
        np.asarray(memory.players),
    )
    return Fitted(found, seen.moments, seen.rows, seen)


def _in_span(reading: Reading, k: int, options: Options) -> bool:
    """Say whether the remembered game keeps to Gram space: where kernels make that the faster one."""
    feed, d = reading.feed, reading.feed.shape[1]
    if not feed.source.on_device or feed.place.mesh is not None or options.forget != 1:
        return False
    counts = (options.players(k, d), 1) if options.center else (options.players(k, d),)
    wide = [jax.ShapeDtypeStruct((count, d), options.dtype) for count in counts]
    return kernels_fit(wide, jax.ShapeDtypeStruct((feed.size, d), feed.source.dtype))


def _remembered(reading: Reading, k: int, options: Options) -> Fitted:
    """One remembered pass, and refinement where more passes are allowed."""
    game, d, place = options.game(), reading.feed.shape[1], reading.feed.place
    if options.forget < 1:
        refuse_unless_fading(reading.feed.source, options.forget, passes=options.most_passes())
    if options.hosted or _in_span(reading, k, options):
        seen = wide_stream.one_pass(
            game, reading, k, d, options.dtype, options.seed, hosted=options.hosted
        )
    else:
        begun = stream.begin(game, k, d, options.dtype, options.seed, place)
        seen = stream.one_pass(game, reading, begun, place)
    refuse_unless_finite(reading.feed, seen.moments.scatter)
    refuse_unless_counted(reading.feed.source.name, seen.rows, seen.moments.weight, 2)
    if options.most_passes() == 1 or reading.stopped:
        fitted = from_stream(stream.gathered(seen, d, place), options)
        if not reading.stopped:
            return fitted
        outcome = Outcome(Status.STOPPED, "remembered", 1)
        return fitted._replace(found=fitted.found._replace(outcome=outcome))
    if options.forget < 1:
        reading = faded_again(reading, seen.rows, options.forget)
    goal = Goal(
        source=reading,
        mean=seen.moments.mean if options.center else None,
        k=k,
        scale=scale_of(seen.moments, seen.rows, fading=options.forget < 1),
        passes=options.most_passes(),
        tol=options.tol,
        seed=options.seed + 2,
        rounding=_rounding(reading, seen.moments, seen.rows, options),
        in_float64=_widens(reading, options.players(k, d)),
    )
    players = seen.state.memory.players
    found = _cut(refined(goal, players, route="remembered, then refined", used=1), d)
    seen = stream.gathered(seen, d, place)
    return Fitted(found, seen.moments, seen.rows, seen)


def _covariance(reading: Reading, k: int, options: Options) -> Fitted:
    """Accumulate M in one pass, and solve its eigenproblem."""
    d, place = reading.feed.shape[1], reading.feed.place
    scatter = covariance.accumulated(reading, d, place, center=options.center)
    refuse_unless_finite(reading.feed, scatter.moments.scatter)
    refuse_unless_counted(reading.feed.source.name, scatter.rows, scatter.moments.weight, 2)
    moments = gathered_moments(scatter.moments, d, place)
    scale = scale_of(moments, scatter.rows, fading=False)
    tol = options.tol or COVARIANCE_TOL
    certificate, players = covariance.solved(
        scatter, options.players(k, d), k, scale=scale, tol=tol, dtype=options.dtype
    )
    status = status_of(certificate, tol) or Status.FLOOR_REACHED
    outcome = Outcome(status, COVARIANCE, 1)
    found = Found(players[:k], certificate.rayleigh * scale, certificate, outcome, players)
    return Fitted(found, moments, scatter.rows)


def _steps(route: str, reading: Reading, k: int, options: Options) -> Fitted:
    """Play an algorithm of the registry: a pass for the mean, its own passes, one to measure."""
    d, place = reading.feed.shape[1], reading.feed.place
    moments, rows = reading.fold(
        _count_moments, (no_moments(d, options.dtype, place), 0), task="moments"
    )
    refuse_unless_finite(reading.feed, moments.scatter)
    refuse_unless_counted(reading.feed.source.name, rows, moments.weight, 2)
    mean = moments.mean if options.center else None
    first = reading.feed.first()
    unit = _unit(first, mean, d, place)
    begun = random_players(options.seed, k, d, options.dtype)
    algorithm = _with_step_size(route, first, begun, options, mean, unit, place)
    state = place.state(algorithm.init(begun))
    for _ in range(options.passes):
        state = reading.fold(
            lambda state, batch, _: _plain_step(algorithm, place, batch, state, mean, unit),
            state,
            task=route,
        )
    players = algorithm.components(state)
    finite = bool(jnp.isfinite(players).all())
    status = Status.STREAM_ENDED if finite else Status.DIVERGED
    players = players if finite else place.players(begun)
    scale = scale_of(moments, rows, fading=False)
    components = whole(players)
    goal = Goal(
        source=reading,
        mean=mean,
        k=k,
        scale=scale,
        passes=1,
        tol=None,
        seed=options.seed + 2,
        rounding=_rounding(reading, moments, rows, options),
        in_float64=_widens(reading, k),
    )
    measured = measured_only(goal, components)
    outcome = Outcome(status, route, options.passes + 2)
    found = _cut(Found(components, measured.rayleigh * scale, measured, outcome, components), d)
    return Fitted(found, gathered_moments(moments, d, place), rows)


def _rounding(reading: Reading, moments: Moments, rows: int, options: Options) -> Rounding:
    """Return the rounding of products in the precision of play."""
    mean, scatter = (whole(one).astype(np.float64) for one in (moments.mean, moments.scatter))
    squares = float(scatter.sum() + float(moments.weight) * np.sum(mean**2))
    d, size = reading.feed.shape[1], reading.size
    return Rounding.probable(options.dtype, d, size, rows / size, squares)


def _widens(reading: Reading, players: int) -> bool:
    """Return whether rows can be read in float64: those of a device must leave room for wider ones."""
    feed, d = reading.feed, reading.feed.shape[1]
    return not feed.source.on_device or 8 * d * (feed.size + 4 * players) <= DEVICE_BYTES


def _cut(found: Found, d: int) -> Found:
    """Return what was found without the features that only fill up a mesh."""
    return found._replace(components=found.components[:, :d], players=found.players[:, :d])


def _count_moments(carry: Any, rows: Any, count: int) -> Any:
    """Add one batch to the moments and the number of rows."""
    moments, seen = carry
    return add_moments(moments, rows), seen + count


def _with_step_size(
    route: str,
    first: Any,
    players: jax.Array,
    options: Options,
    mean: jax.Array | None,
    unit: float,
    place: Placement,
) -> Algorithm:
    """Return the algorithm of that name, made for batches whose largest eigenvalue is near 1."""
    settings: dict[str, Any] = {}
    fields = getattr(REGISTRY[route], "__dataclass_fields__", {})
    if "step_size" in fields:
        settings["step_size"] = 0.25 if options.step_size is None else options.step_size
    if "eigenvalues" in fields:
        plain, k = Remembered(), len(players)
        state = place.state(plain.init(players))
        state = _plain_step(plain, place, first, state, mean, unit)
        strengths = whole(state.memory.strengths).astype(np.float64)
        # Strictly falling, as the theorem asks, also where the batch has repeated values.
        falling = strengths[: k + 1] * (1 - 1e-6 * np.arange(min(k + 1, strengths.size)))
        settings["eigenvalues"] = tuple(np.append(falling, 0.0)[: k + 1])
    return make(route, **settings)


@partial(jax.jit, static_argnums=(0, 1))
def _plain_step(
    algorithm: Algorithm,
    place: Placement,
    rows: DenseRows,
    state: Any,
    mean: jax.Array | None,
    unit: float,
) -> Any:
    """Return the state after one batch of centred rows in the given unit."""
    scaled = (rows.centred(mean).values / unit).astype(play_dtype(rows))
    return place.kept(algorithm.update(replace(rows, values=scaled, mean=None), state)[0])


def _unit(rows: DenseRows, mean: jax.Array | None, d: int, place: Placement) -> float:
    """Return the root of one batch's largest eigenvalue: the unit that step sizes are told in."""
    plain = rows.centred(mean)
    players = place.players(random_players(0, min(4, d), d, play_dtype(rows)))
    for _ in range(10):
        players = plain.directions(plain.scores(orthonormalise(players)))
    top = float(settle(plain, orthonormalise(players))[0][0])
    return float(np.sqrt(top)) if top > 0 else 1.0
