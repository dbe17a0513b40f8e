"""Fits of sparse rows on a CPU: in NumPy, with products by SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from eigengame import EigenGamePCA, Interrupted, as_source, metrics
from eigengame.game import csr_rows
from eigengame.game.csr_rows import CSRRows
from eigengame.game.sparse_rows import SparseRows
from eigengame.solver import solve
from eigengame.solver.certificates.probes import spectral_norm
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.options import REFINED_PROBES, Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.rows.batches import Batches
from tests.game_pca import game_pca
from tests.tolerance import tolerance

N, D, K = 900, 120, 4
ONE_DEVICE_MESH = {"data": 1}
"""A mesh of one device: its sparse rows are multiplied by XLA."""


def data(seed=0, dtype="float32"):
    """Sparse rows with separated components, empty rows and empty columns."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(8, size=N, p=(share := 0.7 ** np.arange(8)) / share.sum())
    values = rng.uniform(0.5, 1.5, size=(N, D))
    keep = rng.uniform(size=(N, D)) < np.where(np.arange(D) // 15 == topic[:, None], 0.6, 0.03)
    values[~keep] = 0
    values[::50], values[:, [3, 77]] = 0, 0
    return values.astype(dtype)


def truth(values, *, center, weights=None):
    """Return components in float64."""
    exact = values.astype(np.float64)
    weights = np.ones(len(exact)) if weights is None else weights
    if center:
        exact = exact - weights @ exact / weights.sum()
    return metrics.true_components(np.sqrt(weights)[:, None] * exact, K)[1]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("batch_size", ["auto", 128])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_certified_fits_are_within_their_bounds(center, batch_size, dtype):
    values = data(dtype=dtype)
    weights = np.random.default_rng(1).uniform(0, 2, N)
    options = {"center": center, "batch_size": batch_size, "dtype": dtype, "random_state": 0}
    pca = game_pca(K, tol=0.01, **options).fit(csr_array(values), sample_weight=weights)
    true = metrics.angular_error(
        pca.components_.astype(np.float64), truth(values, center=center, weights=weights)
    )
    assert (true <= pca.certificate_.angle).all()
    assert (pca.certificate_.angle <= 0.01).all()


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("batch_size", [N, 128])
def test_one_pass_is_that_of_sparse_rows_on_a_device(center, batch_size):
    values = data()
    options = {"center": center, "batch_size": batch_size, "random_state": 0, "extra": 8}
    here = game_pca(K, **options).fit(csr_array(values))
    there = game_pca(K, mesh=ONE_DEVICE_MESH, **options).fit(csr_array(values))
    # The players of both are the same up to rounding, which later batches amplify by the gaps of a few percent.
    for name in ("components_", "explained_variance_", "mean_", "var_"):
        one, other = (np.asarray(getattr(pca, name)) for pca in (here, there))
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, atol=scale * tolerance("float32", 10), err_msg=name)


def test_rows_are_multiplied_by_scipy_on_a_cpu_and_by_xla_on_a_mesh():
    source = as_source(csr_array(data()))
    plain = Batches(source, 128, np.dtype("float32"))
    assert isinstance(plain.first(), CSRRows)
    problem = Problem(source, Options(), mesh=ONE_DEVICE_MESH)
    placement = make_plan(problem, K, rows=N).placement
    meshed = Batches(source, 128, np.dtype("float32"), placement=placement)
    assert isinstance(meshed.first(), SparseRows)


@pytest.mark.parametrize("mesh", [None, ONE_DEVICE_MESH])
def test_duplicate_entries_are_one_number(mesh):
    # SciPy takes entries at the same place for their sum. Their squares would add up to half of its square.
    values = csr_array(data())
    half = csr_array(
        (
            np.repeat(values.data / 2, 2),
            np.repeat(values.indices, 2),
            2 * values.indptr,
        ),
        shape=values.shape,
    )
    options = {"random_state": 0, "batch_size": 128, "mesh": mesh}
    one, other = (game_pca(K, **options).fit(x) for x in (values, half))
    np.testing.assert_allclose(other.var_, one.var_, rtol=1e-5)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-3)


