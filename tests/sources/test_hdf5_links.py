"""HDF5 files that take their data from other files: refused unless the user allows it."""

import h5py
import numpy as np
import pytest
from scipy import sparse

from eigengame import as_source
from eigengame.sources import SourceError

X = np.arange(60.0).reshape(20, 3)
REFUSED = r"takes its data from another file, '.*'.*external=True"


@pytest.fixture
def secret(tmp_path):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = X
        matrix = sparse.csr_array(X)
        group = file.create_group("sparse")
        group.attrs["shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)
    X.tofile(tmp_path / "secret.raw")
    return tmp_path / "secret.h5"


def linked(file, secret):
    file["x"] = h5py.ExternalLink(secret, "/x")


def linked_group(file, secret):
    file["group"] = h5py.ExternalLink(secret, "/")
    file["x"] = h5py.SoftLink("/group/x")


def stored(file, secret):
    raw = [(str(secret.with_suffix(".raw")), 0, h5py.h5f.UNLIMITED)]
    file.create_dataset("x", X.shape, X.dtype, external=raw)


def virtual(file, secret):
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(secret, "x", X.shape)
    file.create_virtual_dataset("x", layout)


@pytest.mark.parametrize("make", [linked, linked_group, stored, virtual])
@pytest.mark.parametrize("ending", ["h5", "h5ad"])
def test_data_of_another_file_is_refused_unless_it_is_allowed(tmp_path, secret, make, ending):
    path = tmp_path / f"x.{ending}"
    with h5py.File(path, "w") as file:
        make(file, secret)
        if ending == "h5ad":
            file["X"] = h5py.SoftLink("/x")
    options = {"key": "x"} if ending == "h5" else {}
    with pytest.raises(SourceError, match=REFUSED):
        as_source(path, **options)
    (block,) = as_source(path, external=True, **options).blocks(0, 32)
    np.testing.assert_array_equal(block.values, X)


def test_the_parts_of_a_sparse_matrix_are_checked_too(tmp_path, secret):
    for ending, key in (("h5", "m"), ("h5ad", "X")):
        path = tmp_path / f"x.{ending}"
        with h5py.File(path, "w") as file:
            group = file.create_group(key)
            group.attrs.update({"shape": X.shape, "encoding-type": "csr_matrix"})
            for part in ("data", "indices", "indptr"):
                group[part] = h5py.ExternalLink(secret, f"/sparse/{part}")
        options = {"key": key} if ending == "h5" else {}
        with pytest.raises(SourceError, match=REFUSED):
            as_source(path, **options)
        (block,) = as_source(path, external=True, **options).blocks(0, 32)
        np.testing.assert_array_equal(block.values.toarray(), X)


def test_names_of_features_do_not_come_from_other_files(tmp_path, secret):
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = X
        file["var"] = h5py.ExternalLink(secret, "/sparse")
    with pytest.raises(SourceError, match=REFUSED):
        as_source(path)


def test_links_and_virtual_datasets_within_the_file_are_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["real/x"] = X
        file["real/soft"] = h5py.SoftLink("x")
        layout = h5py.VirtualLayout(X.shape, X.dtype)
        layout[:] = h5py.VirtualSource(".", "/real/x", X.shape)
        file.create_virtual_dataset("virtual", layout)
        file["again"] = h5py.SoftLink("again")
    for key in ("real/x", "/real/soft", "real/./soft", "virtual"):
        (block,) = as_source(tmp_path / "x.h5", key=key).blocks(0, 32)
        np.testing.assert_array_equal(block.values, X)
    with pytest.raises(SourceError, match="cycle of links"):
        as_source(tmp_path / "x.h5", key="again")
    with pytest.raises(SourceError, match="has no 'real/x/y'"):
        as_source(tmp_path / "x.h5", key="real/x/y")


def test_a_link_that_is_not_used_does_not_matter(tmp_path, secret):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        file["other"] = h5py.ExternalLink(secret, "/x")
        group = file.create_group("m")
        group.attrs["shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            group[part] = h5py.ExternalLink(secret, f"/sparse/{part}")
    assert as_source(tmp_path / "x.h5").shape == X.shape
