"""Single cells on the command line: genes, layers, labels, and scores in `.h5ad` files."""

import json
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA, prepare
from eigengame._system.atomic_write import StorageError
from eigengame.cli.h5ad_writer import write_obsm
from eigengame.sources import SourceError, as_source
from tests.sources.cell_files import (
    barcodes,
    cell_counts,
    gene_names,
    write_10x,
    write_h5ad,
    write_old_h5ad,
)

h5py = pytest.importorskip("h5py")

X = cell_counts()
NEW = cell_counts(seed=1)
N = len(X)


@pytest.fixture
def fitted(run, tmp_path):
    """Fit a file of cells, and return the model, its path and the path of new cells."""
    path = write_h5ad(tmp_path / "fit.h5ad", X)
    done = run(
        "fit",
        path,
        "-k",
        3,
        "--counts",
        "log-normalise",
        "--top-variable",
        15,
        "-o",
        "m.safetensors",
    )
    assert done.code == 0, done.err
    return (
        EigenGamePCA.load("m.safetensors"),
        Path("m.safetensors"),
        write_h5ad(tmp_path / "new.h5ad", NEW),
    )


def content(path):
    """Return the arrays and attributes of a file."""
    found = {}

    def note(name, node):
        found[name] = {key: np.asarray(value).tolist() for key, value in node.attrs.items()}
        if isinstance(node, h5py.Dataset):
            found[name]["values"] = node[()].tolist()

    with h5py.File(path) as file:
        file.visititems(note)
        found["/"] = dict(file.attrs)
    return found


def test_genes_are_selected_as_in_the_library(fitted):
    pca, *_ = fitted
    prepared = prepare(X, counts="log-normalise", top_variable=15)
    names = [gene_names()[i] for i in prepared.steps[-1].indices]
    assert list(pca.feature_names_in_) == names


@pytest.mark.parametrize(
    ("options", "library"),
    [
        (["--counts", "pearson"], {"counts": "pearson"}),
        (["--counts", "pearson", "--theta", 10], {"counts": "pearson", "theta": 10}),
        (["--counts", "pearson", "--columns", "gene3,gene1,gene2,gene7"], {"counts": "pearson"}),
        (
            ["--counts", "log-normalise", "--target", 100],
            {"counts": "log-normalise", "target": 100},
        ),
    ],
)
def test_options_of_counts_are_those_of_the_library(run, tmp_path, options, library):
    path = write_h5ad(tmp_path / "fit.h5ad", X)
    assert run("fit", path, "-k", 3, *options, "-o", "m.safetensors").code == 0
    columns = ["gene3", "gene1", "gene2", "gene7"] if "--columns" in options else None
    prepared = prepare(path, columns=columns, **library)
    expected = EigenGamePCA(3, random_state=0).fit(prepared).transform(path)
    found = EigenGamePCA.load("m.safetensors").transform(path)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_options_without_effect_are_refused(run, tmp_path):
    path = write_h5ad(tmp_path / "fit.h5ad", X)
    done = run("fit", path, "-k", 3, "--theta", 10)
    assert done.code != 0
    assert "--theta 10 has no effect: give --counts pearson" in done.err
    assert "--target 5" in run("fit", path, "-k", 3, "--counts", "log1p", "--target", 5).err


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("make", [write_h5ad, write_10x], ids=["h5ad", "10x"])
def test_barcodes_precede_the_scores_in_tables(run, fitted, tmp_path, ending, make):
    pca, model, _ = fitted
    path = make(tmp_path / f"cells{'.h5ad' if make is write_h5ad else '.h5'}", NEW)
    target = Path(f"scores{ending}")
    assert run("transform", model, path, "-o", target).code == 0
    if ending == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(target).to_pydict()
        found, ids = np.column_stack([table[f"pc{i}"] for i in (1, 2, 3)]), table["id"]
    else:
        lines = [
            line.split("," if ending == ".csv" else "\t")
            for line in target.read_text().splitlines()
        ]
        assert lines[0] == ["id", "pc1", "pc2", "pc3"]
        found, ids = (
            np.array([line[1:] for line in lines[1:]], float),
            [line[0] for line in lines[1:]],
        )
    assert ids == barcodes()
    np.testing.assert_allclose(found, pca.transform(path), rtol=1e-6, atol=1e-6)


