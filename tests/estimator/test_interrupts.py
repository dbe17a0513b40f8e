"""Ctrl-C during a fit: no signal is lost, and the estimator and the settings of the process stay consistent."""

import copy
import functools
import re
import signal
import subprocess
import sys
import threading
import time

import jax
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from eigengame import EigenGamePCA
from eigengame._system import interrupts

N, D, K = 40, 12, 3
OWN = re.compile(r"eigengame/(estimator|_system/interrupts)")


@pytest.fixture(autouse=True)
def _signals_are_handled():
    """A process that a shell started in the background ignores SIGINT: the tests run as in the foreground."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def batch(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)) * 0.6 ** np.arange(D) + 1


def settings():
    """Return the settings of the process that a fit changes while it runs."""
    blas = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    cache = jax.config.jax_compilation_cache_max_size
    return jax.config.jax_enable_x64, blas, handlers, cache


def same(one, other):
    """Return whether two estimators have the same attributes with the same values."""
    mine, theirs = vars(one), vars(other)
    if mine.keys() != theirs.keys():
        return False
    return (
        all(
            np.array_equal(mine[name], theirs[name])
            for name in mine
            if isinstance(mine[name], (np.ndarray, int, float))
        )
        and one._result.stream.rows == other._result.stream.rows == other.n_samples_seen_
    )


class Signals:
    """Sends signals to this process at given lines that Python executes, counted from 1."""

    def __init__(self, *moments, number=signal.SIGINT):
        self.moments, self.number, self.lines, self.sent, self.own = moments, number, 0, 0, []

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def trace(self, frame, event, _):
        file = frame.f_code.co_filename
        if event == "line" and file != __file__:
            self.lines += 1
            if OWN.search(file):
                self.own.append(self.lines)
            if self.lines in self.moments:
                self.sent += 1
                signal.raise_signal(self.number)
        return self.trace


@pytest.fixture(autouse=True)
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def continued(n_batches):
    pca = EigenGamePCA(K, random_state=0)
    for seed in range(n_batches):
        pca.partial_fit(batch(seed))
    return pca


def interrupted(before, *moments, number=signal.SIGINT):
    """Return an estimator after a third batch with signals at these moments, and whether they were handled."""
    pca = copy.copy(before)
    signals, handled = Signals(*moments, number=number), False
    try:
        with signals:
            pca.partial_fit(batch(2))
    except KeyboardInterrupt:
        handled = True
    finally:
        sys.settrace(None)
    return pca, handled or not signals.sent


def moments(before, count):
    """Return lines of a call: all of those that change the estimator or handle signals, and a sample."""
    with Signals() as all_lines:
        copy.copy(before).partial_fit(batch(2))
    rng = np.random.default_rng(0)
    return sorted({*all_lines.own, *(rng.choice(all_lines.lines, count, replace=False) + 1)})


def test_after_an_interrupted_partial_fit_the_estimator_is_as_before_or_as_after():
    before, after, expected = continued(2), continued(3), settings()
    neither, lost, changed, counts = [], [], [], {"before": 0, "after": 0}
    tried = moments(before, 100)
    for moment in tried:
        pca, handled = interrupted(before, moment)
        state = "before" if same(pca, before) else "after" if same(pca, after) else None
        if state is None:
            neither.append(moment)
        else:
            counts[state] += 1
        if not handled:
            lost.append(moment)
        if settings() != expected:
            changed.append(moment)
            jax.config.update("jax_enable_x64", True)
    print(
        f"{len(tried)} moments: {counts}, {len(neither)} neither, {len(lost)} lost, {len(changed)} changed"
    )
    assert (neither, lost, changed) == ([], [], [])
    assert min(counts.values()) > 0


def test_after_two_signals_the_estimator_is_as_before_or_as_after():
    before, after, expected = continued(2), continued(3), settings()
    tried = moments(before, 60)
    for first, second in zip(tried, np.random.default_rng(1).permutation(tried), strict=True):
        pca, handled = interrupted(before, *sorted((int(first), int(second))))
        assert handled
        assert same(pca, before) or same(pca, after)
        assert settings() == expected


def test_the_first_partial_fit_leaves_no_trace_when_it_is_interrupted():
    fresh = EigenGamePCA(K, random_state=0)
    with pytest.raises(KeyboardInterrupt), Signals(500):
        fresh.partial_fit(batch(0))
    assert vars(fresh).keys() == vars(EigenGamePCA(K)).keys()


def test_a_fit_that_fails_keeps_the_features_of_the_one_before():
    pandas = pytest.importorskip("pandas")
    names = [f"f{i}" for i in range(D)]
    pca = EigenGamePCA(K, random_state=0).fit(pandas.DataFrame(batch(0), columns=names))

    class Failing:
        def batch(self, at):
            raise KeyboardInterrupt

    other = pandas.DataFrame(batch(1), columns=names[::-1])
    with pytest.raises(KeyboardInterrupt):
        pca.fit(other, progress=Failing())
    assert list(pca.feature_names_in_) == names
    with pytest.raises(ValueError, match="same order"):
        pca.transform(other)


def test_a_second_call_of_the_handler_of_the_caller_is_not_made():
    calls = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    try:
        pca, _ = interrupted(continued(2), 700, number=signal.SIGTERM)
        assert calls == [signal.SIGTERM]
        assert same(pca, continued(3))
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_while_handlers_are_restored_leaves_later_fits_as_they_are(monkeypatch):
    restore = interrupts._restore_one

    def restore_and_interrupt(number, handlers):
        restore(number, handlers)
        if number == signal.SIGTERM:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(interrupts, "_restore_one", restore_and_interrupt)
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():
            pass
    handler = signal.getsignal(signal.SIGINT)
    with interrupts.deferred():
        with interrupts.deferred():
            pass
        assert signal.getsignal(signal.SIGINT) is not handler
    assert signal.getsignal(signal.SIGINT) is handler


def test_signals_are_not_touched_in_other_threads():
    handler, seen = signal.getsignal(signal.SIGINT), []

    class Watching:
        def batch(self, at):
            seen.append(signal.getsignal(signal.SIGINT))

    fit = functools.partial(EigenGamePCA(K).fit, batch(0), progress=Watching())
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert seen
    assert set(seen) == {handler}
    fit()
    assert handler not in seen[-1:]
    assert signal.getsignal(signal.SIGINT) is handler


DASK = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import dask
import dask.array
import numpy as np
from eigengame import EigenGamePCA

@dask.delayed
def stalled():
    print("stalled", flush=True)
    time.sleep(100)

rows = dask.array.from_delayed(stalled(), shape=(100, 12), dtype="float32")
try:
    EigenGamePCA(3).fit(rows)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
"""

STALLED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from eigengame import EigenGamePCA

def pieces(number):
    for _ in range(number):
        yield np.random.default_rng(0).normal(size=(50, 12))
    print("stalled", flush=True)
    time.sleep(100)
    yield np.zeros((50, 12))

try:
    EigenGamePCA(3, batch_size=100).fit(pieces(int(sys.argv[1])))
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
"""


def test_ctrl_c_ends_a_fit_that_waits_for_dask():
    pytest.importorskip("dask.array")
    running = subprocess.Popen([sys.executable, "-c", DASK], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "stalled\n"
        began = time.perf_counter()
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "interrupted True\n"
        assert time.perf_counter() - began < 5  # threads of Dask may have to be stopped first
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("pieces", [0, 1, 20])
def test_ctrl_c_ends_a_fit_of_a_stalled_generator_within_a_second(pieces):
    running = subprocess.Popen(
        [sys.executable, "-c", STALLED, str(pieces)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout.readline() == "stalled\n"
        time.sleep(0.5)
        began = time.perf_counter()
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "interrupted True\n"
        assert time.perf_counter() - began < 1
        assert running.wait(timeout=20) == 0
    finally:
        running.kill()
        running.communicate()
