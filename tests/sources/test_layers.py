"""Layers: positions in a row, shapes, and selection by patterns."""

import json

import numpy as np
import pytest

from eigengame.sources import Layers, SourceError
from eigengame.sources._layer_patterns import match_all, matching

LAYERS = Layers.of([("conv", (2, 3, 4), True), ("fc", (5,), False), ("plain", (2, 3, 4), False)])
NAMES = ["conv1", "layer1", "layer1.0", "layer1.0.conv1", "layer1.1", "layer2.0", "layer3.0", "fc"]


def test_components_are_cut_back_into_the_shapes_that_layers_have():
    rng = np.random.default_rng(0)
    shapes = {"conv": (2, 3, 4), "fc": (5,), "plain": (2, 3, 4)}
    truth = {name: rng.normal(size=(7, *shape)) for name, shape in shapes.items()}
    lying = [truth["conv"].transpose(0, 2, 3, 1), truth["fc"], truth["plain"]]
    rows = np.concatenate([part.reshape(7, -1) for part in lying], axis=1)
    cut = LAYERS.cut(rows)
    assert list(cut) == list(shapes)
    for name, part in cut.items():
        np.testing.assert_array_equal(part, truth[name])
        np.testing.assert_array_equal(LAYERS.cut(rows[3])[name], truth[name][3])
    assert LAYERS.width == rows.shape[1] == 53


def test_every_feature_is_found_in_its_layer():
    places = LAYERS.cut(np.arange(53))
    for column in (0, 1, 23, 24, 28, 29, 52):
        layer, place = LAYERS.at(column)
        assert places[layer.name][place] == column


def test_shares_are_the_squared_norms_of_a_component_in_each_layer():
    component = np.zeros((2, 53), np.float32)
    component[0, [0, 25, 30]] = [1, 2, 2]
    shares = LAYERS.shares(component)
    np.testing.assert_allclose(shares, [[1 / 9, 4 / 9, 4 / 9], [0, 0, 0]])


def test_layers_are_restored_from_json():
    assert Layers.from_facts(json.loads(json.dumps(LAYERS.facts()))) == LAYERS


def test_the_side_of_layers_is_stored_and_compared():
    parts = [("conv", (2, 3, 4), True), ("fc", (5,), False)]
    outputs, inputs = Layers.of(parts), Layers.of(parts, "inputs")
    assert (outputs.side, inputs.side) == ("outputs", "inputs")
    assert outputs != inputs
    assert Layers.from_facts(json.loads(json.dumps(inputs.facts()))) == inputs
    # Files of outputs are those of earlier versions.
    assert all("side" not in one for one in outputs.facts())
    assert "pass side='outputs'" in inputs.difference(outputs)


def test_components_of_another_width_are_refused():
    with pytest.raises(ValueError, match="rows have 52 features, but these layers have 53"):
        LAYERS.cut(np.zeros((2, 52)))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("conv1", ["conv1"]),
        ("layer1.*", ["layer1.0", "layer1.1"]),
        ("layer[12].0", ["layer1.0", "layer2.0"]),
        ("layer[!1].?", ["layer2.0", "layer3.0"]),
        ("layer1**", ["layer1", "layer1.0", "layer1.0.conv1", "layer1.1"]),
        ("**.conv1", ["layer1.0.conv1"]),
        ("l.yer1", []),
    ],
)
def test_one_star_does_not_match_a_dot_and_two_do(pattern, found):
    assert matching(pattern, NAMES) == found


def test_a_pattern_that_matches_nothing_is_refused_with_similar_names():
    with pytest.raises(
        SourceError, match=r"'layr1.0' matches nothing in net; similar names are layer1.0"
    ):
        match_all(["fc", "layr1.0"], NAMES, "net", "this")
    with pytest.raises(SourceError, match=f"there are {', '.join(NAMES)}: this lists all"):
        match_all(["zzz"], NAMES, "net", "this")
    with pytest.raises(SourceError, match="there are 80 others: this lists all"):
        match_all(["zzz"], 10 * NAMES, "net", "this")
    with pytest.raises(SourceError, match="give at least one name"):
        match_all([], NAMES, "net", "this")
