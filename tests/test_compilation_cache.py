"""Fits cache what they compile, in the user's cache folder, and leave the settings of JAX as they were."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import pytest

from eigengame._system import compilation_cache
from eigengame._system.compilation_cache import (
    EVERYTHING,
    MOST_BYTES,
    cached_compilations,
    default_folder,
    keep_compilations,
)

PROGRAM = """
import sys, jax, numpy as np
from eigengame import EigenGamePCA
from eigengame.solver.planning import make_plan
mine = sys.argv[1:]
if mine:
    jax.config.update("jax_compilation_cache_dir", mine[0])
make_plan.LITTLE_WORK = 0
pca = EigenGamePCA(2, algorithm="remembered", tol=None, random_state=0)
pca.fit(np.random.default_rng(0).standard_normal((40, 6)))
print(jax.config.jax_persistent_cache_min_compile_time_secs, jax.config.jax_compilation_cache_max_size)
"""


def fitted(home, *arguments, **environment):
    """Fit in a process of its own, and return what it prints and the files in the user's cache folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=kept | {"HOME": str(home), "XDG_CACHE_HOME": ""} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), list((home / ".cache/eigengame/programs").glob("*"))


def test_a_fit_caches_its_programs_and_restores_the_settings(tmp_path):
    printed, files = fitted(tmp_path)
    assert files
    assert printed == ["1.0", "-1"]


def test_the_cache_can_be_turned_off(tmp_path):
    assert fitted(tmp_path, EIGENGAME_CACHE="off")[1] == []


def test_a_cache_of_the_user_stays_the_only_one(tmp_path):
    assert fitted(tmp_path, str(tmp_path / "mine"))[1] == []


def test_a_folder_that_cannot_be_made_does_not_matter(tmp_path):
    (tmp_path / ".cache").write_text("not a folder")
    assert fitted(tmp_path)[0] == ["1.0", "-1"]


@pytest.fixture
def plain(monkeypatch, tmp_path):
    """JAX without a cache, and a folder for one; the settings of the tests are restored."""
    names = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size", *EVERYTHING)
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    for name in EVERYTHING:
        jax.config.update(name, 2)
    monkeypatch.setenv("EIGENGAME_CACHE", str(tmp_path / "cache"))
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def seconds():
    return jax.config.jax_persistent_cache_min_compile_time_secs


def test_the_last_of_several_fits_restores_the_settings(plain):
    first, second = cached_compilations(), cached_compilations()
    first.__enter__()
    second.__enter__()
    assert seconds() == 0
    assert jax.config.jax_compilation_cache_max_size == MOST_BYTES
    first.__exit__(None, None, None)
    assert seconds() == 0
    second.__exit__(None, None, None)
    assert seconds() == 2
    assert not compilation_cache._inside


def test_fits_in_threads_restore_the_settings(plain):
    def run():
        for _ in range(50):
            with cached_compilations():
                assert seconds() == 0

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seconds() == 2


def test_the_folder_is_chosen_by_the_environment(monkeypatch):
    monkeypatch.setenv("EIGENGAME_CACHE", "here")
    assert default_folder() == Path("here/programs")
    monkeypatch.setenv("XDG_CACHE_HOME", "user")
    for name in ("on", "1", "True", ""):
        monkeypatch.setenv("EIGENGAME_CACHE", name)
        assert default_folder() == Path("user/eigengame/programs")
    monkeypatch.setenv("EIGENGAME_CACHE", "OFF")
    assert default_folder() is None
    with pytest.raises(ValueError, match="turns the cache off"):
        keep_compilations()
    monkeypatch.delenv("EIGENGAME_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/eigengame/programs")
