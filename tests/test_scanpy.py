"""`eigengame.scanpy.pca` stores results as scanpy does: in a small stand-in for AnnData, and in AnnData itself."""

import sys
import types

import numpy as np
import pytest
from scipy import sparse

import eigengame.scanpy
from tests.sources.cell_files import cell_counts, gene_names

pandas = pytest.importorskip("pandas")

X = np.log1p(cell_counts().astype(np.float64))
N, D = X.shape
MASK = np.arange(D) % 3 > 0


class AnnData:
    """The attributes of AnnData that are used, in memory."""

    __module__ = "anndata"
    isbacked = False
    is_view = False
    raw = None

    def __init__(self, values, mask=None, **layers):
        self.X, self.layers, self.n_vars = values, layers, D
        self.var = pandas.DataFrame(index=gene_names(D))
        if mask is not None:
            self.var["highly_variable"] = mask
        self.var_names, self.obs_names = list(self.var.index), [f"cell {i}" for i in range(N)]
        self.obsm, self.varm, self.uns = {}, {}, {}

    def copy(self):
        return AnnData(self.X, self.var.get("highly_variable"), **self.layers)


@pytest.fixture
def stand_in(monkeypatch):
    module = types.ModuleType("anndata")
    module.AnnData = AnnData
    monkeypatch.setitem(sys.modules, "anndata", module)
    return AnnData


def exact(values, count):
    """Return scores, loadings and variances by an SVD, with the largest loading of each positive."""
    centred = values - values.mean(axis=0)
    _, singular, turned = np.linalg.svd(centred, full_matrices=False)
    loadings = turned[:count]
    signs = np.sign(loadings[np.arange(count), np.abs(loadings).argmax(axis=1)])
    loadings = loadings * signs[:, None]
    variance = singular**2 / (len(values) - 1)
    return centred @ loadings.T, loadings, variance[:count], variance[:count] / variance.sum()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_scores_loadings_and_variances_are_stored_under_the_keys_of_scanpy(stand_in, make):
    cells = stand_in(make(X))
    assert eigengame.scanpy.pca(cells, 4) is None
    scores, loadings, variance, ratio = exact(X, 4)
    assert cells.obsm["X_pca"].dtype == np.float32
    np.testing.assert_allclose(cells.obsm["X_pca"], scores, atol=1e-4)
    np.testing.assert_allclose(cells.varm["PCs"], loadings.T, atol=1e-5)
    found = cells.uns["pca"]
    np.testing.assert_allclose(found["variance"], variance, rtol=1e-6)
    np.testing.assert_allclose(found["variance_ratio"], ratio, rtol=1e-6)
    assert found["params"] == {"zero_center": True, "use_highly_variable": False, "mask_var": None}
    certificate = found["certificate"]
    assert certificate["kind"] == "certified"
    assert certificate["angle"].shape == (4,)
    assert (certificate["angle"] <= certificate["tol"]).all()


def test_highly_variable_genes_are_used_by_default(stand_in):
    cells = stand_in(sparse.csr_matrix(X), MASK)
    eigengame.scanpy.pca(cells, 3)
    scores, loadings, *_ = exact(X[:, MASK], 3)
    np.testing.assert_allclose(cells.obsm["X_pca"], scores, atol=1e-4)
    assert cells.varm["PCs"].shape == (D, 3)
    assert (cells.varm["PCs"][~MASK] == 0).all()
    np.testing.assert_allclose(cells.varm["PCs"][MASK], loadings.T, atol=1e-5)
    assert cells.uns["pca"]["params"]["use_highly_variable"]
    assert cells.uns["pca"]["params"]["mask_var"] == "highly_variable"


def test_masks_can_be_given_in_every_way(stand_in):
    def scores(**options):
        cells = stand_in(X, MASK)
        cells.var["other"] = ~MASK
        eigengame.scanpy.pca(cells, 3, **options)
        return cells.obsm["X_pca"]

    every, some, other = (
        exact(one, 3)[0].astype(np.float32) for one in (X, X[:, MASK], X[:, ~MASK])
    )
    for options, expected in (
        ({"mask_var": None}, every),
        ({"use_highly_variable": False}, every),
        ({"use_highly_variable": True}, some),
        ({"mask_var": MASK}, some),
        ({"mask_var": "other"}, other),
    ):
        np.testing.assert_allclose(scores(**options), expected, atol=1e-4)


