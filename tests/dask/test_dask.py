"""Dask: on threads, and on a real cluster of two processes that is started once for this file."""

import os
import pickle
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from eigengame import Status, as_source, metrics, prepare, testing
from eigengame.dask import partitions as parts
from eigengame.dask.engine import DaskEngine
from eigengame.dask.merge import GameMessage, merged, unpacked
from eigengame.dask.passes import tree
from eigengame.dask.worker import PartitionFold, fold_partition
from eigengame.solver.exact.scatter import accumulate_scatter
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.rows.frame import Frame
from eigengame.solver.streams import batch_step
from eigengame.sources import SourceError
from eigengame.sources.npy import open_npy
from tests.game_pca import game_pca

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'eigengame[dask]'")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed", reason="pip install 'eigengame[dask]'")

ROOT = Path(__file__).parents[2]
N, D, K = 4000, 40, 4
"""160,000 numbers: played in float64, so that differences are the tree's and not rounding's."""

NEAR = 0.03
"""A tree of merges is another sequence of batches than one stream: both forget what falls outside the K = 12
players at other moments. One pass over these rows ends about a hundredth of a radian from the truth either way."""

SAME = 1e-9
"""The same tree, whoever computes it: float64 rounding, divided by gaps of a tenth."""


def rows(n=N, seed=0):
    """Rows with spectrum 1/i in a drawn basis, about a mean that is not zero."""
    rng = np.random.default_rng((seed, 7))
    basis = np.sqrt(testing.harmonic(D))[:, None] * testing.orthogonal(D, 1)
    return rng.normal(size=(n, D)) @ basis + np.linspace(-1, 1, D)


X = rows()
TRUTH = metrics.true_components(X - X.mean(axis=0), K)[1]
OPTIONS = Options(dtype=np.dtype("float64"))
PLAIN = OPTIONS.game()
BLOCKS = da.from_array(X, chunks=(500, 25))
"""Eight blocks of rows, and columns in two, which must be put together."""


def game(**options):
    return game_pca(K, **{"random_state": 0, "batch_size": 256} | options)


def angle(one, other=TRUTH):
    components = getattr(other, "components_", other)
    return metrics.angular_error(one.components_, components).max()


