"""Certificates of one pass: products of probes, bounds that hold, and what they say where there is none."""

import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA, metrics, testing
from eigengame.solver import solve
from eigengame.solver.certificates.probes import draw_probes
from eigengame.solver.streams import probe_products
from eigengame.solver.streams.one_pass import OnePassBlock, one_pass_angles, one_pass_certificate
from tests.game_pca import game_pca

DIGITS = load_digits().data
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.2, 3, len(DIGITS))
K = 5


def fitted(data=DIGITS, fit=None, **options):
    settings = {"random_state": 0, "batch_size": 256, "algorithm": "remembered"} | options
    return game_pca(K, **settings).fit(data, **(fit or {}))


def images_of(pca):
    """The products of the probes in the units of the data, and the probes."""
    probes, unit = pca._result.stream.probes, pca._result.frame.unit
    return np.asarray(probes.images, np.float64) * unit**2, np.asarray(probes.draws, np.float64)


def scatter(data, weights=None, center=True):
    weights = np.ones(len(data)) if weights is None else weights
    about = data - (np.average(data, axis=0, weights=weights) if center else 0)
    return (about * weights[:, None]).T @ about


def true_angles(pca, matrix):
    truth = np.linalg.eigh(matrix)[1].T[::-1][: len(pca.components_)]
    return metrics.angular_error(pca.components_.astype("float64"), truth)


CASES = {
    "plain": ({}, {}, scatter(DIGITS)),
    "weights": ({}, {"sample_weight": WEIGHTS}, scatter(DIGITS, WEIGHTS)),
    "uncentred": ({"center": False}, {}, scatter(DIGITS, center=False)),
    "forget": (
        {"forget": 0.999},
        {},
        scatter(DIGITS, 0.999 ** np.arange(len(DIGITS) - 1, -1, -1.0)),
    ),
    "one batch": ({"batch_size": 2000}, {}, scatter(DIGITS)),
}


@pytest.mark.parametrize("name", CASES)
def test_products_of_probes_are_exact_and_bounds_hold(name):
    options, fit, matrix = CASES[name]
    pca = fitted(fit=fit, **options)
    images, draws = images_of(pca)
    np.testing.assert_allclose(images, draws @ matrix, atol=1e-9 * np.abs(matrix).max())
    assert pca.certificate_.kind == "certified"
    assert pca.certificate_.confidence == pytest.approx(0.999)
    assert (true_angles(pca, matrix) <= pca.certificate_.angle).all()
    assert pca.certificate_.streak(0.2) >= 3


def test_sparse_rows_have_the_same_products():
    sparse = scipy.sparse.csr_array(DIGITS)
    images, draws = images_of(fitted(sparse))
    np.testing.assert_allclose(images, draws @ scatter(DIGITS), rtol=1e-3, atol=1e3)


def test_streams_and_merges_add_up():
    whole = fitted()
    parts = np.array_split(DIGITS, 3)
    stream = game_pca(K, random_state=0, dtype="float64")
    for part in parts:
        stream.partial_fit(part)
    models = [fitted(part) for part in parts]
    merged = models[0].merge(models[1]).merge(models[2])
    for pca in (stream, merged):
        images, draws = images_of(pca)
        np.testing.assert_allclose(images, draws @ scatter(DIGITS), atol=1e-4)
        np.testing.assert_array_equal(draws, images_of(whole)[1])
        assert (true_angles(pca, scatter(DIGITS)) <= pca.certificate_.angle).all()
        assert pca.certificate_.kind == "certified"


def test_models_with_other_probes_merge_to_an_estimate():
    one, other = (fitted(random_state=seed) for seed in (0, 1))
    merged = one.merge(other).certificate_
    assert merged.kind == "estimate"
    assert "same random_state" in " ".join(merged.notes())
    assert one.merge(fitted(probes=0)).certificate_.kind == "estimate"


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (3, 3), (12, 8)])
def test_players_that_span_all_features_are_certified(d, k):
    data = np.random.default_rng(d).standard_normal((500, d)) / np.arange(1, d + 1)
    pca = game_pca(k, random_state=0, batch_size=100).fit(data)
    assert pca.n_players_ == d
    assert pca.certificate_.kind == "certified"
    assert (pca.certificate_.angle < 1e-6).all()
    assert (true_angles(pca, scatter(data)) <= pca.certificate_.angle + 1e-14).all()


def test_nothing_is_missed_where_players_span_all_features():
    data = np.repeat(np.random.default_rng(0).standard_normal((3, 6)), 5, axis=0)
    found = game_pca(6, random_state=0).fit(data).certificate_
    assert (found.angle[:2] < 1e-6).all()
    assert (found.angle[2:] == math.pi / 2).all()
    assert "missed" not in str(found)


