"""Sparse rows in memory: their products about the mean, their bounds, and players by Lanczos' method."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array, diags_array, random_array

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error
from eigengame.solver.lanczos.centred_rows import centred_rows, largest_by_lanczos
from eigengame.solver.lanczos.sparse_problem import SparseProblem, largest_of
from eigengame.solver.passes.held_rows import HeldRows
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.planning import routes
from eigengame.solver.rows.batches import Batches

N, D = 60, 200


def sparse(seed=0, n=N, d=D, share=0.1):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * (rng.uniform(size=(n, d)) < share) * 10
    return csr_array((rows / np.arange(1, d + 1) ** 0.7).astype("float32"))


def centred(rows, weights, center):
    """Z in extended precision."""
    wide = rows.toarray().astype(np.longdouble)
    if center:
        wide = wide - (weights @ wide) / weights.sum()
    return np.sqrt(weights)[:, None] * wide


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_are_those_of_centred_rows_within_their_bounds(center, weighted):
    x = sparse()
    weights = np.random.default_rng(1).uniform(0.5, 2, N) if weighted else np.ones(N)
    batches = Batches(as_source(x), 15, np.dtype("float32"), weights if weighted else None)
    rows, moments = centred_rows(HeldRows.read(SourcePasses(batches)), center=center)
    wide = centred(x, weights, center)
    inner = rows.inner_products()
    off = np.linalg.norm((inner.matrix - wide @ wide.T).astype(float), 2)
    assert 0 < off <= inner.error < 1e-9 * np.linalg.norm(inner.matrix, 2)
    block = np.random.default_rng(2).standard_normal((3, D))
    np.testing.assert_allclose(rows.scores(block), (wide @ block.T).astype(float), atol=1e-10)
    scores = rows.scores(block)
    unit = scores / np.linalg.norm(scores, axis=0)
    off = rows.directions(unit) - (unit.T @ wide).astype(float)
    assert np.linalg.norm(off, axis=1).max() <= inner.rows_error
    dense = x.toarray().astype(float)
    mean = weights @ dense / weights.sum()
    np.testing.assert_allclose(moments.mean, mean, atol=1e-12)
    np.testing.assert_allclose(moments.scatter, weights @ (dense - mean) ** 2, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{"extra": 0}, {"probes": 0}, {"probes": 0, "algorithm": "exact"}]
)
@pytest.mark.parametrize("shape", [(200, 900), (900, 200)])
def test_no_further_players_and_no_probes_are_no_error(shape, options):
    """BLAS refuses to add to arrays without rows."""
    x = sparse(n=shape[0], d=shape[1])
    pca = EigenGamePCA(2, random_state=0, **options).fit(x)
    assert pca.outcome_.converged


@pytest.mark.parametrize("shape", [(N, D), (D, N)])
def test_players_of_lanczos_are_the_eigenvectors(shape):
    x = sparse(n=shape[0], d=shape[1])
    held = HeldRows.read(SourcePasses(Batches(as_source(x), 16, np.dtype("float32"))))
    problem = SparseProblem(*centred_rows(held, center=True), held.rows)
    values, players = largest_of(problem, 5, 0)
    wide = centred(x, np.ones(shape[0]), True).astype(float)
    exact, vectors = np.linalg.eigh(wide.T @ wide)
    np.testing.assert_allclose(values, exact[::-1][:5], rtol=1e-10)
    assert angular_error(players, vectors.T[::-1][:5]).max() < 1e-7
    np.testing.assert_allclose(players @ players.T, np.eye(5), atol=1e-12)


def test_a_product_that_does_not_converge_gives_nothing(monkeypatch):
    from scipy.sparse.linalg import ArpackNoConvergence

    def fail(*_, **__):
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr("eigengame.solver.lanczos.centred_rows.eigsh", fail)
    monkeypatch.setattr(
        "eigengame.solver.lanczos.centred_rows.largest_by_blocks", lambda *_, **__: None
    )
    assert largest_by_lanczos(lambda vector: vector, 10, 2) is None
    # The game is played instead.
    monkeypatch.setattr("eigengame.solver.lanczos.lanczos.counted_eigenvalues", lambda *_: [])
    monkeypatch.setattr(routes, "_cheapest", lambda *_, **__: routes.LANCZOS)
    pca = EigenGamePCA(2, random_state=0).fit(sparse())
    assert pca.outcome_.route.startswith("remembered")


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(300, 100), (300, 900)])
@pytest.mark.parametrize("route", ["lanczos", "lanczos, then refined"])
def test_large_sparse_data_takes_lanczos_and_is_certified(center, shape, route, monkeypatch):
    if route != "lanczos":  # as if the start of the space did not certify
        monkeypatch.setattr("eigengame.solver.lanczos.lanczos.counted_eigenvalues", lambda *_: [])
    n, x = shape[0], sparse(n=shape[0], d=shape[1])
    pca = EigenGamePCA(3, center=center, random_state=0).fit(x)
    wide = centred(x, np.ones(n), center).astype(float)
    vectors = np.linalg.svd(wide, full_matrices=False)[2][:3]
    true = angular_error(pca.components_, vectors)
    assert pca.outcome_.converged
    assert pca.outcome_.route == route
    assert (true <= pca.certificate_.angle).all()
    assert true.max() <= 1e-4
    assert pca.partial_fit(x[:50]).n_samples_seen_ == n + 50


def test_a_flat_spectrum_of_sparse_rows_needs_no_other_route():
    """Products cost little, so many of them take less time than the inner products of all rows."""
    rng, d = np.random.default_rng(0), 2500
    x = random_array((800, d), density=0.02, rng=rng, format="csr")
    x = csr_array(x @ diags_array(np.arange(1.0, d + 1) ** -0.2), dtype=np.float32)
    pca = EigenGamePCA(10, random_state=0).fit(x)
    values = np.linalg.svd(centred(x, np.ones(800), True).astype(float), compute_uv=False) ** 2
    assert values[19] > 0.8 * values[9]
    assert pca.outcome_.route == "lanczos"
    assert pca.outcome_.converged


@pytest.mark.parametrize("extra", [0, 1, 40])
def test_any_number_of_extra_players_is_kept(extra):
    x = sparse(n=300, d=100)
    one, two = (EigenGamePCA(3, extra=extra, random_state=0).fit(part) for part in (x, 2 * x))
    assert one.outcome_.route == "lanczos"
    assert one.n_players_ == 3 + extra
    assert one.merge(two).n_samples_seen_ == 600


def test_a_small_tolerance_of_sparse_rows_is_reached():
    x = sparse(n=300, d=100).astype(np.float64)
    pca = EigenGamePCA(3, tol=1e-9, random_state=0, dtype="float64").fit(x)
    assert pca.outcome_.route == "lanczos"
    assert pca.certificate_.angle.max() <= 1e-9


def test_equal_eigenvalues_of_sparse_rows_are_one_cluster():
    # Rows of three pairs of equal lengths, among shorter ones.
    lengths = np.r_[5, 5, 4, 4, 3, 3, 1 / np.arange(1, 195)]
    pca = EigenGamePCA(4, center=False, random_state=0).fit(csr_array(np.diag(lengths)))
    assert pca.outcome_.route == "lanczos"
    assert pca.certificate_.within(0.05)
    for pair in (slice(0, 2), slice(2, 4)):
        found = pca.components_[pair, pair]
        np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-6)


def test_one_pass_of_sparse_rows_plays_the_game():
    pca = EigenGamePCA(3, passes=1, tol=None, random_state=0).fit(sparse(n=900, d=100))
    assert pca.outcome_.route == "remembered"


def test_arpack_takes_over_where_blocks_do_not_converge(monkeypatch):
    x = sparse(n=300, d=100)
    expected = EigenGamePCA(3, random_state=0).fit(x)
    monkeypatch.setattr("eigengame.solver.lanczos.lanczos.counted_eigenvalues", lambda *_: [])
    monkeypatch.setattr(
        "eigengame.solver.lanczos.centred_rows.largest_by_blocks", lambda *_, **__: None
    )
    found = EigenGamePCA(3, random_state=0).fit(x)
    assert found.outcome_.route == "lanczos, then refined"
    assert angular_error(found.components_, expected.components_).max() < 1e-4


@pytest.mark.parametrize("extra", [0, 2, 40])
def test_a_count_may_take_more_players_than_the_plan_has(extra):
    # The only gap is ten eigenvalues beyond the components.
    lengths = np.sqrt(np.r_[4, 3, np.linspace(2, 1.8, 10), 0.1 / np.arange(1, 190)])
    x = csr_array(np.diag(lengths))
    pca = EigenGamePCA(2, center=False, extra=extra, random_state=0).fit(x)
    assert pca.outcome_.route == "lanczos"
    true = angular_error(pca.components_, np.eye(len(lengths))[:2])
    assert (true <= pca.certificate_.angle).all()
    assert pca.partial_fit(x[:50]).n_samples_seen_ == len(lengths) + 50


@pytest.mark.parametrize("entries", [0, 1])
def test_sparse_rows_without_variance_have_no_bounds_and_no_warnings_of_numpy(entries):
    x = csr_array(([2.0] * entries, ([3] * entries, [4] * entries)), shape=(500, 300))
    pca = EigenGamePCA(3, random_state=0).fit(x)  # warnings are errors in tests
    np.testing.assert_allclose(pca.explained_variance_[entries:], 0, atol=1e-12)
    assert (pca.certificate_.angle[entries:] > 1.5).all()
    if entries:
        assert abs(pca.components_[0, 4]) == pytest.approx(1)


@pytest.mark.parametrize("center", [True, False])
def test_directions_by_row_are_the_same_panel_by_panel(monkeypatch, center):
    monkeypatch.setattr("eigengame.solver.lanczos.centred_rows.PANEL", 64)
    batches = Batches(as_source(sparse()), 15, np.dtype("float32"))
    rows, _ = centred_rows(HeldRows.read(SourcePasses(batches)), center=center)
    scores = np.random.default_rng(2).standard_normal((N, 3))
    found = rows.directions_by_row(scores)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, rows.directions(scores), atol=1e-12)


def test_what_components_leave_is_known_after_a_refinement():
    """The moments of the stream are in float32: the variance of the rest was 10 % off."""
    rng = np.random.default_rng(0)
    scales = np.full(700, 2e-5)
    scales[:3] = [1, 0.9, 1e-4]
    once = rng.standard_normal((1500, 700)) * (rng.uniform(size=(1500, 700)) < 0.05) * scales
    # All variances twice, so that the fifth is tied with the sixth, and Lanczos' method does not certify it.
    x = block_diag([csr_array(once.astype("float32"))] * 2, format="csr")
    pca = EigenGamePCA(5, center=False, random_state=0).fit(x)
    assert pca.outcome_.route == "lanczos, then refined"
    dense = x.toarray().astype(np.float64)
    rest = np.linalg.eigvalsh(dense.T @ dense)[:-5].mean() / (len(dense) - 1)
    np.testing.assert_allclose(pca.noise_variance_, rest, rtol=1e-6)
