"""Aligned copies: JAX uses them without a copy, and their memory is not used again before it is released."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame._system import aligned
from eigengame._system.aligned import ALIGNMENT, LEAST_BYTES, AlignedCopies, is_aligned
from eigengame.solver.rows.batches import Batches
from eigengame.sources import as_source

ROWS, FEATURES = 1024, 512


def unaligned(seed: int) -> np.ndarray:
    """Return rows (1024, 512) in float32, 16 bytes after an aligned address."""
    room = np.empty(ROWS * FEATURES + 2 * ALIGNMENT, np.float32)
    begin = (-room.ctypes.data % ALIGNMENT + 16) // 4
    values = room[begin : begin + ROWS * FEATURES].reshape(ROWS, FEATURES)
    values[:] = np.random.default_rng(seed).standard_normal(values.shape)
    return values


def test_an_unaligned_array_is_copied_and_an_aligned_or_small_one_is_not():
    copies, values = AlignedCopies(), unaligned(0)
    assert values.nbytes >= LEAST_BYTES
    assert not is_aligned(values)
    copy = copies.aligned(values)
    assert is_aligned(copy)
    np.testing.assert_array_equal(copy, values)
    assert copies.aligned(copy) is copy
    assert copies.aligned(values[:8]).base is values.base


def test_a_very_large_array_is_not_copied(monkeypatch):
    monkeypatch.setattr(aligned, "MOST_BYTES", LEAST_BYTES)
    values = unaligned(0)
    assert AlignedCopies().aligned(values) is values


def test_little_memory_is_kept():
    copies = AlignedCopies()
    many = [copies.aligned(unaligned(seed)) for seed in range(5)]
    del many
    gc.collect()
    assert len(copies._free) == aligned.MOST_KEPT


def test_jax_uses_an_aligned_copy_as_it_is():
    copy = AlignedCopies().aligned(unaligned(0))
    assert jax.device_put(copy).unsafe_buffer_pointer() == copy.ctypes.data


def test_memory_is_used_again_once_the_copy_is_garbage():
    copies = AlignedCopies()
    first = copies.aligned(unaligned(0))
    address = first.ctypes.data
    del first
    gc.collect()
    assert copies.aligned(unaligned(1)).ctypes.data == address


@pytest.mark.parametrize(
    "hold",
    [
        lambda copy: copy,
        lambda copy: copy[3:5, ::2],
        jax.device_put,
        lambda copy: np.asarray(jax.device_put(copy)),
        lambda copy: np.asarray(jax.device_put(copy))[1:],
        lambda copy: jax.tree.leaves((jax.device_put(copy),))[0],
    ],
    ids=["copy", "view", "jax", "numpy of jax", "view of numpy of jax", "leaf"],
)
def test_memory_is_not_used_again_while_anything_refers_to_it(hold):
    copies = AlignedCopies()
    copy = copies.aligned(unaligned(0))
    held = hold(copy)
    before = np.array(held)
    del copy
    gc.collect()
    others = [copies.aligned(unaligned(seed)) for seed in range(1, 5)]
    assert len(others) == 4
    np.testing.assert_array_equal(np.asarray(held), before)


def test_memory_is_not_used_again_before_a_computation_is_done():
    copies, results = AlignedCopies(), []
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, y: jnp.tanh(y @ (x.T @ y)), x)[0])
    for seed in range(6):  # dispatched without waiting; no reference to the rows remains here
        results.append(slow(jax.device_put(copies.aligned(unaligned(seed)))))
    for seed, found in enumerate(results):
        expected = slow(jnp.array(unaligned(seed), copy=True))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_batches_that_are_kept_are_not_overwritten():
    data = np.concatenate([unaligned(seed) for seed in range(6)])
    room = np.empty(data.size + 2 * ALIGNMENT, np.float32)
    begin = (-room.ctypes.data % ALIGNMENT + 16) // 4
    given = room[begin : begin + data.size].reshape(data.shape)
    given[:] = data
    kept = [batch.rows.values for batch in Batches(as_source(given), ROWS, np.dtype(np.float32))()]
    gc.collect()
    np.testing.assert_array_equal(np.concatenate([np.asarray(one) for one in kept]), data)
