"""Computations on eight simulated devices for `test_mesh.py`; prints their results as JSON.

JAX reads the flag that simulates devices once, when it starts. So the tests run this script in its own process.
"""

import contextlib
import json
import re
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from eigengame import make, metrics, play
from eigengame._play import _update
from eigengame.algorithms import REGISTRY, FrequentDirections, Remembered, Sequential
from eigengame.game.rows import as_rows
from eigengame.game.sphere import random_players
from eigengame.sharding.cost import bytes_exchanged
from eigengame.sharding.layout import Layout, make_mesh
from eigengame.sharding.own_batches import own_batches_placement
from eigengame.sharding.placement import Placement, choose_placement
from eigengame.sources.device_array import DeviceArray
from tests.game_pca import game_pca
from tests.sharding.collectives import bytes_moved, collectives

K, D, M = 5, 37, 50
"""Not divisible by two or eight."""

AXES = {
    "data": {"data": 8},
    "players": {"players": 5},
    "features": {"features": 8},
    "two of each": {"data": 2, "players": 2, "features": 2},
}
FEW = ("remembered", "alpha", "sequential", "oja", "frequent_directions")
"""Algorithms with different states: memory, players, turns, a QR decomposition, a sketch."""

X = np.random.default_rng(0).normal(size=(M, D)) / np.arange(1, D + 1)


def algorithm(name):
    if name == "sequential":
        return Sequential(tuple(np.linspace(60, 10, K + 1)), cap=2)
    return FrequentDirections(10) if name == "frequent_directions" else make(name)


def played(names, axes):
    """Return the angles between results of three rounds on a mesh and on one device."""
    found = {}
    for name in names:
        game = algorithm(name)
        alone = play(game, X, k=K, rounds=3).components
        for axis in axes:
            shared = play(game, X, k=K, rounds=3, mesh=AXES[axis]).components
            found[f"{name} {axis}"] = float(
                metrics.angular_error(np.asarray(shared), np.asarray(alone)).max()
            )
    return found


FITS = {
    "refined": {"tol": 1e-3},
    "one pass": {},
    "covariance": {"algorithm": "auto", "extra": 30},
    "oja": {"algorithm": "oja"},
}


def fitted(kinds):
    """Return the differences between estimators on a mesh and on one device."""
    x = np.random.default_rng(1).normal(size=(301, D)) / np.arange(1, D + 1) + 1
    found = {}
    for kind in kinds:
        alone, shared = (
            game_pca(K, batch_size=M, random_state=0, mesh=mesh, **FITS[kind]).fit(x)
            for mesh in (None, {"data": 2, "features": 4})
        )
        found[kind] = {
            "angle": apart(shared, alone),
            "variance": float(
                np.abs(shared.explained_variance_ / alone.explained_variance_ - 1).max()
            ),
            "mean": float(np.abs(shared.mean_ - alone.mean_).max()),
            "shape": list(shared.components_.shape),
            "certified": shared.certificate_.kind,
            "certified again": shared.certify(x).kind,
            "continued": apart(shared.set_params(mesh=None).partial_fit(x), alone.partial_fit(x))
            if kind == "one pass"
            else 0.0,
        }
    return found


def streamed():
    """How far a stream on a mesh is from one on one device; batches that nothing divides."""
    x = np.random.default_rng(1).normal(size=(301, D)) / np.arange(1, D + 1) + 1
    alone, shared = (
        game_pca(K, random_state=0, dtype="float64", mesh=mesh)
        for mesh in (None, {"data": 2, "features": 4})
    )
    for part in np.array_split(x, 4):
        alone.partial_fit(part)
        shared.partial_fit(part)
    return {
        "angle": apart(shared, alone),
        "mean": float(np.abs(shared.mean_ - alone.mean_).max()),
        "rows": shared.n_samples_seen_,
        "shape": list(shared.components_.shape),
    }


def apart(one, other):
    return float(metrics.angular_error(one.components_, other.components_).max())