def test_an_h5ad_output_is_a_copy_of_the_data_with_scores_in_obsm(run, fitted):
    pca, model, new = fitted
    before = content(new)
    done = run("transform", model, new, "-o", "out.h5ad", "--json")
    assert json.loads(done.out)["rows"] == N
    found = content("out.h5ad")
    scores = np.array(found.pop("obsm/X_pca")["values"])
    assert found.pop("obsm")["encoding-type"] == "dict"
    assert found == before
    assert content(new) == before
    np.testing.assert_allclose(scores, pca.transform(new), rtol=1e-6, atol=1e-6)
    assert not list(Path.cwd().glob(".*"))


def test_a_key_of_the_data_is_replaced_only_if_forced(run, fitted):
    pca, model, new = fitted
    with h5py.File(new, "a") as file:
        file["obsm/X_pca"] = np.zeros((N, 2))
    done = run("transform", model, new, "-o", "out.h5ad")
    assert "has X_pca already: give another name with --obsm, or --force" in done.err
    assert not Path("out.h5ad").exists()
    assert run("transform", model, new, "-o", "out.h5ad", "--obsm", "X_game").code == 0
    assert np.shape(content("out.h5ad")["obsm/X_pca"]["values"]) == (N, 2)
    assert run("transform", model, new, "-o", "out.h5ad", "--force").code == 0
    found = np.array(content("out.h5ad")["obsm/X_pca"]["values"])
    np.testing.assert_allclose(found, pca.transform(new), rtol=1e-6, atol=1e-6)
    for name in ("a/b", ""):
        assert "without slashes" in run("transform", model, new, "-o", "b.h5ad", "--obsm", name).err
    assert "is for .h5ad files" in run("transform", model, new, "-o", "b.csv", "--obsm", "x").err