def test_a_saved_model_continues_with_its_probes(tmp_path):
    first, second = np.array_split(DIGITS, 2)
    pca = fitted(first)
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    assert str(again.certificate_) == str(pca.certificate_)
    ours, theirs = (images_of(one.partial_fit(second))[0] for one in (pca, again))
    np.testing.assert_array_equal(ours, theirs)


def test_estimates_are_near_the_true_angles():
    pca = fitted()
    true, guess = true_angles(pca, scatter(DIGITS)), pca.certificate_.estimate
    assert 0.2 < np.median(guess / true) < 5
    assert "estimate" in str(pca.certificate_)


def test_a_component_without_a_bound_has_a_reason():
    data = testing.rows_with([5, 4.0, 3.99, 3, *np.full(16, 2.9)], 600, seed=1).data
    pca = game_pca(4, random_state=0, algorithm="remembered", extra=2, probes=8).fit(data)
    assert pca.certificate_.angle[-1] == math.pi / 2
    notes = " ".join(pca.certificate_.notes())
    assert "without a bound" in notes
    assert "component" in notes


def test_a_direction_that_one_pass_has_missed_is_noticed():
    # A large direction in the first rows only, and few players: the memory loses most of it.
    rng = np.random.default_rng(3)
    data = rng.standard_normal((4000, 60)) * np.linspace(2, 1, 60)
    data[:40, -1] += 40 * rng.standard_normal(40)
    pca = game_pca(
        2, random_state=0, algorithm="remembered", extra=1, batch_size=40, dtype="float64"
    ).fit(data)
    assert (true_angles(pca, scatter(data)) <= pca.certificate_.angle).all()


def test_probes_do_not_change_the_components():
    np.testing.assert_array_equal(fitted().components_, fitted(probes=0).components_)


@pytest.mark.parametrize("count", [4, 12])
def test_bounds_fail_no_more_often_than_stated(count):
    problem = testing.matrix_with(testing.harmonic(30) ** 1.5, seed=2)
    rng = np.random.default_rng(5)
    players = np.linalg.qr((problem.components[:8] + 0.02 * rng.normal(size=(8, 30))).T)[0].T
    strengths = np.sort(np.diag(players @ problem.data @ players.T))[::-1] * 0.99
    true = metrics.angular_error(players[:3], problem.components[:3])
    risk, trials, failed = 0.5, 300, 0
    for seed in range(trials):
        draws = draw_probes(seed, count, 30)
        images = draws @ problem.data
        inside = images @ players.T
        block = OnePassBlock(
            strengths,
            inside - draws @ players.T * strengths,
            np.zeros(8),
            images - inside @ players,
            0.0,
            draws @ players.T,
            risk,
        )
        failed += bool((one_pass_angles(block, 3) < true).any())
    assert failed / trials <= risk


def test_a_block_bounds_residuals_couplings_and_the_level():
    problem = testing.matrix_with(testing.harmonic(30), seed=2)
    players = testing.orthogonal(30, 4)[:5]
    strengths = np.linspace(1, 0.5, 5)
    outside = players @ problem.data
    residual = outside - strengths[:, None] * players
    rest = np.linalg.svd(players)[2][5:]
    level = np.linalg.eigvalsh(rest @ problem.data @ rest.T)[-1]
    below = np.zeros(3)
    for seed in range(200):
        draws = draw_probes(seed, 9, 30)
        images = draws @ problem.data
        inside, shares = images @ players.T, draws @ players.T
        block = OnePassBlock(
            strengths, inside - shares * strengths, np.zeros(5), images - inside @ players, 0.0, shares, 0.4
        )  # fmt: skip
        below += (
            (block.residuals < np.linalg.norm(residual, axis=1)).any(),
            block.coupling < np.linalg.norm(residual, 2),
            block.level < level,
        )
    # Each of the four kinds of events has a share of 0.1.
    assert (below <= 200 * 0.1 + 3 * math.sqrt(200 * 0.09)).all()


@pytest.mark.parametrize("center", [True, False])
def test_blocks_of_features_give_what_one_block_gives(monkeypatch, center):
    rng = np.random.default_rng(5)
    rows = (rng.standard_normal((400, 90)) / np.arange(1, 91) + 3).astype(np.float32)
    pca = game_pca(4, center=center, random_state=0, batch_size=100).fit(rows)
    stream = pca._result.stream
    whole = one_pass_certificate(stream, 1.0)
    monkeypatch.setattr(probe_products, "CERTIFIED_FEATURES", 32)
    found = one_pass_certificate(stream, 1.0)
    np.testing.assert_allclose(found.angle, whole.angle, rtol=1e-6)
    np.testing.assert_allclose(found.level, whole.level, rtol=1e-6)
    np.testing.assert_allclose(found.estimate, whole.estimate, rtol=1e-6)


