"""Arrays on a device: fits of them give what fits of the same rows on the host give.

Here the device is a CPU; `on_device` finds arrays on a GPU.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import as_source
from eigengame.metrics import angular_error
from eigengame.solver.planning import batch_size
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.rows.batches import WIDENED_BYTES, Batches
from eigengame.sources.device_array import DeviceArray, on_device
from tests.game_pca import game_pca

N, D, K = 9000, 48, 4


def data(far=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((N, D)) / np.arange(1, D + 1) + far).astype(np.float32)


def truth(rows):
    wide = np.asarray(rows, np.float64)
    wide = wide - wide.mean(axis=0)
    return np.linalg.eigh(wide.T @ wide)[1].T[::-1][:K]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("options", [{}, {"tol": 1e-2}])
def test_components_are_those_of_the_rows_on_the_device(dtype, options):
    there = jnp.asarray(data(), dtype)
    pca = game_pca(K, random_state=0, **options).fit(DeviceArray(there))
    true = angular_error(pca.components_.astype(np.float64), truth(np.asarray(there, np.float32)))
    assert (true < math.pi / 32).all()
    assert pca.certificate_.kind == "certified"
    assert (true <= pca.certificate_.angle).all()


def test_a_mean_far_from_zero_costs_no_digits():
    rows = data(far=1e4)
    pca = game_pca(K, random_state=0, tol=1e-2).fit(DeviceArray(jnp.asarray(rows)))
    true = angular_error(pca.components_.astype(np.float64), truth(rows))
    assert pca.outcome_.converged
    assert (true <= pca.certificate_.angle).all()
    np.testing.assert_allclose(pca.mean_, rows.mean(axis=0, dtype=float), rtol=1e-6)
    host = game_pca(K, random_state=0, tol=1e-2).fit(rows)
    np.testing.assert_allclose(pca.explained_variance_, host.explained_variance_, rtol=1e-4)


def test_weights_count_as_on_the_host():
    rows, weights = data(far=1e3), np.random.default_rng(1).integers(0, 3, N).astype(float)
    there = DeviceArray(jnp.asarray(rows))
    pca = game_pca(K, random_state=0, tol=1e-3).fit(there, sample_weight=weights)
    host = game_pca(K, random_state=0, tol=1e-3).fit(rows, sample_weight=weights)
    assert angular_error(pca.components_, host.components_).max() < 2e-3
    np.testing.assert_allclose(pca.explained_variance_, host.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(pca.mean_, host.mean_, rtol=1e-6)


def test_numbers_that_are_not_finite_are_named_by_their_place():
    rows = data()
    rows[70, 3] = np.inf
    with pytest.raises(ValueError, match="feature 3 is inf in row 70"):
        game_pca(K).fit(DeviceArray(jnp.asarray(rows)))


def planned_batch(source, rows=100_000, **options):
    return make_plan(Problem(source, Options(), **options), K, rows=rows).batch


def test_an_array_that_fits_is_one_batch_and_others_are_few(monkeypatch):
    there = DeviceArray(jnp.zeros((100_000, D), jnp.float32))
    assert planned_batch(there) == 100_000
    assert planned_batch(as_source(np.zeros((100_000, D)))) == batch_size.MOST_VIEWED
    assert planned_batch(as_source(np.zeros((100_000, D))), 10_000_000) <= 4096
    size = 4 * D * 100_000
    for room in (2**30, 2**26, 2**24):
        monkeypatch.setattr(batch_size, "device_bytes", lambda room=room: size + room)
        batch = planned_batch(there)
        assert 4 * D * batch <= batch_size.DEVICE_SHARE * room
        assert batch % 8 == 0
    assert batch < 100_000
    assert planned_batch(there, algorithm="oja") <= 100_000 // batch_size.LEAST_BATCHES + 8


def test_the_whole_array_is_read_without_a_copy():
    there = DeviceArray(jnp.asarray(data()))
    assert there.read(0, N) is there.data
    assert there.read(0, N - 1) is not there.data
    wide = there.in_float64().read(0, N)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(np.asarray(wide), data().astype(float))


def test_arrays_of_a_cpu_are_read_on_the_host(monkeypatch):
    rows = jnp.asarray(data())
    assert on_device(rows) is None
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert on_device(rows) is rows
    assert on_device(rows[0]) is None
    assert on_device(rows.astype(int)) is None
    assert on_device(np.asarray(rows)) is None


def test_a_fingerprint_depends_on_the_rows():
    rows = data()
    one, same = (DeviceArray(jnp.array(rows)) for _ in range(2))
    other = DeviceArray(jnp.array(rows).at[0, 0].add(1))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    assert one.digest() == same.digest() != other.digest()


@pytest.mark.parametrize("size", [1.6e38, 3e38])
def test_numbers_near_the_end_of_float32_have_their_variance(size):
    rows = data()
    rows *= np.float32(size / np.abs(rows).max())
    pca = game_pca(K, random_state=0).fit(DeviceArray(jnp.asarray(rows)))
    wide = rows.astype(float)
    np.testing.assert_allclose(pca.var_, wide.var(axis=0, ddof=1), rtol=1e-3)


def with_device_memory(monkeypatch, limit, used):
    stats = {"bytes_limit": limit, "bytes_in_use": used}
    monkeypatch.setattr("eigengame.solver.planning.memory._device_stats", lambda: stats)


def test_what_is_computed_from_a_long_batch_must_fit_into_the_device(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((100_000, D), np.float32)
    for far in (0, 500):
        there = DeviceArray(jnp.asarray(rows + np.float32(far)))
        with_device_memory(monkeypatch, 300 * 10**6, rows.nbytes)
        plan = make_plan(Problem(there, Options()), K, rows=len(rows))
        assert plan.batch == len(rows)
        assert plan.memory.batches > rows.nbytes
        assert not plan.memory.buffers
        with_device_memory(monkeypatch, 300 * 10**6, 250 * 10**6)
        with pytest.raises(MemoryError, match="use a smaller batch_size"):
            make_plan(Problem(there, Options()), K, rows=len(rows))


def test_batches_in_float64_leave_room_on_any_device():
    there = DeviceArray(jnp.zeros((2**16, 2048), jnp.float32))
    batches = Batches(there, 2**16, np.dtype(np.float32)).in_float64(None)
    assert 8 * 2048 * batches.size <= WIDENED_BYTES


def test_a_game_without_probes_has_several_batches(monkeypatch):
    there = DeviceArray(jnp.zeros((100_000, D), jnp.float32))
    plan = make_plan(Problem(there, Options(probes=0)), K, rows=100_000)
    assert -(-100_000 // plan.batch) == batch_size.LEAST_BATCHES


def test_rows_are_placed_on_the_default_device_of_the_caller():
    class Slow(DeviceArray):
        slow = True

    seen = []

    class Noting(Batches):
        def _batch(self, *one):
            seen.append(jax.config.jax_default_device)
            return super()._batch(*one)

    there = Slow(jnp.asarray(data()))
    with jax.default_device(jax.devices()[0]):
        for _ in Noting(there, 4096, np.dtype(np.float32))():
            pass
    assert seen == [jax.devices()[0]] * 3


def test_rows_on_the_device_are_transformed_there(monkeypatch):
    rows = data(far=3)
    pca = game_pca(K, random_state=0).fit(rows)
    expected = pca.transform(rows)
    monkeypatch.setattr("eigengame.estimator.fitted.on_device", lambda X: X)
    monkeypatch.setattr("eigengame.estimator.fitted.TRANSFORMED_BYTES", 4 * D * 5000)
    there = jnp.asarray(rows)
    np.testing.assert_allclose(pca.transform(there), expected, atol=2e-5)
    half = pca.transform(there.astype(jnp.bfloat16))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, atol=0.1)
    with pytest.raises(ValueError, match="features"):
        pca.transform(there[:, 1:])
    with pytest.raises(ValueError, match="feature 2 is nan in row 6000"):
        pca.transform(there.at[6000, 2].set(jnp.nan))