def test_layers_copies_keys_and_precision(stand_in):
    cells = stand_in(X, counts=2 * X)
    copy = eigengame.scanpy.pca(
        cells, layer="counts", key_added="pcs", copy=True, dtype="float64", tol=1e-6
    )
    assert not cells.obsm
    count = D - 1  # at most 50, and less than genes and cells
    scores, *_ = exact(2 * X, 5)
    assert copy.obsm["pcs"].shape == (N, count)
    np.testing.assert_allclose(copy.obsm["pcs"][:, :5], scores, atol=1e-5)
    assert copy.varm["pcs"].shape == (D, count)
    assert copy.uns["pcs"]["params"]["layer"] == "counts"
    assert copy.uns["pcs"]["certificate"]["tol"] == 1e-6


def test_without_centring_the_mean_is_kept(stand_in):
    cells = stand_in(X)
    eigengame.scanpy.pca(cells, 2, zero_center=False)
    np.testing.assert_allclose(cells.obsm["X_pca"], X @ cells.varm["PCs"], atol=1e-4)
    assert not cells.uns["pca"]["params"]["zero_center"]


def test_wrong_arguments_are_refused(stand_in):
    cells = stand_in(X)
    for options, message in (
        ({"mask_var": "none"}, "var has no such column"),
        ({"mask_var": np.arange(D)}, "give 40 values of True or False"),
        ({"mask_var": MASK[:-1]}, "give 40 values of True or False"),
        ({"mask_var": MASK & False}, "selects no gene"),
        ({"mask_var": MASK, "use_highly_variable": True}, "both given"),
        ({"use_highly_variable": True}, "var has no such column"),
        ({"layer": "raw"}, r"raw\.to_adata"),
    ):
        with pytest.raises(ValueError, match=message):
            eigengame.scanpy.pca(cells, 2, **options)
    with pytest.raises(TypeError, match="n_components has another name"):
        eigengame.scanpy.pca(cells, n_components=2)
    with pytest.raises(TypeError, match="adata is ndarray"):
        eigengame.scanpy.pca(X, 2)
    cells.isbacked = True
    with pytest.raises(ValueError, match="backed by its file"):
        eigengame.scanpy.pca(cells, 2, copy=True)


def test_without_anndata_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r'pip install "eigengame\[cells\]"'):
        eigengame.scanpy.pca(X, 2)


@pytest.fixture
def anndata():
    return pytest.importorskip("anndata", reason="anndata is not installed")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "some"])
def test_results_are_those_of_scanpy(anndata, make, mask):
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    one = anndata.AnnData(make(X), var=pandas.DataFrame(index=gene_names(D)))
    if mask is not None:
        one.var["highly_variable"] = mask
    two = one.copy()
    scanpy.pp.pca(one, 5, svd_solver="arpack")
    eigengame.scanpy.pca(two, 5, tol=1e-5)
    for kind, key in (("obsm", "X_pca"), ("varm", "PCs")):
        theirs, ours = getattr(one, kind)[key], getattr(two, kind)[key]
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert two.uns["pca"]["params"] == one.uns["pca"]["params"]
    for key in ("variance", "variance_ratio"):
        np.testing.assert_allclose(two.uns["pca"][key], one.uns["pca"][key], rtol=1e-5)
    assert set(two.uns["pca"]) == {*one.uns["pca"], "certificate"}
    scanpy.pp.neighbors(two, n_neighbors=5)  # uses the scores


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_backed_data_is_read_from_its_file_and_results_can_be_written(anndata, tmp_path, make):
    cells = anndata.AnnData(make(X), var=pandas.DataFrame({"some": MASK}, index=gene_names(D)))
    cells.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    eigengame.scanpy.pca(backed, 5, mask_var="some")
    eigengame.scanpy.pca(cells, 5, mask_var="some")
    np.testing.assert_allclose(backed.obsm["X_pca"], cells.obsm["X_pca"], atol=1e-5)
    backed.file.close()
    cells.write_h5ad(tmp_path / "y.h5ad")
    again = anndata.read_h5ad(tmp_path / "y.h5ad")
    assert again.uns["pca"]["certificate"]["kind"] == "certified"
