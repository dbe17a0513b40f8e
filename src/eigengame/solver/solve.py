"""The routes from passes over data to components: the remembered game, exact solutions, and stepwise algorithms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eigengame.sharding.gather import gather
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certificates.risk import FIRST_RISK
from eigengame.solver.exact.covariance import solve_covariance
from eigengame.solver.exact.row_gram import solve_row_gram
from eigengame.solver.lanczos.dense_problem import dense_problem
from eigengame.solver.lanczos.lanczos import certified_by_lanczos, lanczos_stream
from eigengame.solver.lanczos.sparse_problem import sparse_problem
from eigengame.solver.passes.forgetting import faded_passes, refuse_unless_fading
from eigengame.solver.passes.passes import Passes, SourcePasses
from eigengame.solver.planning.flat_spectra import is_flat, players_for_flat
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.plan import MOST_PRECISE, ON_HOST, Plan
from eigengame.solver.planning.routes import (
    COVARIANCE,
    EXACT_ROUTES,
    LANCZOS,
    REFINED,
    REMEMBERED,
    passes_before,
)
from eigengame.solver.refinement.goal import Goal, measures_in_float64, play_rounding
from eigengame.solver.refinement.refine import refine
from eigengame.solver.results.outcome import Outcome, Status, converged_status
from eigengame.solver.results.result import (
    Found,
    Result,
    count_for,
    rank_bound,
    rest_is_known,
    result_of,
    scale_of,
    total_scatter,
)
from eigengame.solver.rows.moments import Moments
from eigengame.solver.rows.row_counts import refuse_unless_counted, refuse_unless_enough
from eigengame.solver.stepwise import solve_stepwise
from eigengame.solver.streams import stream as streams
from eigengame.solver.streams.one_pass import (
    certifiable,
    certificate_of,
    one_pass_certificate,
    probe_images,
)
from eigengame.solver.streams.stream import Stream
from eigengame.solver.streams.streaming import stream_pass

VARIANCES = 1e-3
"""Largest relative error of the variances with which a fit ends after its first pass."""


def solve(
    plan: Plan, passes: Passes, null_level: float = 0.0, share: float | None = None
) -> Result:
    """Fit the components of a plan; see `result_of` for `null_level`.

    With `share`, fewer components are returned if these explain the share of the variance. An exact route returns
    as many as it takes, whatever the plan says.
    """
    options, d = plan.options, passes.source.shape[1]
    if plan.route in REFINED:
        found = _solve_refined(plan, passes)
    elif plan.route in EXACT_ROUTES:
        found = _exactly(plan.route, plan, passes, share)
    else:
        found = solve_stepwise(plan, passes)
    if share is not None and plan.route not in EXACT_ROUTES:
        total = total_scatter(found.moments, center=options.center)
        found = found.first(count_for(found.values, share, total))
        # The players stay, and are extra from now on.
        extra = len(found.players) - len(found.values)
        automatic = options.players(len(found.values), d) == len(found.players)
        options = options if automatic else replace(options, extra=extra)
    if found.outcome.status is not Status.STOPPED:
        name, weight = passes.source.name, found.moments.weight
        refuse_unless_enough(name, len(found.values), found.rows, weight, found.outcome.passes)
    return result_of(found, options, passes.frame, null_level)


def _exactly(route: str, plan: Plan, passes: Passes, share: float | None) -> Found:
    """Take an exact route."""
    solved = solve_covariance if route == COVARIANCE else solve_row_gram
    return solved(plan, passes, share)


class _Begun(NamedTuple):
    """What a refinement begins with.

    Attributes
    ----------
    route : str
        By which the players were found.
    stream : Stream
        Of the model, after the first pass.
    start : Stream
        Of the players; another one if the first pass was repeated with more of them.
    players : array of shape (K, d)
    moments : Moments or None
        Of each feature, if they are known in float64: those of the stream are in its precision.
    """

    route: str
    stream: Stream
    start: Stream
    players: Any
    moments: Moments | None = None


def _solve_refined(plan: Plan, passes: Passes) -> Found:
    """Play the remembered game once over the data, and refine its players if more passes are allowed.

    Players of rows in memory come from Lanczos' method instead (`lanczos`), which often certifies them.
    """
    if plan.options.forget < 1:
        refuse_unless_fading(passes.source, plan.options.forget, passes=plan.options.passes)
    begun = _begun_by_lanczos(plan, passes) if plan.route == LANCZOS else None
    if isinstance(begun, Found):
        return begun
    if begun is None:
        # A stopped run makes a pass here that it does not make if it is resumed.
        stream = stream_pass(plan, passes.unstored() if passes.stopped else passes)
        begun = _Begun(REMEMBERED, stream, stream, stream.state.memory.players)
    stream = begun.stream
    passes.refuse_unless_finite(stream.moments.scatter)
    refuse_unless_counted(passes.source.name, stream.rows, stream.moments.weight, 2)
    if passes.stopped or plan.options.passes == 1:
        return _after_one_pass(plan, passes, begun)
    if (found := _certified_in_first_pass(plan, passes, begun)) is not None:
        return found
    if begun.route == REMEMBERED and _seems_flat(plan, passes, stream):
        if plan.fallback is not None:
            return _after_one_pass(plan, passes, begun)
        begun = _with_more_players(plan, passes, begun)
        if passes.stopped:
            return _after_one_pass(plan, passes, begun)
    return _refined(plan, passes, begun)


def _begun_by_lanczos(plan: Plan, passes: Passes) -> Found | _Begun | None:
    """Return certified components by Lanczos' method, or else its players; None if it does not converge.

    Dense rows are then solved exactly, if there is a route for that.
    """
    if not passes.source.sparse:
        dense = dense_problem(plan, passes)
        found = None if dense is None else certified_by_lanczos(plan, passes, dense)
        if found is not None or plan.fallback is None or passes.stopped:
            return found
        return _after_lanczos(_exactly(plan.fallback, plan, passes, None))
    problem = sparse_problem(plan, passes)
    if (found := certified_by_lanczos(plan, passes, problem)) is not None:
        return found
    if (begun := lanczos_stream(plan, problem)) is None:
        return None
    stream, players = begun
    return _Begun(LANCZOS, stream, stream, players, problem.moments)


def _after_lanczos(found: Found) -> Found:
    """Return an exact solution that followed a space without a certificate."""
    outcome = replace(found.outcome, route=f"{LANCZOS}, then {found.outcome.route}")
    return replace(found, outcome=outcome)


def _after_one_pass(plan: Plan, passes: Passes, begun: _Begun) -> Found:
    """Return what the first pass found, or an exact solution if there is one and not everything is certified.

    Data that can be read again may have one pass only because memory is short.
    """
    stream = streams.gathered(begun.stream, passes.source.shape[1], passes.placement)
    found = found_in_stream(stream, plan.options, Status.STOPPED if passes.stopped else None)
    outcome = replace(found.outcome, route=begun.route, passes=passes.record.made)
    found = replace(found, outcome=outcome)
    again = plan.fallback is not None and not (passes.stopped or found.outcome.converged)
    return _solved_exactly(plan, passes, found) if again else found


def _certified_in_first_pass(plan: Plan, passes: Passes, begun: _Begun) -> Found | None:
    """Return what the first pass found if that certifies every component within the tolerance; else None.

    Strengths are less accurate than variances that a further pass measures, so their errors have to be small.
    """
    options, d = plan.options, passes.source.shape[1]
    if options.tol is None or begun.route != REMEMBERED or not certifiable(begun.stream):
        return None
    stream = streams.gathered(begun.stream, d, passes.placement)
    scale = scale_of(stream.moments, stream.rows, options)
    certified = one_pass_certificate(stream, scale, FIRST_RISK)
    status = _converged(stream, certified, options)
    if status is None:
        return None
    determined = rank_bound(stream.rows, d, options)
    values, errors = (scale * one[:determined] for one in (certified.rayleigh, certified.residual))
    total = total_scatter(stream.moments, center=options.center)
    accurate = bool((errors <= min(options.tol**2, VARIANCES) * values).all())
    if not (accurate and rest_is_known(values, errors, total, determined - len(values))):
        return None
    return _found_with(stream, certified, Outcome(status, begun.route, passes.record.made))


def _refined(plan: Plan, passes: Passes, begun: _Begun) -> Found:
    """Refine players by further passes, and solve exactly if that does not certify all of them."""
    stream, d = begun.stream, passes.source.shape[1]
    goal = _goal(plan, passes, begun)
    on_host = goal.on_host(begun.players)
    refined = refine(
        goal,
        begun.players,
        route=f"{begun.route}, then refined",
        used=passes.record.made,
        values=gather(begun.start.state.memory.strengths).astype(np.float64),
        # Powers of earlier products need residuals, of which players of Lanczos' method have none but rounding.
        first=probe_images(begun.start) if on_host and begun.route == REMEMBERED else None,
    )
    stream = streams.gathered(stream, d, passes.placement)
    exact = begun.moments if on_host else None  # as the values of the components
    found = Found(
        # A model keeps the usual number of players, whatever the refinement needed.
        players=refined.players[: plan.players, :d],
        values=refined.certificate.rayleigh * goal.scale,
        certificate=refined.certificate,
        outcome=refined.outcome,
        moments=stream.moments if exact is None else exact,
        rows=stream.rows,
        stream=stream,
    )
    ended = found.outcome.converged or found.outcome.status is Status.STOPPED
    # In float64 the exact solution has the same limit.
    limited = found.outcome.status is Status.FLOOR_REACHED and goal.on_host(found.players)
    if ended or limited or plan.fallback is None:
        return found
    return _solved_exactly(plan, passes, found)


def _goal(plan: Plan, passes: Passes, begun: _Begun) -> Goal:
    """Return the goal of a refinement."""
    options, stream, d = plan.options, begun.stream, passes.source.shape[1]
    further, most, probes = passes, options.passes, begun.start.probes
    if options.forget < 1:
        further = faded_passes(passes, stream.rows, options.forget)
    if plan.fallback is not None:
        most = min(most, passes_before(plan.fallback, passes.source, plan.players, stream.rows))
    largest = None if probes is None else float(probes.largest)
    return Goal(
        passes=further,
        mean=stream.moments.mean if options.center else None,
        k=plan.components,
        determined=rank_bound(stream.rows, d, options),
        scale=scale_of(stream.moments, stream.rows, options),
        max_passes=most,
        tol=options.tol,
        seed=options.seed + 2,
        rounding=play_rounding(passes, stream.moments, stream.rows, options.dtype, largest),
        dtype=options.dtype,
        in_float64=measures_in_float64(passes, plan.players),
    )


def _seems_flat(plan: Plan, passes: Passes, stream: Stream) -> bool:
    """Return whether the first pass shows a flat spectrum, for which the number of players may be changed.

    A number of extra players that was given stays.
    """
    options, strengths = plan.options, gather(stream.state.memory.strengths)
    if options.extra != "auto" or options.tol is None or options.passes < 3 or options.forget < 1:
        return False
    if not isinstance(passes, SourcePasses) or plan.placement.mesh is not None:
        return False
    flexible = plan.space in ("score", ON_HOST, "sampled score", "gram")
    return flexible and is_flat(strengths, plan.components)


def _with_more_players(plan: Plan, passes: Passes, begun: _Begun) -> _Begun:
    """Repeat the first pass with as many players as its flat spectrum takes."""
    strengths, k = gather(begun.stream.state.memory.strengths).astype(np.float64), plan.components
    players = players_for_flat(strengths, k, passes.source.shape[1], MOST_PRECISE // 4)
    if players == plan.players:
        return begun
    options = replace(plan.options, extra=players - k)
    start = stream_pass(replace(plan, players=players, options=options), passes)
    return begun._replace(start=start, players=start.state.memory.players)


def _solved_exactly(plan: Plan, passes: Passes, before: Found) -> Found:
    """Return the exact solution by one more pass, where the game did not certify every component.

    The stream of the game stays, to be continued or merged. Its components stay if more of them are certified.
    """
    assert plan.fallback is not None
    found, tol = _exactly(plan.fallback, plan, passes, None), plan.options.tol
    assert tol is not None
    outcome = Outcome(
        found.outcome.status,
        f"{before.outcome.route}, then {found.outcome.route}",
        before.outcome.passes + 1,
    )
    left, right = (one.certificate.open_components(tol).sum() for one in (found, before))
    if left > right:
        return replace(before, outcome=outcome)
    return replace(found, outcome=outcome, stream=before.stream)


def found_in_stream(stream: Stream, options: Options, status: Status | None = None) -> Found:
    """Return what a remembered game holds after one pass, or so far.

    `status` is by default that of its certificate and the tolerance of the options.
    """
    certified = certificate_of(stream, scale_of(stream.moments, stream.rows, options))
    if status is None:
        status = _converged(stream, certified, options) or Status.STREAM_ENDED
    return _found_with(stream, certified, Outcome(status, REMEMBERED, 1))


def _converged(stream: Stream, certified: Certificate, options: Options) -> Status | None:
    """Return the status of a stream whose certificate meets the tolerance; else None."""
    determined = rank_bound(stream.rows, stream.state.memory.players.shape[1], options)
    return converged_status(certified, options.tol, determined)


def _found_with(stream: Stream, certified: Certificate, outcome: Outcome) -> Found:
    """Return the components of a stream with their certificate."""
    memory = stream.state.memory
    return Found(
        players=gather(memory.players),
        values=np.asarray(memory.strengths, np.float64)[: stream.k],
        certificate=certified,
        outcome=outcome,
        moments=stream.moments,
        rows=stream.rows,
        stream=stream,
    )
