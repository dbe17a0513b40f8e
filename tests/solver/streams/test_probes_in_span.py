"""Products of probes by the kernels of an update (interpreted without a GPU), compared with float64."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame.algorithms import Remembered
from eigengame.game.rows import DenseRows
from eigengame.linalg import wide
from eigengame.linalg.kernels import gram_space, passes
from eigengame.solver.planning.plan import CARRIED
from eigengame.solver.streams import carried_overlaps
from eigengame.solver.streams.probe_products import probe_error
from eigengame.solver.streams.streaming import MODES

ROWS, D, K, PROBES = 16, 2176, 5, 16
INTERPRET = jax.default_backend() != "gpu"


@pytest.fixture
def kernels(monkeypatch):
    """Use kernels on any device."""
    monkeypatch.setattr(wide, "kernels_fit", lambda wide, rows: True)
    used = (gram_space, "inner_products"), (gram_space, "combined"), (gram_space, "scores")
    for module, name in (*used, (passes, "added")):
        monkeypatch.setattr(module, name, partial(getattr(module, name), interpret=INTERPRET))


def batches(mean, count=4):
    rng = np.random.default_rng(0)
    strengths = np.concatenate([[9, 6, 4, 3, 2.0], np.ones(D - 5)])
    made = []
    for number in range(count):
        values = rng.normal(size=(ROWS, D)) * strengths + mean * rng.normal(size=D)
        # Two batches have padding, and one has a row of another weight.
        roots = np.ones(ROWS) if number < 2 else np.r_[np.ones(ROWS - 5), 0.5, np.zeros(4)]
        made.append((jnp.asarray(values * roots[:, None], jnp.bfloat16), roots))
    return [DenseRows(values, jnp.asarray(roots, jnp.float32)) for values, roots in made]


def played(rows, center, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setattr(carried_overlaps, "fits", lambda *_: False)
    carried_overlaps.step_with_overlaps.clear_cache()
    game, mode = Remembered(extra=0, center=center), MODES[CARRIED]
    stream = mode.begin(game, K, D, np.float32, 0, carried_overlaps.ONE_DEVICE, PROBES)
    for batch in rows:
        stream = mode.take(game, stream, batch, int(np.count_nonzero(batch.roots)))
    carried_overlaps.step_with_overlaps.clear_cache()
    return stream


def exact(rows, draws, center):
    z = np.concatenate([np.asarray(one.values, np.float64) for one in rows])
    roots = np.concatenate([np.asarray(one.roots, np.float64) for one in rows])
    mean = roots @ z / np.sum(roots**2) if center else np.zeros(D)
    z = z - roots[:, None] * mean
    return (draws @ z.T) @ z, mean


@pytest.mark.parametrize("mean", [0.0, 3.0])
@pytest.mark.parametrize("center", [True, False])
def test_products_of_probes_agree_with_float64(kernels, monkeypatch, center, mean):
    rows = batches(mean)
    stream = played(rows, center)
    draws = np.asarray(stream.probes.draws, np.float64)
    true, middle = exact(rows, draws, center)
    error = np.linalg.norm(np.asarray(stream.probes.images, np.float64) - true)
    # Probes in two parts of 8 bits: scores have a relative error of 2^-17.
    assert error < 2**-17 * np.linalg.norm(true) * (1 + mean)
    assert error < probe_error(stream)
    plain = played(rows, center, monkeypatch)
    ours, theirs = stream.probes, plain.probes
    assert int(ours.longest) == int(theirs.longest)
    assert int(ours.chain) == int(theirs.chain)
    np.testing.assert_allclose(ours.largest, theirs.largest, rtol=1e-3)
    assert ours.largest >= theirs.largest * (1 - 1e-6)
    assert ours.unit == theirs.unit
    np.testing.assert_array_equal(stream.state.memory.players, plain.state.memory.players)
    if center:
        # Carried along, not measured.
        np.testing.assert_allclose(
            stream.overlaps[-1, K + 1 :], draws @ middle, atol=1e-4 * np.linalg.norm(middle) + 1e-3
        )
