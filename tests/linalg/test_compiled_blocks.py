"""Compiled products of large batches: those of float64, in even chunks, without large copies."""

import numpy as np
import pytest

from eigengame._system.aligned import AlignedCopies, is_aligned
from eigengame._system.reused_memory import ReusedMemory
from eigengame.linalg import compiled_blocks
from eigengame.linalg.compiled_blocks import chunk_length, compiled_sums

M, D, B = 250, 48, 5


def problem(seed):
    rng = np.random.default_rng(seed)
    rows, block = (rng.standard_normal(shape).astype("float32") for shape in ((M, D), (B, D)))
    return rows, block, rng.standard_normal(B).astype("float32")


def unaligned(values):
    """A copy of an array at an address that JAX cannot use."""
    room = np.empty(values.size + 17, values.dtype)
    begin = (-room.ctypes.data % 64) // 4 + 1
    found = room[begin : begin + values.size].reshape(values.shape)
    found[:] = values
    assert not is_aligned(found)
    return found


@pytest.mark.parametrize("rows_of_chunk", [250, 125, 84, 7])
@pytest.mark.parametrize("kind", ["level", "no level", "unaligned"])
def test_sums_are_those_of_float64(rows_of_chunk, kind):
    rows, block, level = problem(rows_of_chunk)
    rows = unaligned(rows) if kind == "unaligned" else rows
    given = None if kind == "no level" else level
    found = compiled_sums(rows, block, given, rows_of_chunk, ReusedMemory())
    scores = rows.astype("float64") @ block.T - (0 if given is None else given)
    np.testing.assert_allclose(found.images, scores.T @ rows, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.along, scores.sum(axis=0), rtol=1e-5, atol=1e-4)
    assert found.parts == -(-M // rows_of_chunk)
    assert found.images.dtype == found.along.dtype == np.float64
    found.images[0] = 0  # sums of further batches are added in place


def test_chunks_are_added_in_float64():
    """Sums over all rows in float32 would lose the first row."""
    rows = np.zeros((64, 16), "float32")
    rows[:, 0] = 1
    rows[0, 1], rows[32:, 1] = 1e-4, 4096.0
    block = np.eye(16, dtype="float32")[:2]
    found = compiled_sums(rows, block, None, 1, ReusedMemory())
    exact = block.astype("float64") @ rows.T.astype("float64") @ rows.astype("float64")
    np.testing.assert_array_equal(found.images, exact)


def test_rows_that_were_added_do_not_count_again():
    rows, block, level = problem(0)
    whole = compiled_sums(rows, block, level, M, ReusedMemory())
    for length in (249, 200, 126):  # the last chunk overlaps the first one
        found = compiled_sums(rows, block, level, length, ReusedMemory())
        np.testing.assert_allclose(found.images, whole.images, rtol=1e-5, atol=1e-4)


def test_chunks_are_even():
    rows = np.zeros((3000, 128), "float32")
    assert chunk_length(rows, 1024) == 1000
    assert chunk_length(rows[:10], 1024) == 10


def test_large_chunks_are_those_of_memory_maps(monkeypatch, tmp_path):
    """Results do not depend on the address of an array, which differs from run to run."""
    monkeypatch.setattr(compiled_blocks, "MOST_BYTES", 1000)
    rows = AlignedCopies().aligned(np.ones((3000, 128), "float32"))
    assert is_aligned(rows)
    assert chunk_length(rows, 1024) == chunk_length(unaligned(rows), 1024) == 0
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for view in (mapped, np.asarray(mapped), mapped[:]):
        assert chunk_length(view, 1024) == 1000
    # Rows that begin or end elsewhere than at aligned addresses.
    assert chunk_length(np.asarray(mapped).reshape(-1)[4:-124].reshape(-1, 128), 1024) == 0
    np.save(tmp_path / "rows.npy", rows[:, :121])
    assert chunk_length(np.load(tmp_path / "rows.npy", mmap_mode="r"), 1024) == 0