def same(one, other):
    np.testing.assert_allclose(one.components_, other.components_, atol=SAME)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=SAME)
    np.testing.assert_allclose(one.mean_, other.mean_, atol=SAME)
    assert one.n_samples_seen_ == other.n_samples_seen_


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Two processes of one thread each. They share what they compile, so that a new one starts fast."""
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_backend_optimization_level=0",  # compiling is most of their work here
    }
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: another cluster may be there
            env=environment,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def on_threads():
    return game().fit(BLOCKS)


def test_a_tree_of_blocks_finds_what_one_machine_finds(on_threads):
    alone = game().fit(X)
    assert angle(alone) < NEAR
    assert angle(on_threads) < NEAR
    assert angle(on_threads, alone) < 2 * NEAR
    np.testing.assert_allclose(on_threads.mean_, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(on_threads.var_, X.var(axis=0), rtol=1e-12)
    # What falls outside the players is not earned again: a hundredth at the most.
    np.testing.assert_allclose(on_threads.explained_variance_, alone.explained_variance_, rtol=0.01)
    assert on_threads.n_samples_seen_ == N
    assert on_threads.outcome_.status is Status.STREAM_ENDED
    # Products of the probes are added up in the tree.
    assert on_threads.certificate_.kind == "certified"
    assert (on_threads.certificate_.angle >= angle(on_threads)).any()
    np.testing.assert_allclose(
        on_threads._result.stream.probes.images, alone._result.stream.probes.images, atol=1e-8
    )


def test_a_cluster_of_processes_finds_the_same(client, on_threads):
    same(game().fit(BLOCKS, engine=client), on_threads)


def test_a_file_is_opened_by_the_workers_and_its_rows_never_leave_them(
    client, on_threads, tmp_path, monkeypatch
):
    monkeypatch.setattr(parts, "PARTITION_BYTES", 500 * D * 8)
    np.save(tmp_path / "rows.npy", X)
    graph = len(pickle.dumps(parts.split_up(as_source(tmp_path / "rows.npy"))))
    assert graph < 8000 < X.nbytes / 100
    same(game().fit(tmp_path / "rows.npy", engine=client), on_threads)


def test_a_list_of_files_is_read_file_by_file(client, tmp_path):
    quarters = np.array_split(X, 4)
    files = [tmp_path / f"{i}.npy" for i in range(4)]
    for file, quarter in zip(files, quarters, strict=True):
        np.save(file, quarter)
    found = game().fit(files, engine=client)
    same(found, game().fit(da.from_array(X, chunks=(1000, D))))
    np.save(files[2], X[:, :9])
    with pytest.raises(SourceError, match="9 dense features, but"):
        game().fit(files, engine=client)


def deadly(block, marker, block_id=None):
    """Kill the process that computes the sixth block, once."""
    if block_id[0] == 5 and not os.path.exists(marker):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_killed_worker_costs_its_blocks_and_nothing_else(client, on_threads, tmp_path):
    marker = tmp_path / "killed"
    before = client.scheduler_info(n_workers=-1)["workers"].keys()
    risky = BLOCKS.map_blocks(deadly, marker=str(marker), meta=np.empty((0, 0)))
    found = game().fit(risky, engine=client)
    assert marker.exists()
    same(found, on_threads)
    until = time.monotonic() + 20
    while client.scheduler_info(n_workers=-1)["workers"].keys() == before:
        assert time.monotonic() < until, "no worker was lost"
        time.sleep(0.05)


def passes_over(blocks):
    """Return passes of the default scheduler over a Dask array."""
    problem, engine = Problem(as_source(blocks), OPTIONS, batch_size=256), DaskEngine()
    return engine.passes(problem, engine.plan(problem, K), [])


@pytest.fixture(scope="module")
def told():
    """Return what each of eight blocks tells of its game, with its rows."""
    passes = passes_over(BLOCKS)
    begun = batch_step.begin(PLAIN, K, D, np.float64, 0)
    step = partial(batch_step.take, PLAIN)
    fold = PartitionFold.of(passes.batches, passes.partitions, PLAIN, step, begun)
    return [fold_partition(fold, block, i, Frame(), None) for i, block in enumerate(np.split(X, 8))]


def test_what_travels_is_players_strengths_and_moments(told):
    for count, state in told:
        assert count == 500
        assert isinstance(state, GameMessage)
        arrays = [one for one in state if isinstance(one, np.ndarray)]
        assert sum(one.size for one in arrays) == 12 * (D + 1) + 2 * D + 1
        # Each array's dtype and shape, and the names of classes, take about a thousand bytes.
        assert len(pickle.dumps(state)) < 8 * (12 * (D + 1) + 2 * D) + 1500


def test_a_tree_of_merges_in_float32_is_as_accurate_as_one_fit():
    """Rows whose variances are graded over 1e6, so that little falls outside the players."""
    x = np.random.default_rng(0).normal(size=(N * 8, D)) * np.geomspace(1, 1e-3, D)
    x = (x @ testing.orthogonal(D, 1)).astype("float32")
    truth = metrics.true_components((x - x.mean(axis=0, dtype="float64")).astype("float64"), K)[1]
    found = []
    for data in (x, da.from_array(x, chunks=(1000, D))):
        pca = game_pca(K, extra=20, random_state=0, batch_size=1000).fit(data)
        assert pca._result.options.dtype == np.float32
        found.append(metrics.angular_error(pca.components_.astype("float64"), truth).max())
    # Twice the angle of one fit, and a hundred roundings of float32 over relative gaps of a quarter.
    assert found[1] <= 2 * found[0] + 1e-5


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_merges_does_not_matter(told, seed):
    """Any tree, any order of its leaves: within what one pass is off by."""
    rng, waiting = np.random.default_rng(seed), [unpacked(PLAIN, one) for _, one in told]
    while len(waiting) > 1:
        rng.shuffle(waiting)
        waiting.append(merged(PLAIN, waiting.pop(), waiting.pop()))
    memory, moments = waiting[0].state.memory, waiting[0].moments
    players = np.asarray(memory.players)
    assert waiting[0].rows == N
    assert metrics.angular_error(players[:K], TRUTH).max() < NEAR
    np.testing.assert_allclose(players @ players.T, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(memory.mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.scatter, N * X.var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_a_tree_has_every_leaf_once_and_in_order(count):
    leaves = [str(i) for i in range(count)]
    top = tree(lambda one, other: f"{one} {other}", leaves)
    assert len(top) == min(count, 2)
    assert " ".join(top).split() == leaves


def test_further_passes_are_trees_of_sums_and_certificates_hold(client):
    heard = []

    class Listener:
        def batch(self, at):
            heard.append((at.task, at.number, at.rows, at.ended))

    found = game(tol=1e-4).fit(BLOCKS, engine=client, progress=Listener())
    assert heard[:2] == [("remembered", 1, N, True), ("refinement", 2, N, True)]
    assert len(heard) == found.n_passes_
    assert found.outcome_.status is Status.CONVERGED
    assert found.certificate_.kind == "certified"
    assert angle(found) <= found.certificate_.angle.max() <= 1e-4
    once = game().fit(BLOCKS)
    measured = once.certify(BLOCKS, engine=client)
    assert measured.kind == "certified"
    assert (metrics.angular_error(once.components_, TRUTH) <= measured.angle).all()


def test_all_components_or_a_share_of_the_variance_take_as_many_as_on_one_machine():
    few = X[:, :6]
    values, _ = metrics.true_components(few - few.mean(axis=0), 6)
    needed = int(np.searchsorted(np.cumsum(values / values.sum()), 0.8)) + 1
    lazy = da.from_array(few, chunks=(500, 6))
    assert game().set_params(n_components=0.8).fit(lazy).n_components_ == needed < 6
    assert game().set_params(n_components=None).fit(lazy).n_components_ == 6


def test_a_pass_for_the_covariance_is_a_tree_of_sums_and_exact_moments():
    """The other route that a fit on Dask may take."""
    scatter = accumulate_scatter(passes_over(BLOCKS), center=True)
    assert scatter.rows == N
    about = X - X.mean(axis=0)
    assert np.linalg.norm(scatter.matrix - about.T @ about, 2) <= 2 * scatter.error
    assert scatter.error < 1e-8 * np.trace(scatter.matrix)
    np.testing.assert_allclose(scatter.moments.mean, X.mean(axis=0), atol=1e-12)
    few = Problem(as_source(BLOCKS[:, :6]), OPTIONS, algorithm="auto")
    assert DaskEngine().plan(few, K).route == "covariance"


def test_weights_are_shared_out_with_their_rows():
    weights = np.random.default_rng(0).integers(0, 3, N)
    repeated = np.repeat(X, weights, axis=0)
    exact = metrics.true_components(repeated - repeated.mean(axis=0), K)[1]
    found = game().fit(BLOCKS, sample_weight=weights)
    assert angle(found, exact) < NEAR
    np.testing.assert_allclose(found.mean_, repeated.mean(axis=0), atol=1e-12)


def test_a_mean_far_from_zero_costs_no_accuracy_in_float32_on_threads():
    """Threads have their own switch of precision: here float32, beside tests that play in float64."""
    far = da.concatenate([BLOCKS] * 2).astype("float32") + np.float32(1e3)
    found = game().fit(far)
    assert found._result.options.dtype == np.float32
    assert angle(found) < NEAR
    # Rows of about 1000 in float32 are known to 6e-5.
    np.testing.assert_allclose(found.mean_ - 1e3, X.mean(axis=0), atol=1e-4)


def test_data_frames_whose_rows_nobody_knows_and_empty_partitions():
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    names = [f"gene{i}" for i in range(D)]
    frame = pandas.DataFrame(X, columns=names)
    lazy = dd.from_pandas(frame.assign(keep=np.arange(N) >= 1000), npartitions=8)
    lazy = lazy[lazy["keep"]].drop(columns="keep")  # the first two partitions are left empty
    found = game(dtype="float64").fit(lazy)
    assert found.n_samples_seen_ == N - 1000
    assert list(found.feature_names_in_) == names
    exact = metrics.true_components(X[1000:] - X[1000:].mean(axis=0), K)[1]
    assert angle(found, exact) < NEAR
    scores = found.transform(lazy)
    assert isinstance(scores, da.Array)
    assert np.isnan(scores.shape[0])
    np.testing.assert_allclose(scores.compute(), found.transform(frame[1000:]), atol=1e-12)
    with pytest.raises(SourceError, match="'gene1' in the fit"):
        found.transform(lazy[[names[0], names[2], names[1], *names[3:]]])


def refuse_to_compute(block):
    raise AssertionError("computed")


def test_scores_and_rows_of_a_dask_array_stay_lazy(on_threads):
    lazy = BLOCKS.map_blocks(refuse_to_compute, meta=np.empty((0, 0)))
    assert isinstance(on_threads.transform(lazy), da.Array)
    scores = on_threads.transform(BLOCKS)
    assert scores.shape == (N, K)
    assert scores.chunks == ((500,) * 8, (K,))
    np.testing.assert_allclose(scores.compute(), on_threads.transform(X), atol=1e-12)
    back = on_threads.inverse_transform(scores)
    assert isinstance(back, da.Array)
    np.testing.assert_allclose(
        back.compute(), on_threads.inverse_transform(on_threads.transform(X)), atol=1e-12
    )
    assert on_threads.transform(BLOCKS.astype("float32")).dtype == np.float32


def test_sparse_blocks_stay_sparse():
    dense = np.where(X > 0.5, X, 0)
    blocks = da.from_array(dense, chunks=(500, D)).map_blocks(sparse.csr_array)
    found = game().fit(blocks)
    exact = metrics.true_components(dense - dense.mean(axis=0), K)[1]
    assert angle(found, exact) < NEAR
    np.testing.assert_allclose(
        found.transform(blocks).compute(), found.transform(dense), atol=1e-12
    )
    with pytest.raises(
        SourceError, match=r"block 0 is sparse, but Dask takes it for dense: .*meta="
    ):
        game().fit(
            da.from_array(dense, chunks=(500, D)).map_blocks(
                sparse.csr_array, meta=np.empty((0, 0))
            )
        )


def test_prepared_data_is_prepared_block_by_block_and_so_is_what_is_transformed():
    holes = X.copy()
    holes[::7, 3] = np.nan
    ready = prepare(da.from_array(holes, chunks=(500, D)), missing="mean")
    found = game().fit(ready)
    plain = game().fit(prepare(holes, missing="mean"))
    assert angle(found, plain) < 2 * NEAR
    scores = found.transform(da.from_array(holes, chunks=(1000, D)))
    assert isinstance(scores, da.Array)
    np.testing.assert_allclose(scores.compute(), found.transform(holes), atol=1e-12)


def test_dask_data_can_be_read_in_order_without_a_tree(on_threads):
    pca = game(dtype="float64").partial_fit(BLOCKS[:1000]).partial_fit(BLOCKS[1000:])
    assert pca.n_samples_seen_ == N
    assert angle(pca) < NEAR
    assert on_threads.score(BLOCKS[:700]) == pytest.approx(on_threads.score(X[:700]))
    assert as_source(BLOCKS).fingerprint() == as_source(da.from_array(X, (500, 25))).fingerprint()


def with_nan():
    holes = X.copy()
    holes[1700, 3] = np.nan
    return da.from_array(holes, chunks=(500, D))


def ragged():
    made = [np.zeros((5, D)), np.zeros((5, D - 1))]
    blocks = [da.from_delayed(dask.delayed(one), (5, D), dtype=float) for one in made]
    return da.concatenate(blocks)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: game().fit(BLOCKS[:, 0]),
            r"shape \(4000,\): give one of shape \(rows, features\)",
        ),
        (lambda: game().fit(BLOCKS[:0]), "has 0 rows"),
        (lambda: game().fit(BLOCKS[:, :0]), "has no features"),
        (lambda: game().fit(BLOCKS[BLOCKS[:, 0] > 1e9]), "has no rows: give at least one row"),
        (lambda: game().fit(with_nan()), r"block 3\[200, 3\] is nan, a missing value"),
        (lambda: game().fit(ragged()), "block 1 has 39 features, but 40 were expected"),
        (lambda: game().fit(BLOCKS.astype(str)), "dtype <U32: give numbers"),
        (lambda: game().fit(dask.delayed(X)), r"a dask Delayed\w* is not a table"),
        (
            lambda: game(algorithm="oja").fit(BLOCKS),
            "algorithm='oja' processes batches one after another",
        ),
        (lambda: game(forget=0.9).fit(BLOCKS), "forget=0.9 depends on the order of rows"),
        (lambda: game(mesh="auto").fit(BLOCKS), "mesh='auto'.*leave mesh out"),
        (lambda: game().fit(BLOCKS, checkpoint="folder"), "checkpoint='folder'.*leave it out"),
        (lambda: game().fit(X, engine="spark"), "engine='spark': give a distributed.Client"),
        (lambda: game().fit(iter([X]), engine="dask"), "read in order.*give a list of files"),
        (lambda: game_pca(0.9).fit(BLOCKS[BLOCKS[:, 0] > 0]), "give an integer"),
        (lambda: game().fit(BLOCKS).transform(BLOCKS[:, :9]), "9 features, but the fit had 40"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_client_that_is_closed_is_refused(client):
    other = distributed.Client(client.cluster, set_as_default=False)
    other.close()
    with pytest.raises(ValueError, match="is closed: give a client that is connected"):
        game().fit(BLOCKS, engine=other)


def test_without_dask_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r'pip install "eigengame\[dask\]"'):
        game().fit(X, engine="dask")


def test_what_cannot_be_sent_is_refused_with_the_way_out(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(SourceError, match=r"cannot be sent .*: give its path"):
        game().fit(open_npy(tmp_path / "rows.npy"), engine="dask")


def test_exact_components_of_few_features_by_the_covariance_on_a_cluster():
    rows = np.random.default_rng(0).standard_normal((300, 12)) / np.arange(1, 13)
    pca = game_pca(3, algorithm="exact").fit(da.from_array(rows, chunks=(60, 12)))
    assert pca.outcome_.route == "covariance"
    true = np.linalg.eigh(np.cov(rows.T))[1].T[::-1][:3]
    assert metrics.angular_error(pca.components_, true).max() < 1e-8
    with pytest.raises(ValueError, match="on one device"):
        game_pca(3, algorithm="exact").fit(da.zeros((20, 9000), chunks=(10, 9000)))