def test_players_that_are_not_orthonormal_are_made_so():
    rng = np.random.default_rng(6)
    rows = (rng.standard_normal((400, 40)) / np.arange(1, 41)).astype(np.float32)
    stream = game_pca(3, random_state=0, extra=3).fit(rows)._result.stream
    memory = stream.state.memory
    skewed = np.asarray(memory.players).copy()
    skewed[1] += 0.9 * skewed[0]
    state = stream.state._replace(memory=memory._replace(players=skewed))
    found = one_pass_certificate(stream._replace(state=state), 1.0)
    true = np.linalg.eigh(np.cov(rows.T.astype(np.float64)))[1].T[::-1][:3]
    assert (metrics.angular_error(skewed[:3].astype(np.float64), true) <= found.angle).all()


@pytest.mark.parametrize("sign", ["random", "positive"])
def test_products_of_probes_with_wide_rows_are_within_their_errors(sign):
    """Scores are sums over 30,000 features: their partial sums are Gaussian, whatever the signs of the rows."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((200, 30_000)) / np.sqrt(np.arange(1, 30_001))
    rows = (np.abs(rows) if sign == "positive" else rows).astype(np.float32)
    pca = game_pca(3, dtype="float32", random_state=0, batch_size=100).fit(rows)
    stream, frame = pca._result.stream, pca._result.frame
    draws = np.asarray(stream.probes.draws, np.float64)
    wide = rows.astype(np.float64)
    wide = (wide - wide.mean(axis=0)) / frame.unit
    off = np.asarray(stream.probes.images, np.float64) - (draws @ wide.T) @ wide
    found = probe_products.probe_products(stream)
    assert np.linalg.norm(off) <= found.error
    players = np.asarray(stream.state.memory.players, np.float64)
    assert (np.linalg.norm(off @ players.T, axis=0) <= found.along).all()
    # The bound allows for much more than what happens, but for less than half of the products themselves.
    assert found.error < 0.5 * np.linalg.norm((draws @ wide.T) @ wide)


# ---------------------------------------------------------------- fits that end after one pass


def decaying(seed, n=3000, d=60):
    """Rows in float32 whose variances decrease by a factor of three from component to component."""
    spectrum = 3.0 ** -np.arange(d) + 1e-6
    stream, _ = testing.stream_with(spectrum, n, 1, seed=seed)
    return next(stream).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options", [{}, {"center": False}, {"forget": 0.9995}, {"dtype": "float32"}]
)
def test_a_fit_ends_after_one_pass_that_certifies_everything(seed, options):
    rows = decaying(seed)
    pca = fitted(rows, tol=0.05, passes=5, **options)
    assert pca.n_passes_ == 1
    assert pca.outcome_.converged
    assert pca.certificate_.kind == "certified"
    weights = options.get("forget", 1) ** np.arange(len(rows) - 1, -1, -1.0)
    matrix = scatter(rows.astype(np.float64), weights, options.get("center", True))
    assert (true_angles(pca, matrix) <= pca.certificate_.angle).all()
    assert pca.certificate_.angle.max() <= 0.05
    np.testing.assert_allclose(
        pca.singular_values_**2, np.linalg.eigvalsh(matrix)[::-1][:K], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("name", "changed"), [("VARIANCES", 1e-12), ("rest_is_known", lambda *_: False)]
)
def test_a_fit_goes_on_if_variances_are_not_accurate(monkeypatch, name, changed):
    rows = decaying(0)
    assert fitted(rows, tol=0.05, passes=5).n_passes_ == 1
    monkeypatch.setattr(solve, name, changed)
    assert fitted(rows, tol=0.05, passes=5).n_passes_ == 2


def test_a_fit_goes_on_if_one_component_is_not_certified_in_the_first_pass():
    # The last two components have close variances.
    stream, _ = testing.stream_with(np.r_[9, 5, 3, 1.02, 1, np.full(55, 1e-3)], 3000, 1, seed=0)
    rows = next(stream).astype(np.float32)
    assert fitted(rows[:, :], tol=0.05, passes=1).certificate_.angle[:3].max() <= 0.05
    pca = fitted(rows, tol=1e-4, passes=8)
    assert pca.n_passes_ > 1
    assert pca.outcome_.converged
    assert (true_angles(pca, scatter(rows.astype(np.float64))) <= pca.certificate_.angle).all()


def test_a_fit_without_probes_or_with_a_tight_tolerance_makes_more_passes():
    rows = decaying(0)
    assert fitted(rows, tol=0.05, passes=5, probes=0).n_passes_ == 2
    assert fitted(rows, tol=0.05, passes=5, extra=2).n_passes_ == 1
    assert fitted(rows, tol=1e-4, passes=5, extra=2).n_passes_ > 1


def test_the_check_after_the_first_pass_takes_a_part_of_the_risk(monkeypatch):
    """Its bounds are larger than those of a fit that makes one pass only."""
    rows = decaying(1)
    once, checked = fitted(rows, passes=1), fitted(rows, tol=0.05, passes=5)
    np.testing.assert_array_equal(once.components_, checked.components_)
    assert checked.n_passes_ == 1
    assert (checked.certificate_.angle > once.certificate_.angle).all()
