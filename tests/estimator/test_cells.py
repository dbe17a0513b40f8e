"""Single cells: a model chooses genes, layers and totals of other files as those of its fit."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, as_source, prepare, write_report
from tests.sources.cell_files import (
    cell_counts,
    gene_names,
    write_10x,
    write_h5ad,
    write_old_h5ad,
)

pytest.importorskip("h5py")

X = cell_counts()
NEW = cell_counts(seed=1)
NAMES = gene_names()
K = 3


def fitted(path, **options):
    return EigenGamePCA(K, random_state=0).fit(prepare(path, **options))


@pytest.fixture(params=["log-normalise", "pearson"])
def way(request):
    return request.param


@pytest.fixture
def model(tmp_path, way):
    """A model that was saved and loaded, and the scores of new cells."""
    path = write_h5ad(tmp_path / "fit.h5ad", X)
    pca = fitted(path, counts=way, top_variable=15)
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    assert again.n_features_in_ >= 15
    return again, pca.transform(write_h5ad(tmp_path / "same.h5ad", NEW))


def test_other_genes_and_another_order_do_not_change_scores(model, tmp_path):
    pca, scores = model
    order = np.random.default_rng(0).permutation(len(NAMES))
    extra = np.full((len(NEW), 3), 50, np.float32)
    given = np.hstack([extra, NEW[:, order]])
    genes = ["new1", "new2", "new3", *(NAMES[i] for i in order)]
    path = write_h5ad(tmp_path / "other.h5ad", given, genes)
    np.testing.assert_allclose(pca.transform(path), scores, atol=1e-5)
    np.testing.assert_allclose(pca.transform(as_source(path)), scores, atol=1e-5)
    aligned = pca.align(path)
    assert aligned.unused == 3
    np.testing.assert_allclose(pca.transform(aligned), scores, atol=1e-5)
    assert pca.certify(path).angle.shape == (K,)


def test_a_gene_that_only_counts_for_totals_may_be_absent_if_it_is_0(model, tmp_path):
    pca, _ = model
    unused = [i for i, name in enumerate(NAMES) if name not in set(pca.feature_names_in_)]
    zeroed, kept = NEW.copy(), [i for i in range(len(NAMES)) if i != unused[0]]
    zeroed[:, unused[0]] = 0
    scores = pca.transform(write_h5ad(tmp_path / "zeroed.h5ad", zeroed))
    path = write_h5ad(tmp_path / "less.h5ad", NEW[:, kept], [NAMES[i] for i in kept])
    with pytest.raises(SourceError, match=r"lacks 1 features of the fit.*totals.*intersect=True"):
        pca.transform(path)
    np.testing.assert_allclose(pca.transform(pca.align(path, intersect=True)), scores, atol=1e-5)


def test_a_selected_gene_must_be_there(model, tmp_path):
    pca, _ = model
    kept = [i for i, name in enumerate(NAMES) if name != pca.feature_names_in_[0]]
    path = write_h5ad(tmp_path / "less.h5ad", NEW[:, kept], [NAMES[i] for i in kept])
    for data in (path, as_source(path)):
        with pytest.raises(SourceError, match=r"lacks 1 features of the model.*columns="):
            pca.transform(data)
    with pytest.raises(SourceError, match=r"lacks 1 features of the model"):
        pca.align(path, intersect=True)


def test_genes_are_matched_without_preparation_too(tmp_path):
    pca = EigenGamePCA(K, random_state=0).fit(write_h5ad(tmp_path / "fit.h5ad", X))
    turned = write_h5ad(tmp_path / "new.h5ad", NEW[:, ::-1], NAMES[::-1])
    scores = pca.transform(write_h5ad(tmp_path / "same.h5ad", NEW))
    np.testing.assert_allclose(pca.transform(turned), scores, atol=1e-5)
    with pytest.raises(SourceError, match="lacks 1 features of the model"):
        pca.transform(write_h5ad(tmp_path / "less.h5ad", NEW[:, 1:], NAMES[1:]))


def test_names_that_are_not_unique_are_used_in_the_same_order_only(tmp_path, way):
    genes = ["twice", "twice", *NAMES[2:]]
    pca = fitted(write_10x(tmp_path / "fit.h5", X, genes), counts=way, top_variable=38)
    assert "twice" in pca.feature_names_in_
    same = pca.transform(write_10x(tmp_path / "new.h5", NEW, genes))
    loaded = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(loaded.transform(tmp_path / "new.h5"), same)
    turned = write_10x(tmp_path / "turned.h5", NEW[:, ::-1], genes[::-1])
    with pytest.raises(SourceError, match="'twice' is the name of several"):
        loaded.transform(turned)


def test_a_model_without_names_cannot_align(tmp_path):
    pca = EigenGamePCA(K, random_state=0).fit(X)
    with pytest.raises(SourceError, match="the model has no names of features"):
        pca.align(write_h5ad(tmp_path / "new.h5ad", NEW))
    named = EigenGamePCA(K, random_state=0).fit(write_h5ad(tmp_path / "fit.h5ad", X))
    with pytest.raises(SourceError, match="is an option for genotypes"):
        named.align(tmp_path / "new.h5ad", ambiguous="drop")


@pytest.mark.parametrize("layer", ["counts", "raw"])
def test_a_model_reads_the_layer_of_its_fit(tmp_path, layer):
    raw = np.hstack([X, X[:, :4]])
    path = write_h5ad(tmp_path / "x.h5ad", np.log1p(X), layers={"counts": X}, raw=raw)
    source = as_source(path, layer=layer)
    pca = EigenGamePCA(K, random_state=0).fit(source)
    loaded = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    scores = pca.transform(as_source(raw if layer == "raw" else X))
    for model in (pca, loaded):
        np.testing.assert_allclose(model.transform(path), scores, atol=1e-4)
        np.testing.assert_allclose(model.transform([path, path])[: len(X)], scores, atol=1e-4)
    write_report(loaded, tmp_path / "report.html", data=path)
    if layer == "counts":
        # Another matrix can be given explicitly.
        np.testing.assert_allclose(
            loaded.transform(as_source(path, layer="X")),
            pca.transform(as_source(np.log1p(X))),
            atol=1e-4,
        )
    without = write_h5ad(tmp_path / "without.h5ad", X)
    with pytest.raises(SourceError, match=rf"no layer '{layer}'.*fitted on that layer.*--layer"):
        loaded.transform(without)


def test_a_layer_of_prepared_cells_is_read_too(tmp_path):
    path = write_h5ad(tmp_path / "x.h5ad", np.log1p(X), layers={"counts": X})
    pca = fitted(path, layer="counts", counts="log-normalise", top_variable=12)
    expected = pca.transform(as_source(path, layer="counts"))
    np.testing.assert_array_equal(pca.transform(path), expected)


def test_raw_of_old_files_is_read(tmp_path):
    path = write_old_h5ad(tmp_path / "old.h5ad", X)
    source = as_source(path, layer="raw")
    assert source.feature_names == NAMES
    pca = fitted(source, counts="log-normalise")
    np.testing.assert_allclose(pca.transform(path), pca.transform(X), atol=1e-4)


def test_a_fit_that_fails_keeps_the_layer_of_the_one_before(tmp_path):
    path = write_h5ad(tmp_path / "x.h5ad", np.log1p(X), layers={"counts": X})
    pca = EigenGamePCA(K, random_state=0).fit(as_source(path, layer="counts"))
    before = pca.transform(path)
    with pytest.raises(ValueError, match="n_components=3 is more than 2"):
        pca.fit(np.ones((9, 2)))
    np.testing.assert_array_equal(pca.transform(path), before)


def test_genes_of_partitions_are_matched_on_dask(tmp_path, way):
    pytest.importorskip("dask")
    pca = fitted(write_h5ad(tmp_path / "fit.h5ad", X), counts=way, top_variable=15)
    turned = write_h5ad(tmp_path / "turned.h5ad", X[:, ::-1], NAMES[::-1])
    here = pca.certify(tmp_path / "fit.h5ad").rayleigh
    np.testing.assert_allclose(pca.certify(turned, engine="dask").rayleigh, here, rtol=1e-5)


def test_a_dask_frame_with_other_columns_is_refused_or_selected_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(X.astype(float), columns=NAMES)
    pca = fitted(frame, counts="log-normalise", columns=["gene3", "gene1", "gene2", "gene5"])
    turned = frames.from_pandas(frame[NAMES[::-1]], npartitions=3)
    np.testing.assert_allclose(pca.transform(turned).compute(), pca.transform(frame), atol=1e-5)
    with pytest.raises(SourceError, match="has 39 features, but the model was fitted on 40"):
        pca.transform(frames.from_pandas(frame[NAMES[:-1]], npartitions=3))
