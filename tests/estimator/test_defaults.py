"""Fits without further arguments: every component is certified, or a warning names it."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA, UncertifiedWarning, metrics
from eigengame.solver import solve
from eigengame.solver.passes.limits import AUTO_PASSES, AUTO_TOL, MAX_PASSES, limits
from eigengame.solver.planning import routes
from tests.game_pca import game_pca

DIGITS = load_digits().data
TOL = 0.05


def rows(n, d, seed=0, power=0.5):
    """Return Gaussian rows whose variances fall like a power of 1/i."""
    draws = np.random.default_rng(seed).standard_normal((n, d))
    return draws / np.arange(1, d + 1) ** power


def angles(pca, x):
    truth = metrics.true_components(x - x.mean(axis=0), pca.n_components_)[1]
    return metrics.angular_error(pca.components_.astype(np.float64), truth)


@pytest.fixture
def game_only(monkeypatch):
    """Small data plays the game, as large data does."""
    monkeypatch.setattr(routes, "_cheapest", lambda *_, **__: routes.REMEMBERED)
    monkeypatch.setattr(routes, "_by_lanczos", lambda *_, **__: False)


@pytest.mark.parametrize(
    ("passes", "tol", "again", "expected"),
    [
        ("auto", "auto", True, (AUTO_PASSES, AUTO_TOL)),
        ("auto", "auto", False, (1, AUTO_TOL)),
        (1, "auto", True, (1, AUTO_TOL)),
        (5, "auto", True, (5, AUTO_TOL)),
        ("auto", None, True, (1, None)),
        (5, None, True, (5, None)),
        ("auto", 0.01, True, (MAX_PASSES, 0.01)),
        (1, 0.01, True, (1, 0.01)),
    ],
)
def test_the_limits_of_a_fit(passes, tol, again, expected):
    assert limits(passes, tol, again=again, certified=True) == expected
    assert limits(passes, tol, again=again, certified=False)[1] is None


@pytest.mark.parametrize("shape", [(1797, 64), (300, 700), (5000, 30)])
def test_every_component_is_certified_without_arguments(shape):
    x = DIGITS if shape == DIGITS.shape else rows(*shape)
    pca = EigenGamePCA(8, random_state=0).fit(x)
    assert pca.outcome_.converged
    assert pca.tol_ == TOL
    assert pca.certificate_.angle.max() <= TOL
    assert angles(pca, x).max() <= TOL


def test_the_game_refines_by_default(game_only):
    pca = EigenGamePCA(8, random_state=0).fit(DIGITS)
    assert pca.outcome_.route == "remembered, then refined"
    assert pca.outcome_.converged
    assert angles(pca, DIGITS).max() <= TOL


def test_one_pass_is_one_pass_and_its_open_components_are_named(game_only):
    flat = rows(600, 64, power=0.1)
    with pytest.warns(UncertifiedWarning) as caught:
        pca = EigenGamePCA(6, passes=1, random_state=0).fit(flat)
    (warning,) = caught
    assert pca.n_passes_ == 1
    assert "components 1 to 6 of 6 are not certified within 0.05 rad" in str(warning.message)
    assert "Read the data again" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        once = EigenGamePCA(6, passes=1, tol=None, random_state=0).fit(flat)
    assert once.tol_ is None
    np.testing.assert_array_equal(once.components_, pca.components_)


def test_only_components_outside_the_tolerance_are_named(game_only):
    x = np.concatenate([rows(600, 3, power=2) * 30, rows(600, 64, 1, power=0.05)], axis=1)
    with pytest.warns(UncertifiedWarning, match="components 4 to 5 of 5 are not"):
        pca = EigenGamePCA(5, passes=1, random_state=0).fit(x)
    assert (pca.certificate_.angle[:3] <= TOL).all()


def test_a_stream_takes_one_pass_and_a_generator_is_not_read_twice(game_only):
    x = rows(900, 40, power=2)
    pca = EigenGamePCA(3, random_state=0).fit(iter(np.array_split(x, 3)))
    assert pca.n_passes_ == 1
    assert pca.outcome_.converged
    assert angles(pca, x).max() <= TOL


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_the_exact_route_certifies_what_the_game_does_not(kind, monkeypatch, game_only):
    flat = rows(400, 900, power=0.02)
    monkeypatch.setattr(routes, "LEAST_TRIED", 3)
    monkeypatch.setattr(solve, "passes_before", lambda *_: 3)
    # Without this number a flat spectrum is not refined at all.
    pca = EigenGamePCA(4, extra=8, random_state=0).fit(kind(flat))
    assert pca.outcome_.route == "remembered, then refined, then row gram"
    assert pca.n_passes_ == 4
    assert pca.outcome_.converged
    assert angles(pca, flat).max() <= TOL
    # The memory of the game stays.
    assert pca.partial_fit(kind(flat[:10])).n_samples_seen_ == 410


def test_passes_that_were_given_are_the_limit(game_only):
    flat = rows(400, 900, power=0.02)
    with pytest.warns(UncertifiedWarning, match="the passes were spent"):
        pca = EigenGamePCA(4, passes=3, random_state=0).fit(flat)
    assert pca.n_passes_ == 3


def test_memory_that_is_short_takes_fewer_passes(monkeypatch, game_only):
    import eigengame.solver.planning.make_plan as plans

    def refuse(memory, *_, **__):
        if memory.certificate > 8 * 64 * 600:
            raise MemoryError

    few, many = rows(600, 64, power=2), []
    monkeypatch.setattr(plans, "refuse_unless_fits", refuse)

    class Noting:
        def plan(self, plan):
            many.append(plan.options.passes)

        def batch(self, at):
            pass

    EigenGamePCA(3, random_state=0).fit(few, progress=Noting())
    assert 1 <= many[0] < AUTO_PASSES
    with pytest.raises(MemoryError):
        game_pca(40, tol=0.01, passes=30, random_state=0).fit(few)


def test_the_tolerance_that_was_used_is_part_of_a_model(tmp_path):
    pca = EigenGamePCA(4, random_state=0).fit(DIGITS)
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    assert (again.tol, again.tol_, again.passes) == ("auto", TOL, "auto")
    assert clone(again).get_params() == pca.get_params()
    assert again.partial_fit(DIGITS[:100]).tol_ is None


@pytest.mark.parametrize("wide", [False, True])
def test_exact_solutions_can_be_continued_and_merged(wide):
    x = rows(240, 500 if wide else 40, power=1)
    one, other = (EigenGamePCA(3, random_state=0).fit(part) for part in (x[:120], x[120:]))
    route = routes.ROW_GRAM if wide else routes.COVARIANCE
    assert {one.outcome_.route, other.outcome_.route} == {route}
    merged = one.merge(other)
    assert (merged.n_samples_seen_, merged.tol_) == (240, None)
    assert merged.certificate_.kind == "certified"
    assert (angles(merged, x) <= merged.certificate_.angle).all()
    assert angles(merged, x).max() < TOL
    continued = one.partial_fit(x[120:])
    assert (angles(continued, x) <= continued.certificate_.angle).all()
    assert angles(continued, x).max() < TOL


def test_the_stream_of_an_exact_solution_has_more_players_than_rows():
    x = rows(40, 300, power=1)
    few = EigenGamePCA(3, random_state=0).fit(x[:5])
    assert few.outcome_.route == routes.ROW_GRAM
    players = few._result.stream.state.memory.players
    np.testing.assert_allclose(players @ players.T, np.eye(len(players)), atol=1e-12)
    assert angles(few.partial_fit(x[5:]), x).max() < 0.1


@pytest.mark.parametrize("algorithm", ["auto", "remembered"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_share_of_the_variance_takes_one_fit(algorithm, share):
    x = rows(900, 60, power=1)
    pca = EigenGamePCA(share, algorithm=algorithm, tol=TOL, random_state=0).fit(x)
    variances = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    needed = int(np.searchsorted(np.cumsum(variances) / variances.sum(), share)) + 1
    assert pca.n_components_ == needed
    right = EigenGamePCA(needed, algorithm=algorithm, tol=TOL, random_state=0).fit(x)
    assert pca.n_passes_ <= right.n_passes_ + 1
    assert angles(pca, x).max() <= TOL
    # Its stream has as many components, too.
    assert pca.partial_fit(x[:50]).n_components_ == needed


COMPILES = """
import jax, numpy as np
from eigengame import EigenGamePCA
names = []
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **others: names.append(name))
rows = (np.random.default_rng(0).standard_normal({shape}) / np.arange(1, {shape}[1] + 1)).astype("float32")
for k in range(2, 6):
    pca = EigenGamePCA(k, random_state=0).fit(rows)
print(pca.outcome_.route, [name for name in names if "compile" in name], sep=";")
"""


@pytest.mark.parametrize(("shape", "route"), [((217, 23), "covariance"), ((60, 1300), "row gram")])
def test_a_fit_of_small_data_compiles_nothing(shape, route):
    """In a process of its own: elsewhere programs may be compiled already."""
    command = [sys.executable, "-c", COMPILES.format(shape=shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{route};[]"


def test_a_stream_with_a_tolerance_takes_one_pass():
    """It failed once the whole stream had been read."""
    x = rows(400, 30, power=1.0)
    parts = (x[begin : begin + 100] for begin in range(0, 400, 100))
    with pytest.warns(UncertifiedWarning):
        pca = EigenGamePCA(4, algorithm="remembered", tol=1e-9, random_state=0).fit(parts)
    assert (pca.n_passes_, pca.tol_) == (1, 1e-9)
