"""A checkpoint is used for the run that wrote it, and for no other: not for other data, weights or options."""

import json
import os

import jax
import numpy as np
import pytest
from scipy import sparse

from eigengame import Checkpoint, EigenGamePCA, as_source
from eigengame._system.array_file import read_arrays, write_arrays
from eigengame.solver.passes.checkpoint import CheckpointError, CheckpointWarning
from eigengame.solver.passes.run_record import sealed_facts
from eigengame.sources._digest import digest_of_files
from eigengame.sources.shuffle import shuffled
from tests.game_pca import game_pca

N, D = 96, 5


def table():
    return np.random.default_rng(0).normal(size=(N, D)) * np.arange(D, 0, -1)


def fit(data, folder, weights=None, **options):
    pca = game_pca(2, **{"random_state": 0} | options)
    return pca.fit(data, sample_weight=weights, checkpoint=folder)


def changed(x):
    """The table with one other number, in a row that a look at a few rows misses."""
    x = x.copy()
    x[7, 3] = 1e6
    return x


def frame(x):
    return pytest.importorskip("pandas").DataFrame(x, columns=list("abcde"))


def in_polars(x):
    return pytest.importorskip("polars").DataFrame(x, schema=list("abcde"))


def in_zarr(x):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=x.shape, dtype=x.dtype)
    array[:] = x
    return array


def tensor(x):
    return pytest.importorskip("torch").as_tensor(x)


def loaded(x):
    torch = pytest.importorskip("torch")
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.as_tensor(x)), batch_size=32
    )


KINDS = {
    "array": np.asarray,
    "by columns": np.asfortranarray,
    "sparse": sparse.csr_array,
    "jax": lambda x: jax.numpy.asarray(x),
    "tensor": tensor,
    "loader": loaded,
    "list of arrays": lambda x: [x[:50], x[50:]],
    "pandas": frame,
    "pandas source": lambda x: as_source(frame(x)),
    "polars": lambda x: as_source(in_polars(x)),
    "polars query": lambda x: as_source(in_polars(x).lazy()),
    "zarr in memory": in_zarr,
    "shuffled": lambda x: shuffled(as_source(x), 0, 16),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_other_number_in_memory_is_found(tmp_path, kind):
    made = KINDS[kind]
    before = fit(made(table()), tmp_path)
    again = fit(made(table()), tmp_path)
    np.testing.assert_array_equal(again.components_, before.components_)
    with pytest.raises(CheckpointError, match=r"source\.content was"):
        fit(made(changed(table())), tmp_path)


def test_an_array_that_is_changed_in_place_is_found(tmp_path):
    x = table()
    fit(x, tmp_path)
    x[7] = 1e6
    with pytest.raises(CheckpointError, match=r"source\.content was"):
        fit(x, tmp_path)


def in_npy(path, x):
    np.save(path / "x.npy", x)
    return path / "x.npy"


def in_npz(path, x):
    np.savez(path / "x.npz", x=x)
    return path / "x.npz"


def in_raw(path, x):
    x.astype("<f8").tofile(path / "x.raw")
    return as_source(path / "x.raw", columns=D, dtype="<f8")


def in_csv(path, x):
    np.savetxt(path / "x.csv", x.astype(int) % 10, fmt="%d", delimiter=",")
    return path / "x.csv"


def in_local_zarr(path, x):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(
        str(path / "x.zarr"), shape=x.shape, dtype=x.dtype, compressors=None, overwrite=True
    )
    array[:] = x
    return path / "x.zarr"


@pytest.mark.parametrize("made", [in_npy, in_npz, in_raw, in_csv, in_local_zarr])
def test_a_file_of_equal_size_and_time_with_another_number_is_found(tmp_path, made):
    (tmp_path / "data").mkdir()
    fit(made(tmp_path / "data", table()), tmp_path / "run")
    times = {one: one.stat().st_mtime_ns for one in (tmp_path / "data").rglob("*")}
    data = made(tmp_path / "data", changed(table()))
    for one, time in times.items():
        os.utime(one, ns=(time, time))
    with pytest.raises(CheckpointError, match=r"source\.content was"):
        fit(data, tmp_path / "run")


def test_of_a_large_file_its_first_and_last_bytes_and_pieces_between_count(tmp_path, monkeypatch):
    monkeypatch.setattr("eigengame.sources._digest.WHOLE", 1000)
    monkeypatch.setattr("eigengame.sources._digest.PIECE", 8)
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4096, D)))
    whole = path.read_bytes()

    def digest(place):
        path.write_bytes(whole[:place] + b"\1" + whole[place + 1 :])
        return digest_of_files([str(path)])

    # 1024 pieces of 8 bytes in 164 kB: one every 160 bytes or so.
    unchanged = digest_of_files([str(path)])
    assert digest(0) != digest(len(whole) - 1) != unchanged
    assert 8 <= sum(digest(place) != unchanged for place in range(10_000, 10_200)) <= 16


