"""How a fit is planned: every decision is made once, before the first pass."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from eigengame.game.gram_space import cheaper_in_gram_space
from eigengame.linalg.products import LONG_BATCH
from eigengame.linalg.wide import MOST_WIDE, kernels_fit
from eigengame.sharding.placement import ONE_DEVICE, Placement, choose_placement
from eigengame.solver.planning.batch_size import (
    batch_rows,
    for_kernels,
    growing_rows,
    is_one_batch,
    score_bytes,
)
from eigengame.solver.planning.lanczos_basis import BLOCK, LANCZOS_PASSES, basis_bytes
from eigengame.solver.planning.memory import MemoryUse, estimate_memory, refuse_unless_fits
from eigengame.solver.planning.options import (
    CARRIED_PROBES,
    PROBES,
    REFINED_PROBES,
    Options,
    probes_in_memory,
)
from eigengame.solver.planning.plan import (
    CARRIED,
    COARSE,
    MOST_COARSE,
    MOST_PRECISE,
    ON_HOST,
    Plan,
    Space,
)
from eigengame.solver.planning.problem import Problem
from eigengame.solver.planning.routes import LANCZOS, REFINED, REMEMBERED, fallback_route, route_of
from eigengame.solver.rows.batches import batches_in_memory
from eigengame.solver.rows.frame import Frame, frame_of
from eigengame.solver.rows.ragged import LEAST_ROWS, shared_size

LITTLE_WORK = 1e10
"""Operations in the products of a pass up to which NumPy makes it on a CPU: less time than a compilation takes.

For more of them XLA is faster from the second fit on, since it uses wider vectors on some processors."""

ROWS_PER_PLAYER = 64
"""Rows of a batch for each player from which players begin at a sample of them."""


def make_plan(
    problem: Problem,
    k: int,
    *,
    rows: int | None,
    ragged: int | None = None,
    placement: Placement | None = None,
    frame: Frame | None = None,
    remote: bool = False,
) -> Plan:
    """Decide how to fit k components, and refuse what does not fit into memory.

    Parameters
    ----------
    problem : Problem
    k : int
        Number of components.
    rows : int or None
        Rows to be read in a pass, if known; on a cluster, those of the longest partition.
    ragged : int, optional
        Rows of this call, if further calls have other numbers of rows. Batches then have one of a few sizes that
        hold them. Sparse batches always have the same number of rows, which costs little.
    placement : Placement, optional
        Devices of the fit. By default those of the mesh.
    frame : Frame, optional
        Origin and unit of the rows. By default the first rows decide it.
    remote : bool
        Whether workers with devices and memory of their own do the work.
    """
    source, options, d = problem.source, problem.options, problem.source.shape[1]
    if for_kernels(source):
        options = _extra_for_kernels(options, k)
    players = options.players(k, d)
    batch = batch_rows(problem, (rows, d), players)
    if not (remote or ragged) and is_one_batch(problem, rows, batch):
        options = _extra_for_one_batch(options, k)
        players = options.players(k, d)
    if ragged is not None and not source.sparse:
        batch = shared_size(ragged, LEAST_ROWS, batch)
    if placement is None:
        placement = ONE_DEVICE if remote else choose_placement(problem.mesh, batch, players, d)
    if frame is None and not remote:
        frame = _frame(problem, placement)
    shared = remote or placement.mesh is not None
    forget = options.forget
    again = options.passes > 1 and source.again
    route = route_of(
        problem.algorithm,
        source,
        players,
        rows,
        forget=forget,
        shared=shared,
        again=again,
        coarse=k if _coarse(options) and again and k <= MOST_COARSE else 0,
    )
    fallback = None
    if route in REFINED and options.automatic and options.passes > 1:
        fallback = fallback_route(problem.algorithm, source, rows, forget=forget, shared=shared)
    # A source that subtracts the origin itself gives rows in a plain frame.
    as_given = frame is None or (frame.unit == 1 and (frame.origin is None or source.shifts))
    carried = route == "remembered" and not remote and as_given
    carried = carried and _kernels_apply(problem, players, batch, placement)
    space: Space = CARRIED if carried else "score"
    if not carried and not source.sparse and cheaper_in_gram_space(batch, players, d):
        space = "gram"
    if space == "score" and not remote and _sampled(problem, batch, players, placement):
        space = "sampled score"
    probes = _probes(problem, options, route, (k, players), carried=carried)
    if space in ("score", "gram") and not remote and _on_host(problem, placement):
        work = (rows if ragged is None else ragged, 6 * players + 4 * probes)
        space = ON_HOST if _is_little(d, *work) else space
    largest = None
    if space == ON_HOST and ragged is None and route in REFINED:
        largest = growing_rows(problem, rows, batch)
        batch = largest or batch
    plan = Plan(
        components=k,
        players=players,
        batch=batch,
        route=route,
        space=space,
        placement=placement,
        frame=frame,
        memory=_memory(
            problem,
            players,
            batch,
            placement,
            frame,
            options,
            probes=probes,
            measured=_measured(options, route, players * d, probes),
        ),
        options=options,
        probes=probes,
        fallback=fallback,
        growing=largest is not None,
    )
    return plan if remote else _fitting(problem, _with_basis(problem, plan, rows))


def _with_basis(problem: Problem, plan: Plan, rows: int | None) -> Plan:
    """Return the plan with the basis of Lanczos' method among the arrays in host memory."""
    if plan.route != LANCZOS:
        return plan
    d, k = problem.source.shape[1], plan.components
    sparse = problem.source.sparse
    needed = basis_bytes(min(rows or d, d), k, BLOCK) if sparse else basis_bytes(d, k)
    held = replace(plan.memory, certificate=max(plan.memory.certificate, needed))
    return replace(plan, memory=held)


