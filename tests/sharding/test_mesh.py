"""Results on eight simulated devices equal those on one, and the cost model predicts the communication."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eigengame.algorithms import REGISTRY
from eigengame.sharding.cost import EXCHANGES, best_layout, bytes_exchanged
from eigengame.sharding.layout import Layout, make_mesh, parse_layout
from eigengame.sharding.own_batches import own_batches_placement
from eigengame.sharding.placement import ONE_DEVICE, choose_placement

ROOT = Path(__file__).parents[2]


def on_eight_devices(*parts):
    """Return the results of `on_eight_devices.py`."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.sharding.on_eight_devices", *parts],
        cwd=ROOT,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT / "src"),
            "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8",
            "JAX_ENABLE_X64": "1",
            "JAX_PLATFORMS": "cpu",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def seen():
    return on_eight_devices(
        "played",
        "fitted",
        "streamed",
        "moved",
        "moved by oja",
        "memory",
        "own batches",
        "own batches in place",
    )


def test_algorithms_play_the_same_game_on_a_mesh(seen):
    """In float64, up to signs, with 5 players, 37 features and 50 rows, which no layout divides."""
    assert_the_same_games(seen["played"])


@pytest.mark.slow
def test_every_algorithm_plays_the_same_game_on_every_axis_and_on_all_of_them():
    found = on_eight_devices("played on every axis")["played on every axis"]
    assert {name.split()[0] for name in found} == set(REGISTRY)
    assert_the_same_games(found)


def assert_the_same_games(angles):
    # Padding rows of zeros also fill the sketch, so it shrinks at other times: another sketch, equally good.
    # Memory of 50 rows in 13 players: a change of the data by 1e-15 moves the last player by 6e-7.
    most = {"frequent_directions": 0.5, "remembered": 1e-5}
    for name, angle in angles.items():
        assert angle < most.get(name.split()[0], 1e-7), name


def test_the_estimator_finds_the_same_on_a_mesh(seen):
    assert seen["fitted"]["refined"]["certified"] == "certified"
    assert_the_same_fits(seen["fitted"])


def test_a_stream_is_the_same_on_a_mesh(seen):
    found = seen["streamed"]
    assert (found["rows"], found["shape"]) == (301, [5, 37])
    # One pass over few rows is not converged: data changed by 1e-15 of itself moves it by 1.6e-5 too.
    assert found["angle"] < 1e-4
    assert found["mean"] < 1e-12


@pytest.mark.slow
def test_every_route_finds_the_same_on_a_mesh():
    assert_the_same_fits(on_eight_devices("fitted by every route")["fitted by every route"])


@pytest.mark.slow
def test_sparse_rows_resumed_fits_and_rows_on_one_of_the_devices():
    parts = on_eight_devices("sparse and resumed", "committed")
    found = parts["sparse and resumed"]
    assert parts["committed"] < 1e-2
    # One pass over few rows is not converged, and rounding grows in it.
    assert found["sparse"] < 1e-3
    assert found["resumed bit for bit"]


def assert_the_same_fits(fits):
    for kind, found in fits.items():
        assert found["shape"] == [5, 37], kind
        # One pass over few rows is not converged: data changed by 1e-15 of itself moves it by 1.6e-5 too.
        assert found["angle"] < (1e-4 if kind == "one pass" else 1e-5), (kind, found)
        assert found["variance"] < (1e-5 if kind == "one pass" else 1e-8), (kind, found)
        assert found["mean"] < 1e-12, (kind, found)
        assert found["certified again"] == "certified", (kind, found)
        assert found["continued"] < 1e-4, (kind, found)


def test_devices_exchange_the_bytes_that_the_cost_model_predicts(seen):
    """In compiled programs, to 2 %, for every layout."""
    for name, moved in seen["moved"].items():
        assert abs(moved["bytes"] / moved["predicted"] - 1) <= 0.02, (name, moved)
    for update in ("score", "gradient"):
        for axis in ("features", "data"):
            assert seen["moved"][f"{update} {axis}=8"]["count"] == EXCHANGES[update][axis]


def test_devices_that_share_rows_sum_directions_once(seen):
    """16 players of 4096 features in float32, and at most a tenth more."""
    assert seen["moved"]["score data=8"]["bytes"] < 1.1 * 16 * 4096 * 4


