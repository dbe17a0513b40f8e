"""Dense rows by Lanczos' method in float32: measured errors are bounds, and fits are right or say otherwise."""

import warnings

import numpy as np
import pytest

from eigengame import Checkpoint, EigenGamePCA, Interrupted, as_source
from eigengame.linalg import compiled_blocks
from eigengame.metrics import angular_error
from eigengame.solver.fit import LocalExecutor
from eigengame.solver.lanczos.block_lanczos import growing_basis
from eigengame.solver.lanczos.dense_problem import dense_problem
from eigengame.solver.lanczos.ritz import Ritz, first_block
from eigengame.solver.passes import host_sums
from eigengame.solver.passes.host_sums import HostSums, add_rows
from eigengame.solver.planning import routes
from eigengame.solver.planning.lanczos_basis import LANCZOS_PASSES
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.results.outcome import Status
from eigengame.solver.rows.raw_rows import RawRows

N, D, K = 1600, 1100, 4


def rows_of(seed=0, power=1.0, mean=0.05, n=N, d=D):
    """Gaussian rows whose features have variances of a power law, and a mean."""
    rows = np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1.0, d + 1) ** (
        -power / 2
    )
    return (rows + mean).astype(np.float32)


def truth_of(rows, weights=None, *, center=True, k=K):
    """The first components in float64, and all eigenvalues of the scatter matrix."""
    rows = np.asarray(rows, np.float64)
    weights = np.ones(len(rows)) if weights is None else weights
    if center:
        rows = rows - weights @ rows / weights.sum()
    values, vectors = np.linalg.eigh((rows * weights[:, None]).T @ rows)
    return vectors.T[::-1][:k], values[::-1]


def assert_right(pca, truth):
    angles = angular_error(np.asarray(pca.components_, np.float64), truth)
    assert (angles <= pca.certificate_.angle).all()
    assert angles.max() <= 0.05


