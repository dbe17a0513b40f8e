"""`eigengame transform`: scores in every format, written block by block and atomically."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame._system.atomic_write import StorageError
from eigengame.cli.score_writer import WRITERS, write_scores
from eigengame.sources import SourceError

from .conftest import ROWS, K


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix in (".csv", ".tsv"):
        delimiter = "," if path.suffix == ".csv" else "\t"
        assert path.read_text().splitlines()[0].split(delimiter) == ["pc1", "pc2", "pc3"]
        return np.loadtxt(path, delimiter=delimiter, skiprows=1, ndmin=2)
    if path.suffix == ".zarr":
        return pytest.importorskip("zarr").open_array(str(path), mode="r")[:]
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    assert table.column_names == ["pc1", "pc2", "pc3"]
    return np.column_stack([column.to_numpy() for column in table.columns])


@pytest.fixture(params=[".npy", ".csv", ".tsv", ".parquet", ".zarr"])
def ending(request):
    needs = {".parquet": "pyarrow", ".zarr": "zarr"}.get(request.param)
    if needs is not None:
        pytest.importorskip(needs)
    return request.param


def test_scores_equal_those_of_the_library_in_every_format(run, model, data, pca, x, ending):
    target = Path(f"scores{ending}")
    done = run("transform", model, data, "-o", target, "--json")
    assert json.loads(done.out)["rows"] == ROWS
    scores = read(target)
    assert scores.shape == (ROWS, K)
    np.testing.assert_allclose(scores, pca.transform(x), rtol=1e-6, atol=1e-6)
    assert [path.name for path in Path.cwd().iterdir()] == [target.name]


def test_scores_are_written_block_by_block(tmp_path, ending):
    blocks = [np.arange(6.0).reshape(2, 3), np.ones((2, 3)), np.zeros((1, 3))]
    target = tmp_path / f"scores{ending}"
    assert write_scores(target, iter(blocks), 3) == 5
    np.testing.assert_array_equal(read(target), np.concatenate(blocks))


def test_no_rows_give_an_empty_file(tmp_path, ending):
    target = tmp_path / f"scores{ending}"
    assert write_scores(target, iter([]), 3) == 0
    if ending not in (".csv", ".tsv"):
        assert read(target).shape == (0, 3)


def test_a_read_error_leaves_the_old_file(tmp_path, ending):
    def failing():
        yield np.ones((2, 3))
        raise OSError(5, "Input/output error")

    target = tmp_path / f"scores{ending}"
    write_scores(target, iter([np.zeros((2, 3))]), 3)
    with pytest.raises(SourceError, match="could not be read to the end"):
        write_scores(target, failing(), 3)
    np.testing.assert_array_equal(read(target), np.zeros((2, 3)))
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert write_scores(target, iter([np.ones((3, 3))]), 3) == 3
    np.testing.assert_array_equal(read(target), np.ones((3, 3)))


def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path, ending, monkeypatch):
    def full(draft, blocks, names, ids):
        draft.mkdir() if ending == ".zarr" else draft.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(WRITERS, ending, full)
    with pytest.raises(StorageError, match=r"could not be written \(No space left on device\)"):
        write_scores(tmp_path / f"scores{ending}", iter([np.ones((2, 3))]), 3)
    assert not list(tmp_path.iterdir())


def test_columns_of_a_table_are_those_of_the_fit_in_the_same_order(run, files, x):
    table, columns = files / "data.csv", "f3,f0,f1"
    run("fit", table, "-k", 2, "--columns", columns, "-o", "m.safetensors", "-q")
    lines = [line.split(",") for line in table.read_text().splitlines()]
    order = [lines[0].index(name) for name in ("kind", "f1", "f0", "f3")]
    Path("mixed.csv").write_text(
        "\n".join(",".join(line[i] for i in order) for line in lines) + "\n"
    )
    run("transform", "m.safetensors", table, "-o", "one.npy", "-q")
    run("transform", "m.safetensors", "mixed.csv", "-o", "other.npy", "-q")
    np.testing.assert_array_equal(np.load("one.npy"), np.load("other.npy"))
    np.testing.assert_allclose(np.load("one.npy").mean(axis=0), 0, atol=1e-5)


def test_the_scores_are_named_after_the_data(run, model, data):
    assert "Written: data-scores.npy, 400 rows of 3 scores" in run("transform", model, data).out
    assert run("transform", model, data).code == 1
    assert np.load("data-scores.npy").shape == (ROWS, K)


def test_counts_of_a_table_are_normalised_by_the_total_of_all_columns(run):
    rng = np.random.default_rng(0)
    table = rng.poisson(3.0, (60, 5)) + 1
    names = "abcde"
    lines = [",".join(names), *(",".join(map(str, row)) for row in table)]
    Path("cells.csv").write_text("\n".join(lines) + "\n")
    options = ("--columns", "b,d,a", "--counts", "log-normalise", "-q")
    assert run("fit", "cells.csv", "-k", 2, *options).code == 0
    assert run("transform", "cells.safetensors", "cells.csv", "-o", "scores.npy", "-q").code == 0
    logs = np.log1p(table / table.sum(axis=1, keepdims=True) * 1e4)[:, [1, 3, 0]]
    pca = EigenGamePCA.load("cells.safetensors")
    np.testing.assert_allclose(pca.mean_, logs.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        np.load("scores.npy"), (logs - pca.mean_) @ pca.components_.T, atol=1e-4
    )


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".eigenvec", ".parquet"])
def test_ids_of_any_text_precede_the_scores(tmp_path, ending):
    ids = ["a,b", 'c"d', "ä"]
    blocks = [np.ones((2, 2), np.float32), np.zeros((1, 2), np.float32)]
    target = tmp_path / f"scores{ending}"
    assert write_scores(target, iter(blocks), 2, {"id": ids}) == 3
    if ending == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(target)
        assert table.column_names == ["id", "pc1", "pc2"]
        assert table["id"].to_pylist() == ids
        return
    with target.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="," if ending == ".csv" else "\t"))
    header = ["#IID", "PC1", "PC2"] if ending == ".eigenvec" else ["id", "pc1", "pc2"]
    assert lines == [header, *([one, x, x] for one, x in zip(ids, "110", strict=True))]


def test_cells_keep_their_names_in_a_table(run):
    names = [f"cell-{i}" for i in range(20)]
    with pytest.importorskip("h5py").File("cells.h5ad", "w") as file:
        file["X"] = np.random.default_rng(0).random((20, 6), dtype=np.float32)
        file["obs/barcodes"] = [name.encode() for name in names]
        file["obs"].attrs["_index"] = "barcodes"
    assert run("fit", "cells.h5ad", "-k", 2, "--algorithm", "exact", "-q").code == 0
    assert run("transform", "cells.safetensors", "cells.h5ad", "-o", "x.csv", "-q").code == 0
    lines = Path("x.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["id", *names]
