"""The memory of a run, told before it starts, and refused where it cannot be had."""

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame import plan as planning
from eigengame.plan import available, plan, refuse_unless_fits


def test_batches_and_players_are_counted_and_rows_are_not():
    small = plan(1000, 32, 256, 4, ahead=2)
    assert small.batches == 4 * 256 * 1000 * 4
    assert plan(1000, 64, 256, 4, ahead=2).players == 2 * small.players
    assert plan(1000, 32, 256, 4, ahead=2, passes=5).players > small.players
    assert small.total == small.batches + small.players + small.features
    assert str(small).startswith("about 4.")


def test_a_run_that_cannot_fit_is_refused_before_it_reads(monkeypatch):
    there = available()
    assert there is None or there > 2**20
    monkeypatch.setattr(planning, "available", lambda: 2**20)
    with pytest.raises(MemoryError, match=r"smaller batch_size \(it is 256\).*float32"):
        refuse_unless_fits(plan(1000, 32, 256, 4, ahead=2), 256, 32)

    read = []

    class Noting:
        def batch(self, at):
            read.append(at)

    with pytest.raises(MemoryError, match="batch_size"):
        EigenGamePCA(4).fit(np.ones((4000, 400), np.float32), progress=Noting())
    assert read == []