def test_the_byte_order_and_layout_of_a_raw_file_belong_to_the_run(tmp_path):
    path = tmp_path / "x.raw"
    np.abs(table()).astype("<i4").tofile(path)
    fit(as_source(path, columns=D, dtype="<i4"), tmp_path / "run")
    for other, name in (({"dtype": ">i4"}, "stored"), ({"dtype": "<i4", "order": "F"}, "order")):
        with pytest.raises(CheckpointError, match=rf"source\.{name} was"):
            fit(as_source(path, columns=D, **other), tmp_path / "run")


def test_weights_belong_to_the_run(tmp_path):
    weights = np.ones(N)
    fit(table(), tmp_path, weights)
    fit(table(), tmp_path, weights.copy())
    other = np.where(np.arange(N) < 10, 3.0, 1.0)
    for given in (other, None):
        with pytest.raises(CheckpointError, match=r"configuration\.sample_weight was"):
            fit(table(), tmp_path, given)


def test_a_mesh_belongs_to_the_run(tmp_path):
    fit(table(), tmp_path, mesh={"data": 1})
    fit(table(), tmp_path, mesh="data=1")
    with pytest.raises(CheckpointError, match=r"configuration\.mesh was 'one device', is None"):
        fit(table(), tmp_path)


def test_a_number_of_numpy_is_compared_as_any_other(tmp_path):
    fit(table(), tmp_path, extra=np.int64(1))
    fit(table(), tmp_path, extra=1)
    with pytest.raises(CheckpointError, match=r"configuration\.extra was 1, is 2"):
        fit(table(), tmp_path, extra=np.int64(2))


class Stream:
    """Rows made by code of its own."""

    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return iter([self.x])


@pytest.mark.parametrize(
    "made",
    [lambda x: iter([x]), lambda x: as_source(Stream(x))],
    ids=["generator", "iterable"],
)
def test_data_without_a_digest_needs_trust(tmp_path, made):
    with pytest.raises(CheckpointError, match=r"no digest.*trust_source=True"):
        fit(made(table()), tmp_path)
    assert not list(tmp_path.iterdir())
    trusting = Checkpoint(tmp_path, trust_source=True)
    before = fit(made(table()), trusting)
    np.testing.assert_array_equal(fit(made(table()), trusting).components_, before.components_)


def test_a_loader_that_shuffles_needs_trust(tmp_path):
    torch = pytest.importorskip("torch")
    rows = torch.utils.data.TensorDataset(torch.as_tensor(table()))
    with pytest.raises(CheckpointError, match="no digest"):
        fit(torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True), tmp_path)


def test_a_run_that_trusted_its_data_is_not_taken_for_one_that_checked_it(tmp_path):
    trusting = Checkpoint(tmp_path, trust_source=True)
    fit(table(), trusting)
    with pytest.raises(CheckpointError, match="started with trust_source=True"):
        fit(table(), tmp_path)
    with pytest.raises(CheckpointError, match=r"configuration\.extra was"):
        fit(table(), trusting, extra=1)


