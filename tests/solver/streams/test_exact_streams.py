"""Probes of the streams that exact fits leave behind: bounds on the errors of their products hold."""

from unittest import mock

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame.estimator import pca as estimator
from eigengame.solver.fit import LocalExecutor
from eigengame.solver.lanczos.dense_problem import dense_problem
from eigengame.solver.planning import make_plan as plans
from eigengame.solver.planning import routes
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.streams.exact_stream import exact_probes, exact_stream
from eigengame.solver.streams.one_pass import probe_images

N, LIGHT, BATCH = 7000, 1100, 1000


def shifted(rows, far, features, light, dtype):
    """Rows with a mean in the last features, and light rows before them that show nothing of it; their weights."""
    rows[light:, -features:] += far
    weights = np.ones(len(rows))
    weights[:light] = 1e-9
    return rows.astype(dtype), weights


def falling(far, dtype):
    """Rows with a falling spectrum and a mean where it is smallest."""
    rows = np.random.default_rng(0).standard_normal((N, 40)) * 0.8 ** np.arange(40)
    return shifted(rows, far, 6, LIGHT, dtype)


def scatter(rows, weights):
    """The scatter matrix with more digits than float64 has."""
    rows, weights = rows.astype(np.longdouble), weights.astype(np.longdouble)
    about = rows - rows[-1]
    about -= weights @ about / weights.sum()
    return (about * weights[:, None]).T @ about


def error_and_bound(stream, rows, weights):
    """The norm of the errors of the products of the probes, and its bound."""
    found = probe_images(stream)
    off = found.images - found.draws.astype(np.longdouble) @ scatter(rows, weights)
    return float(np.sqrt(np.sum(off**2))), found.error


@pytest.mark.parametrize("far", [0.0, 1.0, 1000.0])
def test_errors_of_a_covariance_are_bounded_however_far_the_mean_is(far):
    rows, weights = falling(far, "float64")
    pca = EigenGamePCA(4, algorithm="exact", dtype="float64", random_state=0, batch_size=BATCH)
    stream = pca.fit(rows, sample_weight=weights)._result.stream
    error, bound = error_and_bound(stream, rows, weights)
    assert 0 < error <= bound


@pytest.mark.parametrize("far", [0.0, 1.0, 60.0])
def test_errors_of_a_covariance_in_float32_are_bounded(far):
    rows, weights = falling(far, "float32")
    pca = EigenGamePCA(4, tol=0.05, dtype="float32", random_state=0, batch_size=BATCH)
    with (
        mock.patch.object(estimator, "SMALL", 0),
        mock.patch.object(plans, "route_of", return_value=routes.COVARIANCE),
    ):
        stream = pca.fit(rows, sample_weight=weights)._result.stream
    # Scores and squares are those about the origin, not about the mean.
    assert float(stream.probes.unit) >= max(1, far) * 2.0**-24
    error, bound = error_and_bound(stream, rows, weights)
    assert 0 < error <= bound


@pytest.mark.parametrize("far", [0.0, 1.0, 300.0])
def test_errors_of_lanczos_probes_in_float32_are_bounded(far):
    """Only the first probes are multiplied in float64."""
    rows = np.random.default_rng(0).standard_normal((2100, 20))
    rows[:, 9:] /= 2
    rows, weights = shifted(rows, far, 11, 1040, "float32")
    options = Options(passes=16, tol=0.05, dtype=np.float32, automatic=True, seed=7)
    problem = Problem(as_source(rows), options, weights=weights, batch_size=1050)
    executor = LocalExecutor()
    plan = executor.plan(problem, 1)
    found = dense_problem(plan, executor.passes(problem, plan, ()))
    values, vectors = np.linalg.eigh(scatter(rows, weights).astype(np.float64))
    players, values = vectors.T[::-1][: plan.players], values[::-1][: plan.players]
    sums, draws = exact_probes(plan, rows.shape[1], len(found.draws))
    images = found.images(draws)
    stream = exact_stream(
        plan, players, values, found.moments, found.seen, sums, images, found.summed
    )
    error, bound = error_and_bound(stream, rows, weights)
    assert 0 < error <= bound


def test_rows_that_are_all_equal_leave_a_stream_of_full_precision():
    """Nothing was rounded, so later rows are certified as if they were the first."""
    rows, _ = falling(0.0, "float64")
    pca = EigenGamePCA(4, algorithm="exact", dtype="float64", random_state=0)
    pca.fit(np.full((10, 40), 3.0)).partial_fit(rows + 3)
    assert float(pca._result.stream.probes.unit) < 1e-12
    assert (pca.certificate_.angle < 0.1).all()
