"""Memory of probes and certificates: what is counted beforehand is what is allocated."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from eigengame import as_source
from eigengame.algorithms import Remembered
from eigengame.game.rows import DenseRows
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver import solve
from eigengame.solver.certificates.krylov_space import MOST_SPACE
from eigengame.solver.planning import memory
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.memory import certificate_rows, estimate_memory, refuse_unless_fits
from eigengame.solver.planning.options import REFINED_PROBES, Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.streams import batch_step
from eigengame.solver.streams.one_pass import one_pass_certificate
from tests.game_pca import game_pca

D, K, PLAYERS = 4000, 4, 12


def peak(function):
    """Return the largest number of bytes that NumPy arrays take during a call, and what it returns."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        found = function()
        return tracemalloc.get_traced_memory()[1] - before, found
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def rows():
    draws = np.random.default_rng(0)
    spread = draws.standard_normal((600, 200)) / np.sqrt(np.arange(1, 201))
    return (spread @ draws.standard_normal((200, D))).astype(np.float32)


def fitted(rows, **options):
    settings = {"random_state": 0, "algorithm": "remembered", "extra": PLAYERS - K}
    return game_pca(K, **settings | options).fit(rows)


def test_probes_on_the_device_take_what_is_counted():
    game, sizes = Remembered(extra=PLAYERS - K, rounds=1), []
    for count in (0, 32):
        begun = batch_step.begin(game, K, D, np.float32, 0, ONE_DEVICE, count)
        batch = DenseRows(jnp.zeros((64, D), jnp.float32))
        step = batch_step.step.lower(
            game, ONE_DEVICE, batch, begun.state, begun.moments, begun.probes
        )
        found = step.compile().memory_analysis()
        sizes.append(
            found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
        )
    counted = estimate_memory((64, D), PLAYERS, 4, held=1, probes=32).probes
    # Temporary arrays may be shared with those of the players.
    assert sizes[1] - sizes[0] == pytest.approx(counted, rel=0.01)
    assert estimate_memory((64, D), PLAYERS, 4, held=1).probes == 0


@pytest.mark.parametrize("probes", [8, 64])
def test_the_certificate_of_one_pass_takes_what_is_counted(rows, probes):
    pca = fitted(rows, probes=probes)
    taken, _ = peak(lambda: one_pass_certificate(pca._result.stream, 1.0))
    counted = 8 * D * certificate_rows(PLAYERS, probes, 1, D)
    assert taken <= counted <= 2 * taken


@pytest.mark.filterwarnings("ignore::eigengame.UncertifiedWarning")
@pytest.mark.parametrize(("passes", "tol"), [(3, None), (9, 1e-10)])
def test_a_refinement_takes_at_most_what_is_counted(rows, monkeypatch, passes, tol):
    taken, refine = [], solve.refine

    def measured(*given, **options):
        size, found = peak(lambda: refine(*given, **options))
        taken.append(size)
        return found

    monkeypatch.setattr(solve, "refine", measured)
    pca = fitted(rows, passes=passes, tol=tol)
    assert pca.n_passes_ == passes
    counted = 8 * D * certificate_rows(PLAYERS, REFINED_PROBES, passes, D)
    assert taken[0] <= counted <= 2 * taken[0]


def test_the_space_is_counted_up_to_its_limit():
    wide = 2**20
    few, many = (certificate_rows(64, 32, passes, wide) for passes in (20, 30))
    assert few == many
    assert few * wide > 6 * MOST_SPACE
    assert certificate_rows(64, 0, 30, wide) == 0


def test_a_fit_whose_certificate_does_not_fit_is_refused(monkeypatch):
    planned = estimate_memory((256, 1000), 32, 4, held=4, passes=30, probes=32, measured=32)
    assert planned.certificate > planned.total
    assert "certificate up to" in str(planned)
    monkeypatch.setattr(memory, "available", lambda: planned.total + planned.certificate - 1)
    with pytest.raises(MemoryError, match=r"fewer probes or passes \(such as passes=4\)"):
        refuse_unless_fits(planned, 256, 32)
    monkeypatch.setattr(memory, "available", lambda: planned.total + planned.certificate)
    refuse_unless_fits(planned, 256, 32)


def test_the_game_is_planned_if_memory_is_too_short_for_lanczos_method(monkeypatch):
    """The basis counts. Without it the plan is that of the game, with all of its passes."""
    n, d = 60_000, 50_000
    entries = (np.ones(n, np.float32), (np.arange(n), np.arange(n) % d))
    rows = sparse.csr_array(entries, shape=(n, d))
    problem = Problem(
        as_source(rows), Options(passes=16, tol=0.05, automatic=True), None, "auto", "auto", None
    )
    wanted = make_plan(problem, 50, rows=n)
    assert wanted.route == "lanczos"
    basis = wanted.memory.certificate
    monkeypatch.setattr(memory, "available", lambda: wanted.memory.total + basis // 2)
    monkeypatch.setattr(memory, "free_memory", lambda: basis // 2)
    plan = make_plan(problem, 50, rows=n)
    assert plan.route == "remembered"
    assert plan.memory.certificate <= basis // 2
