import json

import numpy as np
import pytest
from scipy import sparse

from eigengame import SourceError, prepare
from eigengame.preparation import Preparation, PreparedSource
from eigengame.sources import ArraySource, as_source
from tests.preparation.reading import Weighted, counts, rows_of

ALL = {"columns": [0, 2, 3], "missing": "mean", "counts": "log-normalise", "scale": "two-pass"}


def test_a_prepared_source_keeps_the_attributes_of_its_source():
    source = ArraySource(counts(0), "cells")
    source.feature_names = list("abcdef")
    prepared = prepare(source, **ALL)
    assert as_source(prepared) is prepared
    assert (prepared.name, prepared.shape, prepared.again) == ("cells", (40, 3), True)
    assert prepared.feature_names == ["a", "c", "d"]
    assert not prepared.sparse
    assert [len(block) for block in prepared.blocks(5, 20)] == [20, 15]


def test_images_keep_their_shape_until_columns_are_chosen():
    source = ArraySource(counts(0))
    source.image_shape = (2, 3, 1)
    assert prepare(source).image_shape == (2, 3, 1)
    assert prepare(source, columns=[0, 1]).image_shape is None


def test_preparing_twice_gives_one_chain_of_steps():
    x = counts(1)
    twice = prepare(prepare(x, counts="log1p"), scale="two-pass")
    assert [step.kind for step in twice.steps] == ["missing", "counts", "scale"]
    assert not isinstance(twice.source, PreparedSource)
    once = prepare(x, counts="log1p", scale="two-pass")
    np.testing.assert_array_equal(rows_of(twice), rows_of(once))
    assert twice.fingerprint() == once.fingerprint()


def test_the_fingerprint_contains_source_and_steps():
    x = counts(2)
    first = prepare(x, **ALL).fingerprint()
    assert first == json.loads(json.dumps(first))
    assert first == prepare(x.copy(), **ALL).fingerprint()
    assert first.items() >= as_source(x).fingerprint().items()
    others = [prepare(x, **ALL | {"target": 1.0}), prepare(x, **ALL | {"scale": None})]
    others += [prepare(x, **ALL | {"columns": [0, 2, 4]}), prepare(counts(3), **ALL)]
    assert all(first != other.fingerprint() for other in others)


@pytest.mark.parametrize(
    "steps",
    [ALL, ALL | {"columns": None, "scale": None}, {"genotypes": True}],
    ids=["all", "some", "genotypes"],
)
def test_steps_are_restored_from_json_and_arrays(steps):
    x = np.minimum(counts(4), 2).astype(float)
    x[5, 0] = np.nan
    kept = prepare(x, **steps).preparation
    facts = json.loads(json.dumps(kept.facts()))
    again = Preparation.from_facts(facts, kept.arrays(), kept.width)
    assert again.same_as(kept)
    fresh = np.minimum(counts(5), 2).astype(float)
    np.testing.assert_array_equal(rows_of(again.over(fresh)), rows_of(kept.over(fresh)))


@pytest.mark.parametrize(
    "steps",
    [{"missing": "mean"}, {"scale": "two-pass"}, {"genotypes": True}],
    ids=str,
)
def test_a_row_of_weight_3_counts_as_three_rows(steps):
    x = np.minimum(counts(13), 2).astype(float)
    if "scale" not in steps:
        x[20, 1] = np.nan
    weighted = prepare(Weighted(x), **steps).preparation.arrays()
    repeated = prepare(np.repeat(x, np.arange(40), axis=0), **steps).preparation.arrays()
    assert weighted.keys() == repeated.keys()
    assert len(weighted) == 1
    for name, array in weighted.items():
        np.testing.assert_allclose(array, repeated[name], rtol=1e-9)


def test_other_data_is_prepared_by_the_learnt_steps():
    x, other = counts(6), counts(7)
    kept = prepare(x, scale="two-pass").preparation
    np.testing.assert_allclose(rows_of(kept.over(other)), other / x.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        rows_of(kept.over(sparse.csr_array(other))), other / x.std(axis=0), rtol=1e-9
    )


def test_named_columns_are_found_by_name_in_other_data():
    x = counts(8)
    source, turned = ArraySource(x, "one"), ArraySource(x[:, ::-1], "turned")
    source.feature_names, turned.feature_names = list("abcdef"), list("fedcba")
    kept = prepare(source, columns=["b", "a"], scale="two-pass").preparation
    np.testing.assert_array_equal(rows_of(kept.over(turned)), rows_of(kept.over(x)))
    turned.feature_names = list("fedcbz")
    with pytest.raises(SourceError, match=r"turned has no 'a' among its 6 features"):
        kept.over(turned)


def test_data_prepared_by_the_same_steps_is_returned_and_otherwise_refused():
    x = counts(9)
    prepared = prepare(x, scale="two-pass")
    assert prepared.preparation.over(prepared) is prepared
    with pytest.raises(
        SourceError, match=r"other preparation steps than the model: give the unprepared data"
    ):
        prepared.preparation.over(prepare(counts(10), scale="two-pass"))


def test_another_width_is_refused():
    kept = prepare(counts(11), columns=[0, 1]).preparation
    with pytest.raises(SourceError, match=r"has 5 features, but the model was fitted on 6, before"):
        kept.over(counts(11)[:, :5])


def test_an_unknown_option_of_the_source_is_refused():
    with pytest.raises(SourceError, match="does not belong to this kind of data"):
        prepare(counts(12), key="layers/raw")
