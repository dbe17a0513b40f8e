"""Streams of dense rows on a CPU: in NumPy for little data, and compiled for more, with the same results."""

import copy
import pickle

import jax
import numpy as np
import pytest

from eigengame import EigenGamePCA, prepare
from eigengame.metrics import angular_error, true_components
from eigengame.solver.passes import host_arrays
from eigengame.solver.planning import batch_size, make_plan
from eigengame.solver.rows import batches
from eigengame.solver.streams import batch_step, streaming

N, D, K = 403, 40, 3
ONE_PASS = {"algorithm": "remembered", "passes": 1, "tol": None, "random_state": 0}


class Noting:
    """Notes the plan of a fit, and the figures after each batch."""

    def __init__(self):
        self.figures = []

    def plan(self, plan):
        self.space, self.growing = plan.space, plan.growing

    def batch(self, at):
        self.figures.append(at.tell())


def data(seed=0, n=N):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((D, D)))[0]
    return (rng.standard_normal((n, D)) / np.arange(1, D + 1)) @ turn + rng.standard_normal(D)


def both(monkeypatch, fit):
    """Return what a function returns with products by NumPy, and with compiled ones."""
    here = fit()
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    there = fit()
    return here, there


def assert_same(one, other, angle=2e-3):
    # Rounding is different, and grows by the gaps between components.
    assert angular_error(one.components_, other.components_).max() < angle
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(one.mean_, other.mean_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.var_, other.var_, rtol=1e-3)
    np.testing.assert_allclose(one.certificate_.residual, other.certificate_.residual, rtol=0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("batch", "space"), [(12, "gram"), (100, "score"), (403, "score")])
def test_components_are_those_of_compiled_updates(dtype, center, batch, space, monkeypatch):
    values, noted = data(), Noting()

    def fit():
        options = {"dtype": dtype, "center": center, "batch_size": batch}
        return EigenGamePCA(K, **ONE_PASS, **options).fit(values, progress=noted)

    here = fit()
    assert noted.space == "host"
    assert all(one["variance"] > 0 for one in noted.figures)
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    there = fit()
    assert noted.space == space
    assert_same(here, there)
    truth = true_components(values - center * values.mean(axis=0), K)[1]
    bounds = here.certificate_.angle
    assert (angular_error(here.components_, truth) <= bounds + 1e-12).all()
    assert bounds.min() < 0.1


@pytest.mark.parametrize("forget", [1.0, 0.995])
def test_weighted_streams_are_those_of_compiled_updates(forget, monkeypatch):
    values, weights = data(1), np.random.default_rng(2).uniform(0, 2, N)
    weights[::5] = 0

    def fit():
        pca = EigenGamePCA(K, random_state=0, forget=forget, dtype="float64")
        for begin in (0, 90, 250):
            own = slice(begin, {0: 90, 90: 250, 250: N}[begin])
            pca.partial_fit(values[own], sample_weight=weights[own])
        return pca

    here, there = both(monkeypatch, fit)
    assert_same(here, there)
    assert here.n_samples_seen_ == there.n_samples_seen_ == int((weights > 0).sum())


@pytest.mark.parametrize("kind", ["uint8", "columns", "far mean", "tiny", "missing"])
def test_any_numbers_are_those_of_compiled_updates(kind, monkeypatch):
    values = data(3)
    given = {
        "uint8": lambda: np.clip(values * 40 + 100, 0, 255).astype(np.uint8),
        "columns": lambda: np.asfortranarray(values.astype(np.float32)),
        "far mean": lambda: (values + 1e6 * np.arange(D)),
        "tiny": lambda: values * 1e-30,
        "missing": lambda: np.where(np.random.default_rng(4).uniform(size=(N, D)) < 0.001, np.nan, values),
    }[kind]()  # fmt: skip
    source = prepare(given, missing="skip") if kind == "missing" else given
    scale = 1e30 if kind == "tiny" else 1.0

    def fit():
        options = {"batch_size": 100, "dtype": "float32"}
        pca = EigenGamePCA(K, **ONE_PASS, **options).fit(source)
        return pca.components_, pca.explained_variance_ * scale**2

    (here, found), (there, expected) = both(monkeypatch, fit)
    assert angular_error(here, there).max() < 2e-3
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_a_stream_is_continued_with_compiled_updates_and_merged(monkeypatch):
    values, parts = data(5), []
    for own in (slice(0, 200), slice(200, N)):
        pca = EigenGamePCA(K, random_state=0, dtype="float64").partial_fit(values[own][:100])
        with monkeypatch.context() as patched:
            patched.setattr(make_plan, "LITTLE_WORK", 0)
            pca.partial_fit(values[own][100:])
        parts.append(pickle.loads(pickle.dumps(pca)))
    whole = parts[0].merge(parts[1])
    truth = true_components(values - values.mean(axis=0), K)[1]
    error = angular_error(whole.components_, truth)
    assert error.max() < 0.05
    assert (error <= whole.certificate_.angle).all()


