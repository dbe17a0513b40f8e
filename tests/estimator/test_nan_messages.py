"""Messages about NaN and infinity: the place of the value, and the options that handle it."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from eigengame import EigenGamePCA

PLACE = r"\[7, 3\] is nan.*missing='mean'.*missing='skip'.*--missing"


def rows(value=np.nan, n=200):
    table = np.random.default_rng(0).standard_normal((n, 5))
    table[7, 3] = value
    return table


@pytest.fixture(scope="module")
def pca():
    return EigenGamePCA(2, random_state=0).fit(rows(1.0))


def path(tmp_path):
    np.save(tmp_path / "x.npy", rows())
    return tmp_path / "x.npy"


def csr(_):
    return sparse.csr_array(rows())


def csc(_):
    return sparse.csc_array(rows())


@pytest.mark.parametrize(
    "make",
    [lambda _: rows(), lambda _: pd.DataFrame(rows()), csr, csc, path],
    ids=["array", "frame", "csr", "csc", "path"],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "certify", "score"])
def test_a_missing_value_is_reported_with_its_place_and_the_options(tmp_path, pca, make, method):
    estimator = EigenGamePCA(2) if method in ("fit", "partial_fit") else pca
    with pytest.raises(ValueError, match=PLACE):
        getattr(estimator, method)(make(tmp_path))


def test_an_infinite_value_is_not_called_missing(pca):
    for method in (EigenGamePCA(2).fit, pca.transform):
        with pytest.raises(ValueError, match=r"\[7, 3\] is inf: infinite values are not missing"):
            method(rows(np.inf))


def test_the_row_of_a_sparse_value_is_found_in_a_stream_of_several_batches():
    matrix = sparse.csr_array(np.where(rows(n=3000) > 0.5, rows(n=3000), 0))
    matrix.data[-1] = np.nan
    row, column = (int(one[-1]) for one in matrix.nonzero())
    with pytest.raises(ValueError, match=rf"\[{row}, {column}\] is nan"):
        EigenGamePCA(2, batch_size=256).fit([matrix[:2000], matrix[2000:]])


def test_a_generator_with_missing_values_names_the_options():
    with pytest.raises(ValueError, match=r"stream has NaN.*missing='mean'.*--missing"):
        EigenGamePCA(2).fit(iter([rows()]))
