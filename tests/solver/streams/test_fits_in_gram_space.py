"""Fits that keep to Gram space, as a GPU makes them, here by plain products: the same as any other fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import eigengame as eg
from eigengame.linalg import offload as on_host
from eigengame.metrics import angular_error
from eigengame.solver.planning import make_plan, memory
from eigengame.solver.planning.options import Options
from tests.game_pca import game_pca

N, D, BATCH, K = 96, 60, 16, 4


@pytest.fixture
def source():
    """A network of one layer, whose activations fall off in strength."""
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(8, D)) * 0.6 ** np.arange(8)[:, None]).astype(np.float32)
    inputs = rng.normal(size=(N, 8)).astype(np.float32) + 0.3

    def network(x):
        return jnp.matmul(x, weights, precision="highest")

    batches = [inputs[begin : begin + BATCH] for begin in range(0, N, BATCH)]
    return eg.activations(network, batches, dtype="bfloat16")


@pytest.mark.parametrize(("center", "hosted"), [(True, False), (False, False), (True, True)])
def test_a_fit_that_keeps_to_gram_space_is_the_fit(source, center, hosted, monkeypatch):
    options = {"center": center, "algorithm": "remembered", "batch_size": BATCH, "random_state": 0}
    plans = []

    class Noting:
        def plan(self, plan):
            plans.append(plan)

        def batch(self, at):
            pass

    traced, played = [], eg.algorithms.Remembered._update_coordinates
    monkeypatch.setattr(
        eg.algorithms.Remembered,
        "_update_coordinates",
        lambda *given: traced.append(1) or played(*given),
    )
    usual = game_pca(K, **options).fit(source)
    monkeypatch.setattr(make_plan, "kernels_fit", lambda wide, rows: True)
    if hosted:
        # Blocks that do not divide the features, and a device with room for little more than the rows.
        monkeypatch.setattr(on_host, "BLOCK", 25)
        monkeypatch.setattr(memory, "BLOCK", 25)
        monkeypatch.setattr(jax, "default_backend", lambda: "other")
        monkeypatch.setattr(memory, "available", lambda: 24_000)
    pca = game_pca(K, **options).fit(source, progress=Noting())
    assert [one.space for one in plans] == ["gram on the host" if hosted else "gram with overlaps"]
    # Not once for each batch: what is small is compiled, where players are on the host too.
    assert len(traced) <= 2
    # Eight directions in all, and twelve players: a memory of everything, whatever the start.
    np.testing.assert_allclose(pca.explained_variance_, usual.explained_variance_, rtol=1e-4)
    assert angular_error(pca.components_, usual.components_).max() < 1e-3
    np.testing.assert_allclose(pca.mean_, usual.mean_, atol=1e-5)
    np.testing.assert_allclose(pca.var_, usual.var_, rtol=1e-4)
    assert pca.n_samples_seen_ == N


def test_players_and_mean_together_are_what_kernels_take():
    options = Options(center=True)
    assert make_plan._extra_for_kernels(options, 32).players(32, 10**6) + 1 == 48
    assert make_plan._extra_for_kernels(options, 16).players(16, 10**6) + 1 == 32
    # More than kernels take, and a number that was given, stay as they are.
    assert make_plan._extra_for_kernels(options, 60) == options
    assert make_plan._extra_for_kernels(Options(extra=3), 8).extra == 3