KINDS = {
    "plain": {},
    "bytes": {},
    "weights": {},
    "uncentred": {"center": False},
    "large mean": {},
    "far mean": {},
    "large numbers": {},
    "memory map": {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_components_are_certified_and_right(kind, tmp_path):
    mean = {"large mean": 3.0, "far mean": 1000.0}.get(kind, 0.05)
    rows, weights = rows_of(mean=mean), None
    if kind == "bytes":
        rows = np.clip(60 * rows + 120, 0, 255).astype(np.uint8)
    if kind == "large numbers":
        rows = rows * np.float32(1e15)
    if kind == "weights":
        weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    truth, values = truth_of(rows, weights, center=kind != "uncentred")
    if kind == "memory map":
        np.save(tmp_path / "rows.npy", rows)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    pca = EigenGamePCA(K, dtype="float32", random_state=0, **KINDS[kind])
    pca.fit(rows, sample_weight=weights)
    assert pca.outcome_.route == "lanczos"
    assert pca.outcome_.converged
    assert pca.n_passes_ == pca.outcome_.passes <= LANCZOS_PASSES
    assert_right(pca, truth)
    total = N if weights is None else weights.sum()
    np.testing.assert_allclose(pca.explained_variance_, values[:K] / (total - 1), rtol=1e-4)
    others = min(D, N if weights is None else np.count_nonzero(weights)) - K
    rest = values[K:].sum() / (total - 1) / others
    np.testing.assert_allclose(pca.noise_variance_, rest, rtol=1e-3)


@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_measured_errors_of_ritz_pairs_are_bounds(mean):
    rows = rows_of(3, mean=mean)
    options = Options(passes=16, tol=0.05, dtype=np.float32, automatic=True, seed=7)
    problem, executor = Problem(as_source(rows), options, algorithm="auto"), LocalExecutor()
    plan = executor.plan(problem, K)
    assert plan.route == "lanczos"
    found = dense_problem(plan, executor.passes(problem, plan, ()))
    wide = rows.astype(np.float64)
    wide -= wide.mean(axis=0)
    scatter = wide.T @ wide
    for basis in growing_basis(found.product(), first_block(7, found.block, D), 5 * found.block):
        ritz = Ritz.of(basis)
        vectors = ritz.vectors(0, len(ritz.values))
        known = ritz.values[:, None] * vectors + ritz.residuals @ basis.following.T
        off = np.linalg.norm(vectors @ scatter - known, axis=1)
        bounds = found.errors(ritz)
        assert (off > 0).all()
        assert (off <= bounds).all()
        # About ten times the error is a usual bound with eight draws.
        assert (bounds <= 300 * off.max()).all()


def test_a_flat_spectrum_is_solved_exactly():
    rows = rows_of(power=0.05)
    pca = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows)
    assert pca.outcome_.route == "lanczos, then covariance"
    assert_right(pca, truth_of(rows)[0])


def test_rows_that_are_not_certified_go_on_with_the_game(monkeypatch):
    """Nothing is exact with so many features and rows, but the game goes on."""
    monkeypatch.setattr(routes, "MOST_SOLVED", 500)
    monkeypatch.setattr("eigengame.solver.lanczos.lanczos.counted_eigenvalues", lambda *_: [])
    rows = rows_of()
    pca = EigenGamePCA(K, dtype="float32", random_state=0, passes=30, tol=0.05).fit(rows)
    assert pca.outcome_.route == "remembered, then refined"
    assert pca.outcome_.passes > LANCZOS_PASSES
    assert_right(pca, truth_of(rows)[0])


@pytest.mark.parametrize("passes", [13, 14, 15])
def test_no_more_passes_are_made_than_allowed(passes, monkeypatch):
    """If a space does not certify a flat spectrum, a pass of the game and a refinement follow."""
    monkeypatch.setattr(routes, "MOST_SOLVED", 500)
    pca = EigenGamePCA(K, dtype="float32", random_state=0, passes=passes, tol=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca.fit(rows_of(power=0.05))
    assert pca.n_passes_ <= passes


@pytest.mark.parametrize(
    "options",
    [
        {"passes": 4},
        {"tol": 1e-4},
        {"tol": None},
        {"dtype": "float64"},
        {"algorithm": "remembered"},
    ],
)
def test_what_float32_or_few_passes_cannot_do_takes_another_route(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = EigenGamePCA(K, **{"dtype": "float32", "random_state": 0} | options).fit(rows_of())
    assert "lanczos" not in pca.outcome_.route


def test_variances_below_the_rounding_of_float32_are_not_guessed():
    """The components explain nearly everything: what they leave is known in float64 only."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((N, K)) * [8, 6, 4, 2] @ rng.standard_normal((K, D)) / 30
    rows = (factors + 1e-5 * rng.standard_normal((N, D))).astype(np.float32)
    pca = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows)
    truth, values = truth_of(rows)
    assert_right(pca, truth)
    np.testing.assert_allclose(pca.noise_variance_, values[K:].sum() / (N - 1) / (D - K), rtol=0.05)


def test_data_of_low_rank_is_fitted():
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((N, K)) * [8, 6, 4, 2] @ rng.standard_normal((K, D))).astype(
        "float32"
    )
    pca = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows)
    assert_right(pca, truth_of(rows)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    rows = rows_of()
    rows[N // 2, 17] = bad
    with pytest.raises(ValueError, match=r"X\[800, 17\]"):
        EigenGamePCA(K, dtype="float32").fit(rows)


def test_numbers_whose_squares_are_too_large_for_float32_are_multiplied_in_float64():
    rows = rows_of()
    rows[N // 2, :2] = 1e30
    pca = EigenGamePCA(1, dtype="float32").fit(rows)
    np.testing.assert_allclose(np.abs(pca.components_[0, :2]), np.sqrt(0.5), rtol=1e-6)


def test_rows_that_are_all_equal_have_no_components():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = EigenGamePCA(K, dtype="float32").fit(np.ones((N, D), np.float32))
    assert pca.explained_variance_.max() == 0


@pytest.mark.parametrize("number", [1, 3])
def test_a_watcher_can_stop_the_fit(number):
    class Stop:
        def batch(self, at):
            return at.number >= number

    pca = EigenGamePCA(K, dtype="float32", random_state=0, batch_size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca.fit(rows_of(), progress=Stop())
    assert pca.outcome_.status is Status.STOPPED
    # After one product a batch of the game shows more than the space does. Its bounds are for the rows that it saw.
    assert pca.n_passes_ == (2 if number == 1 else 3)
    assert (pca.certificate_.kind == "certified") == (number == 1)
    seen = truth_of(rows_of()[: pca.n_samples_seen_])[0]
    own = angular_error(np.asarray(pca.components_, np.float64), seen)
    assert number > 1 or (own <= pca.certificate_.angle).all()
    angles = angular_error(np.asarray(pca.components_, np.float64), truth_of(rows_of())[0])
    assert angles.max() < (0.5 if number == 1 else 0.05)


@pytest.mark.parametrize("number", [1, 4])
def test_an_interrupted_run_is_resumed_to_the_same_bits(tmp_path, number):
    class Interrupt:
        def batch(self, at):
            if at.number == number and at.rows > N // 2:
                raise KeyboardInterrupt
            return False

    options = {"dtype": "float32", "random_state": 0, "batch_size": 400}
    whole = EigenGamePCA(K, **options).fit(rows_of())
    kept = Checkpoint(tmp_path / "run", every=0)
    with pytest.raises(Interrupted):
        EigenGamePCA(K, **options).fit(rows_of(), checkpoint=kept, progress=Interrupt())
    again = EigenGamePCA(K, **options).fit(rows_of(), checkpoint=kept)
    assert again.outcome_ == whole.outcome_
    np.testing.assert_array_equal(again.components_, whole.components_)
    np.testing.assert_array_equal(again.certificate_.angle, whole.certificate_.angle)


@pytest.mark.parametrize("number", [1, 3])
def test_a_run_that_a_watcher_stopped_is_resumed_to_the_same_bits(tmp_path, number):
    """The batch of the game that a stop after one product needs is no part of the run."""

    class Stop:
        def batch(self, at):
            return at.number >= number

    options = {"dtype": "float32", "random_state": 0, "batch_size": 400}
    whole = EigenGamePCA(K, **options).fit(rows_of())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EigenGamePCA(K, **options).fit(rows_of(), checkpoint=tmp_path / "run", progress=Stop())
    again = EigenGamePCA(K, **options).fit(rows_of(), checkpoint=tmp_path / "run")
    assert again.outcome_ == whole.outcome_
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_fits_are_continued_and_merged():
    one, two = rows_of(1), rows_of(2)
    truth, _ = truth_of(np.concatenate([one, two]))
    fits = [EigenGamePCA(K, dtype="float32", random_state=0).fit(part) for part in (one, two)]
    assert {fit.outcome_.route for fit in fits} == {"lanczos"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [fits[0].merge(fits[1]), fits[1].partial_fit(one)]
    for pca in found:
        angles = angular_error(np.asarray(pca.components_, np.float64), truth)
        assert angles.max() < 0.2
        assert (angles <= pca.certificate_.angle).all()
        assert pca.certificate_.kind == "certified"


def test_data_of_low_rank_is_merged_with_other_data():
    """A model has no players without variance, but its stream has as many as any other."""
    rng = np.random.default_rng(0)
    low = rng.standard_normal((N, K)) * [8, 6, 4, 2] @ rng.standard_normal((K, D))
    parts = low.astype("float32"), rows_of(1)
    fits = [EigenGamePCA(K - 1, dtype="float32", random_state=0).fit(part) for part in parts]
    assert fits[0].n_players_ < fits[1].n_players_
    truth, _ = truth_of(np.concatenate(parts), k=K - 1)
    for one, other in (fits, fits[::-1]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_right(one.merge(other), truth)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("wide", [8192, 64])
def test_sums_over_rows_are_those_of_loops(threads, wide, monkeypatch):
    monkeypatch.setattr(host_sums, "blas_threads", lambda: threads)
    monkeypatch.setattr(host_sums, "SMALL", 0)
    monkeypatch.setattr(host_sums, "LEAST_ROWS", 16)
    monkeypatch.setattr(host_sums, "WIDE", wide)
    monkeypatch.setattr(host_sums, "PANEL", 16 * 40)
    rng = np.random.default_rng(0)
    values, roots = rng.standard_normal((100, 90)).astype(np.float32), rng.random(100)
    roots[95:] = 0
    origin = rng.standard_normal(90)
    block, draws = rng.standard_normal((3, 90)).astype(np.float32), rng.standard_normal((2, 90))
    raw = RawRows(values, roots, origin, np.asarray(2.0))
    found = add_rows(block, draws, HostSums.empty(3, 2, 90), raw, 95)
    z = (values.astype(np.float64) - origin) / 2 * roots[:, None]
    np.testing.assert_allclose(found.images, (z @ block.T).T @ z, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.along, (z @ block.T).T @ roots, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.seen, (z @ draws.T).T @ z)
    np.testing.assert_allclose(found.scores, (z @ draws.T).T @ roots)
    np.testing.assert_allclose(found.columns, roots @ z)
    np.testing.assert_allclose(found.squares, np.sum(z**2, axis=0))
    np.testing.assert_allclose(found.weight, np.sum(roots**2))
    assert found.rows == 95
    assert 1 <= found.parts <= 100


def test_large_batches_are_multiplied_by_a_compiled_program(monkeypatch):
    rows, compiled = rows_of(), []
    plain = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows)

    def counted(*given):
        compiled.append(given)
        return compiled_blocks.compiled_sums(*given)

    monkeypatch.setattr(host_sums, "LARGE", rows.size // 2)
    monkeypatch.setattr(host_sums, "compiled_sums", counted)
    pca = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows)
    assert len(compiled) == pca.n_passes_ == plain.n_passes_
    assert pca.outcome_.route == "lanczos"
    assert_right(pca, truth_of(rows)[0])
    # Weights are multiplied by NumPy.
    compiled.clear()
    weights = np.random.default_rng(0).random(len(rows))
    pca = EigenGamePCA(K, dtype="float32", random_state=0).fit(rows, sample_weight=weights)
    assert not compiled
    assert pca.outcome_.converged


def test_a_model_whose_sums_are_out_of_range_of_float32_has_no_stream():
    """Neither NumPy warns, nor does a stream go on with infinite numbers."""
    rows = rows_of()
    rows[1200:, 0] += np.float32(1e19) * np.where(np.arange(N - 1200) % 2, 1, -1).astype("float32")
    pca = EigenGamePCA(1, dtype="float32", random_state=0).fit(rows)
    assert pca.outcome_.converged
    np.testing.assert_allclose(np.abs(pca.components_[0, 0]), 1)
    with pytest.raises(ValueError, match="left no memory to continue from"):
        pca.partial_fit(rows[:10])
