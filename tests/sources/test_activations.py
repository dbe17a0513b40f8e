"""Activations computed by JAX: rows, fits, and errors."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, Interrupted, activations, as_source, prepare
from eigengame.algorithms import Remembered
from eigengame.game.rows import DenseRows
from eigengame.solver.planning import memory as planning
from eigengame.solver.rows.batches import Batches
from eigengame.sources import Layers
from tests.game_pca import game_pca
from tests.sources.tables import error_of, rows_read, same_fingerprint

N, BATCH, K = 1700, 256, 3
"""More than 262,144 values, so that fits run in float32; the last batch is short."""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)).astype(np.float32)
WEIGHTS = (RNG.normal(size=(6, 128)) * np.geomspace(1, 0.05, 128)).astype(np.float32)
BATCHES = [(X[i : i + BATCH], i) for i in range(0, N, BATCH)]


def network(x):
    hidden = jnp.tanh(x @ WEIGHTS)
    return {"hidden": hidden.reshape(-1, 4, 8, 4), "out": (hidden[:, :32] ** 2, hidden[:, 0])}


def naive(x):
    """Return the activations, computed row by row."""
    hidden = np.tanh(x @ WEIGHTS)
    return np.concatenate([hidden, hidden[:, :32] ** 2, hidden[:, :1]], axis=1)


def copied(source, start=0, size=16):
    return np.concatenate([np.array(block.values) for block in source.blocks(start, size)])


@pytest.fixture(scope="module")
def source():
    return activations(network, BATCHES)


@pytest.fixture(scope="module")
def pca(source):
    return game_pca(K, random_state=0).fit(source)


# ---------------------------------------------------------------- rows


def test_rows_equal_those_of_a_plain_loop_from_any_row(source):
    assert (source.shape, source.dtype, source.block_rows) == ((N, 161), np.float32, BATCH)
    for start, size in ((0, BATCH), (300, 100)):
        np.testing.assert_allclose(copied(source, start, size), naive(X)[start:], atol=1e-6)
    lengths = [len(block) for block in source.blocks(1000, 300)]
    assert lengths == [300, 300, 100]


def test_layers_are_named_by_their_paths(source):
    assert source.layers.names == ["hidden", "out.0", "out.1"]
    assert [layer.shape for layer in source.layers] == [(4, 8, 4), (32,), ()]
    assert source.cut(np.zeros((K, 161)))["hidden"].shape == (K, 4, 8, 4)
    few = activations(network, BATCHES, ["out.*"])
    np.testing.assert_allclose(copied(few, size=BATCH), naive(X)[:, 128:], atol=1e-6)
    one = activations(lambda x: x, [X])
    assert one.layers.names == ["output"]


def test_skipped_rows_are_not_computed():
    ran = []

    def watched(x):
        jax.debug.callback(lambda rows: ran.append(int(rows)), x[0, 0])
        return x

    numbers = [np.arange(i, i + 4.0)[:, None] for i in range(0, 16, 4)]
    list(activations(watched, numbers).blocks(8, 4))
    jax.effects_barrier()
    assert sorted(ran) == [8, 12]


def test_the_whole_batch_can_be_the_input():
    pairs = [{"x": X[:8], "scale": np.full(8, 2.0)}, {"x": X[8:20], "scale": np.ones(12)}]
    both = activations(lambda b: b["x"] * b["scale"][:, None], pairs, key=None)
    found = copied(both, size=5)
    np.testing.assert_allclose(found, np.concatenate([2 * X[:8], X[8:20]]))
    np.testing.assert_array_equal(copied(activations(lambda x: x, pairs, key="x")), X[:20])


def test_blocks_are_jax_arrays_of_the_given_dtype():
    half = activations(network, BATCHES, dtype="bfloat16")
    block = next(half.blocks(0, BATCH))
    assert isinstance(block.values, jax.Array)
    assert block.values.dtype == half.dtype == jnp.bfloat16
    np.testing.assert_allclose(
        np.asarray(block.values, np.float32), naive(X)[:BATCH], atol=1e-6, rtol=2**-7
    )


# ---------------------------------------------------------------- fits


def test_a_fit_equals_that_of_the_stacked_rows(source, pca):
    rows = copied(source, size=BATCH)
    same = game_pca(K, random_state=0, batch_size=BATCH).fit(rows)
    assert pca.n_samples_seen_ == N
    assert same.layers_ is None
    # Both use float32 and the same batches, so they differ by rounding only.
    np.testing.assert_allclose(pca.components_, same.components_, atol=1e-4)
    np.testing.assert_allclose(pca.explained_variance_, same.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(pca.mean_, rows.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(pca.transform(source), pca.transform(rows), atol=1e-4)


def test_rows_in_half_precision_are_used_without_rounding():
    half = activations(network, BATCHES, dtype="bfloat16")
    batch = next(Batches(half, BATCH, np.dtype("float32"))())
    assert batch.rows.values.dtype == jnp.bfloat16
    rows = np.asarray(copied(half, size=BATCH), np.float32)
    found = game_pca(K, random_state=0).fit(half)
    same = game_pca(K, random_state=0, batch_size=BATCH).fit(rows)
    # bfloat16 values are exact in float32: the rows are the same.
    np.testing.assert_allclose(found.components_, same.components_, atol=1e-3)
    np.testing.assert_allclose(found.explained_variance_, same.explained_variance_, rtol=1e-4)
    np.testing.assert_allclose(found.var_, rows.var(axis=0), rtol=1e-3, atol=1e-5)


def test_rows_in_half_precision_give_the_rewards_of_float32():
    """Rounding is that of products in float32, also if rows are not centred."""
    rng, d = np.random.default_rng(1), 40
    players = np.linalg.qr(rng.normal(size=(d, 4)))[0].T.astype(np.float32)
    rows = jnp.asarray(rng.normal(size=(8, d)), jnp.bfloat16)
    strengths = np.array([4, 3, 2, 1], np.float32)
    game = Remembered(extra=0, space="gram")
    state = game.empty_state(jnp.asarray(players), 4)
    state = state._replace(memory=state.memory._replace(strengths=jnp.asarray(strengths)))
    found, wide = (
        game.update(DenseRows(own), state)[1] for own in (rows, rows.astype(jnp.float32))
    )
    np.testing.assert_allclose(found.rewards, wide.rewards, rtol=1e-5)


def test_further_passes_read_the_same_rows(source):
    rows = copied(source, size=BATCH).astype(np.float64)
    found = game_pca(K, random_state=0, passes=3).fit(source)
    exact = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[1][:K]
    np.testing.assert_allclose(found.singular_values_, exact, rtol=1e-4)


def test_weights_count_rows(source):
    weights = RNG.integers(0, 3, N)
    found = game_pca(K, random_state=0).fit(source, sample_weight=weights)
    rows = np.repeat(copied(source, size=BATCH), weights, axis=0)
    np.testing.assert_allclose(found.mean_, rows.mean(axis=0), atol=1e-4)
    exact = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[1][0]
    np.testing.assert_allclose(found.singular_values_[0], exact, rtol=1e-3)


def test_partial_fit_accepts_activations(source, pca):
    stream = game_pca(K, random_state=0).partial_fit(source)
    assert stream.n_samples_seen_ == N
    np.testing.assert_allclose(stream.explained_variance_, pca.explained_variance_, rtol=1e-2)


def test_a_model_keeps_its_layers(pca, source, tmp_path):
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    assert again.layers_ == pca.layers_ == source.layers
    assert again.layers_.cut(again.components_)["hidden"].shape == (K, 4, 8, 4)
    other = activations(lambda x: jnp.tile(x, (1, 27))[:, :161], [X])
    assert "layers are not those of the fit" in error_of(again.transform, other)
    assert again.transform(activations(network, BATCHES[:1], again.layers_)).shape == (BATCH, K)
    assert again.transform(as_source(naive(X))).shape == (N, K)


def test_rows_on_the_device_are_not_prepared(source):
    assert "stay on the device and cannot be prepared" in error_of(prepare, source)


def test_a_resumed_fit_is_identical(source, pca, tmp_path):
    class Stopping:
        def batch(self, at):
            if at.rows > N // 2:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        game_pca(K, random_state=0).fit(source, checkpoint=tmp_path, progress=Stopping())
    found = game_pca(K, random_state=0).fit(source, checkpoint=tmp_path)
    np.testing.assert_array_equal(found.components_, pca.components_)
    other = activations(network, BATCHES, ["hidden"])
    with pytest.raises(ValueError, match="belongs to another run"):
        game_pca(K, random_state=0).fit(other, checkpoint=tmp_path)


def test_the_digest_of_a_function_depends_on_its_program_and_constants():
    def digest(function, batches=BATCHES):
        return activations(function, batches).digest()

    def scaled(by, table):
        inner = jax.jit(lambda x: x @ table)
        return lambda x: {"a": inner(x) * by}

    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    other = table.copy()
    other[5, 1] += 1
    found = [digest(scaled(2, table)), digest(scaled(3, table)), digest(scaled(2, other))]
    later = [(X[i : i + BATCH], i) for i in range(0, N, BATCH)]
    later[3] = (later[3][0] + 1, 0)
    assert len({*found, digest(scaled(2, table), later)}) == 4
    assert found[0] == digest(scaled(2, table.copy()))

    def outside(x):
        return jax.pure_callback(np.negative, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    assert digest(outside) is None
    assert digest(scaled(2, table), iter(BATCHES)) is None


@pytest.mark.slow
def test_devices_of_a_mesh_share_activations():
    root = Path(__file__).parents[2]
    four = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    flags = {"XLA_FLAGS": four, "JAX_ENABLE_X64": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sources.activations_on_a_mesh"],
        cwd=root,
        env=os.environ | flags | {"PYTHONPATH": f"{root / 'src'}:{root}"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "all as on one device" in ran.stdout


def test_the_example_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(Path(__file__).parents[2] / "examples/activations.py"), run_name="__main__")
    assert "hidden" in capsys.readouterr().out


# ---------------------------------------------------------------- memory


def test_buffers_are_counted_as_they_are_and_nothing_on_the_host():
    planned = planning.estimate_memory((128, 1000), 64, 4, held=3, computed=2)
    assert planned.buffers == 3 * 128 * 1000 * 2
    assert (planned.batches, planned.host) == (128 * 1000 * 4, 0)
    assert "buffers 750 KiB" in str(planned)


def test_too_little_memory_is_told_before_the_first_batch(monkeypatch):
    planned = planning.estimate_memory((128, 1000), 64, 4, held=3, computed=2)
    monkeypatch.setattr(planning, "available", lambda: planned.buffers + 2**19)
    shared = -(-(planned.total - planned.buffers) // 2**19)
    said = rf"is free: use a smaller batch_size \(it is 128\), fewer or pooled.*\"features\": {shared}}}"
    with pytest.raises(MemoryError, match=said):
        planning.refuse_unless_fits(planned, 128, 64)
    with pytest.raises(MemoryError, match=r"JAX leaves 1 KiB.*XLA_PYTHON_CLIENT_MEM_FRACTION"):
        planning.refuse_unless_fits(planned, 128, 64, room=1024)

    ran = []
    watched = activations(lambda x: x @ WEIGHTS, (ran.append(1) or x for x, _ in BATCHES))
    monkeypatch.setattr(planning, "available", lambda: 1)
    with pytest.raises(MemoryError, match="fewer or pooled layers"):
        game_pca(K).fit(watched)
    assert ran == [1]  # the batch from which the shapes were taken


# ---------------------------------------------------------------- numbers that are not finite


def broken(x):
    return {"fine": x, "ratio": (x[:, :4] / (x[:, :1] - 1.0)).reshape(-1, 2, 2)}


def spoilt(row):
    x = X[:24].copy()
    x[row, 0] = 1.0
    return [x[:16], x[16:]]


def test_nan_is_refused_with_its_layer_and_row():
    with pytest.raises(ValueError, match=r"layer 'ratio' at \(0, 0\) is inf in row 18: .*skip"):
        game_pca(2, random_state=0).fit(activations(broken, spoilt(18)))


def test_rows_with_nan_are_skipped():
    source = activations(broken, spoilt(18), nonfinite="skip")
    blocks = [(np.array(b.values), b.weights) for b in source.blocks(0, 8)]
    weights = np.concatenate([w for _, w in blocks])
    np.testing.assert_array_equal(np.flatnonzero(weights == 0), [18])
    kept = np.concatenate([v for v, _ in blocks])
    assert not kept[18].any()
    found = game_pca(2, random_state=0).fit(source)
    assert found.n_samples_seen_ == 23
    np.testing.assert_allclose(found.mean_, np.delete(kept, 18, axis=0).mean(axis=0), atol=1e-6)
    assert np.isnan(found.transform(source)[18]).all()


def test_nan_can_become_zero():
    rows = copied(activations(broken, spoilt(18), nonfinite="zero"))
    np.testing.assert_array_equal(rows[18, 6:], 0)
    np.testing.assert_array_equal(rows[18, :6], spoilt(18)[1][2])
    assert rows[17, 6:].all()


# ---------------------------------------------------------------- what is refused


def test_invalid_loaders_are_refused():
    assert "the loader is empty: it ended before the first batch" in error_of(
        activations, network, []
    )
    assert "loader is a ndarray: give batches" in error_of(activations, network, X)
    assert "has 2 parts, but key=5" in error_of(activations, network, BATCHES, key=5)
    assert "has no rows" in error_of(activations, network, [X[:0]])
    uneven = [(X[:3], X[:4])]
    assert "arrays of [3, 4] rows" in error_of(activations, network, uneven, key=None)


def test_invalid_networks_are_refused():
    assert "model is a list: give a torch Module" in error_of(activations, [1], BATCHES)
    assert "these options are for torch" in error_of(activations, network, BATCHES, device="cpu")
    assert "compile=True is for torch modules: a JAX function is always compiled" in error_of(
        activations, network, BATCHES, compile=True
    )
    assert "cannot be traced by JAX" in error_of(activations, lambda x: np.tanh(x), BATCHES)
    assert "shape (6,) and dtype float32 for 2 rows" in error_of(
        activations, lambda x: x.sum(axis=0), BATCHES
    )
    assert "returns no arrays" in error_of(activations, lambda x: {}, BATCHES)


def test_unknown_options_are_refused():
    assert "'hiden' matches nothing" in error_of(activations, network, BATCHES, "hiden")
    assert "similar names are hidden" in error_of(activations, network, BATCHES, ["hiden"])
    assert "give names or patterns" in error_of(activations, network, BATCHES, [1])
    assert "dtype='float64'" in error_of(activations, network, BATCHES, dtype="float64")
    with pytest.raises(ValueError, match="nonfinite='drop': choose one of"):
        activations(network, BATCHES, nonfinite="drop")


def test_inputs_of_another_shape_are_reported_with_the_row():
    source = activations(lambda x: x, [X[:8], X[8:16, :4]])
    assert "inputs at row 8 have shapes [(4,)], but the first have [(6,)]" in error_of(
        rows_read, source
    )


def test_a_loader_that_can_be_read_once_is_read_once(source):
    once = activations(network, iter(BATCHES))
    assert (once.again, once.shape[0]) == (False, None)
    np.testing.assert_array_equal(copied(once, size=BATCH), copied(source, size=BATCH))
    assert "can be read once, and was" in error_of(once.blocks, 0, 8)


def test_the_fingerprint_distinguishes_layers(source):
    assert same_fingerprint(source, activations(network, BATCHES))
    assert not same_fingerprint(source, activations(network, BATCHES, ["hidden"]))
    assert Layers.from_facts(source.layers.facts()) == source.layers