def abstract_arguments(place, algorithm, m, k, d):
    """Return rows and state in float32 as shapes without data, to compile an update ahead of time."""

    def array(shape, spec, dtype=jnp.float32):
        sharding = None if place.mesh is None else NamedSharding(place.mesh, spec)
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    def leaf(one, axes):
        return array(place._leaf_shape(one, axes), place._leaf_spec(one, axes), one.dtype)

    rows = place.dense(
        array((place.height(m), place.width(d)), P("data", "features")),
        array((place.height(m),), P("data")),
    )
    state = jax.eval_shape(algorithm.init, jax.ShapeDtypeStruct((k, d), jnp.float32))
    return rows, jax.tree.map(leaf, state, state.axes())


def compiled(game, layout, m, k, d):
    """Return one compiled update, without allocating its arrays."""
    place = Placement(make_mesh(layout))
    return _update.lower(game, place, *abstract_arguments(place, game, m, k, d)).compile()


def moved():
    """Return the bytes that compiled updates exchange, and those that the cost model predicts."""
    found, (m, k, d) = {}, (64, 8, 4096)
    rows, columns, both = Layout(data=8), Layout(features=8), Layout(data=2, features=4)
    layouts = {"score": (rows, columns, both), "gram": (both,), "gradient": (rows, columns)}
    for update, layout in ((one, layout) for one, some in layouts.items() for layout in some):
        gradient = update == "gradient"
        game = make("alpha") if gradient else Remembered(extra=8, space=update, center=True)
        program = compiled(game, layout, m, k, d)
        found[f"{update} {layout}"] = {
            "bytes": bytes_moved(program),
            "count": len(collectives(program)),
            "predicted": bytes_exchanged(layout, m, k if gradient else k + 8, d, update=update),
        }
    return found


def moved_by_oja():
    """Return the bytes that devices exchange to orthonormalise players when they share features."""
    return bytes_moved(compiled(make("oja"), Layout(features=8), 64, 8, 4096))


def memory():
    """Return the bytes of a device for an update at the paper's width, by the number of devices."""
    found = {}
    for features in (1, 2, 8):
        analysis = compiled(
            Remembered(extra=0, space="gram"), Layout(features=features), 128, 32, 20_000_000
        ).memory_analysis()
        found[str(features)] = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes
    return found


OWN = {"players": {"players": 4}, "all axes": {"data": 2, "players": 2, "features": 2}}
"""Meshes for one batch for each of four players; rows and features are padded on the second."""


def own_batches():
    """Return how batches of single players are placed, what devices exchange, and how far results are apart."""
    found = {}
    x = np.random.default_rng(2).normal(size=(4, M + 1, D)) / np.arange(1, D + 1)
    for lag in (1, 2):
        game = make("alpha", step_size=1e-2, own_batches=True, lag=lag)
        alone = play(game, x, k=4, rounds=5)
        for name, mesh in OWN.items():
            shared = play(game, x, k=4, rounds=5, mesh=mesh)
            found[f"{name}, lag {lag}"] = {
                "components": float(np.abs(shared.components - alone.components).max()),
                "utilities": float(np.abs(shared.info.utilities - alone.info.utilities).max()),
            } | own_batches_compiled(game, mesh)
    return found


def own_batches_compiled(game, mesh):
    """Return the parts of rows (8, 64, 512) on devices, before and in a compiled update, and its collectives."""
    place, (k, m, d) = choose_placement(mesh), (8, 64, 512)
    x = np.random.default_rng(3).normal(size=(k, m, d)).astype(np.float32)
    rows = place.rows(as_rows(x))
    state = place.state(game.init(random_players(0, k, d, "float32")))
    program = _update.lower(game, place, rows, state).compile()
    arguments = program.as_text().splitlines()[0].split("->")[0]
    return {
        "shards": sorted({shard.data.shape for shard in rows.values.addressable_shards}),
        "arguments": re.findall(r"f32\[(\d+,\d+,\d+)\]", arguments),
        "bytes": [one.bytes for one in collectives(program)],
        "players": 4 * k * d,
        "rows": x.nbytes // place.layout.devices,
    }