def test_the_data_itself_can_be_the_output(run, fitted):
    pca, model, new = fitted
    scores = pca.transform(new)
    assert run("transform", model, new, "-o", new).code != 0
    assert run("transform", model, new, "-o", new, "--force").code == 0
    found = np.array(content(new)["obsm/X_pca"]["values"])
    np.testing.assert_allclose(found, scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(pca.transform(new), scores)


def test_other_data_gives_a_new_file_with_the_ids_of_the_rows(run, fitted, tmp_path):
    pca, model, new = fitted
    counts = write_10x(tmp_path / "counts.h5", NEW)
    assert run("transform", model, counts, "-o", "out.h5ad").code == 0
    found = content("out.h5ad")
    assert found["/"]["encoding-type"] == "anndata"
    assert [one.decode() for one in found["obs/_index"]["values"]] == barcodes()
    scores = np.array(found["obsm/X_pca"]["values"])
    np.testing.assert_allclose(scores, pca.transform(new), rtol=1e-6, atol=1e-6)


def test_obsm_of_old_files_is_converted(run, fitted, tmp_path):
    _, model, _ = fitted
    path = write_old_h5ad(tmp_path / "old.h5ad", NEW)
    done = run("transform", model, path, "--layer", "raw", "-o", "out.h5ad", "--obsm", "X_game")
    assert done.code == 0, done.err
    found = content("out.h5ad")
    shapes = {
        key: np.shape(found[f"obsm/{key}"]["values"]) for key in ("X_pca", "X_umap", "X_game")
    }
    assert shapes == {"X_pca": (N, 2), "X_umap": (N, 2), "X_game": (N, 3)}
    assert (
        "has X_umap already"
        in run("transform", model, path, "--layer", "raw", "-o", "b.h5ad", "--obsm", "X_umap").err
    )


def failing(error):
    yield np.zeros((2, 3))
    raise error


@pytest.mark.parametrize(
    ("error", "raised"), [(OSError("cable"), SourceError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_nothing_is_left_or_lost_if_reading_fails(tmp_path, error, raised):
    data = write_h5ad(tmp_path / "x.h5ad", X)
    target = tmp_path / "out.h5ad"
    target.write_bytes(b"earlier")
    with pytest.raises(raised):
        write_obsm(target, failing(error), 3, data=str(data), ids={})
    assert target.read_bytes() == b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.h5ad", "x.h5ad"]


def test_nothing_is_left_or_lost_if_the_disk_is_full(tmp_path):
    resource = pytest.importorskip("resource")
    data = write_h5ad(tmp_path / "x.h5ad", X)
    target = tmp_path / "out.h5ad"
    target.write_bytes(b"earlier")
    blocks = (np.zeros((50_000, 3)) for _ in range(4))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ: a write beyond the limit fails.
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(StorageError, match="could not be written"):
            write_obsm(target, blocks, 3, data=str(data), ids={})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.read_bytes() == b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.h5ad", "x.h5ad"]


def test_an_address_is_copied(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    data = write_h5ad(tmp_path / "x.h5ad", X)
    fsspec.filesystem("memory").pipe("/cells/x.h5ad", data.read_bytes())
    target = tmp_path / "out.h5ad"
    write_obsm(target, iter([np.ones((N, 3))]), 3, data="memory://cells/x.h5ad", ids={})
    assert as_source(target).row_ids() == barcodes()
    assert np.shape(content(target)["obsm/X_pca"]["values"]) == (N, 3)


def test_genes_that_data_lacks_count_as_0_if_requested(run, fitted, tmp_path):
    pca, model, _ = fitted
    unused = next(
        i for i, name in enumerate(gene_names()) if name not in set(pca.feature_names_in_)
    )
    kept = [i for i in range(X.shape[1]) if i != unused]
    path = write_h5ad(tmp_path / "less.h5ad", NEW[:, kept], [gene_names()[i] for i in kept])
    assert "--intersect" in run("transform", model, path, "-o", "a.npy").err
    done = run("transform", model, path, "-o", "a.npy", "--intersect")
    assert done.code == 0
    assert "1 of 40 features of the fit are absent and count as 0" in done.err
    zeroed = NEW.copy()
    zeroed[:, unused] = 0
    expected = pca.transform(write_h5ad(tmp_path / "zeroed.h5ad", zeroed))
    np.testing.assert_allclose(np.load("a.npy"), expected, atol=1e-5)


def test_a_model_of_a_layer_reads_that_layer(run, tmp_path):
    path = write_h5ad(tmp_path / "x.h5ad", np.log1p(X), layers={"counts": X}, raw=X)
    for layer in ("counts", "raw"):
        assert (
            run("fit", path, "-k", 3, "--layer", layer, "-o", "m.safetensors", "--force").code == 0
        )
        assert run("transform", "m.safetensors", path, "-o", "a.npy", "--force").code == 0
        expected = EigenGamePCA.load("m.safetensors").transform(as_source(path, layer=layer))
        np.testing.assert_allclose(np.load("a.npy"), expected, atol=1e-5)
        assert run("report", "m.safetensors", path, "-o", "r.html", "--force").code == 0
    without = write_h5ad(tmp_path / "y.h5ad", X)
    assert "fitted on that layer" in run("transform", "m.safetensors", without, "-o", "b.npy").err


def test_a_report_shows_the_categories_of_an_old_file(run, tmp_path):
    path = write_old_h5ad(tmp_path / "old.h5ad", X, ("monocyte", "lymphocyte"))
    assert run("fit", path, "-k", 3, "-o", "m.safetensors").code == 0
    done = run("report", "m.safetensors", path, "--labels", "type", "-o", "r.html")
    assert done.code == 0, done.err
    assert "lymphocyte" in Path("r.html").read_text()


@pytest.mark.filterwarnings("ignore")  # of anndata, about the age of one of the files
def test_files_are_read_by_anndata(run, fitted, tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pca, model, new = fitted
    old = write_old_h5ad(tmp_path / "old.h5ad", NEW)
    counts = write_10x(tmp_path / "counts.h5", NEW)
    for path, options in ((new, []), (old, ["--layer", "raw"]), (counts, [])):
        done = run(
            "transform", model, path, "-o", "a.h5ad", "--obsm", "X_game", "--force", *options
        )
        assert done.code == 0, done.err
        cells = anndata.read_h5ad("a.h5ad")
        assert list(cells.obs_names) == barcodes()
        np.testing.assert_allclose(cells.obsm["X_game"], pca.transform(new), atol=1e-5)


@pytest.mark.parametrize("way", ["log1p", "log-normalise"])
def test_a_model_with_selected_genes_reads_tables_in_any_order(run, tmp_path, way):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=gene_names())
    frame.to_csv("fit.csv", index=False)
    frame[gene_names()[::-1]].to_csv("turned.csv", index=False)
    options = ["--counts", way, "--top-variable", 15]
    assert run("fit", "fit.csv", "-k", 3, *options, "-o", "m.safetensors").code == 0
    for name in ("fit", "turned"):
        done = run("transform", "m.safetensors", f"{name}.csv", "-o", f"{name}.npy")
        assert done.code == 0, done.err
    np.testing.assert_allclose(np.load("turned.npy"), np.load("fit.npy"), atol=1e-5)
    chosen = list(EigenGamePCA.load("m.safetensors").feature_names_in_)
    frame[chosen].to_csv("less.csv", index=False)
    done = run("transform", "m.safetensors", "less.csv", "-o", "less.npy")
    if way == "log1p":  # other genes are not needed
        assert done.code == 0, done.err
        np.testing.assert_allclose(np.load("less.npy"), np.load("fit.npy"), atol=1e-5)
    else:
        assert "count for the totals of the rows" in done.err
