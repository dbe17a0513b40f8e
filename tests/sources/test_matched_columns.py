"""Features of other data are found by name: in any order, with others between them."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from eigengame.sources import SourceError, as_source
from eigengame.sources.matched_columns import MatchedColumns, match_columns
from tests.sources.same_rows import assert_same_rows

X = np.random.default_rng(0).poisson(1.0, (37, 5)).astype(np.float32)
NAMES = list("abcde")


def source_of(make, names, values=X):
    source = as_source(make(values))
    source.feature_names = names
    source.read_row_ids = None
    return source


@pytest.fixture(params=[np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def make(request):
    return request.param


def test_features_in_another_order_and_with_others_are_put_in_order(make):
    order = [3, 0, 4, 1, 2]
    given = np.hstack([X[:, order], X[:, :2]])
    matched = match_columns(source_of(make, [NAMES[i] for i in order] + ["x", "y"], given), NAMES)
    assert_same_rows(matched, X)
    assert matched.feature_names == NAMES
    assert matched.sparse == (make is sparse.csr_array)
    assert matched.unused == 2
    assert matched.absent == 0


def test_the_same_names_are_returned_unchanged_also_if_they_are_not_unique(make):
    for names in (NAMES, list("aabbb")):
        source = source_of(make, names)
        assert match_columns(source, names) is source


def test_features_that_are_not_needed_may_be_absent_if_allowed(make):
    given = source_of(make, ["c", "a", "e"], X[:, [2, 0, 4]])
    with pytest.raises(SourceError, match=r"lacks 2 features of the model \('b', 'd'\).*columns="):
        match_columns(given, NAMES, absent_as_zero=True)
    with pytest.raises(SourceError, match=r"lacks 2 features of the fit.*--intersect"):
        match_columns(given, NAMES, needed=[0, 4])
    matched = match_columns(given, NAMES, needed=[0, 4], absent_as_zero=True)
    expected = X.copy()
    expected[:, [1, 3]] = 0
    assert_same_rows(matched, expected)
    assert matched.absent == 2


def test_a_needed_name_that_occurs_twice_is_refused_unless_all_are_the_same(make):
    names = ["a", "a", "c", "d", "e"]
    other = [names[i] for i in (1, 0, 3, 2, 4)]
    with pytest.raises(SourceError, match=r"'a' is the name of several.*var_names_make_unique"):
        match_columns(source_of(make, other), names)
    # The first of a name is the first of the fit: their sum, which totals need, does not depend on it.
    matched = match_columns(source_of(make, other), names, needed=[2, 4])
    assert_same_rows(matched, X[:, [0, 1, 3, 2, 4]])


def test_matched_rows_can_be_sent_to_another_process_and_have_ids(make):
    given = source_of(make, NAMES[::-1], X[:, ::-1])
    matched = match_columns(given, NAMES)
    assert isinstance(matched, MatchedColumns)
    given.read_row_ids = ids
    assert matched.row_ids()[2] == "row 2"
    assert matched.id_columns()["id"][2] == "row 2"
    assert_same_rows(pickle.loads(pickle.dumps(matched)), X)
    assert matched.digest() != given.digest()
    assert matched.fingerprint()["shape"] == [37, 5]


def ids():
    return [f"row {i}" for i in range(37)]
