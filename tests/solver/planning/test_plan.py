"""The plan of a fit and its memory, which is refused before the fit starts if it does not fit."""

import types

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from eigengame.solver.planning import memory
from eigengame.solver.planning.memory import available, estimate_memory, refuse_unless_fits
from eigengame.solver.rows.batches import batches_in_memory


def test_batches_and_players_are_counted_and_rows_are_not():
    small = estimate_memory((256, 1000), 32, 4, held=4)
    assert small.batches == 4 * 256 * 1000 * 4
    assert estimate_memory((256, 1000), 64, 4, held=4).players == 2 * small.players
    assert estimate_memory((256, 1000), 32, 4, held=4, passes=5).players > small.players
    assert small.total == small.batches + small.players + small.features
    assert str(small).startswith("about 4.")


def test_views_are_not_counted_like_copies(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((64, 8), np.float32))
    mapped = as_source(np.load(tmp_path / "x.npy", mmap_mode="r"))
    read = as_source(tmp_path / "x.npy")
    single, double = np.dtype("float32"), np.dtype("float64")
    assert batches_in_memory(mapped, single, copied=False) == 1
    assert batches_in_memory(mapped, double, copied=False) == 4
    assert batches_in_memory(read, single, copied=False) == 4
    assert batches_in_memory(mapped, single, copied=True) == 4
    assert batches_in_memory(as_source(np.ones((64, 8))), double, copied=False) == 2


def test_a_device_with_its_own_memory_is_distinguished_from_the_host(monkeypatch):
    monkeypatch.setattr(memory.jax, "devices", lambda: [types.SimpleNamespace(platform="gpu")])
    planned = estimate_memory((256, 1000), 32, 4, held=4)
    assert planned.host == 2 * 256 * 1000 * 4
    assert str(planned).endswith("host 1.95 MiB)")
    monkeypatch.setattr(memory, "available", lambda: 2**40)
    monkeypatch.setattr(memory, "free_memory", lambda: 2**20)
    monkeypatch.setattr(memory, "LITTLE", 0)
    with pytest.raises(MemoryError, match="smaller batch_size"):
        refuse_unless_fits(planned, 256, 32)


def test_a_run_that_cannot_fit_is_refused_before_it_reads(monkeypatch):
    there = available()
    assert there is None or there > 2**20
    monkeypatch.setattr(memory, "available", lambda: 2**20)
    monkeypatch.setattr(memory, "LITTLE", 0)
    with pytest.raises(MemoryError, match=r"smaller batch_size \(it is 256\).*float32"):
        refuse_unless_fits(estimate_memory((256, 1000), 32, 4, held=4), 256, 32)

    read = []

    class Noting:
        def batch(self, at):
            read.append(at)

    with pytest.raises(MemoryError, match="batch_size"):
        EigenGamePCA(4).fit(np.ones((4000, 400), np.float32), progress=Noting())
    assert read == []