def test_players_are_orthonormalised_without_gathering_them(seen):
    """8 players of 4096 features in float32: devices exchange overlaps only."""
    assert seen["moved by oja"] < 0.05 * 8 * 4096 * 4


def test_own_batches_on_a_mesh_give_the_game_of_one_device(seen):
    """In float64, with 51 rows and 37 features, which two devices do not divide."""
    for name, found in seen["own batches"].items():
        assert found["components"] < 1e-12, (name, found)
        assert found["utilities"] < 1e-12, (name, found)


def test_each_device_has_only_the_batches_of_its_players(seen):
    """8 batches of 64 rows and 512 features: on four devices, and on two along each axis."""
    for name, found in seen["own batches"].items():
        part = [2, 64, 512] if name.startswith("players") else [4, 32, 256]
        assert found["shards"] == [part], (name, found)
        assert found["arguments"] == [",".join(map(str, part))], (name, found)


def test_own_batches_are_not_exchanged_but_parents_are_once(seen):
    for name, found in seen["own batches"].items():
        # Any collective of batches would have at least the size of a device's part of them.
        assert max(found["bytes"]) < found["rows"] / 4, (name, found)
        if name.startswith("players"):
            assert found["bytes"] == [found["players"]], (name, found)


def test_own_batches_that_are_on_their_devices_stay_there(seen):
    found = seen["own batches in place"]
    assert found["placed"] < 1e-12
    assert found["same buffers"] == [True] * 4


def test_auto_puts_own_batches_on_as_many_devices_as_divide_the_players(seen):
    found = seen["own batches in place"]
    assert found["auto"] < 1e-12
    assert found["auto layout"] == [1, 6, 1]


def test_own_batches_of_players_that_the_devices_do_not_divide_are_refused(seen):
    assert seen["own batches in place"]["uneven"] == (
        "rows has shape (4, 51, 37), one batch for each player, on mesh=players=3: give a multiple of 3 batches "
        "and players, or a size of the axis players that divides 4."
    )


def test_own_batches_on_several_processes_are_refused(monkeypatch):
    monkeypatch.setattr("jax.process_count", lambda: 2)
    with pytest.raises(ValueError, match="on 2 processes: use one process"):
        own_batches_placement(None, (4, 51, 37))


def test_communication_of_feature_shards_does_not_depend_on_the_width():
    wide = bytes_exchanged(Layout(features=8), 128, 32, 20_000_000)
    assert wide == bytes_exchanged(Layout(features=8), 128, 32, 20_000)
    # The broadcast of the paper sends every player to all devices in every update.
    assert wide < 20_000_000 * 32 * 4 / 50_000


def test_memory_of_a_device_falls_with_the_devices_that_share_features(seen):
    """By the compiler's analysis of an update at d = 20 million, k = 32; nothing is allocated."""
    one = seen["memory"]["1"]
    for features in (2, 8):
        assert seen["memory"][str(features)] == pytest.approx(one / features, rel=0.01)


@pytest.mark.parametrize(
    "mesh",
    [{"data": 2, "features": 4}, "data=2,features=4", " features=4, data=2", Layout(2, 1, 4)],
)
def test_every_form_of_a_layout_is_parsed(mesh):
    assert parse_layout(mesh) == Layout(data=2, features=4)
    assert str(parse_layout(mesh)) == "data=2,features=4"


@pytest.mark.parametrize(
    "mesh", ["data", "data=x", {"rows": 2}, {}, 3, {"data": 0}, "", {"data": 2.5}]
)
def test_invalid_layouts_are_refused_with_an_example(mesh):
    with pytest.raises(ValueError, match="mesh"):
        parse_layout(mesh)


def test_a_mesh_with_too_many_devices_is_refused():
    with pytest.raises(
        ValueError, match=r"needs 4096 devices, but there are \d+: use a smaller mesh"
    ):
        make_mesh({"data": 4096})


def test_auto_shares_features_of_wide_data_and_rows_of_tall_data():
    assert best_layout(8, m=1024, players=32, d=1_000_000) == Layout(features=8)
    assert best_layout(8, m=65536, players=32, d=256).data > 1
    assert best_layout(1, m=10, players=2, d=5) == Layout()
    # Five features or eight rows are too few for eight devices.
    assert best_layout(8, m=8, players=2, d=5) == Layout()
    assert choose_placement(None) is ONE_DEVICE
    assert (
        choose_placement("auto", 1024, 8, 10_000).layout.devices == 1
    )  # the tests run with one device