def test_a_folder_of_the_first_format_is_resumed_with_a_warning(tmp_path):
    before = fit(table(), tmp_path)
    path = tmp_path / "run.json"
    facts = json.loads(path.read_text())
    del facts["digest"], facts["source"]["content"], facts["configuration"]["sample_weight"]
    path.write_text(json.dumps(facts | {"format": 1}))
    for one in tmp_path.glob("*.safetensors"):
        _as_in_the_first_format(one)
    with pytest.warns(CheckpointWarning, match="without a digest of the data"):
        again = fit(table(), tmp_path)
    np.testing.assert_array_equal(again.components_, before.components_)
    with pytest.raises(CheckpointError, match=r"configuration\.extra was"):
        fit(table(), tmp_path, extra=1)


def _as_in_the_first_format(path):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    with safe_open(path, framework="np") as file:
        about = {name: file.metadata()[name] for name in ("row", "ended", "number")}
    save_file(load_file(path), path, metadata=about)


def test_without_a_checkpoint_nothing_is_digested(monkeypatch):
    def refused(self):
        raise AssertionError

    monkeypatch.setattr("eigengame.sources.ArraySource.digest", refused)
    game_pca(2, random_state=0).fit(table())


def test_a_run_that_a_watcher_stopped_is_resumed_by_the_next_call(tmp_path):
    class Enough:
        def batch(self, at):
            return at.rows >= 32

    options = {"n_components": 2, "random_state": 0, "batch_size": 32}
    half = game_pca(**options).fit(table(), checkpoint=tmp_path, progress=Enough())
    assert half.n_samples_seen_ < N
    on, whole = (game_pca(**options).fit(table(), checkpoint=kept) for kept in (tmp_path, None))
    np.testing.assert_array_equal(on.components_, whole.components_)
    assert on.n_samples_seen_ == N


def test_sums_of_an_earlier_format_are_repeated(tmp_path):
    """Format 3 has other sums of the covariance: they are made again, and nothing is called damaged."""
    rows = np.random.default_rng(0).standard_normal((3000, 100)).astype(np.float32)
    rows *= np.arange(1, 101, dtype=np.float32) ** -0.5
    whole = EigenGamePCA(2, random_state=0).fit(rows, checkpoint=tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(sealed_facts(facts | {"format": 3})))
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    run = json.loads((tmp_path / "run.json").read_text())["digest"]
    about = {"row": "3000", "ended": "1", "format": "3", "run": run, "part": "k2", "number": "0"}
    write_arrays(tmp_path / "k2-0000.safetensors", {"0": np.zeros((100, 100))}, about)
    again = EigenGamePCA(2, random_state=0).fit(rows, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_refinements_of_an_earlier_format_are_repeated(tmp_path):
    """Format 4 has other blocks of the same shape: what they gave must not be taken for the present ones."""
    rows = np.random.default_rng(0).standard_normal((3000, 100)) * np.arange(1, 101) ** -0.5
    options = {"algorithm": "remembered", "tol": 1e-6, "random_state": 0}
    whole = EigenGamePCA(4, **options).fit(rows, checkpoint=tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(sealed_facts(facts | {"format": 4})))
    run = json.loads((tmp_path / "run.json").read_text())["digest"]
    (last,) = tmp_path.glob("*-0002.safetensors")
    for path in tmp_path.glob("*.safetensors"):
        arrays, about = read_arrays(path)
        arrays = {name: np.array(one) for name, one in arrays.items()}
        if path == last:
            arrays["0"] *= 1.5
        write_arrays(path, arrays, about | {"format": "4", "run": run})
    again = EigenGamePCA(4, **options).fit(rows, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.components_, whole.components_)
