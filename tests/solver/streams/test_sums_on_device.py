"""Small matrices of probes that one program computes on a device, compared with those of the host."""

import numpy as np
import pytest

from eigengame.solver.planning import make_plan
from eigengame.solver.streams import probe_products as module
from eigengame.solver.streams.probe_products import begin_products, probe_error, probe_products
from tests.game_pca import game_pca

N, D, K = 900, 30, 4


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Play compiled updates, whose arrays are those of JAX."""
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)


def stream(seed=0, center=True):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, D)) / np.sqrt(np.arange(1, D + 1)) + 2
    options = {"batch_size": 300, "random_state": seed, "dtype": "float32", "center": center}
    return game_pca(K, **options).partial_fit(rows)._result.stream


@pytest.fixture
def there(monkeypatch):
    """Leave arrays of JAX where they are, as those on a device with memory of its own."""

    def stay():
        monkeypatch.setattr(module._Arrays, "stay_there", staticmethod(lambda stream: True))

    return stay


def assert_same(found, other):
    # Both turn the players to orthonormal ones, by different steps.
    for one, another in zip(found[:2], other[:2], strict=True):
        np.testing.assert_allclose(one, another, rtol=1e-6, atol=1e-6 * np.abs(another).max())
    np.testing.assert_allclose(
        found.outside @ found.outside.T,
        other.outside @ other.outside.T,
        atol=1e-6 * np.linalg.norm(other.outside) ** 2,
    )
    np.testing.assert_allclose(found.tilt, other.tilt, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("center", [True, False])
def test_one_program_computes_what_the_host_does(there, center):
    given = stream(center=center)
    on_host = probe_products(given)
    error = probe_error(given)
    there()
    for begin in (lambda stream: None, begin_products):
        begin(given)
        assert_same(probe_products(given), on_host)
        begin(given)
        assert probe_error(given) == pytest.approx(error, rel=1e-3)


def test_sums_that_were_begun_are_those_of_their_stream_only(there):
    one, other = stream(0), stream(1)
    own = probe_products(one), probe_products(other)
    there()
    begin_products(one)
    assert_same(probe_products(other), own[1])
    assert_same(probe_products(one), own[0])
    # A stream that has taken further rows has other arrays, although some are the same.
    begin_products(one)
    scaled = one._replace(moments=one.moments._replace(weight=one.moments.weight * 2))
    packed = module._ahead.packed
    looked = module._looked_once(scaled, module._Arrays.of(scaled))
    assert looked is not None
    assert module._ahead.packed is not packed
    # A second look at the same arrays takes the same sums.
    packed = module._ahead.packed
    assert module._looked_once(scaled, module._Arrays.of(scaled)) is not None
    assert module._ahead.packed is packed


def test_players_far_from_orthonormal_are_made_so_on_another_way(there):
    given = stream()
    memory = given.state.memory
    skewed = given._replace(
        state=given.state._replace(memory=memory._replace(players=memory.players * 1.2))
    )
    on_host = probe_products(skewed)
    there()
    begin_products(skewed)
    assert_same(probe_products(skewed), on_host)