def test_updates_do_not_change_the_threads_of_other_fits(monkeypatch):
    """The number of threads of BLAS belongs to the process, and bits depend on it."""

    def refuse():
        raise AssertionError("all threads are used")

    monkeypatch.setattr(host_arrays, "all_blas_threads", refuse)
    wide = np.random.default_rng(9).standard_normal((60, 70_000)).astype(np.float32)
    noted = Noting()
    EigenGamePCA(2, **ONE_PASS, extra=2, probes=4).fit(wide, progress=noted)
    assert noted.space == "host"


@pytest.mark.parametrize("kind", ["host", "compiled", "exact", "merged"])
def test_a_pickled_stream_keeps_its_precision(kind, monkeypatch):
    values = data(10)
    if kind == "compiled":
        monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    pca = EigenGamePCA(K, random_state=0, dtype="float64")
    pca = pca.fit(values[:300]) if kind == "exact" else pca.partial_fit(values[:300])
    if kind == "merged":
        other = EigenGamePCA(K, random_state=0, dtype="float64").partial_fit(values[300:350])
        pca = pca.merge(other)
    # As in a process of a user, who has not switched float64 on.
    with jax.enable_x64(False):
        copied = pickle.loads(pickle.dumps(pca))
        assert copied._result.stream.state.memory.players.dtype == np.float64
        for one in (pca, copied):
            one.partial_fit(values[350:])
    np.testing.assert_array_equal(copied.components_, pca.components_)
    np.testing.assert_array_equal(copied.certificate_.angle, pca.certificate_.angle)


def test_arrays_of_a_stream_cannot_be_changed_through_its_components():
    values = data(6)
    pca = EigenGamePCA(K, random_state=0, dtype="float64").partial_fit(values[:200])
    other = copy.deepcopy(pca).partial_fit(values[200:])
    pca.components_[:] = 0
    pca.mean_[:] = 0
    pca.partial_fit(values[200:])
    np.testing.assert_array_equal(pca.components_, other.components_)
    np.testing.assert_array_equal(pca.mean_, other.mean_)


def test_nothing_is_compiled_for_little_data(monkeypatch):
    values = data(7)

    def refuse(*_, **__):
        raise AssertionError("a program was compiled")

    monkeypatch.setattr(jax.stages.Lowered, "compile", refuse)
    monkeypatch.setattr(batch_step, "step", refuse)
    # Lengths that no other test has.
    pca = EigenGamePCA(K, random_state=0, dtype="float32").partial_fit(values[:97])
    pca.partial_fit(values[97:230])
    EigenGamePCA(K, **ONE_PASS, batch_size=71).fit(values)
    assert pca.n_samples_seen_ == 230


def test_batches_of_an_array_in_memory_grow(monkeypatch):
    monkeypatch.setattr(batches, "FIRST_ROWS", 32)
    monkeypatch.setattr(batch_size, "MOST_VIEWED", 128)
    monkeypatch.setattr(make_plan, "batch_rows", lambda *_: 64)
    values, noted, sizes = data(8), Noting(), []
    mode = streaming.MODES["host"]

    def take(game, stream, rows, count, placement):
        sizes.append(len(rows.values))
        return mode.take(game, stream, rows, count, placement)

    monkeypatch.setitem(streaming.MODES, "host", mode._replace(take=take))
    pca = EigenGamePCA(K, **ONE_PASS, dtype="float32").fit(values, progress=noted)
    assert noted.growing
    assert sizes == [32, 32, 64, 128, 128, 19]
    truth = true_components(values - values.mean(axis=0), K)[1]
    assert angular_error(pca.components_, truth).max() < 0.05
    sizes.clear()
    # A number of rows that was given stays.
    EigenGamePCA(K, **ONE_PASS, dtype="float32", batch_size=64).fit(values, progress=noted)
    assert not noted.growing
    assert sizes == [64] * 6 + [19]