@pytest.mark.parametrize("tol", [None, 0.01])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupted_fit_resumes_to_the_same_bits(tmp_path, monkeypatch, tol, threads):
    monkeypatch.setattr(csr_rows, "blas_threads", lambda: threads)
    monkeypatch.setattr(csr_rows, "SMALL", 0)
    x = csr_array(data())

    class Interrupting:
        left = 4

        def batch(self, at):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def fit(**options):
        return game_pca(K, tol=tol, batch_size=128, random_state=3).fit(x, **options)

    whole, interrupted = fit(), 0
    for _ in range(20):
        try:
            resumed = fit(checkpoint=tmp_path / "run", progress=Interrupting())
            break
        except Interrupted:
            interrupted += 1
    assert interrupted > 1
    for name in ("components_", "explained_variance_", "mean_", "var_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name), err_msg=name)
    np.testing.assert_array_equal(resumed.certificate_.angle, whole.certificate_.angle)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_numbers_that_are_not_finite_are_refused(bad, call):
    values = data()
    values[500, 7] = bad
    with pytest.raises(ValueError, match=r"NaN|infinit"):
        getattr(game_pca(K, random_state=0, batch_size=128), call)(csr_array(values))


def test_sparse_data_in_memory_is_one_batch_with_fewer_extra_players():
    source = as_source(csr_array((20000, 50000), dtype=np.float32))
    plan = make_plan(Problem(source, Options()), 16, rows=20000)
    assert (plan.batch, plan.players, plan.probes) == (20000, 24, 48)
    given = make_plan(Problem(source, Options(extra=24, probes=16)), 16, rows=20000)
    assert (given.batch, given.players, given.probes) == (20000, 40, 16)
    several = make_plan(Problem(source, Options(), batch_size=1024), 16, rows=20000)
    assert (several.batch, several.players, several.probes) == (1024, 40, 48)
    meshed = make_plan(Problem(source, Options(), mesh=ONE_DEVICE_MESH), 16, rows=20000)
    assert meshed.batch < 2000
    assert meshed.players == 40


def test_batches_of_sparse_rows_are_limited_by_their_entries():
    pointers = np.arange(2**20 + 1, dtype=np.int64) * 64

    class Many(type(as_source(csr_array((4, 4))))):
        def most_entries(self, size):
            return int(pointers[min(size, 2**20)])

    source = Many(csr_array((2**20, 50000), dtype=np.float32))
    plan = make_plan(Problem(source, Options()), 16, rows=2**20)
    assert 4096 < plan.batch < 2**18
    assert plan.players == 40


def test_a_fit_in_one_batch_is_continued_by_partial_fit():
    values = data()
    pca = game_pca(K, random_state=0, center=False).fit(csr_array(values[:600]))
    pca.partial_fit(csr_array(values[600:]))
    assert pca.n_samples_seen_ == N
    true = truth(values, center=False)
    assert metrics.angular_error(pca.components_.astype(np.float64), true).max() < 0.1


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(-60, 60))
def test_a_spectral_norm_is_bounded_from_above_closely(seed, size):
    rng = np.random.default_rng(seed)
    block = 10.0**size * rng.normal(size=(7, 40)) * np.geomspace(1, 1e-6, 7)[:, None]
    exact = float(np.linalg.norm(block, 2))
    assert exact <= spectral_norm(block) * (1 + 1e-15)
    assert math.isclose(spectral_norm(block), exact, rel_tol=1e-12)


def test_a_game_that_follows_lanczos_method_has_probes(monkeypatch):
    """Without them, models merged or continued from it would have estimates only."""
    monkeypatch.setattr(solve, "certified_by_lanczos", lambda *_: None)
    monkeypatch.setattr(solve, "lanczos_stream", lambda *_: None)
    values = data()
    pca = EigenGamePCA(K, random_state=0).fit(csr_array(values))
    assert pca.outcome_.route.startswith("remembered")
    later = pca.partial_fit(csr_array(values[:100]))
    assert later.certificate_.kind == "certified"
    assert later.certificate_.probes == REFINED_PROBES