def own_batches_in_place():
    """Return results for batches that are on their devices already, for "auto", and for uneven numbers."""
    x = np.random.default_rng(2).normal(size=(4, M + 1, D)) / np.arange(1, D + 1)
    game, mesh = make("alpha", step_size=1e-2, own_batches=True), {"players": 4}
    split = NamedSharding(make_mesh(mesh), P("players"))
    parts = [
        jax.device_put(one[None], device) for one, device in zip(x, jax.devices(), strict=False)
    ]
    placed = jax.make_array_from_single_device_arrays(x.shape, split, parts)
    alone = play(game, x, k=4, rounds=5).components
    found = {
        name: float(np.abs(play(game, rows, k=4, rounds=5, mesh=one).components - alone).max())
        for name, rows, one in (("placed", placed, mesh), ("auto", x, "auto"))
    }
    stay = choose_placement(mesh).rows(as_rows(placed)).values
    found["same buffers"] = [
        one.data.unsafe_buffer_pointer() == other.data.unsafe_buffer_pointer()
        for one, other in zip(stay.addressable_shards, placed.addressable_shards, strict=True)
    ]
    found["auto layout"] = own_batches_placement("auto", (6, 5, 9)).layout
    try:
        play(game, x, k=4, rounds=1, mesh={"players": 3})
    except ValueError as error:
        found["uneven"] = str(error)
    return found


class InterruptsFourthBatch:
    """Progress callback that interrupts a fit in its fourth batch."""

    seen = 0

    def batch(self, at):
        self.seen += 1
        if self.seen == 4:
            raise KeyboardInterrupt
        return False


def sparse_and_resumed():
    """Compare sparse rows on a mesh with one device, and a resumed fit with an uninterrupted one."""
    rows = scipy.sparse.random(301, D, density=0.3, random_state=0, format="csr")
    mesh, options = {"data": 2, "features": 4}, {"batch_size": M, "random_state": 0}
    alone, shared = (game_pca(K, mesh=one, **options).fit(rows) for one in (None, mesh))
    x = rows.toarray()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(KeyboardInterrupt):
            game_pca(K, mesh=mesh, **options).fit(
                x, checkpoint=folder, progress=InterruptsFourthBatch()
            )
        resumed = game_pca(K, mesh=mesh, **options).fit(x, checkpoint=folder)
    complete = game_pca(K, mesh=mesh, **options).fit(x)
    same = bool((resumed.components_ == complete.components_).all())
    return {"sparse": apart(shared, alone), "resumed bit for bit": same}


def committed_to_one_device():
    """Return the angle between fits on a mesh and on one device, of rows on the first device with a far mean."""
    rows = np.tile(X, (200, 1)).astype(np.float32) + 500
    there = DeviceArray(jax.device_put(rows, jax.devices()[0]))
    options = {"random_state": 0, "tol": 1e-2}
    shared = game_pca(K, mesh={"data": 2, "features": 4}, **options).fit(there)
    alone = game_pca(K, **options).fit(rows)
    return float(metrics.angular_error(shared.components_, alone.components_).max())


PARTS = {
    "committed": committed_to_one_device,
    "sparse and resumed": sparse_and_resumed,
    "played": lambda: played(FEW, ["two of each"]),
    "played on every axis": lambda: played(REGISTRY, AXES),
    "fitted": lambda: fitted(["refined"]),
    "fitted by every route": lambda: fitted(FITS),
    "streamed": streamed,
    "moved": moved,
    "moved by oja": moved_by_oja,
    "memory": memory,
    "own batches": own_batches,
    "own batches in place": own_batches_in_place,
}

if __name__ == "__main__":
    print(json.dumps({name: PARTS[name]() for name in sys.argv[1:]}))
