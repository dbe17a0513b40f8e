"""Sparse matrices in memory: indices outside the shape are refused before compiled code uses them."""

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, as_source
from eigengame.sources import SourceError

X = sparse.random(50, 20, density=0.2, format="csr", random_state=0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("place", [10**9, -1])
def test_entries_outside_the_shape_are_refused(form, place):
    bad = X.asformat(form).copy()
    (bad.col if form == "coo" else bad.indices)[3] = place
    pca = EigenGamePCA(2, random_state=0).fit(X)
    for meet in (
        as_source,
        EigenGamePCA(2).fit,
        EigenGamePCA(2).partial_fit,
        pca.transform,
        pca.certify,
    ):
        with pytest.raises(SourceError, match="indices outside its shape"):
            meet(bad)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("place", [10**9, 50, -1])
def test_pieces_of_a_stream_with_entries_outside_their_shape_are_refused(form, place):
    bad = X.asformat(form).copy()
    bad.indices[3] = place
    with pytest.raises(SourceError, match=r"stream: the piece at row 50 is .* outside its shape"):
        EigenGamePCA(2).fit([X, bad])


def test_lists_of_lists_with_entries_outside_their_shape_are_refused():
    bad = X.tolil().copy()
    bad.rows[0], bad.data[0] = [10**6], [1.0]
    with pytest.raises(SourceError, match="indices outside its shape"):
        as_source(bad)


def test_row_pointers_that_fall_or_leave_the_entries_are_refused():
    for place, value in ((3, 10**9), (3, -1), (50, 10**9), (50, 0), (0, 1)):
        bad = X.copy()
        bad.indptr[place] = value
        with pytest.raises(SourceError, match="outside its shape"):
            as_source(bad)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_files_with_entries_outside_the_shape_are_refused(tmp_path, form):
    bad = X.asformat(form).copy()
    bad.indices[3] = 10**9
    path = tmp_path / "bad.npz"
    np.savez(
        path,
        indices=bad.indices,
        indptr=bad.indptr,
        format=form.encode(),
        shape=bad.shape,
        data=bad.data,
    )
    with pytest.raises(SourceError):
        EigenGamePCA(2).fit(path)


def test_masked_values_are_refused():
    data = np.ma.masked_greater(np.random.default_rng(0).normal(size=(60, 4)), 2)
    for meet in (as_source, EigenGamePCA(2).fit):
        with pytest.raises(SourceError, match="masked"):
            meet(data)
    assert as_source(np.ma.asarray(np.ones((3, 2)))).shape == (3, 2)
