"""Games on eight simulated devices are the games on one, and devices exchange what the cost model tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eigengame.algorithms import REGISTRY
from eigengame.sharding.cost import EXCHANGES, best_layout, bytes_exchanged
from eigengame.sharding.layout import Layout, layout_of, mesh_of
from eigengame.sharding.placement import ONE_DEVICE, placement_of

ROOT = Path(__file__).parents[2]


def on_eight_devices(*parts):
    """Return what the script beside this file finds."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.sharding.on_eight_devices", *parts],
        cwd=ROOT,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT / "src"),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
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
    return on_eight_devices("played", "fitted", "streamed", "moved", "moved by oja", "memory")


def test_algorithms_play_the_same_game_on_a_mesh(seen):
    """In float64, up to signs; 5 players, 37 features and 50 rows, which divide by nothing."""
    assert_the_same_games(seen["played"])


@pytest.mark.slow
def test_every_algorithm_plays_the_same_game_on_every_axis_and_on_all_of_them():
    found = on_eight_devices("played on every axis")["played on every axis"]
    assert {name.split()[0] for name in found} == set(REGISTRY)
    assert_the_same_games(found)


def assert_the_same_games(angles):
    # The sketch shrinks when it is full, and rows of zeros fill it too: another sketch, equally good.
    # A memory of 50 rows in 13 players: a change of the data by 1e-15 moves the last of them by 6e-7.
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
def test_sparse_rows_and_stopped_fits_are_at_home_on_a_mesh():
    found = on_eight_devices("sparse and resumed")["sparse and resumed"]
    # One pass over few rows is not converged, and rounding grows in it.
    assert found["sparse"] < 1e-3
    assert found["resumed to the same bits"]


def assert_the_same_fits(fits):
    for kind, found in fits.items():
        assert found["shape"] == [5, 37], kind
        # One pass over few rows is not converged: data changed by 1e-15 of itself moves it by 1.6e-5 too.
        assert found["angle"] < (1e-4 if kind == "one pass" else 1e-5), (kind, found)
        assert found["variance"] < (1e-5 if kind == "one pass" else 1e-8), (kind, found)
        assert found["mean"] < 1e-12, (kind, found)
        assert found["goes on"] < 1e-4, (kind, found)


def test_devices_exchange_what_the_cost_model_tells(seen):
    """Compiled programs: to two parts in a hundred, whatever is shared."""
    for name, moved in seen["moved"].items():
        assert abs(moved["bytes"] - moved["told"]) <= 0.02 * moved["told"], (name, moved)
    for update in ("score", "gradient"):
        for axis in ("features", "data"):
            assert seen["moved"][f"{update} {axis}=8"]["count"] == EXCHANGES[update][axis]


def test_devices_that_share_rows_add_up_directions_once(seen):
    """16 players of 4096 features in float32, and little beside them."""
    assert seen["moved"]["score data=8"]["bytes"] < 1.1 * 16 * 4096 * 4


def test_players_are_orthonormalised_where_their_features_are(seen):
    """8 players of 4096 features, in float32: overlaps travel, players do not."""
    assert seen["moved by oja"] < 0.05 * 8 * 4096 * 4


def test_feature_shards_move_nothing_of_the_data_s_width():
    wide = bytes_exchanged(Layout(features=8), 128, 32, 20_000_000)
    assert wide == bytes_exchanged(Layout(features=8), 128, 32, 20_000)
    # The paper's broadcast: every player to all, every update.
    assert wide < 20_000_000 * 32 * 4 / 50_000


def test_memory_of_a_device_falls_with_the_devices_that_share_features(seen):
    """From the compiler's own analysis of an update at d = 20 million, k = 32; nothing is allocated."""
    one = seen["memory"]["1"]
    for features in (2, 8):
        assert seen["memory"][str(features)] == pytest.approx(one / features, rel=0.01)


@pytest.mark.parametrize(
    "asked",
    [{"data": 2, "features": 4}, "data=2,features=4", " features=4, data=2", Layout(2, 1, 4)],
)
def test_a_layout_is_understood_in_any_of_its_forms(asked):
    assert layout_of(asked) == Layout(data=2, features=4)
    assert str(layout_of(asked)) == "data=2,features=4"


@pytest.mark.parametrize(
    "asked", ["data", "data=x", {"rows": 2}, {}, 3, {"data": 0}, "", {"data": 2.5}]
)
def test_a_layout_that_cannot_be_meant_is_refused_with_an_example(asked):
    with pytest.raises(ValueError, match=r"mesh"):
        layout_of(asked)


def test_more_devices_than_there_are_says_how_many_there_are():
    with pytest.raises(
        ValueError, match=r"takes 4096 devices and there are \d+: give a smaller mesh"
    ):
        mesh_of({"data": 4096})


def test_auto_shares_features_of_wide_data_and_rows_of_tall_and_wastes_nobody():
    assert best_layout(8, m=1024, players=32, d=1_000_000) == Layout(features=8)
    assert best_layout(8, m=65536, players=32, d=256).data > 1
    assert best_layout(1, m=10, players=2, d=5) == Layout()
    # Five features cannot keep eight devices busy, and eight rows cannot either.
    assert best_layout(8, m=8, players=2, d=5) == Layout()
    assert placement_of(None) is ONE_DEVICE
    assert placement_of("auto", 1024, 8, 10_000).layout.devices == 1  # there is one here
