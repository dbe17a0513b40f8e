"""Fits in several threads and processes of one program."""

import multiprocessing
import pickle
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from eigengame import EigenGamePCA
from eigengame._system.blas_threads import all_blas_threads, one_blas_thread
from eigengame.model_file import writer

N, D, K = 40, 12, 3


def rows(seed=0):
    return np.random.default_rng(seed).normal(size=(N, D)) * 0.6 ** np.arange(D) + 1


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


class Waiting:
    """Stops at the first batch until it is released."""

    def __init__(self):
        self.begun, self.released = threading.Event(), threading.Event()

    def batch(self, at):
        self.begun.set()
        assert self.released.wait(60)


def started(function, *arguments, **options):
    thread = threading.Thread(target=function, args=arguments, kwargs=options)
    thread.start()
    return thread


def test_overlapping_fits_restore_the_threads_of_blas():
    first, second = Waiting(), Waiting()
    with threadpool_limits(2, user_api="blas"):
        threads = [started(EigenGamePCA(K).fit, rows(), progress=first)]
        assert first.begun.wait(60)
        threads.append(started(EigenGamePCA(K).fit, rows(1), progress=second))
        assert second.begun.wait(60)
        during = [blas_threads()]
        # The first to begin ends first.
        for waiting, thread in zip((first, second), threads, strict=True):
            waiting.released.set()
            thread.join()
            during.append(blas_threads())
        assert during == [{1}, {1}, {2}]


def test_large_products_have_all_threads_while_others_need_one():
    with threadpool_limits(2, user_api="blas"):
        with all_blas_threads():
            assert blas_threads() == {2}
        with one_blas_thread():
            assert blas_threads() == {1}
            with all_blas_threads(), one_blas_thread():
                assert blas_threads() == {2}
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_many_fits_in_threads_equal_fits_one_after_another():
    alone = [EigenGamePCA(K, random_state=0).fit(rows(i)).components_ for i in range(8)]
    found = {}
    before = (jax.config.jax_enable_x64, blas_threads())

    def fit(i):
        for _ in range(4):
            found[i] = EigenGamePCA(K, random_state=0).fit(rows(i)).components_

    for thread in [started(fit, i) for i in range(8)]:
        thread.join()
    for i, components in enumerate(alone):
        np.testing.assert_array_equal(found[i], components)
    assert (jax.config.jax_enable_x64, blas_threads()) == before


def test_a_second_call_of_the_same_estimator_is_refused_and_loses_nothing():
    pca, waiting, errors = EigenGamePCA(K, random_state=0), Waiting(), []

    def second():
        for call in (pca.partial_fit, pca.fit):
            try:
                call(rows(1))
            except RuntimeError as error:
                errors.append(str(error))

    thread = started(pca.fit, rows(), progress=waiting)
    assert waiting.begun.wait(60)
    started(second).join()
    waiting.released.set()
    thread.join()
    assert errors[0].startswith("partial_fit was called while fit of the same estimator is running")
    assert errors[1].startswith("fit was called while fit of the same estimator is running")
    assert "use one estimator for each thread and merge them" in errors[0]
    assert pca.n_samples_seen_ == N
    # A copy, a clone and a pickle are other estimators, and the first is free again.
    for one in (pca, clone(pca), pickle.loads(pickle.dumps(pca))):
        one.partial_fit(rows(1))
    assert pca.n_samples_seen_ == 2 * N


def test_every_batch_of_many_threads_is_taken_or_refused():
    pca, taken = EigenGamePCA(K, random_state=0).partial_fit(rows()), []

    def work(seed):
        for i in range(20):
            try:
                pca.partial_fit(rows(seed * 100 + i))
                taken.append(N)
            except RuntimeError:
                continue

    for thread in [started(work, seed) for seed in range(4)]:
        thread.join()
    assert taken
    assert pca.n_samples_seen_ == pca._result.stream.rows == N + sum(taken)


def test_scores_during_a_partial_fit_are_of_one_model():
    states, pca = {}, EigenGamePCA(K, random_state=0).partial_fit(rows())
    stop = threading.Event()
    states[pca.n_samples_seen_] = pca.transform(rows())

    def learn():
        for i in range(60):
            pca.partial_fit(rows(i + 1))
            states[pca.n_samples_seen_] = pca.transform(rows())
        stop.set()

    thread, seen = started(learn), []
    while not stop.is_set():
        seen.append(pca.transform(rows()))
    thread.join()
    known = {scores.tobytes() for scores in states.values()}
    assert seen
    assert all(scores.tobytes() in known for scores in seen)


def test_a_model_that_is_saved_during_a_partial_fit_is_of_one_state(tmp_path, monkeypatch):
    pca, plain = EigenGamePCA(K, random_state=0).partial_fit(rows()), writer._plain
    thread = threading.Thread(target=pca.partial_fit, args=(rows(1),))

    def learning_meanwhile(value):
        if not thread.ident:
            thread.start()
            thread.join()
        return plain(value)

    monkeypatch.setattr(writer, "_plain", learning_meanwhile)
    saved = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    assert pca.n_samples_seen_ == 2 * N
    assert saved.n_samples_seen_ == saved._result.stream.rows == N


FORKED = """
import multiprocessing, warnings
import numpy as np
from eigengame import EigenGamePCA, model_file

warnings.simplefilter("ignore")
x = np.random.default_rng(0).normal(size=(40, 12))

def fit(_):
    try:
        return EigenGamePCA(3).fit(x).n_samples_seen_
    except RuntimeError as error:
        return str(error)

if __name__ == "__main__":
    pca = EigenGamePCA(3)
    {first}
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map_async(fit, [0]).get(timeout=60)[0])
"""


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("pca.fit(x)", "this process was forked"),
        ("import jax; jax.numpy.ones(3)", "this process was forked"),
        ("", "40"),
    ],
    ids=["after a fit", "after JAX", "before both"],
)
def test_a_fit_in_a_forked_process_is_refused_where_it_would_hang(first, expected, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FORKED.format(first=first))
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith(expected), done.stderr
    if "forked" in expected:
        assert 'multiprocessing.get_context("spawn")' in done.stdout
        assert "loky" in done.stdout


def fitted(x):
    return EigenGamePCA(K, random_state=0).fit(x).components_


def test_spawned_processes_fit_as_this_one():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(fitted, (rows(),)), fitted(rows()))


def test_a_grid_search_with_joblib_equals_one_without():
    x = np.concatenate([rows(i) for i in range(3)])
    searches = [
        GridSearchCV(EigenGamePCA(random_state=0), {"n_components": [2, 3]}, cv=2, n_jobs=jobs)
        for jobs in (1, 2)
    ]
    for one in searches:
        one.fit(x)
    alone, parallel = (one.cv_results_["mean_test_score"] for one in searches)
    np.testing.assert_allclose(parallel, alone, rtol=1e-6)
    assert np.isfinite(parallel).all()
