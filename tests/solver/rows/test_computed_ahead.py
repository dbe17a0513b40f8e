"""Batches that a device computes: each is started before the update of the one before it, into a free buffer."""

import jax.numpy as jnp
import numpy as np
import pytest

from eigengame._system.read_ahead import one_ahead
from eigengame.solver.passes import passes
from eigengame.solver.passes.passes import SourcePasses
from eigengame.solver.rows.batches import Batches
from eigengame.sources import DEVICE_BUFFERS, Block, Source, SourceError

COUNT, ROWS, D = 8, 4, 3


class Computed(Source):
    """Rows whose value is the number of their block, logged when they are computed."""

    name, shape, dtype = "computed", (COUNT * ROWS, D), np.dtype("float32")
    on_device, slow, again = True, False, True

    def __init__(self, log, fails_at=None):
        self.log, self.fails_at = log, fails_at

    def blocks(self, start, size):
        for number in range(start // ROWS, COUNT):
            if number == self.fails_at:
                raise SourceError("the network failed")
            self.log.append(("computed", number))
            yield Block(jnp.full((size, D), number, jnp.float32))


def folded(log, monkeypatch, **options):
    """Return the number of blocks that were updated; log when updates are started and known to be complete."""
    real = passes._wait_for

    def wait_for(carry):
        real(carry)
        if carry is not None and int(carry) >= 0:
            log.append(("complete", int(carry)))

    def step(carry, rows, count):
        number = int(rows.values[0, 0])
        assert number == carry + 1
        log.append(("updated", number))
        return jnp.asarray(number)

    monkeypatch.setattr(passes, "_wait_for", wait_for)
    reading = SourcePasses(Batches(Computed(log, **options), ROWS, np.dtype("float32")))
    return int(reading.fold(step, jnp.asarray(-1), task="sum"))


def test_the_next_batch_is_computed_before_an_update_and_into_a_buffer_that_no_update_reads(
    monkeypatch,
):
    log = []
    assert folded(log, monkeypatch) == COUNT - 1
    for number in range(COUNT - 1):
        assert log.index(("computed", number + 1)) < log.index(("updated", number))
    for number in range(DEVICE_BUFFERS, COUNT):
        before = log.index(("complete", number - DEVICE_BUFFERS))
        assert before < log.index(("computed", number))


def test_an_error_in_the_next_batch_is_raised_after_the_updates_before_it(monkeypatch):
    log = []
    with pytest.raises(SourceError, match="the network failed"):
        folded(log, monkeypatch, fails_at=3)
    assert ("updated", 2) in log
    assert list(one_ahead(iter(()))) == []


def test_arrays_on_a_device_are_not_read_early(monkeypatch):
    log = []
    monkeypatch.setattr(Computed, "views", True)
    folded(log, monkeypatch)
    assert log.index(("updated", 0)) < log.index(("computed", 1))