def _fitting(problem: Problem, plan: Plan) -> Plan:
    """Return the plan if it fits, or one that does.

    That is one of the game, with fewer passes, without probes, or with players in host memory.
    Raises MemoryError if none does.
    """
    source, options, room = problem.source, plan.options, problem.source.free_bytes()
    try:
        refuse_unless_fits(plan.memory, plan.batch, plan.players, room=room)
        return plan
    except MemoryError:
        if plan.route == LANCZOS:  # the game needs no basis
            return _fitting(problem, _changed(problem, plan, REMEMBERED, options.passes))
        if options.automatic and options.tol is not None and options.passes > 1:
            # An exact route takes no more memory than one pass of the game.
            return _fitting(problem, _changed(problem, plan, plan.route, options.passes // 2))
        if options.probes == "auto" and plan.probes and options.passes == 1:
            fewer = replace(plan.memory, probes=0, certificate=0)
            return _fitting(problem, replace(plan, memory=fewer, probes=0))
        alone = source.on_device and plan.placement.mesh is None and jax.default_backend() != "cpu"
        simple = plan.route == "remembered" and options.forget == 1 and options.passes == 1
        if not (alone and simple):
            raise
    memory = _memory(
        problem, plan.players, plan.batch, plan.placement, plan.frame, options, on_host=True
    )
    refuse_unless_fits(memory, plan.batch, plan.players, room=room)
    return replace(plan, space="gram on the host", memory=memory, probes=0)


def _changed(problem: Problem, plan: Plan, route: str, passes: int) -> Plan:
    """Return the plan with another route or number of passes, which take less memory."""
    options = replace(plan.options, passes=passes)
    counts, carried = (plan.components, plan.players), plan.space == CARRIED
    probes = _probes(problem, options, route, counts, carried=carried)
    memory = _memory(
        problem,
        plan.players,
        plan.batch,
        plan.placement,
        plan.frame,
        options,
        probes=probes,
        measured=_measured(options, route, plan.players * problem.source.shape[1], probes),
    )
    return replace(plan, options=options, route=route, probes=probes, memory=memory)


def _memory(
    problem: Problem,
    players: int,
    batch: int,
    placement: Placement,
    frame: Frame | None,
    options: Options,
    *,
    on_host: bool = False,
    probes: int = 0,
    measured: int = 0,
) -> MemoryUse:
    """Return the bytes that the fit takes; see `estimate_memory` for the last three."""
    source = problem.source
    copied = problem.weights is not None or not (frame or Frame()).plain
    return estimate_memory(
        (0 if source.sparse else batch, source.shape[1]),
        players,
        np.dtype(options.dtype).itemsize,
        batches_in_memory(source, options.dtype, copied=copied),
        passes=options.passes,
        placement=placement,
        computed=source.dtype.itemsize if source.on_device and not source.views else None,
        **_device_arrays(problem, batch, players, probes, copied=copied),
        on_host=on_host,
        probes=probes,
        measured=measured,
    )


def _device_arrays(
    problem: Problem, batch: int, players: int, probes: int, *, copied: bool
) -> dict[str, int]:
    """Return the arrays that a batch of an array on the device takes there, for `estimate_memory`.

    They are two parts in half precision, scores, and copies of the rows: of each of several batches, and of those
    with weights or a frame (`copied`).
    """
    source = problem.source
    if not (source.on_device and source.views):
        return {}
    slices = 0 if batch == source.shape[0] else 2
    return {"there": 1 + slices + int(copied), "scores": score_bytes(players, probes)}


def _sampled(problem: Problem, batch: int, players: int, placement: Placement) -> bool:
    """Return whether batches are long, and products on a GPU: players then begin at a sample of their rows."""
    options, alone = problem.options, placement.mesh is None and not problem.source.sparse
    usual = np.dtype(options.dtype) == np.float32 and options.forget == 1
    long = batch >= max(LONG_BATCH, ROWS_PER_PLAYER * players)
    return alone and usual and long and jax.default_backend() == "gpu"


def _on_host(problem: Problem, placement: Placement) -> bool:
    """Return whether NumPy can multiply dense rows: on one CPU, unless they are arrays of JAX."""
    here = not (problem.source.sparse or problem.source.on_device) and placement.mesh is None
    return here and jax.default_backend() == "cpu"


def _is_little(d: int, rows: int | None, each: int) -> bool:
    """Return whether a pass takes NumPy less time than a program takes to compile.

    `each` is the number of operations, additions and multiplications, for each number of the data.
    """
    return rows is not None and rows * d * each <= LITTLE_WORK


def _coarse(options: Options) -> bool:
    """Return whether products in float32 are likely to be accurate enough, and many passes are allowed.

    If Lanczos' method does not certify the components, the game follows: by one pass, another one if the spectrum
    is flat, and at least one of refinement.
    """
    narrow = np.dtype(options.dtype) == np.float32 and options.tol is not None
    return narrow and (options.tol or 0) >= COARSE and options.passes >= LANCZOS_PASSES + 3


def _measured(options: Options, route: str, size: int, probes: int) -> int:
    """Return the number of probes of a certificate on the host, for players of this size; 0 if there is none."""
    if route not in REFINED:
        return 0
    if options.passes == 1:
        return probes
    return 0 if size > MOST_PRECISE else probes or REFINED_PROBES


def _frame(problem: Problem, placement: Placement) -> Frame:
    """Return the frame of the rows. Processes that share features read only their own columns."""
    source, options, d = problem.source, problem.options, problem.source.shape[1]
    own = placement.local_columns(d)
    if own == (0, d):
        return frame_of(source, options.dtype, center=options.center, weights=problem.weights)
    return frame_of(
        source,
        options.dtype,
        center=options.center,
        weights=problem.weights,
        columns=own,
        of_all=lambda values: placement.gathered_features(values, d),
    )


def _extra_for_kernels(options: Options, k: int) -> Options:
    """Return options whose players and mean together are a multiple of 16, as the kernels take them.

    There are half as many again as components. A number of extra players that was given stays.
    """
    together = -(-3 * k // 32) * 16
    if options.extra != "auto" or together > MOST_WIDE:
        return options
    return replace(options, extra=together - k - int(options.center))


def _extra_for_one_batch(options: Options, k: int) -> Options:
    """Return options with half as many extra players as components: there are no later rows to keep them for."""
    return replace(options, extra=max(k // 2, 8)) if options.extra == "auto" else options


def _read_again_in_memory(problem: Problem, options: Options) -> bool:
    """Return whether several passes are allowed over dense arrays in host memory, where products take most time."""
    source = problem.source
    return options.passes > 1 and source.views and not (source.on_device or source.sparse)


def _probes(
    problem: Problem, options: Options, route: str, counts: tuple[int, int], *, carried: bool
) -> int:
    """Return the number of probes of the first pass of a game, which is also played if Lanczos' method fails.

    `counts` are the numbers of components and of players.
    """
    source, (k, players) = problem.source, counts
    if route not in REFINED:
        return 0
    if options.probes != "auto":
        return options.probes
    if options.passes == 1:
        return CARRIED_PROBES if carried else PROBES
    # Players that are refined on the device have probes of their own.
    if carried or players * source.shape[1] > MOST_PRECISE:
        return 0
    return probes_in_memory(k) if _read_again_in_memory(problem, options) else REFINED_PROBES


def _kernels_apply(problem: Problem, players: int, batch: int, placement: Placement) -> bool:
    """Return whether the kernels of one GPU take rows and players of these shapes."""
    source, options, d = problem.source, problem.options, problem.source.shape[1]
    if not source.on_device or placement.mesh is not None or options.forget != 1:
        return False
    counts = (players, 1) if options.center else (players,)
    vectors = [jax.ShapeDtypeStruct((count, d), options.dtype) for count in counts]
    return kernels_fit(vectors, jax.ShapeDtypeStruct((batch, d), source.dtype))
