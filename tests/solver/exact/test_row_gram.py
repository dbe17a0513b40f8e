"""The exact route for few rows: components, certificate, and what it refuses."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame import Checkpoint, EigenGamePCA, as_source, testing
from eigengame.metrics import angular_error
from eigengame.solver.exact.inner_products import row_gram
from eigengame.solver.exact.row_gram import solve_players
from eigengame.solver.passes.held_rows import PANEL_BYTES, HeldRows
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.planning.routes import MOST_SOLVED, ROW_GRAM
from eigengame.solver.results.outcome import Status
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.frame import frame_of
from eigengame.sources.device_array import DeviceArray

N, D, K = 40, 300, 6


def data(seed=0, n=N, d=D, far=0.0, dtype="float32"):
    """Rows with decreasing variances, fewer than features."""
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((n, n)) / np.arange(1, n + 1)) @ rng.standard_normal((n, d))
    return (rows + far).astype(dtype)


def truth(rows, weights=None, center=True):
    """Eigenvalues and eigenvectors of M, from rows in extended precision."""
    wide = np.asarray(rows, np.longdouble)
    weights = np.ones(len(wide)) if weights is None else weights
    if center:
        wide = wide - (weights @ wide) / weights.sum()
    wide = np.sqrt(weights)[:, None] * wide
    values, vectors = np.linalg.eigh((wide @ wide.T).astype(np.float64))
    found = (vectors.T[::-1] @ wide).astype(np.float64)
    return values[::-1], found / np.linalg.norm(found, axis=1, keepdims=True)


def held(rows, weights=None, batch=16):
    return HeldRows.read(
        SourcePasses(Batches(as_source(rows), batch, np.dtype("float32"), weights))
    )


def players_of(kept, count, center=True):
    with jax.enable_x64(True):
        return solve_players(row_gram(kept, center=center), kept, count, center=center)


@pytest.mark.parametrize(("center", "far"), [(True, 0.0), (True, 1e4), (False, 0.0), (False, 30.0)])
def test_components_are_exact_and_bounds_hold(center, far):
    rows = data(far=far)
    pca = EigenGamePCA(K, algorithm="exact", center=center).fit(rows)
    values, components = truth(rows, center=center)
    true = angular_error(pca.components_.astype(np.float64), components[:K])
    assert pca.outcome_.status is Status.CONVERGED
    assert pca.outcome_.route == ROW_GRAM
    assert pca.n_passes_ == 1
    assert pca.certificate_.kind == "certified"
    assert pca.certificate_.confidence == 1
    assert (true <= pca.certificate_.angle).all()
    assert (pca.certificate_.angle < 1e-6).all()
    np.testing.assert_allclose(pca.explained_variance_, values[:K] / (N - 1), rtol=1e-6)


def test_weights_count_as_repeated_rows():
    rows, weights = data(), np.random.default_rng(1).integers(0, 4, N).astype(float)
    pca = EigenGamePCA(K, algorithm="exact").fit(rows, sample_weight=weights)
    repeated = np.repeat(rows, weights.astype(int), axis=0)
    other = EigenGamePCA(K, algorithm="exact").fit(repeated)
    assert angular_error(pca.components_, other.components_).max() < 1e-6
    np.testing.assert_allclose(pca.explained_variance_, other.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(pca.mean_, other.mean_, rtol=1e-6)
    np.testing.assert_allclose(pca.var_, other.var_, rtol=1e-6)


def test_sparse_rows_give_what_dense_rows_give():
    rows = data()
    rows[np.random.default_rng(2).random(rows.shape) < 0.8] = 0
    pca = EigenGamePCA(K, algorithm="exact").fit(csr_array(rows))
    true = angular_error(pca.components_.astype(np.float64), truth(rows)[1][:K])
    assert (true <= pca.certificate_.angle).all()
    assert (pca.certificate_.angle < 1e-6).all()


def test_the_matrix_is_that_of_the_rows_within_its_error():
    rows = data(n=6, d=20, far=30.0)
    with jax.enable_x64(True):
        found = row_gram(held(rows), center=True)
    exact = [[Fraction(float(x)) for x in row] for row in rows]
    means = [sum(column) / len(exact) for column in zip(*exact, strict=True)]
    centred = [[x - m for x, m in zip(row, means, strict=True)] for row in exact]
    inner = [
        [float(sum(a * b for a, b in zip(r, s, strict=True))) for s in centred] for r in centred
    ]
    off = np.linalg.norm(found.matrix[:6, :6] - np.array(inner), 2)
    assert off <= found.error
    assert found.error < 1e-9 * np.trace(found.matrix)


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_rows_on_a_device_are_weighted_and_centred_in_float64(far):
    rows, weights = data(far=far), np.random.default_rng(3).uniform(0.5, 2, N)
    source, frame = (
        DeviceArray(jnp.asarray(rows)),
        frame_of(as_source(rows), np.float32, center=True),
    )
    batches = Batches(source, 16, np.dtype("float32"), weights, frame)
    with jax.enable_x64(True):
        found = row_gram(HeldRows.read(SourcePasses(batches)), center=True)
    exact = weights.astype(np.longdouble)
    wide = rows.astype(np.longdouble)
    wide = np.sqrt(exact)[:, None] * (wide - exact @ wide / exact.sum()) / frame.unit
    assert np.linalg.norm(found.matrix[:N, :N] - (wide @ wide.T).astype(float), 2) <= found.error


def test_nothing_outside_the_players_exceeds_the_level():
    rows = data(dtype="float64")
    values = truth(rows)[0]
    kept = held(rows)
    players = players_of(kept, 10)
    assert values[10] <= players.level <= 1.001 * values[10]
    # Also if the next value is a tie of the last: no gap helps.
    tied = np.linalg.qr(np.random.default_rng(3).standard_normal((60, 12)))[0].T
    kept = held(tied)
    players = players_of(kept, 4, center=False)
    assert 1 <= players.level <= 1 + 1e-9


def test_images_are_within_their_errors():
    rows = data(dtype="float64", far=3.0)
    kept = held(rows)
    players = players_of(kept, 10)
    centred = np.asarray(rows, np.longdouble) - np.asarray(rows, np.longdouble).mean(axis=0)
    images = (players.directions.astype(np.longdouble) @ centred.T) @ centred
    off = np.linalg.norm(
        (images - players.values[:, None] * players.directions).astype(float), axis=1
    )
    assert (off <= players.sums + players.scores * math.sqrt(players.values[0])).all()


def test_components_beyond_the_rank_are_completed_and_not_certified():
    rows = data(n=10)
    rows = np.concatenate([rows, rows, rows])  # rank 9 about the mean
    pca = EigenGamePCA(15, algorithm="exact").fit(rows)
    components = pca.components_.astype(np.float64)
    np.testing.assert_allclose(components @ components.T, np.eye(15), atol=1e-5)
    assert (pca.certificate_.angle[:9] < 1e-3).all()
    assert (pca.certificate_.angle[9:] == math.pi / 2).all()
    assert (pca.explained_variance_[9:] < 1e-9 * pca.explained_variance_[0]).all()
    assert pca.outcome_.status is Status.FLOOR_REACHED


def test_constant_rows_have_no_variance():
    pca = EigenGamePCA(2, algorithm="exact").fit(np.full((8, 50), 3.0))
    assert (pca.explained_variance_ == 0).all()
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-12, 0.0])
def test_close_pairs_are_bounded_or_form_a_cluster(gap):
    spectrum = np.append([1.0, 1 - gap, 0.5], 0.1 * testing.harmonic(N - 3))
    rng = np.random.default_rng(4)
    left = np.linalg.qr(rng.standard_normal((N, N)))[0]
    right = np.linalg.qr(rng.standard_normal((D, N)))[0].T
    rows = (left * np.sqrt(spectrum)) @ right
    pca = EigenGamePCA(3, algorithm="exact", center=False, dtype="float64").fit(rows)
    true = angular_error(pca.components_, truth(rows, center=False)[1][:3])
    if gap > 1e-11:  # the comparison itself is in float64
        assert (true <= pca.certificate_.angle + 1e-14 / max(gap, 1e-15)).all()
    if gap == 0:
        assert pca.certificate_.clusters[0].members == (0, 1)
        assert pca.certificate_.clusters[0].angle < 1e-9


def test_a_checkpoint_does_not_store_the_rows(tmp_path):
    rows = data()
    pca = EigenGamePCA(K, algorithm="exact").fit(
        rows, checkpoint=Checkpoint(tmp_path / "c", every=0)
    )
    stored = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert stored < rows.nbytes / 4
    again = EigenGamePCA(K, algorithm="exact").fit(
        rows, checkpoint=Checkpoint(tmp_path / "c", every=0)
    )
    np.testing.assert_array_equal(pca.components_, again.components_)


def test_numbers_that_are_not_finite_are_refused():
    rows = data()
    rows[3, 7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        EigenGamePCA(K, algorithm="exact").fit(as_source(rows))


def test_few_features_take_the_covariance_and_few_rows_their_inner_products():
    assert EigenGamePCA(2, algorithm="exact").fit(data(n=90, d=12)).outcome_.route == "covariance"
    assert EigenGamePCA(2, algorithm="exact").fit(data(n=12, d=90)).outcome_.route == ROW_GRAM


def test_large_problems_are_refused_with_the_reason():
    rows = np.zeros((MOST_SOLVED + 1, MOST_SOLVED + 1), np.int8)
    with pytest.raises(ValueError, match="needs at most 8,192"):
        EigenGamePCA(2, algorithm="exact").fit(as_source(rows))


def test_streams_are_refused():
    rows = data()
    with pytest.raises(ValueError, match="forget"):
        EigenGamePCA(2, algorithm="exact", forget=0.9).fit(rows)
    with pytest.raises(ValueError, match="batch by batch"):
        EigenGamePCA(2, algorithm="exact").partial_fit(rows)


def test_rows_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr("eigengame.solver.planning.routes.available", lambda: 2**20)
    rows = np.zeros((20, 40_000), np.float32)
    with pytest.raises(ValueError, match="must fit into memory"):
        EigenGamePCA(2, algorithm="exact").fit(rows)
    # "auto" takes the other route instead.
    problem = Problem(as_source(rows), Options(), algorithm="auto")
    assert make_plan(problem, 2, rows=20).route == "remembered"


@pytest.mark.parametrize(("k", "rows", "route"), [(4, 500, ROW_GRAM), (4, 3000, "remembered")])
def test_auto_takes_the_inner_products_of_few_rows(k, rows, route):
    problem = Problem(as_source(np.zeros((rows, 2000), np.int8)), Options(), algorithm="auto")
    assert make_plan(problem, k, rows=rows).route == route


@pytest.mark.parametrize("weighted", [True, False])
def test_narrow_panels_of_several_batches_give_the_same_inner_products(monkeypatch, weighted):
    """All panels share their memory, and the last one is narrower."""
    rows = data(far=1e4)
    weights = np.random.default_rng(1).uniform(0.5, 2, N) if weighted else None
    values, expected = truth(rows, weights)
    kept = held(rows, weights)
    monkeypatch.setitem(PANEL_BYTES, False, 8 * len(kept.roots) * 70)
    with jax.enable_x64(True):
        assert [panel.columns.stop for panel in kept.panels(center=True)] == [70, 140, 210, 280, D]
    found = players_of(kept, K)
    np.testing.assert_allclose(found.values, values[:K], rtol=1e-9)
    assert angular_error(found.directions, expected[:K]).max() < 1e-8


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("weights", [[0, 0, 1, 2, 1, 0, 3, 1], [3, 3, 3, 3, 3, 3, 3, 3]])
def test_weights_of_all_components_may_count_as_fewer_or_more_rows(weights, kind):
    """A row of weight 3 is as good as three rows. Components beyond the rank are null."""
    weights = np.array(weights, float)
    rows = data(n=8, d=20, dtype="float64")
    pca = EigenGamePCA(random_state=0).fit(kind(rows), sample_weight=weights)
    repeated = np.repeat(rows, weights.astype(int), axis=0)
    other = EigenGamePCA(random_state=0, algorithm="exact").fit(repeated)
    rank = int((weights > 0).sum()) - 1
    assert len(pca.components_) >= rank
    np.testing.assert_allclose(
        pca.explained_variance_[:rank], other.explained_variance_[:rank], rtol=1e-9
    )
    assert angular_error(pca.components_[:rank], other.components_[:rank]).max() < 1e-6
    np.testing.assert_allclose(pca.explained_variance_[rank:], 0, atol=1e-12)
    gram = pca.components_ @ pca.components_.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-9)
