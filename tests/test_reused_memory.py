"""Memory of blocks: used again only when nothing can see it any more."""

import jax
import numpy as np

from eigengame import as_source
from eigengame._system.reused_memory import MOST, ReusedMemory


def test_memory_is_used_again_when_nothing_refers_to_it():
    memory = ReusedMemory()
    place = memory.empty((8, 4), np.float32).ctypes.data
    assert place % 64 == 0
    assert memory.empty((4, 4), np.float32).ctypes.data == place


def test_memory_that_a_view_or_jax_uses_is_not_used_again():
    memory = ReusedMemory()
    for keep in (
        lambda one: one[2:3],
        lambda one: one.reshape(-1).view(np.uint8)[5:],
        memoryview,
        jax.device_put,
    ):
        one = memory.empty((64, 4), np.float32)
        one[:] = 7
        kept = keep(one)
        before = bytes(np.asarray(kept).tobytes())
        del one
        others = [memory.empty((64, 4), np.float32) for _ in range(MOST + 2)]
        for other in others:
            other[:] = 0
        assert np.asarray(kept).tobytes() == before
        del others, kept


def test_blocks_of_a_file_are_not_overwritten_by_later_blocks(tmp_path):
    rows = np.random.default_rng(0).standard_normal((512, 16)).astype("float32")
    np.save(tmp_path / "x.npy", rows)
    np.savez(tmp_path / "x.npz", rows)
    for name in ("x.npy", "x.npz"):
        kept = [block.values[::2] for block in as_source(tmp_path / name).blocks(0, 8)]
        np.testing.assert_array_equal(np.concatenate(kept), rows[::2])


def test_a_pass_over_a_file_uses_few_pieces_of_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((512, 16)))
    places = {block.values.ctypes.data for block in as_source(tmp_path / "x.npy").blocks(0, 8)}
    assert len(places) <= MOST
